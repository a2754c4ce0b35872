"""The `suite` macro: a workload as one target to run.

    suite(name = "smoke")    # ./bazelw run //suites:smoke

is the command line with its arguments filled in: optrail suite smoke.
"""

def suite(name, workload = None):
    """Declares a runnable suite.

    Args:
      name: of the target.
      workload: an embedded workload, or the path of a .workload.textproto in
        the workspace; by default the name.
    """
    native.sh_binary(
        name = name,
        srcs = [Label("//suites:run_optrail.sh")],
        args = [
            "suite",
            workload or name,
        ],
        data = [Label("//:optrail")],
    )

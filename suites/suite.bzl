"""The `suite` macro: a workload as one target to run.

    suite(name = "resnet50")    # ./bazelw run //suites:resnet50

is the command line with its arguments filled in: optrail suite resnet50. Where
the operators are named,

    suite(name = "smoke", operators = ["//ops/add", "//ops/softmax"])

nothing else is built: that command and these.
"""

load("@rules_cc//cc:defs.bzl", "cc_binary")

def suite(name, workload = None, operators = None):
    """Declares a runnable suite.

    Args:
      name: of the target.
      workload: an embedded workload, or the path of a .workload.textproto in
        the workspace; by default the name.
      operators: those of the workload; by default all, and the whole command
        line.
    """
    if operators:
        cc_binary(
            name = name,
            args = [workload or name],
            deps = operators + [str(Label("//cli:suite_main"))],
        )
        return
    native.sh_binary(
        name = name,
        srcs = [Label("//suites:run_optrail.sh")],
        args = [
            "suite",
            workload or name,
        ],
        data = [Label("//:optrail")],
    )

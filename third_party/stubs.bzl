"""Repositories that Bazel insists on and Optrail does not need."""

def _remote_coverage_tools_stub_impl(ctx):
    # `bazel test` resolves this label even without coverage; an empty
    # filegroup crashes `bazel coverage`, so it holds one file.
    ctx.file("WORKSPACE", "workspace(name = \"%s\")\n" % ctx.name)
    ctx.file("unsupported.sh", "#!/bin/sh\necho 'coverage is not set up here' >&2\nexit 1\n")
    ctx.file("BUILD", """
filegroup(
    name = "coverage_report_generator",
    srcs = ["unsupported.sh"],
    visibility = ["//visibility:public"],
)
""")

remote_coverage_tools_stub = repository_rule(
    implementation = _remote_coverage_tools_stub_impl,
    doc = "Satisfies the label that `bazel test` resolves for coverage.",
)

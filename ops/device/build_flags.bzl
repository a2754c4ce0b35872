"""Tells a library with which options its build was made."""

def _build_flags_impl(ctx):
    options = ctx.fragments.cpp.copts + ctx.fragments.cpp.cxxopts
    for option in options:
        if "\"" in option or "\\" in option:
            fail("compiler option %r cannot be recorded in a C++ string" % option)
    ctx.actions.write(
        ctx.outputs.header,
        "#define OPTRAIL_COMPILER_FLAGS \"%s\"\n#define OPTRAIL_COMPILATION_MODE \"%s\"\n" %
        (" ".join(options), ctx.var["COMPILATION_MODE"]),
    )
    return [DefaultInfo(files = depset([ctx.outputs.header]))]

build_flags = rule(
    implementation = _build_flags_impl,
    attrs = {"header": attr.output(mandatory = True)},
    doc = "Generates a header with the compiler options and compilation mode of the command line.",
    fragments = ["cpp"],
)

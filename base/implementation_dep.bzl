"""implementation_dep(): a dependency of a library's code, not of its header.

    implementation_dep(name = "closest_implementation", dep = ":closest")

    cc_library(
        name = "textproto",
        srcs = ["textproto.cc"],
        deps = [":closest_implementation"],
    )

The library links `dep` but passes none of its headers on, so that whatever
includes textproto.h is not compiled again when closest.h changes. The library
sees none of them either: its source declares the functions that it calls.
"""

def _implementation_dep_impl(ctx):
    return [CcInfo(linking_context = ctx.attr.dep[CcInfo].linking_context)]

implementation_dep = rule(
    implementation = _implementation_dep_impl,
    attrs = {"dep": attr.label(mandatory = True, providers = [CcInfo])},
    doc = "Links a library and hides its headers.",
)

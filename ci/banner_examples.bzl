"""The examples of headers' banners as one source, to be compiled by a test."""

def _banner_examples_impl(ctx):
    headers = []
    for dep in ctx.attr.deps:
        headers += dep[CcInfo].compilation_context.direct_public_headers
    out = ctx.actions.declare_file(ctx.label.name + ".cc")
    ctx.actions.run_shell(
        command = "python3 \"$@\"",
        arguments = [
            ctx.file._extract.path,
            ctx.file.contexts.path,
            out.path,
        ] + [header.path for header in headers],
        inputs = headers + [ctx.file.contexts, ctx.file._extract],
        outputs = [out],
        mnemonic = "OptrailBannerExamples",
    )
    return [DefaultInfo(files = depset([out]))]

banner_examples = rule(
    implementation = _banner_examples_impl,
    attrs = {
        "contexts": attr.label(allow_single_file = True, mandatory = True),
        "deps": attr.label_list(providers = [CcInfo]),
        "_extract": attr.label(
            allow_single_file = True,
            default = "//ci:banner_examples.py",
        ),
    },
    doc = "Extracts the examples of the public headers of `deps`.",
)

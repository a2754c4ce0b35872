"""The examples of headers' banners as sources, to be compiled by a test."""

_FOLDERS = ["base", "carbon", "diagnosis", "fleet", "graph", "ops", "reports", "suites", "tracker", "tuning"]

_Banners = provider(fields = ["headers", "cc_infos"])

def _banners_impl(target, ctx):
    deps = getattr(ctx.rule.attr, "deps", [])
    headers = []
    cc_infos = [dep[CcInfo] for dep in deps if CcInfo in dep]
    if CcInfo in target:
        cc_infos = [target[CcInfo]]
        headers = [
            header
            for header in target[CcInfo].compilation_context.direct_public_headers
            if header.is_source and not header.owner.workspace_name
        ]
    return [_Banners(
        headers = depset(
            headers,
            transitive = [
                dep[_Banners].headers
                for dep in deps
                if _Banners in dep
            ],
        ),
        cc_infos = cc_infos,
    )]

_banners = aspect(
    implementation = _banners_impl,
    attr_aspects = ["deps", "actual"],
    doc = "Collects the public headers of everything that is leaned on.",
)

def _banner_examples_impl(ctx):
    headers = depset(transitive = [
        dep[_Banners].headers
        for dep in ctx.attr.deps
    ])
    outs = {
        folder: ctx.actions.declare_file(
            "%s_%s.cc" % (ctx.label.name, folder),
        )
        for folder in _FOLDERS
    }
    arguments = ctx.actions.args()
    arguments.add(ctx.file._extract)
    arguments.add(ctx.file.contexts)
    for folder, out in outs.items():
        arguments.add("%s=%s" % (folder, out.path))
    arguments.add_all(headers)
    ctx.actions.run_shell(
        command = "python3 \"$@\"",
        arguments = [arguments],
        inputs = depset(
            [ctx.file.contexts, ctx.file._extract],
            transitive = [headers],
        ),
        outputs = outs.values(),
        mnemonic = "OptrailBannerExamples",
    )
    return [
        DefaultInfo(files = depset(outs.values())),
        cc_common.merge_cc_infos(cc_infos = [
            cc_info
            for dep in ctx.attr.deps
            for cc_info in dep[_Banners].cc_infos
        ]),
    ]

banner_examples = rule(
    implementation = _banner_examples_impl,
    attrs = {
        "contexts": attr.label(allow_single_file = True, mandatory = True),
        "deps": attr.label_list(aspects = [_banners]),
        "_extract": attr.label(
            allow_single_file = True,
            default = "//ci:banner_examples.py",
        ),
    },
    doc = "Extracts the examples of the public headers of `deps` and all that " +
          "they lean on; whoever depends on it may include these.",
)

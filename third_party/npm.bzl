"""Repository rule that takes files out of a package of the npm registry.

The package's name, version and hash are pinned; the npm client's own settings
decide where it comes from.
"""

def _npm_file_impl(ctx):
    npm = ctx.which("npm")
    if not npm:
        fail("npm is missing; run ./bazelw instead of bazel: it installs the packages listed in third_party/debian_packages.txt")
    spec = "%s@%s" % (ctx.attr.package, ctx.attr.version)
    packed = ctx.execute([npm, "pack", "--silent", spec], timeout = 300)
    if packed.return_code != 0:
        fail("npm pack %s failed (is the npm registry reachable?): %s" % (spec, packed.stderr))
    archive = packed.stdout.strip().split("\n")[-1]
    digest = ctx.execute(["sh", "-c", "sha512sum \"$1\" | cut -d' ' -f1", "sh", archive]).stdout.strip()
    if digest != ctx.attr.sha512:
        fail("npm package %s has SHA-512 %s, expected %s" % (spec, digest, ctx.attr.sha512))
    ctx.extract(archive, stripPrefix = "package")
    ctx.delete(archive)
    ctx.file("WORKSPACE", "workspace(name = \"%s\")\n" % ctx.name)
    ctx.file("BUILD", "exports_files(%r)\n" % ctx.attr.files)

npm_file = repository_rule(
    implementation = _npm_file_impl,
    attrs = {
        "files": attr.string_list(mandatory = True, doc = "files of the package to export"),
        "package": attr.string(mandatory = True),
        "sha512": attr.string(mandatory = True, doc = "of the package archive, in hex"),
        "version": attr.string(mandatory = True),
    },
    doc = "Exports files of one pinned npm package.",
)

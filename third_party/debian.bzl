"""Repository rules that find libraries and Bazel rules installed by Debian packages.

Nothing is downloaded and nothing is copied into this repository: each rule
writes BUILD files whose targets link the system's shared libraries.
"""

_INSTALL_HINT = "run ./bazelw instead of bazel: it installs the packages listed in third_party/debian_packages.txt"

def _require(ctx, path):
    if not ctx.path(path).exists:
        fail("%s is missing; %s" % (path, _INSTALL_HINT))

def _multiarch_lib(ctx):
    for triplet in ["x86_64-linux-gnu", "aarch64-linux-gnu"]:
        path = "/usr/lib/" + triplet
        if ctx.path(path + "/pkgconfig").exists:
            return path
    fail("no /usr/lib/*-linux-gnu/pkgconfig found: this build expects Debian 12 on x86-64 or arm64; " + _INSTALL_HINT)

def _cc_library(name, linkopts = [], deps = []):
    lines = ["cc_library(", "    name = %r," % name]
    if linkopts:
        lines.append("    linkopts = %r," % linkopts)
    if deps:
        lines.append("    deps = %r," % deps)
    lines += ["    visibility = [\"//visibility:public\"],", ")", ""]
    return "\n".join(lines)

_LOAD_CC = "load(\"@rules_cc//cc:defs.bzl\", \"cc_library\")\n\n"

def _workspace_file(ctx):
    ctx.file("WORKSPACE", "workspace(name = \"%s\")\n" % ctx.name)

# --- Single libraries ---------------------------------------------------------

def _debian_library_impl(ctx):
    _workspace_file(ctx)
    root = "/usr/include"
    build = _LOAD_CC
    for name, header in ctx.attr.headers.items():
        found = ctx.path(root + "/" + header).exists
        if not found:
            # Some Debian headers sit under the multiarch folder.
            found = ctx.path(_multiarch_lib(ctx).replace("/usr/lib", root) + "/" + header).exists
        if not found:
            fail("%s/%s is missing; %s" % (root, header, _INSTALL_HINT))
        build += _cc_library(name, ctx.attr.linkopts[name])
    ctx.file("BUILD", build)

debian_library = repository_rule(
    implementation = _debian_library_impl,
    attrs = {
        "headers": attr.string_dict(doc = "target name -> header under /usr/include that proves it is installed"),
        "linkopts": attr.string_list_dict(doc = "target name -> linker options"),
    },
    local = True,
    doc = "Libraries of one upstream project, found under /usr.",
)

# --- Abseil -------------------------------------------------------------------

def _absl_label(target, headers_by_dir):
    """The upstream (package, target) of pkg-config module absl_<target>."""

    # Upstream names follow headers: absl_statusor is absl/status/statusor.h and
    # //absl/status:statusor; absl_flags_parse is absl/flags/parse.h.
    if target in headers_by_dir:
        return (target, target)
    for folder in sorted(headers_by_dir):
        if target in headers_by_dir[folder]:
            return (folder, target)
    for folder in sorted(headers_by_dir):
        if target.startswith(folder + "_") and target[len(folder) + 1:] in headers_by_dir[folder]:
            return (folder, target[len(folder) + 1:])
    return ("internal", target)

# Upstream targets that are headers only, or named unlike their header, and so
# have no pkg-config module of the same name.
_ABSL_ALIASES = {
    "algorithm": {"container": "absl_algorithm_container"},
    "base": {"core_headers": "absl_core_headers"},
    "container": {"btree": "absl_btree"},
    "flags": {"flag": "absl_flags"},
    "random": {"random": "absl_random_random", "distributions": "absl_random_distributions", "bit_gen_ref": "absl_random_bit_gen_ref"},
    "strings": {"str_format": "absl_str_format"},
}

def _debian_absl_impl(ctx):
    _workspace_file(ctx)
    pc_dir = _multiarch_lib(ctx) + "/pkgconfig"
    _require(ctx, "/usr/include/absl")
    headers_by_dir = {}
    for folder in ctx.path("/usr/include/absl").readdir():
        headers_by_dir[folder.basename] = {
            header.basename[:-2]: True
            for header in folder.readdir()
            if header.basename.endswith(".h")
        }

    modules = {}
    for pc in ctx.path(pc_dir).readdir():
        if not (pc.basename.startswith("absl_") and pc.basename.endswith(".pc")):
            continue
        name = pc.basename[:-len(".pc")]
        libs, requires = [], []
        for line in ctx.read(pc).split("\n"):
            if line.startswith("Libs:"):
                libs = [word for word in line[len("Libs:"):].split(" ") if word.startswith("-l")]
            elif line.startswith("Requires:"):
                requires = [word.strip().split(" ")[0] for word in line[len("Requires:"):].split(",")]
        modules[name] = struct(libs = libs, requires = [r for r in requires if r])

    labels = {name: _absl_label(name[len("absl_"):], headers_by_dir) for name in modules}
    builds = {}
    defined = {}
    for name in sorted(modules):
        package, target = labels[name]
        deps = [
            "//absl/%s:%s" % labels[required]
            for required in modules[name].requires
            if required in labels and labels[required] != labels[name]
        ]
        builds.setdefault(package, []).append(_cc_library(target, modules[name].libs, deps))
        defined[(package, target)] = True
    for package, aliases in _ABSL_ALIASES.items():
        for target, module in aliases.items():
            if (package, target) in defined:
                continue
            deps = ["//absl/%s:%s" % labels[module]] if module in labels else []
            builds.setdefault(package, []).append(_cc_library(target, [], deps))
    for package, targets in builds.items():
        ctx.file("absl/%s/BUILD" % package, _LOAD_CC + "\n".join(targets))
    ctx.file("BUILD", "")

debian_absl = repository_rule(
    implementation = _debian_absl_impl,
    local = True,
    doc = "Abseil under its upstream labels, read from the .pc files of Debian's libabsl-dev.",
)

# --- Protobuf -----------------------------------------------------------------

def _debian_protobuf_impl(ctx):
    _workspace_file(ctx)
    _require(ctx, "/usr/bin/protoc")
    _require(ctx, "/usr/include/google/protobuf/message.h")
    ctx.symlink("/usr/bin/protoc", "protoc_binary")
    ctx.file("BUILD", """
load("@rules_cc//cc:defs.bzl", "cc_library")
load("@rules_proto//proto:defs.bzl", "proto_lang_toolchain")

package(default_visibility = ["//visibility:public"])

filegroup(
    name = "protoc",
    srcs = ["protoc_binary"],
)

cc_library(
    name = "protobuf",
    linkopts = ["-lprotobuf", "-lpthread"],
)

alias(
    name = "protobuf_headers",
    actual = ":protobuf",
)

proto_lang_toolchain(
    name = "cc_toolchain",
    command_line = "--cpp_out=$(OUT)",
    runtime = ":protobuf",
)
""")

debian_protobuf = repository_rule(
    implementation = _debian_protobuf_impl,
    local = True,
    doc = "protoc and libprotobuf of Debian under the labels that Bazel's proto rules expect.",
)

# --- Halide -------------------------------------------------------------------

# Debian's development package depends on LLVM's, 500 MB that Halide.h does not
# include: bazelw unpacks it here.
_HALIDE_ROOTS = ["/usr", "/opt/optrail/halide14/usr"]

def _debian_halide_impl(ctx):
    _workspace_file(ctx)
    lib = _multiarch_lib(ctx)
    root = None
    if ctx.os.environ.get("OPTRAIL_NO_HALIDE", "") != "1" and ctx.path(lib + "/libHalide14.so.0").exists:
        for candidate in _HALIDE_ROOTS:
            if ctx.path(candidate + "/include/halide14/Halide.h").exists:
                root = candidate
    if root == None:
        ctx.file("BUILD", "")
        ctx.file("halide.bzl", "HALIDE_FOUND = False\nHALIDE_VERSION = \"\"\n")
        return
    plugins = "%s%s/halide14" % (root, lib[len("/usr"):])
    ctx.symlink(root + "/include/halide14", "include")
    ctx.file("BUILD", _LOAD_CC + """cc_library(
    name = "halide",
    hdrs = glob(["include/**"]),
    # Where its autoschedulers are, which are loaded by name.
    defines = ["OPTRAIL_HALIDE_PLUGINS=\\\\\\"%s\\\\\\""],
    includes = ["include"],
    linkopts = ["-l:libHalide14.so.0"],
    visibility = ["//visibility:public"],
)
""" % plugins)

    # Both decide what code comes out.
    versions = [
        ctx.execute(["dpkg-query", "-W", "-f=${Version}", package]).stdout or "unknown"
        for package in ["libhalide14-0", "libllvm14"]
    ]
    version = "%s, LLVM %s" % tuple(versions)
    ctx.file("halide.bzl", "HALIDE_FOUND = True\nHALIDE_VERSION = %r\n" % version)

debian_halide = repository_rule(
    implementation = _debian_halide_impl,
    environ = ["OPTRAIL_NO_HALIDE"],
    local = True,
    doc = """Halide 14 where it is installed; @halide//:halide.bzl says whether it is.

OPTRAIL_NO_HALIDE=1 builds as if it were not.""",
)

# --- oneDNN -------------------------------------------------------------------

def _debian_onednn_impl(ctx):
    _workspace_file(ctx)
    found = ctx.path("/usr/include/oneapi/dnnl/dnnl.h").exists
    version = ctx.execute(["dpkg-query", "-W", "-f=${Version}", "libdnnl-dev"]).stdout if found else ""

    # The define is what tells Bazel that there are headers now.
    ctx.file("BUILD", _LOAD_CC + """cc_library(
    name = "onednn",
    defines = %r,
    visibility = ["//visibility:public"],
)
""" % (["OPTRAIL_ONEDNN_HEADERS=\\\"%s\\\"" % (version or "unknown")] if found else []))

debian_onednn = repository_rule(
    implementation = _debian_onednn_impl,
    local = True,
    doc = "The headers of oneDNN, where they are installed; the library is loaded at run time.",
)

# --- Bazel rules --------------------------------------------------------------

def _debian_rules_impl(ctx):
    _require(ctx, ctx.attr.path)
    for entry in ctx.path(ctx.attr.path).readdir():
        ctx.symlink(entry, entry.basename)

debian_rules = repository_rule(
    implementation = _debian_rules_impl,
    attrs = {"path": attr.string(mandatory = True)},
    local = True,
    doc = "Bazel rules that a Debian package installs in a folder.",
)

def _debian_rules_cc_impl(ctx):
    # Debian's rules_cc is newer than its Bazel 4.2: two files load
    # use_cpp_toolchain, which this Bazel lacks.
    source = "/usr/share/bazel/rules/cc"
    _require(ctx, source)
    result = ctx.execute(["cp", "-rL", source + "/.", "."])
    if result.return_code != 0:
        fail("copying %s: %s" % (source, result.stderr))
    for name in ["cc_flags_supplier.bzl", "compiler_flag.bzl"]:
        path = "cc/private/rules_impl/" + name
        text = ctx.read(path)
        text = text.replace(", \"use_cpp_toolchain\")", ")")
        text = text.replace("use_cpp_toolchain()", "[\"@bazel_tools//tools/cpp:toolchain_type\"]")
        ctx.file(path, text)

debian_rules_cc = repository_rule(
    implementation = _debian_rules_cc_impl,
    local = True,
    doc = "Debian's rules_cc, adapted to Debian's Bazel.",
)

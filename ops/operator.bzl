"""The `operator` macro: all targets of one operator folder.

    load("//ops:operator.bzl", "operator")   # "@optrail//ops:operator.bzl" elsewhere

    operator(
        name = "softmax",
        srcs = ["softmax.cc"],
        cpu = ["softmax_cpu.cc"],
        backends = {"native": ["softmax_native.jit.cc"]},
        shapes = "softmax.shapes.textproto",
        space = "softmax.space.textproto",
    )

docs/add_operator.md adds an operator step by step.
"""

load("@bazel_tools//tools/cpp:toolchain_utils.bzl", "find_cpp_toolchain")
load("@halide//:halide.bzl", "HALIDE_FOUND", "HALIDE_VERSION")
load("@rules_cc//cc:defs.bzl", "cc_binary", "cc_library", "cc_test")

def _path_in_workspace(file):
    return file.owner.package + "/" + file.owner.name if file.owner.package else file.owner.name

def _file_argument(file):
    """What a generated file says about a file, and where the tool finds it."""
    return _path_in_workspace(file) + "=" + file.path

# The generators are built as the rest is, not once more for the host: Optrail
# builds on the machine that it measures.
_TOOL_CONFIGURATION = "target"

def _checked_space_impl(ctx):
    checked = ctx.actions.declare_file(ctx.label.name + ".checked")
    ctx.actions.run(
        executable = ctx.executable._check,
        arguments = [
            "--space=" + ctx.file.space.path,
            "--shapes=" + ctx.file.shapes.path,
            "--out=" + checked.path,
            "--hardware=" + ",".join([file.path for file in ctx.files.hardware]),
        ],
        inputs = [ctx.file.space, ctx.file.shapes] + ctx.files.hardware,
        outputs = [checked],
        mnemonic = "OptrailCheckSpace",
        progress_message = "Checking space %s" % ctx.file.space.short_path,
    )
    return [DefaultInfo(files = depset([checked]))]

_checked_space = rule(
    implementation = _checked_space_impl,
    attrs = {
        "hardware": attr.label_list(allow_files = True),
        "shapes": attr.label(allow_single_file = True, mandatory = True),
        "space": attr.label(allow_single_file = True, mandatory = True),
        "_check": attr.label(
            cfg = _TOOL_CONFIGURATION,
            default = "//ops/core:check_space",
            executable = True,
        ),
    },
    doc = "Checks a space against shapes and hardware.",
)

def _operator_knobs_impl(ctx):
    ctx.actions.run(
        executable = ctx.executable._generate,
        arguments = [
            "--space=" + ctx.file.space.path,
            "--name=" + ctx.attr.operator,
            "--namespace=" + ctx.attr.namespace,
            "--shards=%d" % ctx.attr.shards,
            "--header_path=" + _path_in_workspace(ctx.outputs.header),
            "--out=" + ctx.outputs.header.path,
        ],
        # Not before the space is known to be sound for every listed shape.
        inputs = [ctx.file.space] + ctx.files.checked,
        outputs = [ctx.outputs.header],
        mnemonic = "OptrailKnobs",
        progress_message = "Generating %s" % ctx.outputs.header.short_path,
    )
    return [DefaultInfo(files = depset([ctx.outputs.header]))]

_operator_knobs = rule(
    implementation = _operator_knobs_impl,
    attrs = {
        "checked": attr.label_list(mandatory = True),
        "header": attr.output(mandatory = True),
        "namespace": attr.string(mandatory = True),
        "operator": attr.string(mandatory = True),
        "shards": attr.int(mandatory = True),
        "space": attr.label(allow_single_file = True, mandatory = True),
        "_generate": attr.label(
            cfg = _TOOL_CONFIGURATION,
            default = "//ops/core:generate_knobs",
            executable = True,
        ),
    },
    doc = "Generates the header of a space's knobs.",
)

def _operator_registration_impl(ctx):
    # Whatever changes the machine code of a kernel is part of its id (see
    # ops/core/kernel_sources.h); the compiler's version is added where the
    # registration is compiled.
    cc_toolchain = find_cpp_toolchain(ctx)
    options = (
        ["cpu=" + cc_toolchain.cpu, "mode=" + ctx.var["COMPILATION_MODE"]] +
        ctx.fragments.cpp.copts + ctx.fragments.cpp.cxxopts + ctx.attr.options
    )
    arguments = ctx.actions.args()
    arguments.add("--name", ctx.attr.operator)
    arguments.add("--package", ctx.label.package)
    arguments.add("--version", ctx.attr.version)
    arguments.add("--options", "\n".join(options))
    arguments.add("--space", _file_argument(ctx.file.space))
    arguments.add("--shapes", _file_argument(ctx.file.shapes))
    arguments.add_joined("--headers", [_file_argument(f) for f in ctx.files.headers], join_with = ",")
    backends = []
    for target, names in ctx.attr.backends.items():
        for file in target.files.to_list():
            backends += [name + ":" + _file_argument(file) for name in names.split(" ")]
    arguments.add_joined("--backends", backends, join_with = ",")
    arguments.add("--jit_header", _file_argument(ctx.file._jit_header))
    if ctx.attr.halide_compiler:
        workspace = ctx.label.workspace_name or ctx.workspace_name
        arguments.add("--halide_compiler", "/".join([workspace, ctx.label.package, ctx.attr.halide_compiler]))
        arguments.add("--halide_version", HALIDE_VERSION)
    arguments.add_joined("--tuned", [_file_argument(f) for f in ctx.files.tuned], join_with = ",")
    if ctx.attr.test_only:
        arguments.add("--test_only")
    arguments.add("--out", ctx.outputs.out)
    ctx.actions.run(
        executable = ctx.executable._generate,
        arguments = [arguments],
        inputs = [ctx.file.space, ctx.file.shapes] + ctx.files.headers + ctx.files.backends + ctx.files.tuned + [ctx.file._jit_header] + ctx.files.checked,
        outputs = [ctx.outputs.out],
        mnemonic = "OptrailRegistration",
        progress_message = "Generating the registration of operator %s" % ctx.attr.operator,
    )
    return [DefaultInfo(files = depset([ctx.outputs.out]))]

_operator_registration = rule(
    implementation = _operator_registration_impl,
    attrs = {
        "backends": attr.label_keyed_string_dict(allow_files = True),
        "checked": attr.label_list(),
        "headers": attr.label_list(allow_files = True),
        "halide_compiler": attr.string(),
        "operator": attr.string(mandatory = True),
        "options": attr.string_list(),
        "out": attr.output(mandatory = True),
        "shapes": attr.label(allow_single_file = True, mandatory = True),
        "space": attr.label(allow_single_file = True, mandatory = True),
        "test_only": attr.bool(),
        "tuned": attr.label_list(allow_files = True),
        "version": attr.int(mandatory = True),
        "_cc_toolchain": attr.label(default = "@bazel_tools//tools/cpp:current_cc_toolchain"),
        "_generate": attr.label(
            cfg = _TOOL_CONFIGURATION,
            default = "//ops/core:generate_registration",
            executable = True,
        ),
        "_jit_header": attr.label(
            allow_single_file = True,
            default = "//ops/core:jit.h",
        ),
    },
    doc = "Embeds an operator's data files and computes its backends' ids.",
    fragments = ["cpp"],
    toolchains = ["@bazel_tools//tools/cpp:toolchain_type"],
)

def operator(
        name,
        srcs,
        space,
        shapes,
        cpu = [],
        cuda = [],
        halide = [],
        backends = {},
        hardware = {},
        hdrs = [],
        tuned = None,
        version = 1,
        uses = [],
        deps = [],
        data = [],
        copts = [],
        shards = 1,
        namespace = "optrail::ops",
        sampled_configs = 8,
        test_only = False,
        visibility = ["//visibility:public"]):
    """Declares an operator: library, space, test, benchmark, tuner, tuned configs.

    :NAME        library; linking it registers the operator
    :NAME_space  the checked space; generates "NAME_knobs.h" in this package
    :NAME_test   every kernel with the default and sampled configs against the
                 reference, on every SIMD target of the machine; the space,
                 shapes and tuned configs
    :NAME_bench  Google Benchmark suite of this operator
    :NAME_tune   tunes the listed shapes on this machine
    :NAME_tuned  the checked-in tuned configs

    Args:
      name: as Operator::name() gives it
      srcs: the Operator and its reference
      space: the space file
      shapes: the shapes file
      cpu: the CpuKernel; compiled `shards` times with OPTRAIL_SHARD
        defined as 0, 1, ...
      cuda: the kernel for CUDA
      halide: the operator's algorithm in Halide (ops/halide/algorithm.h), a
        file NAME_halide.cc and headers that it shares: the backends `halide`, whose schedules are found by
        tuning, and halide_adams2019, halide_li2018 and halide_mullapudi2016
      backends: other ways to compute the operator, {name: files}. A *.jit.cc is
        embedded and compiled when it is asked for (ops/core/jit.h); another
        *.cc is compiled now and has an OPTRAIL_REGISTER_BACKEND
        (ops/core/backend.h); a *.space.textproto is the backend's own space,
        without which it has one config. A device kind's own kernels are a
        backend of the kind's name, "own" where Optrail does not name the kind,
        and share `space` unless they have one of their own
      hardware: what hw.* in the space of a backend is checked against, {name of
        the backend: files}; each file is a textproto of optrail.proto.Hardware,
        recorded on such a device. By default the names that CPUs have, and for
        "cuda" //ops/device/cuda:cuda.hardware.textproto
      hdrs: headers of this operator
      tuned: tuned configs, one file per hardware; default tuned/*.textproto
      version: raised by hand when a kernel changes through something other than
        its sources and options, such as a dependency; part of every kernel's id
      uses: files that the CPU kernel is made of beside its own, part of its id:
        headers of ops/lib, loops that another library compiles (in `deps`)
      deps: what the sources include beyond Highway, Optrail's ops/core, ops/lib
        and canonical text, and Abseil's status, strings and span
      data: files that are read when kernels are run, such as recorded inputs
        (OperandSpec::file)
      copts: compiler options of the kernels
      shards: compilations over which the instantiations are spread
      namespace: C++ namespace of the generated knobs
      sampled_configs: how many random configs per shape and kernel the test
        tries beside the default
      test_only: the operator is left out of listings and workloads
      visibility: of the library; the other targets are private
    """
    if tuned == None:
        tuned = native.glob(["tuned/*.textproto"], allow_empty = True)
    shared_deps = [
        str(Label("//ops/core:backend")),
        str(Label("//ops/core:cpu_kernel")),
        str(Label("//ops/core:operator")),
        str(Label("//ops/core:registry")),
        str(Label("//ops/core:canonical")),
        str(Label("//ops/core:status_macros")),
        str(Label("//ops/lib")),
        str(Label("@com_google_absl//absl/status")),
        str(Label("@com_google_absl//absl/status:statusor")),
        str(Label("@com_google_absl//absl/strings")),
        str(Label("@com_google_absl//absl/types:span")),
    ]

    generated = []
    halide_compiler = ""
    if halide:
        algorithms = [file for file in halide if file.endswith("_halide.cc")]
        if len(algorithms) != 1:
            fail("operator %s: halide = %r: expected one name that ends with _halide.cc" % (name, halide))
        own = halide + [str(Label("//ops/halide:compiler_sources"))]
        peer = own + [str(Label("//ops/halide:autoscheduler.space.textproto"))]
        backends = dict({
            "halide": own,
            "halide_adams2019": peer,
            "halide_li2018": peer,
            "halide_mullapudi2016": peer,
        }, **backends)
        generated.append(str(Label("//ops/halide:halide_backend")))
        if HALIDE_FOUND:
            halide_compiler = name + "_halide_compiler"
            cc_binary(
                name = halide_compiler,
                srcs = halide,
                visibility = ["//visibility:private"],
                deps = [
                    str(Label("//ops/halide:algorithm")),
                    str(Label("//ops/halide:compiler_main")),
                ],
            )

    for backend in hardware:
        if backend not in backends and not (backend == "cpu" and cpu) and not (backend == "cuda" and cuda):
            fail("operator %s: hardware is given for backend %s, which it does not have" % (name, backend))

    # Every space on the hardware of every backend that has it. Where none says
    # which that is, a CPU tells what names there are.
    hardware = dict({"cuda": [str(Label("//ops/device/cuda:cuda.hardware.textproto"))]}, **hardware)
    files_of = dict(backends)
    if cpu:
        files_of["cpu"] = cpu + uses
    if cuda:
        files_of["cuda"] = cuda
    own_space_of = {}
    for backend, files in files_of.items():
        for file in files:
            if file.endswith(".space.textproto"):
                own_space_of[backend] = file
    sharing = [b for b in ["cpu", "cuda", "own"] if b in files_of and b not in own_space_of]
    checked = []
    for backend in sharing or ["cpu"]:
        own_space_of[backend] = space
    for backend, backend_space in own_space_of.items():
        checked.append("%s_%s_space_check" % (name, backend))
        _checked_space(
            name = checked[-1],
            hardware = hardware.get(backend, []),
            shapes = shapes,
            space = backend_space,
            visibility = ["//visibility:private"],
        )

    _operator_knobs(
        name = name + "_knobs",
        checked = checked,
        header = name + "_knobs.h",
        namespace = namespace,
        operator = name,
        shards = shards,
        space = space,
        visibility = ["//visibility:private"],
    )
    cc_library(
        name = name + "_space",
        hdrs = [name + "_knobs.h"],
        data = [space],
        visibility = visibility,
        deps = shared_deps,
    )

    names_of = {}
    for backend, files in files_of.items():
        for file in files:
            names_of[file] = names_of[file] + " " + backend if file in names_of else backend
    compiled_backends = [
        file
        for file in names_of
        if file not in cpu + uses and file not in halide and file.endswith(".cc") and not file.endswith(".jit.cc")
    ]
    _operator_registration(
        name = name + "_registration",
        backends = names_of,
        checked = checked,
        halide_compiler = halide_compiler,
        headers = hdrs,
        operator = name,
        options = copts,
        out = name + "_registration.cc",
        shapes = shapes,
        space = space,
        test_only = test_only,
        tuned = tuned,
        version = version,
        visibility = ["//visibility:private"],
    )
    if hdrs:
        cc_library(
            name = name + "_hdrs",
            hdrs = hdrs,
            visibility = ["//visibility:private"],
            deps = shared_deps + deps + [":" + name + "_space"],
        )
    kernel_deps = shared_deps + deps + [":" + name + "_space", str(Label("@com_github_google_highway//:hwy"))]
    if hdrs:
        kernel_deps.append(":" + name + "_hdrs")
    for shard in range(shards):
        cc_library(
            name = "%s_cpu_%d" % (name, shard),
            srcs = cpu,
            copts = copts,
            local_defines = ["OPTRAIL_SHARD=%d" % shard],
            visibility = ["//visibility:private"],
            deps = kernel_deps,
            alwayslink = True,
        )
    cc_library(
        name = name,
        srcs = srcs + compiled_backends + [name + "_registration.cc"],
        hdrs = hdrs,
        data = data + ([":" + halide_compiler] if halide_compiler else []),
        linkopts = ["-ldl"],
        visibility = visibility,
        deps = kernel_deps + generated + [str(Label("//ops/core:built_from")), str(Label("//ops/core:jit_backend"))] + [":%s_cpu_%d" % (name, shard) for shard in range(shards)],
        alwayslink = True,
    )

    cc_test(
        name = name + "_test",
        # Programs that are compiled, and autoschedulers that search.
        timeout = "long" if halide and HALIDE_FOUND else None,
        args = [
            "--op=" + name,
            "--sampled_configs=%d" % sampled_configs,
        ] + (["--untested_backends=halide_adams2019"] if halide else []),
        visibility = ["//visibility:private"],
        deps = [
            ":" + name,
            str(Label("//ops/core:operator_test_main")),
        ],
    )
    for tool in ["bench", "tune"]:
        cc_binary(
            name = name + "_" + tool,
            visibility = ["//visibility:private"],
            deps = [
                ":" + name,
                str(Label("//suites:%s_main" % tool)),
            ],
        )
    native.filegroup(
        name = name + "_tuned",
        srcs = tuned,
        visibility = visibility,
    )

"""The `operator` macro: all targets of one operator folder.

    load("//ops:operator.bzl", "operator")   # "@optrail//ops:operator.bzl" elsewhere

    operator(name = "softmax")

Files are found by their names: softmax.cc, softmax.space.textproto,
softmax.shapes.textproto, tuned/*.textproto, and backends as
ops/backend_files.bzl says (softmax_cpu.cc, softmax_onednn.cc,
softmax_native.jit.cc, ...).

docs/guide/add_operator.md adds an operator step by step.
"""

load("@bazel_tools//tools/cpp:toolchain_utils.bzl", "find_cpp_toolchain")
load("@halide//:halide.bzl", "HALIDE_FOUND")
load("@rules_cc//cc:defs.bzl", "cc_binary", "cc_library", "cc_test")
load(
    "//ops:backend_files.bzl",
    "COMPILED_BACKENDS",
    "HALIDE_BACKEND",
    "JIT_BACKEND",
    "added",
    "backend_deps",
    "backend_files",
    "backend_spaces",
    "is_space",
    "made_backends",
    "names_of",
    "there",
    "united",
)
load("//ops:kernel_files.bzl", "LEFT_OUT", "kernel_files", "kernel_files_aspect")

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

def _by_name(attribute):
    """NAME:FILE of a dictionary from labels to names."""
    arguments = []
    for target, names in attribute.items():
        for file in target.files.to_list():
            arguments += [name + ":" + _file_argument(file) for name in names.split(" ")]
    return arguments

def _operator_registration_impl(ctx):
    # Whatever changes the machine code of a kernel is part of its id (see
    # ops/core/kernel_sources.h); the compiler's version is added where the
    # registration is compiled.
    cc_toolchain = find_cpp_toolchain(ctx)
    options = (
        ["cpu=" + cc_toolchain.cpu, "mode=" + ctx.var["COMPILATION_MODE"]] +
        ctx.fragments.cpp.copts + ctx.fragments.cpp.cxxopts + ctx.attr.options
    )
    sources, generated = kernel_files(ctx.attr.deps, ctx.label.workspace_name)
    sources = ctx.files.sources + sources
    arguments = ctx.actions.args()
    arguments.add("--name", ctx.attr.operator)
    arguments.add("--package", ctx.label.package)
    arguments.add("--version", ctx.attr.version)
    arguments.add("--options", "\n".join(options))
    arguments.add("--space", _file_argument(ctx.file.space))
    arguments.add("--shapes", _file_argument(ctx.file.shapes))
    arguments.add_joined("--sources", [_file_argument(f) for f in sources], join_with = ",", uniquify = True)
    arguments.add_joined("--left_out", LEFT_OUT + [_path_in_workspace(f) for f in generated], join_with = ",")
    arguments.add_joined("--backends", _by_name(ctx.attr.backends), join_with = ",")
    arguments.add_joined("--spaces", _by_name(ctx.attr.spaces), join_with = ",")
    workspace = ctx.label.workspace_name or ctx.workspace_name
    arguments.add("--made", "\n".join(ctx.attr.made).replace("{package}", workspace + "/" + ctx.label.package))
    arguments.add_joined("--tuned", [_file_argument(f) for f in ctx.files.tuned], join_with = ",")
    if ctx.attr.test_only:
        arguments.add("--test_only")
    arguments.add("--out", ctx.outputs.out)
    ctx.actions.run(
        executable = ctx.executable._generate,
        arguments = [arguments],
        inputs = [ctx.file.space, ctx.file.shapes] + sources + ctx.files.backends + ctx.files.spaces + ctx.files.tuned + ctx.files.checked,
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
        "deps": attr.label_list(aspects = [kernel_files_aspect]),
        "made": attr.string_list(),
        "operator": attr.string(mandatory = True),
        "options": attr.string_list(),
        "out": attr.output(mandatory = True),
        "shapes": attr.label(allow_single_file = True, mandatory = True),
        "sources": attr.label_list(allow_files = True),
        "space": attr.label(allow_single_file = True, mandatory = True),
        "spaces": attr.label_keyed_string_dict(allow_files = True),
        "test_only": attr.bool(),
        "tuned": attr.label_list(allow_files = True),
        "version": attr.int(mandatory = True),
        "_cc_toolchain": attr.label(default = "@bazel_tools//tools/cpp:current_cc_toolchain"),
        "_generate": attr.label(
            cfg = _TOOL_CONFIGURATION,
            default = "//ops/core:generate_registration",
            executable = True,
        ),
    },
    doc = "Embeds an operator's data files and computes its backends' ids.",
    fragments = ["cpp"],
    toolchains = ["@bazel_tools//tools/cpp:toolchain_type"],
)

def _check_names(name, what, given, files_of):
    for backend in given:
        if backend not in files_of:
            fail("operator %s: %s is given for backend %s, which it does not have; it has: %s" % (name, what, backend, ", ".join(sorted(files_of))))

def _check_spaces(name, space_of, hardware, shapes):
    """A check of every space on the hardware of every backend that has it."""
    checked = []

    # Where no backend says what names there are, a CPU does.
    for backend, space in space_of.items():
        known = COMPILED_BACKENDS.get(backend)
        checked.append("%s_%s_space_check" % (name, backend))
        _checked_space(
            name = checked[-1],
            hardware = hardware.get(backend, known.hardware if known else []),
            shapes = shapes,
            space = space,
            visibility = ["//visibility:private"],
        )
    return checked

def _targets_around(name, sampled_configs, slow, untested, tuned, visibility):
    """The test, the benchmark, the tuner and the tuned configs."""
    cc_test(
        name = name + "_test",
        timeout = "long" if slow else None,
        args = [
            "--op=" + name,
            "--sampled_configs=%d" % sampled_configs,
        ] + (["--untested_backends=" + ",".join(untested)] if untested else []),
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

_SHARED_DEPS = [str(Label(dep)) for dep in [
    "//ops/core:backend",
    "//ops/core:canonical",
    "//ops/core:cpu_kernel",
    "//ops/core:data_type",
    "//ops/core:library_backend",
    "//ops/core:operator",
    "//ops/core:registry",
    "//ops/core:status_macros",
    "//ops/elementwise",
    "//ops/lib",
    "//ops/lib:blocks",
    "//ops/norm",
    "@com_google_absl//absl/status",
    "@com_google_absl//absl/status:statusor",
    "@com_google_absl//absl/strings",
    "@com_google_absl//absl/types:span",
]]

def operator(
        name,
        srcs = None,
        space = None,
        shapes = None,
        cpu = [],
        cuda = [],
        halide = [],
        backends = {},
        spaces = {},
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
      srcs: the Operator and its reference; default NAME.cc
      space: the space file; default NAME.space.textproto
      shapes: the shapes file; default NAME.shapes.textproto
      cpu: files of the CpuKernel beside NAME_cpu.cc; compiled `shards` times
        with OPTRAIL_SHARD defined as 0, 1, ...
      cuda: files of the kernel for CUDA beside NAME_cuda.cc and NAME_*.cu
      halide: files of the algorithm in Halide (ops/halide/algorithm.h) beside
        NAME_halide.cc and *_halide.h: the backends `halide`, whose schedules are
        found by tuning, and halide_adams2019, halide_li2018 and
        halide_mullapudi2016
      backends: other ways to compute the operator that are not found by name
        (ops/backend_files.bzl), {name: files}, or several names parted by
        blanks. A *.jit.cc is embedded and compiled when it is asked for
        (ops/core/jit.h); another *.cc is compiled now and has an
        OPTRAIL_REGISTER_BACKEND (ops/core/backend.h). The kernels of a device
        kind that Optrail does not name are the backend "own"
      spaces: {name of the backend: space file}; default NAME_BACKEND.space.textproto.
        The kinds' own kernels share `space` unless they have one of their own;
        another backend without one has one config
      hardware: what hw.* in the space of a backend is checked against, {name of
        the backend: files}; each file is a textproto of optrail.proto.Hardware,
        recorded on such a device. By default the names that CPUs have, and for
        "cuda" //ops/device/cuda:cuda.hardware.textproto
      hdrs: headers of this operator that others include
      tuned: tuned configs, one file per hardware; default tuned/*.textproto
      version: raised by hand when a kernel changes through something other than
        its sources and options, such as a dependency; part of every kernel's id
      uses: files that are part of the CPU kernel's id though a walk along
        #include from its own files does not reach them
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
    srcs = srcs or [name + ".cc"]
    space = space or name + ".space.textproto"
    shapes = shapes or name + ".shapes.textproto"
    tuned = there("tuned/*.textproto") if tuned == None else tuned
    cpu = united(there(name + "_cpu.cc"), cpu)
    cuda_main = there(name + "_cuda.cc")
    cuda = united(cuda_main, cuda, there(name + "_*.cu") if cuda_main else [])
    algorithm = there(name + HALIDE_BACKEND.suffix)
    halide = united(algorithm, halide, there("*_halide.h") if algorithm else [])
    files_of = backend_files(name, cpu, cuda, halide, backends, uses)
    space_of = backend_spaces(name, files_of, spaces, space)
    _check_names(name, "hardware", hardware, files_of)
    _check_names(name, "a space", spaces, files_of)
    sources_of = {b: [f for f in files if not is_space(f)] for b, files in files_of.items()}

    halide_compiler = ""
    if halide and HALIDE_FOUND:
        halide_compiler = name + "_halide_compiler"
        cc_binary(
            name = halide_compiler,
            srcs = halide,
            visibility = ["//visibility:private"],
            deps = HALIDE_BACKEND.compiler_deps,
        )

    checked = _check_spaces(name, space_of or {"cpu": space}, hardware, shapes)
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
        deps = _SHARED_DEPS,
    )
    kernel_deps = added(deps, _SHARED_DEPS + backend_deps(files_of) + [
        ":" + name + "_space",
        str(Label("@com_github_google_highway//:hwy")),
    ])
    if hdrs:
        cc_library(
            name = name + "_hdrs",
            hdrs = hdrs,
            visibility = ["//visibility:private"],
            deps = added(deps, _SHARED_DEPS + [":" + name + "_space"]),
        )
        kernel_deps.append(":" + name + "_hdrs")
    _operator_registration(
        name = name + "_registration",
        backends = names_of(sources_of),
        checked = checked,
        made = made_backends(name, files_of, halide_compiler),
        operator = name,
        options = copts,
        out = name + "_registration.cc",
        shapes = shapes,
        sources = there("*.h", "*.hh", "*.hpp", "*.cuh", "*.cu", "*.cc", "*.cpp", "*.c", "*.inc"),
        space = space,
        spaces = names_of({b: [file] for b, file in space_of.items()}),
        test_only = test_only,
        tuned = tuned,
        version = version,
        visibility = ["//visibility:private"],
        deps = kernel_deps,
    )
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
    compiled = [
        file
        for file in names_of(sources_of)
        if file.endswith(".cc") and not file.endswith(JIT_BACKEND.suffix) and
           not file.endswith(HALIDE_BACKEND.suffix) and file not in united(cpu, uses)
    ]
    cc_library(
        name = name,
        srcs = srcs + compiled + [name + "_registration.cc"],
        hdrs = hdrs,
        data = data + ([":" + halide_compiler] if halide_compiler else []),
        linkopts = ["-ldl"],
        visibility = visibility,
        deps = kernel_deps + [str(Label("//ops/core:built_from"))] +
               [":%s_cpu_%d" % (name, shard) for shard in range(shards)],
        alwayslink = True,
    )

    # Programs that are compiled, and autoschedulers that search, take long.
    _targets_around(
        name,
        sampled_configs,
        slow = bool(halide and HALIDE_FOUND),
        tuned = tuned,
        untested = HALIDE_BACKEND.untested if halide else [],
        visibility = visibility,
    )

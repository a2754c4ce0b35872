"""What the name of a file says of the backend in it, for the `operator` macro.

NAME_cpu.cc, NAME_cuda.cc with NAME_*.cu, NAME_onednn.cc, NAME_cblas.cc,
NAME_plain.jit.cc and NAME_halide.cc are backends of the operator NAME where they exist. A backend of
a new library, or code that a new generator makes, is one entry here.
"""

load("@halide//:halide.bzl", "HALIDE_VERSION")

def _label(text):
    return str(Label(text))

def _backend(deps = [], space = None, hardware = []):
    return struct(
        deps = [_label(dep) for dep in deps],
        hardware = [_label(file) for file in hardware],
        space = _label(space) if space else None,
    )

# Compiled with Optrail from NAME_KEY.cc, which registers the backend KEY itself
# (OPTRAIL_REGISTER_BACKEND): the libraries that it links, the space that it has
# unless NAME_KEY.space.textproto exists, and what hw.* in a space is checked
# against.
COMPILED_BACKENDS = {
    "amx": _backend(deps = ["//ops/product/amx:tiles"]),
    "cpu": _backend(),
    "cublas": _backend(deps = [
        "//ops/device/cuda:backend",
        "//ops/device/cuda:device",
        "//ops/device/cuda:library",
        "//ops/vendor/cublaslt",
    ]),
    "cublaslt": _backend(
        space = "//ops/vendor/cublaslt:cublaslt.space.textproto",
        deps = ["//ops/vendor/cublaslt"],
    ),
    "cuda": _backend(
        hardware = ["//ops/device/cuda:cuda.hardware.textproto"],
        deps = [
            "//ops/device/cuda:backend",
            "//ops/elementwise:cuda",
            "//ops/lib:cuda",
            "//ops/norm:cuda",
        ],
    ),
    "cudnn": _backend(
        space = "//ops/vendor/cudnn:cudnn.space.textproto",
        deps = [
            "//ops/norm:cudnn",
            "//ops/vendor/cudnn",
        ],
    ),
    "onednn": _backend(deps = ["//ops/vendor/onednn"]),
}

# Files in which several backends are registered, NAME_KEY.cc.
FILES_OF_SEVERAL = {
    "cblas": ["blis", "openblas"],
}

# A kind of device has the operator's own kernels in the backend of its name,
# "own" where Optrail has no name for the kind. They share the operator's space.
OWN_BACKENDS = ["cpu", "cuda", "own"]

# Made by a function of the registration from what is embedded.
JIT_BACKEND = struct(
    deps = [_label("//ops/core:jit_backend")],
    function = "optrail::ops::MakeJitBackend",
    header = "ops/core/jit_backend.h",
    # Part of every such kernel beside its own files.
    sources = [_label("//ops/core:jit.h")],
    suffix = ".jit.cc",
)

HALIDE_BACKEND = struct(
    compiler_deps = [
        _label("//ops/halide:algorithm"),
        _label("//ops/halide:compiler_main"),
        _label("//ops/lib:halide"),
        _label("//ops/norm:halide"),
    ],
    deps = [
        _label("//ops/halide:halide_backend"),
        _label("//ops/lib:halide"),
        _label("//ops/norm:halide"),
    ],
    function = "optrail::ops::MakeHalideBackend",
    header = "ops/halide/halide_backend.h",
    # Each with the space that it has.
    names = {
        "halide": None,
        "halide_adams2019": _label("//ops/halide:autoscheduler.space.textproto"),
        "halide_li2018": _label("//ops/halide:autoscheduler.space.textproto"),
        "halide_mullapudi2016": _label("//ops/halide:autoscheduler.space.textproto"),
    },
    sources = [_label("//ops/halide:compiler_sources")],
    suffix = "_halide.cc",
    untested = ["halide_adams2019"],
)

def there(*patterns):
    """The files of the package that match."""
    return native.glob(patterns, allow_empty = True)

def united(*lists):
    """Every label once; "x.cc" and ":x.cc" are one."""
    found = {}
    for labels in lists:
        for label in labels:
            found[label[1:] if label.startswith(":") else label] = None
    return found.keys()

def _canonical(label):
    """What two names of one target have in common."""
    if label.startswith("//") or label.startswith("@"):
        return label if ":" in label else label + ":" + label.split("/")[-1]
    return label.lstrip(":")

def added(deps, more):
    """`deps` and those of `more` that are not among them by another name."""
    present = {_canonical(dep): None for dep in deps}
    added = list(deps)
    for dep in more:
        if _canonical(dep) not in present:
            present[_canonical(dep)] = None
            added.append(dep)
    return added

def is_space(file):
    """Whether a file is a space."""
    return file.endswith(".space.textproto")

def backend_files(name, cpu, cuda, halide, backends, uses):
    """{backend: its own files}: declared ones and those that are found by name."""
    files_of = {}
    if halide:
        for backend in HALIDE_BACKEND.names:
            files_of[backend] = halide + HALIDE_BACKEND.sources
    for names, files in backends.items():
        files_of.update({backend: files for backend in names.split(" ")})
    declared = united(*backends.values())
    for key, names in FILES_OF_SEVERAL.items():
        for file in there("%s_%s.cc" % (name, key)):
            for backend in names if file not in declared else []:
                files_of.setdefault(backend, [file])
    for backend in COMPILED_BACKENDS:
        for file in there("%s_%s.cc" % (name, backend)):
            if backend not in ["cpu", "cuda"] and file not in declared:
                files_of.setdefault(backend, [file])
    for file in there(name + "_*" + JIT_BACKEND.suffix):
        if file not in declared:
            files_of.setdefault(file[len(name) + 1:-len(JIT_BACKEND.suffix)], [file])
    if cpu:
        files_of["cpu"] = united(cpu, uses)
    if cuda:
        files_of["cuda"] = cuda
    for backend, files in files_of.items():
        if [file for file in files if file.endswith(JIT_BACKEND.suffix)]:
            files_of[backend] = files + JIT_BACKEND.sources
    return files_of

def backend_spaces(name, files_of, spaces, space):
    """{backend: its space} of those that have one."""
    space_of = {}
    for backend, files in files_of.items():
        known = COMPILED_BACKENDS.get(backend)
        choices = (
            ([spaces[backend]] if backend in spaces else []) +
            [file for file in files if is_space(file)] +
            there("%s_%s.space.textproto" % (name, backend)) +
            ([HALIDE_BACKEND.names[backend]] if HALIDE_BACKEND.names.get(backend) else []) +
            ([known.space] if known and known.space else []) +
            ([space] if backend in OWN_BACKENDS else [])
        )
        if choices:
            space_of[backend] = choices[0]
    return space_of

def made_backends(name, files_of, halide_compiler):
    """NAME|HEADER|FUNCTION|ARGUMENTS of the backends that a function makes."""
    made = []
    for backend, files in sorted(files_of.items()):
        if [file for file in files if file.endswith(HALIDE_BACKEND.suffix)]:
            compiler = "{package}/" + halide_compiler if halide_compiler else ""
            made.append("|".join([backend, HALIDE_BACKEND.header, HALIDE_BACKEND.function, name, compiler, HALIDE_VERSION]))
        if [file for file in files if file.endswith(JIT_BACKEND.suffix)]:
            made.append("|".join([backend, JIT_BACKEND.header, JIT_BACKEND.function]))
    return made

def names_of(files_of):
    """{file: names of backends} of a dictionary the other way round."""
    names = {}
    for backend, files in files_of.items():
        for file in files:
            names[file] = names[file] + " " + backend if file in names else backend
    return names

def backend_deps(files_of):
    """What the found and declared backends link."""
    deps = []
    for backend, files in sorted(files_of.items()):
        if backend in COMPILED_BACKENDS:
            deps += COMPILED_BACKENDS[backend].deps
        if [file for file in files if file.endswith(JIT_BACKEND.suffix)]:
            deps += JIT_BACKEND.deps
        if [file for file in files if file.endswith(HALIDE_BACKEND.suffix)]:
            deps += HALIDE_BACKEND.deps
    return deps

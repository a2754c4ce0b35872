"""Tuned operators on NumPy arrays, and on GPUs on arrays of other packages.

    import numpy, optrail

    store = optrail.Store(".optrail/store")
    plan = optrail.Plan("softmax", "rows=512,cols=384/f32", store=store)
    y = plan(x)                      # x: a float32 array of 512 x 384
    plan.choice.source               # "tuned exactly", "default config", ...

On a GPU (device="cuda") a plan runs on what has __cuda_array_interface__ or
__dlpack__, on a stream of the caller's, in the CUDA context that is current:

    plan = optrail.Plan("softmax", shape, device="cuda", may_compile=True)
    plan(x, out=y, stream=torch.cuda.current_stream().cuda_stream)

optrail.torch registers the operators with PyTorch.

Everything is done by liboptrail (optrail.h says how), which is looked for at
OPTRAIL_LIBRARY, else where the system's loader finds it. What it refuses is an
optrail.Error with its message and the status's name.

Plans and stores may be used by many threads; a call lets others run meanwhile.
"""

import collections

from optrail import _arrays, _c
from optrail._c import Error

__all__ = ["Error", "Plan", "Store", "Threads", "hardware_id", "infer_shape", "observe",
           "operands", "operators", "shape_text"]

Choice = collections.namedtuple(
    "Choice", "source unverified config hardware_id warning shape_distance")
Operand = collections.namedtuple("Operand", "name type role dims bytes")

_SOURCES = ("tuned exactly", "tuned for another shape", "tuned on other hardware",
            "default config", "the caller's config", "tuned for a bucket")
_ROLES = ("input", "output", "in-out")


def hardware_id(device="cpu"):
    """What tuned configs call this machine: "amd-epyc-zen4-2c"."""
    text = _c.ctypes.c_char_p()
    _c.check(_c.lib.optrail_hardware_id(_c.text(device), _c.ctypes.byref(text)))
    return text.value.decode()


def operators():
    """The names of the operators that the library has."""
    return _c.lib.optrail_operators().decode().split()


def shape_text(op, dims, attributes="", types="f32"):
    """The text of a shape: "m=4,n=8,k=2/f32" for ("matmul", [4, 8, 2])."""
    values = _c.dims(dims)
    buffer = _c.ctypes.create_string_buffer(4096)
    _c.check(_c.lib.optrail_shape_text(
        _c.text(op), values, len(dims), _c.text(attributes), _c.text(types),
        buffer, len(buffer)))
    return buffer.value.decode()


def infer_shape(op, inputs, attributes=""):
    """The text of the shape that has these inputs, pairs of dims and type:
    "m=3,n=4,k=5/f32" for ("matmul", [((3, 5), "f32"), ((5, 4), "f32")])."""
    given = (_c.Operand * len(inputs))(*(
        _c.make(_c.Operand, type=_c.text(kind), rank=len(dims),
                dims=_c.dims(dims)) for dims, kind in inputs))
    buffer = _c.ctypes.create_string_buffer(4096)
    _c.check(_c.lib.optrail_infer_shape(
        _c.text(op), given, len(inputs), _c.text(attributes), buffer, len(buffer)))
    return buffer.value.decode()


def operands(op, shape):
    """The operands of calls of a shape, without a plan."""
    raw, count, found = _c.make(_c.Operand), _c.ctypes.c_size_t(1), []
    while len(found) < count.value:
        _c.check(_c.lib.optrail_shape_operand(
            _c.text(op), _c.text(shape), len(found), _c.ctypes.byref(raw),
            _c.ctypes.byref(count)))
        found.append(_operand(raw))
    return found


def _operand(raw):
    return Operand(raw.name.decode(), raw.type.decode(), _ROLES[raw.role],
                   tuple(raw.dims[:raw.rank]), raw.bytes)


def observe(folder, *, time=False):
    """Counts from now on what this process asks for. See optrail_observe(). With None
    nothing begins: it returns if calls are counted, and the Error else says why not."""
    _c.check(_c.lib.optrail_observe(_c.text(folder), _c.OBSERVE_TIME if time else 0))


def _problem(op, shape, device, backend, cache_mode, threads, exact_only):
    return _c.make(_c.Problem, op=_c.text(op), shape=_c.text(shape),
                   device=_c.text(device), backend=_c.text(backend),
                   cache_mode=_c.text(cache_mode), threads=_c.integer("threads", threads, 32),
                   flags=_c.EXACT_ONLY if exact_only else 0)


def _choice(raw):
    return Choice(_SOURCES[raw.source], bool(raw.unverified), raw.config.decode(),
                  raw.hardware_id.decode(), raw.warning.decode(), raw.shape_distance)


class Store(_c.Owner):
    """Tuned configs: the library's own and those below `path`, which win."""

    def __init__(self, path=None):
        super().__init__(_c.lib.optrail_store_close)
        _c.check(_c.lib.optrail_store_open(_c.text(path), self._out()))

    @property
    def digest(self):
        return _c.lib.optrail_store_digest(self.handle).decode()

    def lookup(self, op, shape, *, device=None, backend=None, cache_mode=None, threads=1,
               exact_only=False):
        """The Choice of a config. See optrail_lookup() in optrail.h."""
        problem = _problem(op, shape, device, backend, cache_mode, threads, exact_only)
        raw = _c.make(_c.Choice)
        _c.check(_c.lib.optrail_lookup(self.handle, _c.ctypes.byref(problem),
                                       _c.ctypes.byref(raw)))
        return _choice(raw)


class Threads(_c.Owner):
    """`count` threads for calls, with the one that calls. Not after a fork."""

    def __init__(self, count):
        super().__init__(_c.lib.optrail_threads_destroy)
        _c.check(_c.lib.optrail_threads_create(_c.integer("count", count, 32),
                                               self._out()))


class Plan(_c.Owner):
    """An operator that is ready to run one shape.

    Called with its inputs it returns its output, or a tuple of several. `out`
    gives an array, or a tuple of them, to write in place of new ones; on a GPU
    it must. Operands that are updated in place count as inputs.
    """

    def __init__(self, op, shape, *, store=None, device=None, backend=None,
                 cache_mode=None, threads=1, exact_only=False,
                 config=None, compile_cache=None, may_compile=False):
        super().__init__(_c.lib.optrail_plan_destroy)
        problem = _problem(op, shape, device, backend, cache_mode, threads, exact_only)
        options = _c.make(_c.PlanOptions, config=_c.text(config),
                          compile_cache=_c.text(compile_cache),
                          flags=_c.MAY_COMPILE if may_compile else 0)
        _c.check(_c.lib.optrail_plan_create(
            None if store is None else _c.handle("store", store, Store),
            _c.ctypes.byref(problem), _c.ctypes.byref(options), self._out()))
        self.on_gpu = device == "cuda"
        self.operands = operands(op, shape)
        self.workspace_bytes = _c.lib.optrail_plan_workspace_bytes(self.handle)
        self._calls = []  # made before, which no thread uses now

    @property
    def choice(self):
        raw = _c.make(_c.Choice)
        _c.check(_c.lib.optrail_plan_choice(self.handle, _c.ctypes.byref(raw)))
        return _choice(raw)

    def run(self, *arrays, threads=None, stream=0):
        """One call on all operands in their order, outputs too."""
        if len(arrays) != len(self.operands):
            raise ValueError(f"{len(arrays)} arrays, expected {len(self.operands)}: " +
                             ", ".join(operand.name for operand in self.operands))
        self.run_at([_arrays.address(operand, array, self.on_gpu)
                     for operand, array in zip(self.operands, arrays)],
                    threads=threads, stream=stream)

    def run_at(self, addresses, *, threads=None, stream=0, workspace=0):
        """The same on addresses, which nobody checks against the operands' sizes.
        `workspace` has workspace_bytes at least; 0: the library takes one."""
        try:
            kept = self._calls.pop()
        except IndexError:
            slots = (_c.ctypes.c_void_p * len(self.operands))()
            call = _c.make(_c.Call, operands=slots, operand_count=len(slots))
            kept = slots, call, _c.ctypes.byref(call)
        slots, call, reference = kept
        slots[:] = addresses
        call.threads = None if threads is None else _c.handle("threads", threads, Threads)
        call.stream = stream
        call.workspace = workspace
        call.workspace_bytes = self.workspace_bytes if workspace else 0
        _c.check(_c.run(self.handle, reference))
        self._calls.append(kept)

    def __call__(self, *inputs, out=None, threads=None, stream=0):
        given = iter(inputs)
        wanted = [o for o in self.operands if o.role != "output"]
        if len(inputs) != len(wanted):
            raise ValueError(f"{len(inputs)} inputs, expected {len(wanted)}: " +
                             ", ".join(operand.name for operand in wanted))
        if out is None:
            out = self._new_outputs()
        outputs = out if isinstance(out, tuple) else (out,)
        if len(outputs) != len(self.operands) - len(wanted):
            raise ValueError(f"{len(outputs)} outputs in out, expected "
                             f"{len(self.operands) - len(wanted)}")
        written = iter(outputs)
        self.run(*(next(written if o.role == "output" else given)
                   for o in self.operands), threads=threads, stream=stream)
        return outputs[0] if len(outputs) == 1 else outputs

    def _new_outputs(self):
        if self.on_gpu:
            raise ValueError("out is not given, and this package takes no memory of a GPU; "
                             "next: out=")
        import numpy
        return tuple(numpy.empty(o.dims, _arrays.DTYPES[o.type][-1])
                     for o in self.operands if o.role == "output")

"""Tuned operators for PyTorch, which torch.compile and CUDA graphs accept.

    import torch, optrail, optrail.torch

    optrail.torch.configure(store=optrail.Store(".optrail/store"), may_compile=True)
    y = optrail.torch.softmax(x)                  # x: a dense tensor of two dimensions
    y, = torch.ops.optrail.softmax([x])           # the same

Each operator of the library whose operands are inputs and outputs is registered
as torch.ops.optrail.NAME(Tensor[] inputs, str attributes="") -> Tensor[]. The
inputs tell the shape: 3x5 and 5x4 make "m=3,n=4,k=5" of matmul. Attributes are
those of a shape's text: "padding=1,stride=2". optrail.torch.NAME goes past
PyTorch's dispatcher where nobody compiles, traces or asks for gradients.

A plan is made at the first call with a shape, which loads code and so must not
happen while a CUDA graph is captured: call once before. Work goes to PyTorch's
current stream. There is no autograd: PyTorch warns where a backward pass gets
here. Every shape is a plan of its own, so that torch.compile specialises on
sizes.
"""

import contextlib
import threading

import optrail

try:
    import torch
    from torch.library import Library, register_fake
except ImportError as error:
    raise ImportError("unsupported here: optrail.torch needs PyTorch 2.4 or later, and "
                      f"importing it failed: {error}; next: install torch") from error

_TYPES = {"f64": torch.float64, "f32": torch.float32, "f16": torch.float16,
          "bf16": torch.bfloat16, "i64": torch.int64, "i32": torch.int32,
          "i16": torch.int16, "i8": torch.int8, "u8": torch.uint8}
_NAMES = {dtype: name for name, dtype in _TYPES.items()}
_PLAIN = (torch.Tensor, torch.nn.Parameter)  # other classes may change what a call does
# torch.compile passes inputs as dense as an eager call does.
_TAGS = [getattr(torch.Tag, name) for name in ("pt2_compliant_tag", "needs_fixed_stride_order")
         if hasattr(torch.Tag, name)]

_empty = torch.empty
_current_gpu = torch._C._cuda_getDevice if torch.cuda.is_available() else None
_current_stream = torch._C._cuda_getCurrentRawStream if torch.cuda.is_available() else None

_library = Library("optrail", "DEF")
_lock = threading.Lock()
_options = {}
_plans = {}    # by operator, attributes and the inputs' properties: what _prepare() returns
# Plans on GPUs by operator, shape, device and config. Graphs that were captured have
# their code, so that they stay; other options that choose the same config get them.
_loaded = {}
_shapes = {}   # by operator, attributes, dims and types: a shape's text and its outputs


def configure(*, store=None, compile_cache=None, may_compile=False):
    """How plans are made from now on: optrail.Plan says what these mean."""
    with _lock:
        _options.update(store=store, compile_cache=compile_cache, may_compile=may_compile)
        _plans.clear()


def _shape(op, inputs, attributes):
    """The shape's text, and the dims and types of what a call returns."""
    try:
        sizes = tuple((tuple(int(size) for size in tensor.shape), _NAMES[tensor.dtype])
                      for tensor in inputs)
    except KeyError as error:
        raise TypeError(f"optrail::{op}: no operator has elements of {error}, expected "
                        "one of " + ", ".join(str(dtype) for dtype in _NAMES)) from None
    known = _shapes.get((op, attributes, sizes))
    if known is None:
        text = optrail.infer_shape(op, sizes, attributes)
        known = _shapes[op, attributes, sizes] = (text, [
            (operand.dims, _TYPES[operand.type]) for operand in optrail.operands(op, text)
            if operand.role != "input"])
    return known


def _prepare(key, op, inputs, attributes):
    """What calls with such inputs need: the plan, where each of its operands lies
    among inputs and outputs, the outputs, their device, and its number or None."""
    if not inputs:
        raise ValueError(f"optrail::{op} has no inputs, expected at least one tensor")
    device = inputs[0].device
    if device.type not in ("cpu", "cuda"):
        raise ValueError(f"optrail::{op}: the inputs lie on {device}, expected cpu or cuda")
    for i, tensor in enumerate(inputs):
        if tensor.device != device:
            raise ValueError(f"optrail::{op}: input {i} lies on {tensor.device}, expected "
                             f"{device} like input 0")
        if not tensor.is_contiguous() or tensor.is_neg():
            raise ValueError(f"optrail::{op}: input {i} is not dense and row-major; next: "
                             ".contiguous()")
    text, outputs = _shape(op, inputs, attributes)
    on_gpu = device.type == "cuda"
    with _lock:
        if key in _plans:
            return _plans[key]
        # A plan belongs to the context that is current.
        with torch.cuda.device(device) if on_gpu else contextlib.nullcontext():
            if on_gpu:
                _enter(device)
            plan = optrail.Plan(op, text, device=device.type, **_options)
            if on_gpu:
                plan = _loaded.setdefault((op, text, device, plan.choice.config), plan)
        order, places = [], {"input": 0, "output": len(inputs)}
        for operand in plan.operands:
            order.append(places[operand.role])
            places[operand.role] += 1
        # Most operators take their inputs in the plan's order, and then outputs.
        known = _plans[key] = (plan, order if order != sorted(order) else None, outputs,
                               device, device.index if on_gpu else None)
    return known


def _run(op, inputs, attributes):
    key = [op, attributes]
    for tensor in inputs:
        key += (tensor.shape, tensor.dtype, tensor.device, tensor.is_contiguous(),
                tensor.is_neg())
    key = tuple(key)
    plan, order, outputs, device, gpu = _plans.get(key) or _prepare(
        key, op, inputs, attributes)
    if gpu is not None and gpu != _current_gpu():
        with torch.cuda.device(device):
            return _run(op, inputs, attributes)
    results = [_empty(dims, dtype=dtype, device=device) for dims, dtype in outputs]
    addresses = [tensor.data_ptr() for tensor in inputs]
    for tensor in results:
        addresses.append(tensor.data_ptr())
    if order is not None:
        addresses = [addresses[i] for i in order]
    if gpu is None:
        plan.run_at(addresses)
        return results
    stream, workspace = _current_stream(gpu), 0
    if plan.workspace_bytes:
        # Given back at the end of the call and taken by no other stream: PyTorch's
        # allocator works in the order of the stream.
        held = _empty(plan.workspace_bytes, dtype=torch.uint8, device=device)
        workspace = held.data_ptr()
    try:
        plan.run_at(addresses, stream=stream, workspace=workspace)
    except optrail.Error as error:
        if error.status != "FAILED_PRECONDITION":
            raise
        _enter(device)  # the thread's first call
        plan.run_at(addresses, stream=stream, workspace=workspace)
    return results


def _enter(device):
    """Makes the device's context current. PyTorch leaves that to the first function
    of CUDA's that a thread calls."""
    torch.cuda.mem_get_info(device)


def _is_plain(inputs):
    """Whether a call may go past PyTorch's dispatcher: nobody traces, transforms or
    asks for gradients."""
    if (torch._C._len_torch_dispatch_stack() or torch._C._get_tracing_state() is not None or
            torch._C._are_functorch_transforms_active()):
        return False
    graded = torch.is_grad_enabled()
    for tensor in inputs:
        if type(tensor) not in _PLAIN or graded and tensor.requires_grad:
            return False
    return True


def _register(op):
    def real(inputs, attributes=""):
        return _run(op, inputs, attributes)

    def fake(inputs, attributes=""):
        return [inputs[0].new_empty(dims, dtype=dtype)
                for dims, dtype in _shape(op, inputs, attributes)[1]]

    _library.define(f"{op}(Tensor[] inputs, str attributes=\"\") -> Tensor[]", tags=_TAGS)
    _library.impl(op, real, "CompositeExplicitAutograd")
    register_fake(f"optrail::{op}", fake, lib=_library)
    dispatched = getattr(torch.ops.optrail, op).default

    def call(*inputs, attributes=""):
        if torch.compiler.is_compiling() or not _is_plain(inputs):
            outputs = dispatched(list(inputs), attributes)
        else:
            outputs = _run(op, inputs, attributes)
        return outputs[0] if len(outputs) == 1 else tuple(outputs)

    call.__name__ = op
    call.__doc__ = f"The operator {op} on tensors; returns its output, or several."
    return call


for _name in optrail.operators():
    globals()[_name] = _register(_name)

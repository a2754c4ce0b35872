"""Tuned operators for PyTorch, which torch.compile and CUDA graphs accept.

    import torch, optrail, optrail.torch

    optrail.torch.configure(store=optrail.Store(".optrail/store"), may_compile=True)
    y = optrail.torch.softmax(x)                  # x: a dense tensor of two dimensions
    y, = torch.ops.optrail.softmax([x])           # the same

Each operator of the library whose operands are inputs and outputs is registered
as torch.ops.optrail.NAME(Tensor[] inputs, str attributes="") -> Tensor[]. The
inputs tell the shape: 3x5 and 5x4 make "m=3,n=4,k=5" of matmul. Attributes are
those of a shape's text: "padding=1,stride=2".

A plan is made at the first call with a shape, which loads code and so must not
happen while a CUDA graph is captured: call once before. Work goes to PyTorch's
current stream. There is no autograd. Every shape is a plan of its own, so that
torch.compile specialises on sizes.
"""

import threading

import optrail

try:
    import torch
    from torch.library import custom_op
except ImportError as error:
    raise ImportError("unsupported here: optrail.torch needs PyTorch 2.4 or later, and "
                      f"importing it failed: {error}; next: install torch") from error

_TYPES = {"f64": torch.float64, "f32": torch.float32, "f16": torch.float16,
          "bf16": torch.bfloat16, "i64": torch.int64, "i32": torch.int32,
          "i16": torch.int16, "i8": torch.int8, "u8": torch.uint8}
_NAMES = {dtype: name for name, dtype in _TYPES.items()}

_lock = threading.Lock()
_options = {}
_plans = {}   # by operator, inputs, attributes and device: a plan and its outputs
_shapes = {}  # likewise, without the device: a shape's text and its outputs


def configure(*, store=None, compile_cache=None, may_compile=False):
    """How plans are made from now on: optrail.Plan says what these mean."""
    with _lock:
        _options.update(store=store, compile_cache=compile_cache, may_compile=may_compile)
        _plans.clear()


def _key(op, inputs, attributes):
    try:
        return (op, attributes, *((tuple(int(size) for size in tensor.shape),
                                   _NAMES[tensor.dtype]) for tensor in inputs))
    except KeyError as error:
        raise TypeError(f"optrail::{op}: no operator has elements of {error}, expected "
                        "one of " + ", ".join(str(dtype) for dtype in _NAMES)) from None


def _shape(key):
    """The shape's text, and the operands that a call writes."""
    known = _shapes.get(key)
    if known is None:
        op, attributes, *inputs = key
        text = optrail.infer_shape(op, inputs, attributes)
        known = _shapes[key] = (text, [operand for operand in optrail.operands(op, text)
                                       if operand.role != "input"])
    return known


def _plan(key, device):
    known = _plans.get((key, device))
    if known is None:
        with _lock:
            plan = optrail.Plan(key[0], _shape(key)[0], device=device.type, **_options)
            order, places = [], {"input": 0, "output": len(key) - 2}
            for operand in plan.operands:
                order.append(places[operand.role])
                places[operand.role] += 1
            known = _plans[(key, device)] = (plan, order)
    return known


def _empty(key, like):
    return [like.new_empty(operand.dims, dtype=_TYPES[operand.type])
            for operand in _shape(key)[1]]


def _run(op, inputs, attributes):
    if not inputs:
        raise ValueError(f"optrail::{op} has no inputs, expected at least one tensor")
    device = inputs[0].device
    if device.type not in ("cpu", "cuda"):
        raise ValueError(f"optrail::{op}: the inputs lie on {device}, expected cpu or cuda")
    for i, tensor in enumerate(inputs):
        if tensor.device != device:
            raise ValueError(f"optrail::{op}: input {i} lies on {tensor.device}, expected "
                             f"{device} like input 0")
        if not tensor.is_contiguous():
            raise ValueError(f"optrail::{op}: input {i} is not dense and row-major; next: "
                             ".contiguous()")
    key = _key(op, inputs, attributes)
    outputs = _empty(key, inputs[0])
    if device.type == "cpu":
        _launch(key, device, inputs, outputs, 0)
    else:
        with torch.cuda.device(device):
            _launch(key, device, inputs, outputs,
                    torch.cuda.current_stream(device).cuda_stream)
    return outputs


def _launch(key, device, inputs, outputs, stream):
    plan, order = _plan(key, device)
    addresses = [tensor.data_ptr() for tensor in (*inputs, *outputs)]
    workspace = 0
    if device.type == "cuda" and plan.workspace_bytes:
        # Given back at the end of the call and taken by no other stream: PyTorch's
        # allocator works in the order of the stream.
        held = torch.empty(plan.workspace_bytes, dtype=torch.uint8, device=device)
        workspace = held.data_ptr()
    plan.run_at([addresses[i] for i in order], stream=stream, workspace=workspace)


def _register(op):
    def real(inputs, attributes=""):
        return _run(op, inputs, attributes)

    def fake(inputs, attributes=""):
        return _empty(_key(op, inputs, attributes), inputs[0])

    registered = custom_op(f"optrail::{op}", real, mutates_args=(),
                           schema="(Tensor[] inputs, str attributes=\"\") -> Tensor[]")
    registered.register_fake(fake)

    def call(*inputs, attributes=""):
        outputs = registered(list(inputs), attributes)
        return outputs[0] if len(outputs) == 1 else tuple(outputs)

    call.__name__ = op
    call.__doc__ = f"The operator {op} on tensors; returns its output, or several."
    return call


for _name in optrail.operators():
    globals()[_name] = _register(_name)

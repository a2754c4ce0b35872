"""What the host does in a call of optrail.torch on a GPU, layer by layer.

    export OPTRAIL_LIBRARY=$PWD/liboptrail/lib/liboptrail.so.0
    PYTHONPATH=$(echo $PWD/liboptrail/share/optrail/*.whl) \\
      python3 lib/evaluation/torch_host_cost.py

Prints microseconds a call: the fastest of nine batches of 200, which fit into
the queue of a stream, in which all rows take turns. First the parts of a call,
then whole calls, then PyTorch's own, and operators of PyTorch's that do nothing
but make the output.
"""

import math
import time

import torch
import torch.nn.functional as F

import optrail
import optrail.torch as ot
from optrail import _c


_library = torch.library.Library("optrail_cost", "FRAGMENT")  # its end unregisters


def batch_us(function, calls=200):
    torch.cuda.synchronize()
    start = time.perf_counter()
    for _ in range(calls):
        function()
    return (time.perf_counter() - start) / calls * 1e6


def rows():
    ot.configure(store=optrail.Store(), may_compile=True)
    x = torch.randn(512, 384, device="cuda").to(torch.bfloat16)
    a, b = (torch.randn(128, 128, device="cuda").to(torch.bfloat16) for _ in range(2))
    ot.softmax(x)
    ot.matmul(a, b)
    plan = next(known[0] for key, known in ot._plans.items() if key[0] == "softmax")
    y = torch.empty_like(x)
    stream = torch._C._cuda_getCurrentRawStream(x.device.index)
    addresses = [x.data_ptr(), y.data_ptr()]
    call = _c.make(_c.Call, operands=(_c.ctypes.c_void_p * 2)(*addresses),
                   operand_count=2, stream=stream)
    reference = _c.ctypes.byref(call)
    handle = plan.handle
    empty = torch.library.custom_op(
        "optrail_cost::empty", lambda inputs: [torch.empty_like(inputs[0])],
        mutates_args=(), schema="(Tensor[] inputs) -> Tensor[]")
    _library.define("plain(Tensor[] inputs) -> Tensor[]")
    _library.impl("plain", lambda inputs: [torch.empty_like(inputs[0])], "CUDA")
    plain = torch.ops.optrail_cost.plain.default
    softmax = torch.ops.optrail.softmax.default
    return {
        "optrail_run by ctypes, call made before": lambda: _c.run(handle, reference),
        "Plan.run_at": lambda: plan.run_at(addresses, stream=stream),
        "key of a plan": lambda: (x.shape, x.dtype, x.device, x.is_contiguous(), x.is_neg()),
        "new output": lambda: torch.empty((512, 384), dtype=x.dtype, device=x.device),
        "may the dispatcher be passed": lambda: ot._is_plain((x,)),
        "device and stream": lambda: (torch._C._cuda_getDevice(),
                                      torch._C._cuda_getCurrentRawStream(0)),
        "optrail.torch.softmax": lambda: ot.softmax(x),
        "torch.ops.optrail.softmax": lambda: softmax([x]),
        "PyTorch: softmax": lambda: F.softmax(x, dim=-1),
        "optrail.torch.matmul": lambda: ot.matmul(a, b),
        "PyTorch: matmul": lambda: torch.matmul(a, b),
        "PyTorch: empty_like": lambda: torch.empty_like(x),
        "PyTorch: custom_op that returns an empty output": lambda: empty([x]),
        "PyTorch: Library.impl that returns an empty output": lambda: plain([x]),
    }


def main():
    print(f"{torch.cuda.get_device_name()}, PyTorch {torch.__version__}, softmax of "
          "512 x 384 and matmul of 128 x 128 x 128, bf16")
    functions = rows()
    best = dict.fromkeys(functions, math.inf)
    for _ in range(9):
        for what, function in functions.items():
            best[what] = min(best[what], batch_us(function))
    for what, us in best.items():
        print(f"{what:52} {us:7.1f} us", flush=True)


if __name__ == "__main__":
    main()

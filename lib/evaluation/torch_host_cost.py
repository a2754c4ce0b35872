"""What the host does in a call of optrail.torch on a GPU, layer by layer.

    export OPTRAIL_LIBRARY=$PWD/liboptrail/lib/liboptrail.so.0
    PYTHONPATH=$(echo $PWD/liboptrail/share/optrail/*.whl) \\
      python3 lib/evaluation/torch_host_cost.py

Prints microseconds a call: the fastest of nine batches of 200, which fit into
the queue of a stream. Each row has what the rows above it have, and more; the
last rows are PyTorch's own, and an operator of PyTorch's that does nothing but
make the output.
"""

import math
import time

import torch
import torch.nn.functional as F

import optrail
import optrail.torch as ot
from optrail import _c


def us(function, calls=200):
    best = math.inf
    for _ in range(9):
        torch.cuda.synchronize()
        start = time.perf_counter()
        for _ in range(calls):
            function()
        best = min(best, time.perf_counter() - start)
    return best / calls * 1e6


def main():
    ot.configure(store=optrail.Store(), may_compile=True)
    x = torch.randn(512, 384, device="cuda").to(torch.bfloat16)
    ot.softmax(x)
    key = ot._key("softmax", [x], "")
    plan, _ = ot._plan(key, x.device)
    y = torch.empty_like(x)
    stream = torch.cuda.current_stream().cuda_stream
    addresses = [x.data_ptr(), y.data_ptr()]
    call = _c.make(_c.Call, operands=(_c.ctypes.c_void_p * 2)(*addresses),
                   operand_count=2, stream=stream or None)
    reference = _c.ctypes.byref(call)
    handle = plan.handle
    empty = torch.library.custom_op(
        "optrail_cost::empty", lambda inputs: [torch.empty_like(inputs[0])],
        mutates_args=(), schema="(Tensor[] inputs) -> Tensor[]")
    library = torch.library.Library("optrail_cost", "FRAGMENT")
    library.define("plain(Tensor[] inputs) -> Tensor[]")
    library.impl("plain", lambda inputs: [torch.empty_like(inputs[0])], "CUDA")
    rows = [
        ("optrail_run by ctypes, call made before",
         lambda: _c.lib.optrail_run(handle, reference)),
        ("Plan.run_at", lambda: plan.run_at(addresses, stream=stream)),
        ("key of a plan", lambda: ot._key("softmax", [x], "")),
        ("new output", lambda: ot._empty(key, x)),
        ("torch.cuda.device and current_stream", lambda: _streams(x.device)),
        ("_run: all of the above", lambda: ot._run("softmax", [x], "")),
        ("torch.ops.optrail.softmax", lambda: torch.ops.optrail.softmax([x])),
        ("optrail.torch.softmax", lambda: ot.softmax(x)),
        ("PyTorch: softmax", lambda: F.softmax(x, dim=-1)),
        ("PyTorch: empty_like", lambda: torch.empty_like(x)),
        ("PyTorch: custom_op that returns an empty output", lambda: empty([x])),
        ("PyTorch: Library.impl that returns an empty output",
         lambda: torch.ops.optrail_cost.plain([x])),
    ]
    print(f"{torch.cuda.get_device_name()}, PyTorch {torch.__version__}, softmax of "
          "512 x 384 bf16")
    for what, function in rows:
        print(f"{what:52} {us(function):7.1f} us", flush=True)


def _streams(device):
    with torch.cuda.device(device):
        return torch.cuda.current_stream(device).cuda_stream


if __name__ == "__main__":
    main()

"""Compares optrail.torch with PyTorch on a GPU, on random shapes.

    tar xf liboptrail.tar.gz
    export OPTRAIL_LIBRARY=$PWD/liboptrail/lib/liboptrail.so.0
    PYTHONPATH=$(echo $PWD/liboptrail/share/optrail/*.whl) \\
      python3 lib/evaluation/beside_torch.py --seed=1 --shapes=6

Prints one row per shape. The error of a result is its largest distance from a
product in double precision, over the largest value there; a row is wrong where
Optrail's error exceeds twice PyTorch's and one unit in the last place. Each
shape runs eagerly, by torch.ops, under torch.compile, under its mode
"reduce-overhead", in a captured CUDA graph and on a new thread; all must give
the same bits. The last columns are microseconds of the host per call, eager, with
the GPU idle in between. At last PyTorch's opcheck() must accept each operator. The
exit code is 1 where a row is wrong or an operator is refused.
"""

import argparse
import math
import random
import sys
import threading
import time

import torch
import torch.nn.functional as F

import optrail
import optrail.torch

UNIT = {torch.float32: 2.0**-23, torch.float16: 2.0**-10, torch.bfloat16: 2.0**-7}


def log_uniform(rng, low, high):
    return int(math.exp(rng.uniform(math.log(low), math.log(high + 1))))


def tensor(rng, dims, dtype):
    generator = torch.Generator(device="cuda").manual_seed(rng.getrandbits(30))
    return torch.randn(dims, generator=generator, device="cuda").to(dtype)


def draw_matmul(rng, dtype):
    m, n, k = (log_uniform(rng, 1, 2048) for _ in range(3))
    return [tensor(rng, (m, k), dtype), tensor(rng, (k, n), dtype)]


def draw_rows(rng, dtype):
    return [tensor(rng, (log_uniform(rng, 1, 4096), log_uniform(rng, 1, 4096)), dtype)]


def draw_line(rng, dtype):
    return [tensor(rng, (log_uniform(rng, 1, 1 << 22),), dtype)]


CASES = {
    "matmul": (draw_matmul, torch.matmul),
    "softmax": (draw_rows, lambda x: F.softmax(x, dim=-1)),
    "sum": (draw_rows, lambda x: x.sum(dim=-1)),
    "transpose": (draw_rows, lambda x: x.t().contiguous()),
    "relu": (draw_line, F.relu),
    "gelu": (draw_line, F.gelu),
}


def captured(function, inputs):
    """The output of a replayed graph."""
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        output = function(*inputs)
    output.zero_()
    graph.replay()
    torch.cuda.synchronize()
    return output.clone()


def on_new_thread(function, inputs):
    results = []
    thread = threading.Thread(target=lambda: results.append(function(*inputs)))
    thread.start()
    thread.join()
    return results[0] if results else None


def host_us(function, inputs, calls=200):
    """Fastest of nine batches that fit into the queue of a stream."""
    best = math.inf
    for _ in range(9):
        torch.cuda.synchronize()
        start = time.perf_counter()
        for _ in range(calls):
            function(*inputs)
        best = min(best, time.perf_counter() - start)
    return best / calls * 1e6


def error(result, exact):
    scale = exact.abs().max().clamp(min=1e-30)
    return ((result.double() - exact).abs().max() / scale).item()


def check(name, rng, dtype):
    draw, peer = CASES[name]
    ours = getattr(optrail.torch, name)
    inputs = draw(rng, dtype)
    what = f"{name} {'x'.join(map(str, inputs[0].shape))}"
    if name == "matmul":
        what += f"x{inputs[1].shape[1]}"
    what += f" {str(dtype).removeprefix('torch.')}"
    try:
        result = ours(*inputs)
    except optrail.Error as problem:
        print(f"{what:36} unsupported here: {str(problem)[:120]}")
        return None
    exact = peer(*(x.double() for x in inputs))
    mine, theirs = error(result, exact), error(peer(*inputs), exact)
    right = mine <= 2 * theirs + UNIT[dtype]
    torch._dynamo.reset()
    same = {}
    for mode in ("default", "reduce-overhead"):
        compiled = torch.compile(ours, fullgraph=True, mode=mode)
        for _ in range(3):
            again = compiled(*inputs).clone()
        same[mode] = torch.equal(again, result)
    same["graph"] = torch.equal(captured(ours, inputs), result)
    operator = getattr(torch.ops.optrail, name).default
    same["torch.ops"] = torch.equal(operator(inputs)[0], result)
    other = on_new_thread(ours, inputs)
    same["thread"] = other is not None and torch.equal(other, result)
    verdict = "right" if right else "WRONG"
    differs = [mode for mode, equal in same.items() if not equal]
    if differs:
        verdict = "OTHER BITS: " + ", ".join(differs)
    print(f"{what:36} {mine:9.2e} {theirs:9.2e} {host_us(ours, inputs):8.1f} "
          f"{host_us(peer, inputs):8.1f}  {verdict}", flush=True)
    return right and not differs


def main():
    flags = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    flags.add_argument("--seed", type=int, default=1)
    flags.add_argument("--shapes", type=int, default=4, help="of each operator and type")
    flags.add_argument("--ops", default=",".join(CASES))
    flags.add_argument("--types", default="bfloat16,float16,float32")
    given = flags.parse_args()
    rng = random.Random(given.seed)
    optrail.torch.configure(store=optrail.Store(), may_compile=True)
    print(f"{torch.cuda.get_device_name()}, PyTorch {torch.__version__}, seed {given.seed}")
    print(f"{'operator, shape, type':36} {'error':>9} {'PyTorch':>9} {'host us':>8} "
          f"{'PyTorch':>8}")
    rows = [check(name, rng, getattr(torch, kind)) for name in given.ops.split(",")
            for kind in given.types.split(",") for _ in range(given.shapes)]
    ran = [row for row in rows if row is not None]
    print(f"{len(ran)} shapes ran, {ran.count(False)} wrong, "
          f"{len(rows) - len(ran)} unsupported here")
    accepted = True
    for name in given.ops.split(","):
        inputs = CASES[name][0](rng, torch.bfloat16)
        found = torch.library.opcheck(getattr(torch.ops.optrail, name).default, (inputs,),
                                      test_utils=("test_schema", "test_faketensor"),
                                      raise_exception=False)
        refused = {test: result for test, result in found.items() if result != "SUCCESS"}
        accepted = accepted and not refused
        print(f"opcheck of {name}: {refused or 'accepted'}", flush=True)
    return 0 if ran and all(ran) and accepted else 1


if __name__ == "__main__":
    sys.exit(main())

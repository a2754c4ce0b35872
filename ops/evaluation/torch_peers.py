#!/usr/bin/env python3
"""PyTorch, eager and compiled, on the shapes of //suites:half and of the other
operators that have CUDA kernels (torch_cases.py): captured graphs.

  python3 torch_peers.py [--compile] [--only=softmax,sum] > peers.json

Hot: the same buffers again and again. Cold: buffers that rotate over four times
the L2. Inputs are normal. One JSON object a line: op, shape, mode, hot_us,
cold_us (medians of 15 graphs).
"""
import argparse
import json
import statistics
import sys

import torch

import torch_cases

MATMUL = [(1024, 1024, 1024), (2048, 2048, 2048), (4096, 4096, 4096),
          (8192, 8192, 8192), (4096, 1024, 1024), (4096, 4096, 1024),
          (4096, 1024, 4096), (2048, 6144, 4096), (2048, 28672, 4096),
          (2048, 4096, 14336), (1, 4096, 4096), (16, 4096, 4096),
          (64, 28672, 4096), (16, 4096, 14336), (8192, 1024, 512),
          (3136, 64, 576), (100352, 64, 576), (6272, 512, 4608)]
SOFTMAX = [(4096, 1024), (8192, 8192), (128, 32000), (65536, 512),
           (16, 131072)]
ADD = [16777216, 268435456]


def cases():
    for m, n, k in MATMUL:
        yield ("matmul", f"m={m},n={n},k={k}/bf16", torch.matmul,
               [(m, k), (k, n)], torch.bfloat16)
    for rows, cols in SOFTMAX:
        yield ("softmax", f"rows={rows},cols={cols}/bf16",
               lambda x: torch.softmax(x, -1), [(rows, cols)], torch.bfloat16)
    for n in ADD:
        for dtype, name in ((torch.float32, "f32"), (torch.bfloat16, "bf16")):
            yield "add", f"n={n}/{name}", torch.add, [(n,), (n,)], dtype
            yield ("copy", f"n={n}/{name}", lambda x: x.clone(), [(n,)],
                   dtype)
    yield from torch_cases.cases()


def timed_us(function, sets):
    """Median time of a call in a captured graph that goes through `sets`."""
    for operands in sets[:2]:
        function(*operands)
    torch.cuda.synchronize()
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    start.record()
    function(*sets[0])
    end.record()
    end.synchronize()
    calls = max(len(sets), min(500, int(2e-3 / (start.elapsed_time(end) * 1e-3 + 1e-7)) + 1))
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        outputs = [function(*sets[i % len(sets)]) for i in range(calls)]
        del outputs
    for _ in range(3):
        graph.replay()
    times = []
    for _ in range(15):
        graph.replay()  # the device stays busy while the next is enqueued
        start.record()
        graph.replay()
        end.record()
        end.synchronize()
        times.append(start.elapsed_time(end) * 1e3 / calls)
    return statistics.median(times)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--compile", action="store_true")
    parser.add_argument("--only", default="")
    options = parser.parse_args()
    l2 = torch.cuda.get_device_properties(0).L2_cache_size
    for op, shape, function, sizes, dtype in cases():
        if options.only and op not in options.only.split(","):
            continue
        if options.compile:
            torch._dynamo.reset()
            function = torch.compile(function, mode="max-autotune-no-cudagraphs")

        def operands():
            return torch_cases.operands(sizes, dtype)

        first = operands()
        nbytes = (sum(t.nbytes for t in first) +
                  torch_cases.bytes_of(function(*first)))
        copies = max(2, min(128, -(-4 * l2 // nbytes)))
        row = {"op": op, "shape": shape,
               "mode": "compiled" if options.compile else "eager",
               "hot_us": timed_us(function, [first]),
               "cold_us": timed_us(function,
                                   [first] + [operands() for _ in range(copies - 1)])}
        print(json.dumps(row), flush=True)
        del first
        torch.cuda.empty_cache()


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
"""PyTorch, eager and compiled, on the shapes of //suites:half and of the other
operators that have CUDA kernels (torch_cases.py): captured graphs.

  python3 torch_peers.py [--compile] [--only=softmax,sum] > peers.json
  python3 torch_peers.py --serve     # asked by //suites:beside_peers

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

torch.backends.cudnn.benchmark = True  # of convolutions, the fastest it has

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


class Captured:
    """Calls that go through `sets`, in a captured graph."""

    def __init__(self, function, sets):
        for operands in sets[:2]:
            function(*operands)
        torch.cuda.synchronize()
        self.start, self.end = (torch.cuda.Event(enable_timing=True)
                                for _ in range(2))
        self.start.record()
        function(*sets[0])
        self.end.record()
        self.end.synchronize()
        once_s = self.start.elapsed_time(self.end) * 1e-3 + 1e-7
        self.calls = max(len(sets), min(500, int(1e-3 / once_s) + 1))
        self.graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self.graph):
            outputs = [function(*sets[i % len(sets)])
                       for i in range(self.calls)]
            del outputs

    def once_us(self):
        self.graph.replay()  # the device is busy while the next is enqueued
        self.start.record()
        self.graph.replay()
        self.end.record()
        self.end.synchronize()
        return self.start.elapsed_time(self.end) * 1e3 / self.calls

    def median_us(self, replays):
        for _ in range(3):
            self.graph.replay()
        return statistics.median(self.once_us() for _ in range(replays))


def timed_us(function, sets):
    return Captured(function, sets).median_us(15)


def triton_multiply():
    """Triton's autotuner on the 24 configs with BK=64 of triton_matmul.py."""
    import triton
    import triton_matmul
    kernel = triton_matmul.kernel
    kernel.configs = [c for c in kernel.configs if c.kwargs["BK"] == 64]
    kernel.do_bench = lambda call, quantiles: triton.testing.do_bench(
        call, warmup=5, rep=20, quantiles=quantiles)
    return triton_matmul.multiply


class Server:
    """Answers "OP SHAPE CACHE SIDE" with microseconds a call, of one graph where
    "once" follows; sides are torch, compiled, triton (of matmul) and copy (of
    add: a clone of one operand)."""

    def __init__(self):
        self.l2 = torch.cuda.get_device_properties(0).L2_cache_size
        self.cases = {(op, shape): case for op, shape, *case in cases()}
        self.at = None

    def function(self, op, side, torch_function):
        if side == "torch":
            return torch_function
        if side == "compiled":
            torch._dynamo.reset()
            return torch.compile(torch_function,
                                 mode="max-autotune-no-cudagraphs")
        if side == "triton" and op == "matmul":
            multiply = triton_multiply()
            return lambda a, b: multiply(
                a, b, torch.empty(a.shape[0], b.shape[1], device="cuda",
                                  dtype=a.dtype))
        if side == "copy" and op == "add":
            return lambda x, y: x.clone()
        raise ValueError(f"no side {side} of {op}")

    def answer(self, line):
        op, shape, cache, side, *once = line.split()
        torch_function, sizes, dtype = self.cases[op, shape]
        if self.at != (op, shape):
            self.at, self.sets, self.captured = (op, shape), [], {}
            torch.cuda.empty_cache()
        if not self.sets:
            def operands():
                return torch_cases.operands(sizes, dtype)
            self.sets = [operands()]
            first = self.sets[0]
            nbytes = (sum(t.nbytes for t in first) +
                      torch_cases.bytes_of(torch_function(*first)))
            copies = max(2, min(128, -(-4 * self.l2 // nbytes)))
            self.sets += [operands() for _ in range(copies - 1)]
        if (cache, side) not in self.captured:
            self.captured[cache, side] = Captured(
                self.function(op, side, torch_function),
                self.sets if cache == "cold" else self.sets[:1])
        captured = self.captured[cache, side]
        return captured.once_us() if once else captured.median_us(7)

    def run(self):
        for line in sys.stdin:
            try:
                print(self.answer(line), flush=True)
            except Exception as error:  # of whatever library
                print("error:", str(error).replace("\n", " ")[:300],
                      flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--compile", action="store_true")
    parser.add_argument("--only", default="")
    parser.add_argument("--serve", action="store_true",
                        help="answer questions (beside_peers)")
    options = parser.parse_args()
    if options.serve:
        Server().run()
        return
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

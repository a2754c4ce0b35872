#!/usr/bin/env python3
"""PyTorch, eager and compiled, on the shapes of //suites:half and of the other
operators that have kernels of ours (torch_cases.py): captured graphs on a GPU,
plain calls on a CPU.

  python3 torch_peers.py [--compile] [--only=softmax,sum] > peers.json
  python3 torch_peers.py --serve     # asked by //suites:beside_peers, any_shape

Hot: the same buffers again and again. Cold: buffers that rotate over four times
the L2. Inputs are normal. One JSON object a line: op, shape, mode, hot_us,
cold_us (medians of 15 graphs).
"""
import argparse
import json
import os
import statistics
import sys
import time

# Compiled in this process: its children are one for each shape.
os.environ.setdefault("TORCHINDUCTOR_COMPILE_THREADS", "1")

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
    """(op, shape)"""
    for m, n, k in MATMUL:
        yield "matmul", f"m={m},n={n},k={k}/bf16"
    for rows, cols in SOFTMAX:
        yield "softmax", f"rows={rows},cols={cols}/bf16"
    for n in ADD:
        for name in ("f32", "bf16"):
            yield "add", f"n={n}/{name}"
            yield "copy", f"n={n}/{name}"
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


class Called:
    """The same on a CPU, without a graph."""

    def __init__(self, function, sets):
        self.function, self.sets = function, sets
        function(*sets[0])
        start = time.perf_counter()
        function(*sets[0])
        once_s = time.perf_counter() - start + 1e-7
        self.calls = max(len(sets), min(10000, int(1e-3 / once_s) + 1))

    def once_us(self):
        start = time.perf_counter()
        for i in range(self.calls):
            self.function(*self.sets[i % len(self.sets)])
        return (time.perf_counter() - start) * 1e6 / self.calls

    def median_us(self, replays):
        self.once_us()
        return statistics.median(self.once_us() for _ in range(replays))


def measured(function, sets):
    if torch_cases.device() == "cuda":
        return Captured(function, sets)
    return Called(function, sets)


def timed_us(function, sets):
    return measured(function, sets).median_us(15)


def last_level_bytes():
    if torch_cases.device() == "cuda":
        return torch.cuda.get_device_properties(0).L2_cache_size
    return 32 << 20


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

    def __init__(self, op, shape):
        self.op = op
        self.function, self.sizes, self.dtype = torch_cases.case(op, shape)
        self.sets, self.measured = [], {}

    def side(self, side):
        if side == "torch":
            return self.function
        if side == "compiled":
            return torch.compile(self.function,
                                 mode="max-autotune-no-cudagraphs")
        if side == "triton" and self.op == "matmul":
            multiply = triton_multiply()
            return lambda a, b: multiply(
                a, b, torch.empty(a.shape[0], b.shape[1], device="cuda",
                                  dtype=a.dtype))
        if side == "copy" and self.op == "add":
            return lambda x, y: x.clone()
        raise ValueError(f"no side {side} of {self.op}")

    def answer(self, cache, side, once):
        if not self.sets:
            def operands():
                return torch_cases.operands(self.sizes, self.dtype)
            self.sets = [operands()]
            first = self.sets[0]
            nbytes = (sum(t.nbytes for t in first) +
                      torch_cases.bytes_of(self.function(*first)))
            copies = max(2, min(128, -(-4 * last_level_bytes() // nbytes)))
            self.sets += [operands() for _ in range(copies - 1)]
        if (cache, side) not in self.measured:
            self.measured[cache, side] = measured(
                self.side(side),
                self.sets if cache == "cold" else self.sets[:1])
        timed = self.measured[cache, side]
        return timed.once_us() if once else timed.median_us(7)


def serve_shape(lines, answers):
    """Answers what is asked of one shape, as long as there are lines."""
    server = None
    for line in lines:
        try:
            op, shape, cache, side, *once = line.split()
            if server is None:
                server = Server(op, shape)
            print(server.answer(cache, side, once), file=answers, flush=True)
        except Exception as error:  # of whatever library
            print("error:", (str(error) or repr(error)).replace("\n", " ")[:300],
                  file=answers, flush=True)


class Child:
    """A process for one shape. One that has captured some six graphs replays
    every kernel .37 us slower. It is forked once PyTorch is loaded and before
    the GPU is opened."""

    def __init__(self):
        read_line, self.write_line = os.pipe()
        self.read_answer, write_answer = os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            os.close(self.write_line)
            os.close(self.read_answer)
            with os.fdopen(read_line) as lines, os.fdopen(
                    write_answer, "w") as answers:
                serve_shape(lines, answers)
            os._exit(0)
        os.close(read_line)
        os.close(write_answer)
        self.lines = os.fdopen(self.write_line, "w")
        self.answers = os.fdopen(self.read_answer)

    def ask(self, line):
        self.lines.write(line)
        self.lines.flush()
        return self.answers.readline()

    def end(self):
        self.lines.close()
        self.answers.close()
        os.waitpid(self.pid, 0)


def serve():
    at, child = None, None
    for line in sys.stdin:
        if not line.strip():
            continue
        key = line.split()[:2]
        if key != at:
            if child is not None:
                child.end()
            at, child = key, Child()
        try:
            answer = child.ask(line)
        except BrokenPipeError:
            answer = ""
        if not answer:
            at = None
            answer = "error: the process that measures has ended\n"
        print(answer, end="", flush=True)
    if child is not None:
        child.end()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--compile", action="store_true")
    parser.add_argument("--only", default="")
    parser.add_argument("--serve", action="store_true",
                        help="answer questions (beside_peers)")
    options = parser.parse_args()
    if options.serve:
        serve()
        return
    for op, shape in cases():
        if options.only and op not in options.only.split(","):
            continue
        function, sizes, dtype = torch_cases.case(op, shape)
        if options.compile:
            torch._dynamo.reset()
            function = torch.compile(function, mode="max-autotune-no-cudagraphs")

        def operands():
            return torch_cases.operands(sizes, dtype)

        first = operands()
        nbytes = (sum(t.nbytes for t in first) +
                  torch_cases.bytes_of(function(*first)))
        copies = max(2, min(128, -(-4 * last_level_bytes() // nbytes)))
        row = {"op": op, "shape": shape,
               "mode": "compiled" if options.compile else "eager",
               "hot_us": timed_us(function, [first]),
               "cold_us": timed_us(function,
                                   [first] + [operands() for _ in range(copies - 1)])}
        print(json.dumps(row), flush=True)
        del first
        if torch_cases.device() == "cuda":
            torch.cuda.empty_cache()


if __name__ == "__main__":
    sys.exit(main())

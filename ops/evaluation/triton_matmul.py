#!/usr/bin/env python3
"""Triton's autotuner on bf16 products: how long it takes and what it picks.

  python3 triton_matmul.py [--shapes=4096x4096x4096,...] > triton.json

72 configs a shape (the tutorial's kernel), nothing cached (TRITON_CACHE_DIR is a
fresh folder). One JSON object a line: shape, tune_s (from the call to the pick),
hot_us and cold_us of the pick in captured graphs, and the pick.
"""
import argparse
import itertools
import json
import os
import tempfile
import time

os.environ.setdefault("TRITON_CACHE_DIR", tempfile.mkdtemp())

import torch
import triton
import triton.language as tl

from torch_peers import MATMUL, timed_us

CONFIGS = [
    triton.Config({"BM": bm, "BN": bn, "BK": bk, "GROUP": 8},
                  num_stages=stages, num_warps=warps)
    for (bm, bn), bk, stages, warps in itertools.product(
        [(128, 256), (256, 128), (128, 128), (64, 256), (128, 64), (64, 128)],
        [32, 64, 128], [3, 4], [4, 8])
]
assert len(CONFIGS) == 72


@triton.autotune(configs=CONFIGS, key=["m", "n", "k"])
@triton.jit
def kernel(a, b, c, m, n, k, BM: tl.constexpr, BN: tl.constexpr,
           BK: tl.constexpr, GROUP: tl.constexpr):
    pid = tl.program_id(0)
    blocks_m, blocks_n = tl.cdiv(m, BM), tl.cdiv(n, BN)
    in_group = GROUP * blocks_n
    first = pid // in_group * GROUP
    size = min(blocks_m - first, GROUP)
    block_m = first + pid % in_group % size
    block_n = pid % in_group // size
    rows = (block_m * BM + tl.arange(0, BM)) % m
    cols = (block_n * BN + tl.arange(0, BN)) % n
    depth = tl.arange(0, BK)
    a_at = a + rows[:, None] * k + depth[None, :]
    b_at = b + depth[:, None] * n + cols[None, :]
    total = tl.zeros((BM, BN), dtype=tl.float32)
    for step in range(0, tl.cdiv(k, BK)):
        left = k - step * BK
        x = tl.load(a_at, mask=depth[None, :] < left, other=0.0)
        y = tl.load(b_at, mask=depth[:, None] < left, other=0.0)
        total = tl.dot(x, y, total)
        a_at += BK
        b_at += BK * n
    rows = block_m * BM + tl.arange(0, BM)
    cols = block_n * BN + tl.arange(0, BN)
    tl.store(c + rows[:, None] * n + cols[None, :], total.to(tl.bfloat16),
             mask=(rows[:, None] < m) & (cols[None, :] < n))


def multiply(a, b, c):
    m, k = a.shape
    n = b.shape[1]
    kernel[lambda meta: (triton.cdiv(m, meta["BM"]) *
                         triton.cdiv(n, meta["BN"]),)](a, b, c, m, n, k)
    return c


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--shapes",
                        default=",".join("x".join(map(str, s)) for s in MATMUL))
    l2 = torch.cuda.get_device_properties(0).L2_cache_size
    for shape in parser.parse_args().shapes.split(","):
        m, n, k = map(int, shape.split("x"))

        def operands():
            return [torch.randn(size, device="cuda", dtype=torch.bfloat16)
                    for size in ((m, k), (k, n), (m, n))]

        first = operands()
        nbytes = sum(t.nbytes for t in first)
        copies = max(2, min(128, -(-4 * l2 // nbytes)))
        torch.cuda.synchronize()
        start = time.time()
        multiply(*first)
        torch.cuda.synchronize()
        tune_s = time.time() - start
        print(json.dumps({
            "shape": f"m={m},n={n},k={k}/bf16", "tune_s": tune_s,
            "hot_us": timed_us(multiply, [first]),
            "cold_us": timed_us(multiply,
                                [first] + [operands() for _ in range(copies - 1)]),
            "pick": str(kernel.best_config)}), flush=True)


if __name__ == "__main__":
    main()

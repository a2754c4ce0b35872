"""Runs the kernels of an export on a GPU by a program that has the CUDA driver
alone (lib/examples/exported.c), and holds the results against PyTorch's in
double precision.

    cc lib/examples/exported.c -l:libcuda.so.1 -o exported
    optrail export --workload=some.workload.textproto --out=kernels
    python3 lib/evaluation/check_export.py ./exported kernels --seed=1

Inputs are normal, drawn from the seed. The error of a result is its largest
distance from the exact one over the largest value there. A row is wrong where
the error exceeds four units in the last place, for sums of k products times the
root of k where inputs are f32. The exit code is 1 where a row is wrong.
"""

import argparse
import json
import math
import os
import subprocess
import sys
import tempfile

import torch
import torch.nn.functional as F

TYPES = {"f32": torch.float32, "f16": torch.float16, "bf16": torch.bfloat16}
UNIT = {"f32": 2.0**-23, "f16": 2.0**-10, "bf16": 2.0**-7}


def convolution(x, filters, attributes):
    stride, padding = (int(attributes.get(name, usual))
                       for name, usual in (("stride", 1), ("padding", 0)))
    y = F.conv2d(x.permute(0, 3, 1, 2), filters.permute(3, 2, 0, 1), stride=stride,
                 padding=padding)
    return y.permute(0, 2, 3, 1)


# By operator: the result, in double precision, and how many products a sum has.
EXACT = {
    "matmul": (lambda x, _: x[0] @ x[1], lambda x: x[0].shape[1]),
    "softmax": (lambda x, _: F.softmax(x[0], dim=-1), lambda x: 1),
    "sum": (lambda x, _: x[0].sum(dim=-1), lambda x: x[0].shape[-1]),
    "transpose": (lambda x, _: x[0].t(), lambda x: 1),
    "relu": (lambda x, _: F.relu(x[0]), lambda x: 1),
    "gelu": (lambda x, _: F.gelu(x[0]), lambda x: 1),
    "add": (lambda x, _: x[0] + x[1], lambda x: 1),
    "conv2d": (lambda x, a: convolution(x[0], x[1], a), lambda x: x[1][..., 0].numel()),
}


def attributes_of(shape):
    parts = shape.split("/")[1:-1]
    return dict(one.split("=") for part in parts for one in part.split(","))


def check(program, folder, number, kernel, seed):
    what = f"{kernel['operator']} {kernel['shape']}"
    if kernel["operator"] not in EXACT:
        print(f"{what:56} no exact result is known here")
        return None
    result, products = EXACT[kernel["operator"]]
    generator = torch.Generator().manual_seed(seed + number)
    inputs, paths = [], []
    with tempfile.TemporaryDirectory() as scratch:
        for i, operand in enumerate(kernel["operands"]):
            paths.append(os.path.join(scratch, str(i)))
            if operand["role"] == "output":
                output = operand
                continue
            values = torch.randn(operand["dims"], generator=generator).to(
                TYPES[operand["type"]])
            inputs.append(values.cuda().double())
            with open(paths[-1], "wb") as file:
                file.write(values.contiguous().view(torch.uint8).numpy().tobytes())
        subprocess.run([program, folder, str(number), *paths], check=True)
        with open(paths[-1], "rb") as file:
            bytes_ = bytearray(file.read())
    got = torch.frombuffer(bytes_, dtype=TYPES[output["type"]]).reshape(output["dims"])
    exact = result(inputs, attributes_of(kernel["shape"]))
    scale = exact.abs().max().item()
    error = (got.cuda().double() - exact).abs().max().item() / scale
    allowed = 4 * UNIT[output["type"]]
    if output["type"] == "f32":
        allowed *= math.sqrt(products(inputs))
    launches = kernel["launches"]
    maps = sum(len(parameter["tensor_maps"]) for launch in launches
               for parameter in launch["parameters"])
    print(f"{what:56} {len(launches)} launches, {maps} tensor maps, "
          f"{kernel['workspace_bytes']:9} B workspace, error {error:.1e} of "
          f"{allowed:.1e}  {'right' if error <= allowed else 'WRONG'}", flush=True)
    return error <= allowed


def main():
    flags = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    flags.add_argument("program")
    flags.add_argument("folder")
    flags.add_argument("--seed", type=int, default=1)
    given = flags.parse_args()
    with open(os.path.join(given.folder, "manifest.json")) as file:
        manifest = json.load(file)
    print(f"{torch.cuda.get_device_name()}, {manifest['compiler']}, seed {given.seed}")
    rows = [check(given.program, given.folder, number, kernel, given.seed)
            for number, kernel in enumerate(manifest["kernels"])]
    for refused in manifest["refused"]:
        print(f"{refused['operator']} {refused['shape']}: {refused['why']}")
    ran = [row for row in rows if row is not None]
    print(f"{len(ran)} kernels ran, {ran.count(False)} wrong")
    return 0 if ran and all(ran) else 1


if __name__ == "__main__":
    sys.exit(main())

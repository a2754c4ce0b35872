#!/usr/bin/env python3
"""Compares diagnoses that read no hardware counters with Nsight Compute.

Each operator is diagnosed by `optrail diagnose` and profiled by `ncu` while
`optrail bench` calls it. Both name what limits the kernel: memory, compute or
latency. The mapping is in docs/method/diagnosis.md.

  python3 diagnosis/evaluation/beside_ncu.py --optrail=bazel-bin/cli/optrail \\
      --budget_s=200 --out=beside_ncu.json

It needs a GPU, ncu, and the right to read counters. Cases that the budget does
not reach are left out, and counted as such. The rules were changed because of
the fixed cases; --seed=N draws shapes that nobody has looked at.
"""

import argparse
import csv
import io
import json
import math
import os
import random
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

# Operator, shape, caches; one small and one large of each kind.
CASES = [
    ("add", "n=67108864/f32", "hot"),
    ("matmul", "m=4096,n=4096,k=4096/bf16", "hot"),
    ("softmax", "rows=8192,cols=8192/bf16", "hot"),
    ("transpose", "rows=8192,cols=8192/bf16", "hot"),
    ("layer_norm", "rows=8192,cols=8192/bf16", "hot"),
    ("gelu", "n=4096000/bf16", "hot"),
    ("sum", "rows=65536,cols=512/bf16", "hot"),
    ("attention", "batch=4,heads=16,queries=4096,keys=4096,d=128/bf16", "hot"),
    ("rms_norm", "rows=8192,cols=8192/bf16", "hot"),
    ("matmul", "m=256,n=256,k=4096/bf16", "hot"),
    ("linear", "m=4096,n=4096,k=4096/bf16", "hot"),
    ("embedding_bag", "rows=1000000,cols=64,bags=2048,lookups=32/f32", "hot"),
    ("layer_norm_backward", "rows=65536,cols=512/bf16", "hot"),
    ("batched_matmul", "batch=64,m=512,n=512,k=512/bf16", "hot"),
    ("conv2d", "n=32,h=56,w=56,c=256,k=64,r=1,s=1/f16", "hot"),
    ("relu", "n=67108864/f32", "hot"),
    ("rms_norm_backward", "rows=512,cols=4096/f32", "hot"),
    ("softmax", "rows=128,cols=512/bf16", "hot"),
    ("conv_bn_relu", "n=32,h=14,w=14,c=256,k=256,r=3,s=3/padding=1/f16",
     "hot"),
    ("add", "n=67108864/f32", "cold"),
    ("matmul", "m=4096,n=4096,k=4096/bf16", "cold"),
    ("transpose", "rows=1024,cols=1024/f32", "cold"),
]

# Operators and the ranges of their shapes: {lowest:highest:step}. Each is drawn
# once with --seed, and with cold caches in one case of four.
RANGES = [
    ("add", "n={1048576:67108864:4}/f32"),
    ("add", "n={1048576:67108864:8}/bf16"),
    ("matmul", "m={256:4096:64},n={256:4096:64},k={256:4096:64}/bf16"),
    ("matmul", "m={256:4096:64},n={256:4096:64},k={256:4096:64}/bf16"),
    ("linear", "m={256:4096:64},n={256:4096:64},k={256:4096:64}/bf16"),
    ("batched_matmul", "batch={2:64:1},m={256:1024:64},n={256:1024:64},"
     "k={128:1024:64}/bf16"),
    ("softmax", "rows={512:16384:1},cols={256:4096:8}/bf16"),
    ("softmax", "rows={512:16384:1},cols={256:4096:8}/f32"),
    ("layer_norm", "rows={512:16384:1},cols={256:4096:8}/bf16"),
    ("layer_norm", "rows={512:16384:1},cols={256:4096:8}/f32"),
    ("rms_norm", "rows={512:16384:1},cols={256:4096:8}/bf16"),
    ("layer_norm_backward", "rows={512:16384:1},cols={256:2048:8}/bf16"),
    ("rms_norm_backward", "rows={512:16384:1},cols={256:2048:8}/f32"),
    ("sum", "rows={512:65536:1},cols={64:2048:8}/bf16"),
    ("transpose", "rows={256:8192:8},cols={256:8192:8}/bf16"),
    ("transpose", "rows={256:8192:8},cols={256:8192:8}/f32"),
    ("gelu", "n={1048576:33554432:8}/bf16"),
    ("relu", "n={1048576:67108864:4}/f32"),
    ("attention", "batch={1:4:1},heads={4:16:1},queries={256:2048:128},"
     "keys={256:2048:128},d=128/bf16"),
    ("embedding_bag", "rows={10000:1000000:1},cols={32:256:32},"
     "bags={256:8192:1},lookups={4:64:1}/f32"),
    ("conv2d", "n={4:32:1},h=28,w=28,c={64:256:64},k={64:256:64},r=1,s=1/f16"),
    ("conv_bn_relu", "n={4:32:1},h=14,w=14,c={64:256:64},k={64:256:64},r=3,s=3/"
     "padding=1/f16"),
]

SM = "sm__throughput.avg.pct_of_peak_sustained_elapsed"
MEMORY = "gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed"
TIME = "gpu__time_duration.sum"
STALLS = [
    "smsp__average_warps_issue_stalled_%s_per_issue_active.ratio" % reason
    for reason in ("long_scoreboard", "short_scoreboard", "math_pipe_throttle",
                   "lg_throttle", "mio_throttle", "barrier", "wait")
]
METRICS = [
    SM, MEMORY, TIME,
    "gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed",
    "lts__t_bytes.sum",
    "l1tex__throughput.avg.pct_of_peak_sustained_active",
    "sm__warps_active.avg.pct_of_peak_sustained_active",
    "launch__waves_per_multiprocessor",
    "launch__grid_size",
    "launch__block_size",
] + STALLS

# Below this share of both peaks a kernel waits (the rule of ncu's section
# "GPU Speed Of Light").
BUSY = 60
# Closer to each other than this, both limit: either answer agrees.
BALANCED = 10
# Shares of a ceiling repeat within this. A verdict includes what both ends of
# its figures say, as `or_limited_by` does for a diagnosis.
REPEATS = 1.05
# Kernels of the stopwatch, which are not the operator's.
OURS = "differs|stray|repeat|project|empty|read_all|read_l2|multiply"

CLASS_OF = {
    "memory": "memory", "l2": "memory", "l3": "memory", "dram": "memory",
    "near_memory": "memory", "compute": "compute", "device_idle": "latency",
    "device_latency": "latency",
}


def ncu_classes(sm, memory):
    """What ncu's figures say; two where both limit."""
    if max(sm, memory) < BUSY:
        return {"latency"}
    if abs(sm - memory) < BALANCED:
        return {"memory", "compute"}
    return {"memory"} if memory > sm else {"compute"}


def judge(row):
    """Adds both verdicts, by themselves and with their intervals."""
    ncu = row["ncu"]
    row["ours"] = CLASS_OF.get(row["limited_by"], "none")
    ours = {row["ours"]} | {CLASS_OF[limit] for limit in row["or_limited_by"]}
    row["ncu_classes"] = sorted(ncu_classes(ncu[SM], ncu[MEMORY]))
    theirs = set().union(*(ncu_classes(ncu[SM] * factor, ncu[MEMORY] * factor)
                           for factor in (1 / REPEATS, 1, REPEATS)))
    row["ours_possible"], row["ncu_possible"] = sorted(ours), sorted(theirs)
    row["agrees"] = row["ours"] in row["ncu_classes"]
    # A side that may be anything says nothing.
    row["tells"] = len(ours) < 3 and len(theirs) < 3
    row["agrees_within"] = bool(ours & theirs)


def summary(rows, left_out):
    compared = [row for row in rows if "agrees" in row]
    told = [row for row in compared if row["tells"]]
    if not told:
        return "nothing was compared; left out for time: %d" % left_out
    # How often the answers for two operators that have nothing to do with each
    # other agree: what a diagnosis that knows nothing would reach.
    pairs = [bool(set(a["ours_possible"]) & set(b["ncu_possible"]))
             for a in told for b in told if a is not b]
    return ("agree: %d of %d by the point, %d of %d within 5%% of the "
            "thresholds (by chance %.0f%%); may be anything: %d; not compared: "
            "%d; left out for time: %d" % (
                sum(row["agrees"] for row in compared), len(compared),
                sum(row["agrees_within"] for row in told), len(told),
                100 * sum(pairs) / max(len(pairs), 1),
                len(compared) - len(told), len(rows) - len(compared),
                left_out))


def draw(seed):
    rng = random.Random(seed)

    def one(match):
        low, high, step = (int(number) for number in match.groups())
        value = math.exp(rng.uniform(math.log(low), math.log(high)))
        return str(max(low, int(value) // step * step))

    return [(op, re.sub(r"\{(\d+):(\d+):(\d+)\}", one, shape),
             "cold" if rng.random() < .25 else "hot") for op, shape in RANGES]


def number(text):
    try:
        return float(text.replace(",", ""))
    except ValueError:
        return None


def parse_ncu(text):
    """The kernels of ncu's CSV, each a dictionary of metrics by name."""
    lines = [line for line in text.splitlines() if line.startswith('"')]
    kernels = {}
    for row in csv.DictReader(io.StringIO("\n".join(lines))):
        kernel = kernels.setdefault(row["ID"], {"kernel": row["Kernel Name"]})
        kernel[row["Metric Name"]] = number(row["Metric Value"])
    return list(kernels.values())


def run(command, seconds, folder):
    try:
        done = subprocess.run(command, cwd=folder, capture_output=True,
                              text=True, timeout=max(seconds, 1))
    except OSError as error:
        return None, str(error)
    except subprocess.TimeoutExpired as expired:
        return None, "took more than %d s: %s" % (seconds, expired.stderr)
    return done.stdout, done.stderr


def profile(options, op, shape, cache, folder, seconds):
    command = [
        options.ncu, "--csv", "--target-processes", "all", "--clock-control",
        "none", "--cache-control", "none" if cache == "hot" else "all",
        "--kernel-name", "regex:^(?!(%s)$).*" % OURS, "--launch-count", "4",
        "--kill", "yes", "--metrics", ",".join(METRICS), options.optrail,
        "bench", "--op=" + op, "--shape=" + shape, "--device=cuda",
        "--launch=stream", "--cache=" + cache, "--select=default",
        "--processes=1", "--quiet", "--config_deadline=60s",
    ]
    out, err = run(command, seconds, folder)
    if out is None:
        return None, err
    kernels = [k for k in parse_ncu(out)
               if k.get(SM) is not None and k.get(MEMORY) is not None]
    if not kernels:
        return None, "ncu told no kernel: " + (out + err)[-400:]
    # The first call warms up; of a call's kernels the longest one counts.
    longest = max(k[TIME] or 0 for k in kernels)
    last = dict([k for k in kernels if (k[TIME] or 0) > .5 * longest][-1])
    same = [k for k in kernels if k["kernel"] == last["kernel"]]
    for metric in (SM, MEMORY):
        last[metric] = statistics.median(k[metric] for k in same[1:] or same)
    return last, ""


def diagnose(options, op, shape, cache, folder, seconds):
    out, err = run(
        [options.optrail, "diagnose", "--op=" + op, "--shape=" + shape,
         "--device=cuda", "--launch=graph", "--cache=" + cache,
         "--select=default", "--format=json", "--quiet"], seconds, folder)
    if out is None:
        return None, err
    try:
        return json.loads(out)[0], ""
    except (ValueError, IndexError):
        return None, "diagnose told nothing: " + (out + err)[-400:]


def compare(options, case, folder, deadline):
    op, shape, cache = case
    row = {"op": op, "shape": shape, "cache": cache, "error": ""}
    left = deadline - time.time()
    ours, row["error"] = diagnose(options, op, shape, cache, folder,
                                  min(60, left))
    if ours is None:
        return row
    row["seconds"] = ours["elapsed_seconds"]
    row["limited_by"] = ours["limited_by"]
    row["or_limited_by"] = ours["or_limited_by"]
    row["causes"] = [c["chain"][-1]["class"] for c in ours["causes"]]
    row["numbers"] = {n["name"]: n["value"] for n in ours["numbers"]
                      if n["value"] is not None}
    row["unsupported"] = {n["name"]: n["unsupported"] for n in ours["numbers"]
                          if n["unsupported"]}
    left = deadline - time.time()
    kernel, row["error"] = profile(options, op, shape, cache, folder,
                                   min(60, left))
    if kernel is None:
        return row
    row["ncu"] = kernel
    judge(row)
    return row


def table(rows):
    lines = ["%-20s %-44s %-5s %-16s %-16s %5s %5s %-6s %5s" % (
        "operator", "shape", "cache", "ours", "ncu", "sm%", "mem%", "agrees",
        "s")]
    for row in rows:
        kernel = row.get("ncu", {})
        agrees = "-"
        if "agrees" in row:
            agrees = ("yes" if row["agrees"] else
                      "within" if row["agrees_within"] else "NO")
        lines.append("%-20s %-44s %-5s %-16s %-16s %5.0f %5.0f %-6s %5.1f%s" % (
            row["op"], row["shape"][:44], row["cache"],
            "|".join(row.get("ours_possible", ["-"])),
            "|".join(row.get("ncu_possible", ["-"])), kernel.get(SM) or 0,
            kernel.get(MEMORY) or 0, agrees, row.get("seconds", 0),
            "  " + " ".join(row["error"].split())[:200] if row["error"] else ""))
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--optrail", required=True)
    parser.add_argument("--ncu", default="ncu")
    parser.add_argument("--budget_s", type=float, default=600)
    parser.add_argument("--first", type=int, default=0,
                        help="Begins with this case, and goes round.")
    parser.add_argument("--cases", type=int, default=len(CASES),
                        help="How many.")
    parser.add_argument("--seed", type=int,
                        help="Draws shapes in place of the fixed ones.")
    parser.add_argument("--out", help="All figures, as JSON.")
    options = parser.parse_args()
    if os.sep in options.optrail:
        options.optrail = os.path.abspath(options.optrail)
    for program in (options.optrail, options.ncu):
        if shutil.which(program) is None:
            parser.error("no program %s; name it by a flag" % program)
    deadline = time.time() + options.budget_s
    cases = CASES if options.seed is None else draw(options.seed)
    first = options.first % len(cases)
    cases = (cases[first:] + cases[:first])[:options.cases]
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for case in cases:
            if time.time() + 8 > deadline:
                break
            rows.append(compare(options, case, folder, deadline))
            print(table(rows[-1:]).splitlines()[1], file=sys.stderr,
                  flush=True)
            if options.out:  # whatever happens later
                with open(options.out, "w") as out:
                    json.dump(rows, out, indent=1)
    print(table(rows))
    print(summary(rows, len(cases) - len(rows)))


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""Generated code beside Halide's autoschedulers, libraries and our own kernels:
the tables of docs/method/schedules.md, from one interleaved `optrail bench` a pipeline.

  python3 beside_peers.py --optrail=bazel-bin/cli/optrail --threads=2 \\
      --runs=/tmp/runs [--store=DIR] [--processes=3] [--only=REGEX] [--without=REGEX]

--under is put before each command (taskset, nice). A run stands in a file of
--runs; where that has one already, it is read instead of measured again.
Ratios are times of the other by ours, tuned: above 1 we are faster.
"""
import argparse
import json
import math
import os
import re
import shlex
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
# Peers run with their default only: none of them is tuned here.
FILTER = (r"-(cpu:(plain|native|blis%s)/|"
          r"cpu:(onednn|openblas|halide_[a-z0-9]+)/.*/tuned)")
SCHEDULERS = ["mullapudi2016", "adams2019", "li2018"]
LIBRARIES = ["onednn", "openblas"]
FUSED = ("activation=relu", "activation=gelu", "conv_bn_relu")


def pipelines(only):
    with open(os.path.join(HERE, "pipelines.txt")) as lines:
        for line in lines:
            if not line.startswith("#") and re.search(only, line):
                yield line.split()


def measure(args, op, shape, path):
    command = shlex.split(args.under) + [
        args.optrail, "bench", "--op=" + op, "--shape=" + shape,
        "--backend=all", "--threads=%d" % args.threads,
        "--processes=%d" % args.processes, "--config=parallelism=2",
        "--config_name=p2", "--quiet",
        "--benchmark_filter=" + FILTER % args.without,
        "--benchmark_out=" + path + ".new"
    ]
    if args.store:
        command.append("--store=" + args.store)
    done = subprocess.run(command, stdout=subprocess.DEVNULL,
                          stderr=subprocess.PIPE, text=True)
    # 1: a peer failed; 3: too busy. Rows say what is missing.
    if done.returncode not in (0, 1, 3):
        sys.exit(done.stderr)
    os.rename(path + ".new", path)


def medians(path):
    """Microseconds by (backend, config)."""
    times = {}
    with open(path) as run:
        for bench in json.load(run)["benchmarks"]:
            if bench.get("error_occurred"):
                continue
            name = re.match(r"[^/]+/cpu(?::(\w+))?/.*/(default|tuned|named=p2)/",
                            bench["run_name"])
            single = bench["run_type"] == "iteration"
            if not name or (not single and bench["aggregate_name"] != "median"):
                continue
            us = bench["real_time"] * {"ns": 1e-3, "us": 1, "ms": 1e3,
                                       "s": 1e6}[bench["time_unit"]]
            key = (name.group(1) or "cpu", name.group(2))
            if not single or key not in times:
                times[key] = us
    return times


def text(us):
    if us is None:
        return "-"
    digits = 3 - len(str(int(us if us < 1000 else us / 1000)))
    value = us if us < 1000 else us / 1000
    return "%.*f %s" % (max(digits, 0), value, "us" if us < 1000 else "ms")


def mean(ratios):
    return math.exp(sum(map(math.log, ratios)) / len(ratios))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--optrail", required=True)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--processes", type=int, default=3)
    parser.add_argument("--runs", required=True)
    parser.add_argument("--store", default="")
    parser.add_argument("--under", default="")
    parser.add_argument("--only", default="")
    parser.add_argument("--read", action="store_true",
                        help="only runs that are there")
    parser.add_argument("--without", default="",
                        help="backends to leave out, such as |halide_.*")
    args = parser.parse_args()
    os.makedirs(args.runs, exist_ok=True)
    ratios = {"schedulers": [], "libraries": [], "fused": [], "ours": []}
    print("| operator | shape | untuned | tuned | mullapudi2016, adams2019, "
          "li2018 | best of them | oneDNN, OpenBLAS | better of them | "
          "hand-written | over ours |\n" + "|---" * 10 + "|")
    for op, shape in pipelines(args.only):
        path = os.path.join(args.runs, "%s %s t%d.json" % (
            op, shape.replace("/", " "), args.threads))
        if not os.path.exists(path) and args.read:
            continue
        if not os.path.exists(path):
            measure(args, op, shape, path)
        times = medians(path)

        def best(backend, *configs):
            known = [times[backend, c] for c in configs
                     if (backend, c) in times]
            return min(known) if known else None

        untuned, tuned = best("halide", "default"), best("halide", "tuned")
        ours = tuned or untuned
        if ours is None:
            print("| %s | %s | no answer |" % (op, shape))
            continue

        def over(others, *names):
            known = [o for o in others if o is not None]
            if not known:
                return ""
            ratio = min(known) / ours
            for name in names:
                ratios[name].append(ratio)
            return "%.2fx" % ratio

        schedulers = [best("halide_" + s, "default", "named=p2")
                      for s in SCHEDULERS]
        libraries = [best(l, "default") for l in LIBRARIES]
        own = best("cpu", "default", "tuned")
        fused = any(f in op + " " + shape for f in FUSED)
        names = ("libraries", "fused") if fused else ("libraries",)
        print("| %s | %s | %s | %s | %s | %s | %s | %s | %s | %s |" % (
            op, shape, text(untuned), text(tuned),
            ", ".join(map(text, schedulers)), over(schedulers, "schedulers"),
            ", ".join(text(l) for l in libraries if l is not None) or "-",
            over(libraries, *names), text(own), over([own], "ours")),
              flush=True)
    for name, known in ratios.items():
        if known:
            print("%s: %.2f over %d" % (name, mean(known), len(known)))


main()

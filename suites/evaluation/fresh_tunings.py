#!/usr/bin/env python3
"""Tunes eight tasks again and again, each time from nothing, and tells what
changed in the store.

    python3 suites/evaluation/fresh_tunings.py ./optrail --rounds=20 --seed=1

Each round is `tune --retune --forget --trials=24 --proof_time=2s
--numerics=class-of-default` with a seed of its own, one task after another, in a
fresh folder. For each change of a stored config it prints what the session
proved of the new one. A change is accounted for where the interval of its gain
lies beyond the margin of 1%. The exit code is 1 where a change is not accounted
for, or a config of another numerics class replaced one.
"""

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile

TASKS = [("softmax", "rows=181,cols=733/f32"), ("layer_norm", "rows=97,cols=1531/f32"),
         ("matmul", "m=211,n=347,k=129/f32"), ("gelu", "n=77003/f32"),
         ("sum", "rows=409,cols=613/f32"), ("linear", "m=53,n=419,k=307/f32"),
         ("rms_norm", "rows=149,cols=911/f32"), ("relu", "n=50021/f32")]
MARGIN = 1.0  # percent


def stored(optrail, folder):
    output = subprocess.run([optrail, "store", "show", f"--store={folder}/store",
                             "--format=json"], stdout=subprocess.PIPE, check=True).stdout
    return {row["operator"]: (row["config"], row["numerics"]) for row in json.loads(output)
            if row["layer"] == "overlay"}


def main():
    flags = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    flags.add_argument("optrail")
    flags.add_argument("--rounds", type=int, default=20)
    flags.add_argument("--seed", type=int, default=1)
    flags.add_argument("--trials", type=int, default=24)
    flags.add_argument("--proof_time", default="2s")
    flags.add_argument("--ops", default=",".join(op for op, _ in TASKS))
    given = flags.parse_args()
    optrail = os.path.abspath(given.optrail)
    known, changes, unproven, bits, entries = {}, 0, 0, 0, 0
    with tempfile.TemporaryDirectory() as folder:
        for number in range(given.rounds):
            for op, shape in TASKS:
                if op not in given.ops.split(","):
                    continue
                tuned = subprocess.run(
                    [optrail, "tune", f"--op={op}", f"--shape={shape}", "--retune", "--forget",
                     f"--trials={given.trials}", f"--proof_time={given.proof_time}",
                     "--numerics=class-of-default", f"--seed={given.seed + number}",
                     f"--store={folder}/store", f"--history={folder}/history", "--quiet"],
                    cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                    universal_newlines=True)
                row = stored(optrail, folder).get(op)
                if row is None:
                    print(f"round {number + 1}: {op} has no entry: {tuned.stdout[-300:]}")
                    continue
                entries += 1
                before = known.get(op)
                known[op] = row
                if before is None or before == row:
                    continue
                changes += 1
                said = re.search(r"the stored config is replaced: .*", tuned.stdout)
                said = said.group(0) if said else "nothing was said"
                gain = re.search(r"\+([0-9.]+)% to ", said)
                proven = gain is not None and float(gain.group(1)) >= MARGIN
                unproven += not proven
                bits += before[1] != row[1]
                print(f"round {number + 1}: {op}: {before[0]} -> {row[0]}: {said}"
                      f"{'' if proven else '  NOT PROVEN'}", flush=True)
            print(f"round {number + 1}: seed {given.seed + number}, {changes} changes so far",
                  flush=True)
    print(f"{entries} entries in {given.rounds} rounds, {changes} changes, {unproven} not "
          f"proven, {bits} of another numerics class")
    return 1 if unproven or bits else 0


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env bash
# Runs a workload at the current commit, keeps the result in a history that
# outlives this checkout, writes the report, and judges the branch by its past.
#
#   ci/nightly.sh HISTORY REPORT.html
#
# HISTORY is a folder on a volume that is kept, or one that a step before this
# fetched and a step after this uploads; files in it are never changed, so
# merging two copies is copying files.
#
# A CI service that checks out a commit rather than a branch sets
# OPTRAIL_BRANCH=main: the gate's window is over a branch.
#
# Environment:
#   OPTRAIL_WORKLOAD       what to benchmark, default smoke
#   OPTRAIL_STORE          tuned configs, default HISTORY.store
#   OPTRAIL_MAX_RUNS       most runs to add, at most twice, of benchmarks that
#                          noise hides, default 8
#
# Exit codes: 0 fine, or too little history; 1 a regression, 2 wrong use, 3 not
# enough data to tell.
set -euo pipefail

if [ $# -ne 2 ]; then
  echo "usage: ci/nightly.sh HISTORY REPORT.html" >&2
  exit 2
fi
history=$1
report=$2
workload=${OPTRAIL_WORKLOAD:-smoke}
max_runs=${OPTRAIL_MAX_RUNS:-8}
# Beside the history: a fresh checkout would tune anew, and another config every
# night is another trend.
store=${OPTRAIL_STORE:-$history.store}
cd "$(git rev-parse --show-toplevel)"

./bazelw build //:optrail
optrail=bazel-bin/cli/optrail
verdict=.optrail/verdict.json
mkdir -p .optrail

# 1: a benchmark failed, 3: one was disturbed; it is recorded so, for the gate to
# judge. A run is evidence of its own, so that the gate asks for more runs (of
# five processes each), not for a longer one.
cat >.optrail/measure <<'END'
"$optrail" "$@" --history="$history" --store="$store" --quiet ||
  case $? in 1 | 3) true ;; *) false ;; esac
END
export optrail history store workload max_runs
sh .optrail/measure suite "$workload" --report="$report"
code=0
"$optrail" gate --history="$history" --policy=ci/policy.textproto \
  --candidate="$(git rev-parse HEAD)" --verdict_out="$verdict" --looks=3 \
  --measure='runs=$((({processes} + 4) / 5))
    [ "$runs" -le "$max_runs" ] || runs=$max_runs
    for run in $(seq "$runs"); do
      sh .optrail/measure bench --workload="$workload" --record \
        --benchmark_filter={filter} || exit 2
    done' || code=$?
# Five runs are needed before the past says anything. Noise is another matter.
if [ "$code" -eq 3 ] && grep -q '^  "reason": "no_baseline"' "$verdict"; then
  echo "nightly: not enough history yet to judge this run"
  exit 0
fi
exit "$code"

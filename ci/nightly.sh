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
set -euo pipefail

if [ $# -ne 2 ]; then
  echo "usage: ci/nightly.sh HISTORY REPORT.html" >&2
  exit 2
fi
history=$1
report=$2
workload=${OPTRAIL_WORKLOAD:-smoke}
# Beside the history: a fresh checkout would tune anew, and another config every
# night is another trend.
store=${OPTRAIL_STORE:-$history.store}
cd "$(git rev-parse --show-toplevel)"

./bazelw build //:optrail
optrail=bazel-bin/cli/optrail

# 1: a benchmark failed, 3: one was disturbed; it is recorded so, for the gate
# to judge.
"$optrail" suite "$workload" --history="$history" --store="$store" \
  --report="$report" --quiet ||
  case $? in 1 | 3) true ;; *) false ;; esac
code=0
"$optrail" gate --history="$history" --policy=ci/policy.textproto \
  --verdict_out=.optrail/verdict.json || code=$?
# Five runs are needed before the past says anything. Noise is another matter.
if [ "$code" -eq 3 ] &&
  grep -q '"summary": "can.t tell: no baseline' .optrail/verdict.json; then
  echo "nightly: not enough history yet to judge this run"
  exit 0
fi
exit "$code"

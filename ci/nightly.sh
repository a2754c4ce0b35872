#!/usr/bin/env bash
# Runs a workload at the current commit, keeps the result in a history that
# outlives this checkout, writes the report, and judges the branch by its past.
#
#   ci/nightly.sh HISTORY REPORT.html
#
# HISTORY is a folder on a volume that is kept, or one that a step before this
# fetched and a step after this uploads; files in it are never changed, so
# merging two copies is copying files.
set -euo pipefail

history=${1:?usage: ci/nightly.sh HISTORY REPORT.html}
report=${2:?usage: ci/nightly.sh HISTORY REPORT.html}
workload=${OPTRAIL_WORKLOAD:-smoke}
cd "$(git rev-parse --show-toplevel)"

./bazelw build //:optrail
optrail=bazel-bin/cli/optrail

"$optrail" suite "$workload" --history="$history" --report="$report" --quiet
code=0
"$optrail" gate --history="$history" --policy=ci/policy.textproto || code=$?
# Five runs are needed before the past says anything.
if [ "$code" -eq 3 ]; then
  echo "nightly: not enough history yet to judge this run"
  exit 0
fi
exit "$code"

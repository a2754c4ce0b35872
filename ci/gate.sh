#!/usr/bin/env bash
# Gates a pull request: merge base and head are built, benchmarked in turn on
# this machine, and compared. Copy it and change the workload.
#
#   ci/gate.sh [BASE]        BASE: the branch to merge into, default origin/main
#
# Exit codes: 0 fine, 1 a regression, 2 the gate could not run, 3 not enough
# data to tell. Builds come first, so that a failed build is never read as a
# regression.
set -euo pipefail

base_branch=${1:-origin/main}
workload=${OPTRAIL_WORKLOAD:-smoke}
rounds=${OPTRAIL_ROUNDS:-3}
processes=${OPTRAIL_PROCESSES:-4}
root=$(git rev-parse --show-toplevel)
cd "$root"

base=$(git merge-base "$base_branch" HEAD) ||
  { echo "gate: no merge base of $base_branch and HEAD; fetch more history" >&2; exit 2; }
work=$(mktemp -d)
trap 'git worktree remove --force "$work/base" 2>/dev/null || true; rm -rf "$work"' EXIT

# One binary per side, from its own sources.
build() { # build FOLDER COPY
  (cd "$1" && ./bazelw build //:optrail) >"$work/build.log" 2>&1 ||
    { tail -20 "$work/build.log" >&2; echo "gate: the build of $1 failed" >&2; exit 2; }
  cp -L "$1/bazel-bin/cli/optrail" "$2"
}
git worktree add --quiet --detach "$work/base" "$base"
build "$work/base" "$work/optrail_base"
build "$root" "$work/optrail_head"

# Both sides measure with the tuned configs of the store as it is now.
history=$work/history
bench() { # bench BINARY FOLDER
  (cd "$2" && "$1" bench --workload="$workload" --processes="$processes" \
    --history="$history" --store="$root/.optrail/store" --record --quiet) \
    >>"$work/bench.log" 2>&1
}
for round in $(seq "$rounds"); do
  echo "gate: round $round of $rounds" >&2
  bench "$work/optrail_base" "$work/base" ||
    { tail -20 "$work/bench.log" >&2; echo "gate: benchmarking $base failed" >&2; exit 2; }
  # A benchmark that fails on the head is the gate's to judge.
  bench "$work/optrail_head" "$root" || true
done

"$work/optrail_head" gate --history="$history" \
  --policy="$root/ci/policy.textproto" \
  --baseline="commit:$base" --candidate="$(git rev-parse HEAD)" \
  --verdict_out="${OPTRAIL_VERDICT:-$root/.optrail/verdict.json}" \
  --markdown_out="${OPTRAIL_MARKDOWN:-$root/.optrail/gate.md}"

#!/usr/bin/env bash
# Gates a pull request: merge base and head are built, benchmarked in turn on
# this machine, and judged as pairs: what the machine does to both cancels.
# Where noise hides the answer, the benchmarks in question are measured in more
# rounds, until it is clear or they are used up. Copy it and change the workload.
#
#   ci/gate.sh [BASE]        BASE: the branch to merge into, default origin/main
#
# Environment:
#   OPTRAIL_WORKLOAD       what to benchmark, default smoke
#   OPTRAIL_ROUNDS         rounds of both sides, default 10; each is one pair
#   OPTRAIL_PROCESSES      processes per benchmark, side and round, default 1
#   OPTRAIL_MAX_ROUNDS     most to add in all when measuring again, default 40
#   OPTRAIL_VERDICT, OPTRAIL_MARKDOWN   where the results go
#   OPTRAIL_BENCH_FLAGS, OPTRAIL_HEAD_FLAGS   more flags of `optrail bench`, for
#                          both sides and for the head alone
#
# Exit codes: 0 fine, 1 a regression, 2 the gate could not run, 3 not enough
# data to tell. Builds come first, so that a failed build is never read as a
# regression.
set -euo pipefail

base_branch=${1:-origin/main}
workload=${OPTRAIL_WORKLOAD:-smoke}
rounds=${OPTRAIL_ROUNDS:-10}
processes=${OPTRAIL_PROCESSES:-1}
max_rounds=${OPTRAIL_MAX_ROUNDS:-40}

fail() { # fail MESSAGE [LOG]
  [ -z "${2:-}" ] || tail -20 "$2" >&2
  echo "gate: $1" >&2
  exit 2
}

root=$(git rev-parse --show-toplevel) || fail "not in a git repository"
cd "$root"
base=$(git merge-base "$base_branch" HEAD) ||
  fail "no merge base of $base_branch and HEAD; fetch more history"
head=$(git rev-parse HEAD)
[ "$base" != "$head" ] || fail "HEAD is part of $base_branch: nothing to gate"
work=$(mktemp -d)
cleanup() {
  # The build of a folder that is about to go is kept nowhere.
  (cd "$work/base" 2>/dev/null && ./bazelw clean --expunge >/dev/null 2>&1) ||
    true
  git worktree remove --force "$work/base" 2>/dev/null || true
  rm -rf "$work"
}
trap cleanup EXIT

# One binary per side, from its own sources.
build() { # build FOLDER COPY
  (cd "$1" && ./bazelw build //:optrail) >"$work/build.log" 2>&1 ||
    fail "the build of $1 failed" "$work/build.log"
  cp -L "$1/bazel-bin/cli/optrail" "$2"
}
git worktree add --quiet --detach "$work/base" "$base"
[ ! -e .bazelrc.user ] || cp .bazelrc.user "$work/base/"
build "$work/base" "$work/optrail_base"
build "$root" "$work/optrail_head"

# Both sides measure with the tuned configs of the store as it is now.
history=$work/history
pairing=${base:0:12}-${head:0:12}-$$
round=0
# A base from before runs could say that they are pairs: judged without.
# (grep reads to the end: with -q, help might be ended by a broken pipe.)
"$work/optrail_base" help bench | grep -e --pairing >/dev/null || pairing=
bench() { # bench BINARY FOLDER PROCESSES FLAGS...
  local binary=$1 folder=$2 count=$3
  shift 3
  # shellcheck disable=SC2086
  (cd "$folder" && "$binary" bench --workload="$workload" \
    --processes="$count" --history="$history" --store="$root/.optrail/store" \
    ${pairing:+--pairing="$pairing" --round="$round"} --record --quiet \
    ${OPTRAIL_BENCH_FLAGS:-} "$@") >>"$work/bench.log" 2>&1 ||
    # 1: a benchmark failed, 3: one was disturbed; it is recorded so, for the
    # gate to judge. 2: nothing was measured.
    case $? in 1 | 3) true ;; *) false ;; esac || fail "benchmarking $folder failed" "$work/bench.log"
}
bench_head() { # bench_head PROCESSES FLAGS...
  # shellcheck disable=SC2086
  bench "$work/optrail_head" "$root" "$1" ${OPTRAIL_HEAD_FLAGS:-} "${@:2}"
}
measure() { # measure ROUNDS FLAGS...
  local number=$1 turn
  shift
  for turn in $(seq "$number"); do
    round=$((round + 1))
    echo "gate: round $turn of $number, $processes processes a side" >&2
    # Base first, then head first: a drift of the machine favours neither.
    if [ $((turn % 2)) -eq 1 ]; then
      bench "$work/optrail_base" "$work/base" "$processes" "$@"
      bench_head "$processes" "$@"
    else
      bench_head "$processes" "$@"
      bench "$work/optrail_base" "$work/base" "$processes" "$@"
    fi
  done
}

verdict=${OPTRAIL_VERDICT:-$root/.optrail/verdict.json}
markdown=${OPTRAIL_MARKDOWN:-$root/.optrail/gate.md}
# Pairs may be looked at as often as one likes; of others each look is paid for.
looks=3
[ -z "$pairing" ] || looks=$((max_rounds + 1))
measure "$rounds"
for look in $(seq "$looks"); do
  code=0
  "$work/optrail_head" gate --history="$history" \
    --policy="$root/ci/policy.textproto" \
    --baseline="commit:$base" --candidate="$head" --looks=3 \
    --verdict_out="$verdict" --markdown_out="$markdown" \
    --remeasure_out="$work/remeasure" >"$work/gate.txt" || code=$?
  # Only what can't be told is worth another look, and only if more helps.
  if [ "$code" -ne 3 ] || [ "$look" -eq "$looks" ] ||
    [ "$max_rounds" -le 0 ] || [ ! -s "$work/remeasure" ]; then
    break
  fi
  { read -r more && IFS= read -r filter; } <"$work/remeasure"
  [ "$more" -le "$max_rounds" ] || more=$max_rounds
  max_rounds=$((max_rounds - more))
  echo "gate: $(head -n 1 "$work/gate.txt" | cut -d: -f2-): measuring again" >&2
  measure "$more" --benchmark_filter="$filter"
done
cat "$work/gate.txt"
exit "$code"

#!/usr/bin/env bash
# Gates a pull request: `optrail gate` builds merge base and head, benchmarks
# them in turn on this machine until it can tell, and judges them as pairs: what
# the machine does to both cancels. Copy it and change the workload.
#
#   ci/gate.sh [BASE]        BASE: the branch to merge into, default origin/main
#
# Environment:
#   OPTRAIL_WORKLOAD       what to benchmark, default smoke
#   OPTRAIL_ROUNDS, OPTRAIL_MAX_ROUNDS   together the most rounds, default 10
#                          and 40; it ends as soon as every verdict is clear
#   OPTRAIL_PROCESSES      processes per benchmark, side and round, default 1
#   OPTRAIL_VERDICT, OPTRAIL_MARKDOWN   where the results go
#   OPTRAIL_BENCH_FLAGS, OPTRAIL_HEAD_FLAGS   more flags of `optrail bench`, for
#                          both sides and for the head alone
#
# Exit codes: 0 fine, 1 a regression, 2 the gate could not run, 3 not enough
# data to tell. Flags that `optrail bench` does not take are found before anything
# is measured.
set -euo pipefail
fail() { echo "gate: $1" >&2; exit 2; }

root=$(git rev-parse --show-toplevel) || fail "not in a git repository"
cd "$root"
base=$(git merge-base "${1:-origin/main}" HEAD) ||
  fail "no merge base of ${1:-origin/main} and HEAD; fetch more history"
head=$(git rev-parse HEAD)
[ "$base" != "$head" ] || fail "HEAD is part of ${1:-origin/main}: nothing to gate"
./bazelw build //:optrail || fail "the build of HEAD failed"
rounds=$((${OPTRAIL_ROUNDS:-10} + ${OPTRAIL_MAX_ROUNDS:-40}))
# shellcheck disable=SC2086
bazel-bin/cli/optrail bench --workload="${OPTRAIL_WORKLOAD:-smoke}" \
  --benchmark_list_tests ${OPTRAIL_BENCH_FLAGS:-} ${OPTRAIL_HEAD_FLAGS:-} \
  >/dev/null || fail "optrail bench refuses OPTRAIL_WORKLOAD or the flags of OPTRAIL_BENCH_FLAGS and OPTRAIL_HEAD_FLAGS"

# One binary per side, from its own sources: that of the head is there already.
# Both measure with the tuned configs of the store as it is now, and what is clear
# already is not measured again. A benchmark that failed (1) or was disturbed (3) is in the results, for the gate to judge.
export root head
exec bazel-bin/cli/optrail gate --policy=ci/policy.textproto \
  --baseline="commit:$base" --candidate="$head" \
  --max_rounds=$((rounds < 5 ? 5 : rounds)) \
  --verdict_out="${OPTRAIL_VERDICT:-$root/.optrail/verdict.json}" \
  --markdown_out="${OPTRAIL_MARKDOWN:-$root/.optrail/gate.md}" \
  --build='if [ "$(git rev-parse HEAD)" = "$head" ]; then
      cp -L "$root/bazel-bin/cli/optrail" optrail_gated
    else
      [ ! -e "$root/.bazelrc.user" ] || cp "$root/.bazelrc.user" .
      ./bazelw build //:optrail && cp -L bazel-bin/cli/optrail optrail_gated &&
        ./bazelw clean --expunge
    fi' \
  --run='[ "$(git rev-parse HEAD)" = "$head" ] || OPTRAIL_HEAD_FLAGS=
    ./optrail_gated bench --workload="${OPTRAIL_WORKLOAD:-smoke}" --quiet \
      --processes="${OPTRAIL_PROCESSES:-1}" --store="$root/.optrail/store" \
      --benchmark_out={out} --benchmark_filter={filter} $OPTRAIL_BENCH_FLAGS $OPTRAIL_HEAD_FLAGS ||
      case $? in 1 | 3) true ;; *) false ;; esac'

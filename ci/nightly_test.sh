#!/usr/bin/env bash
# ci/nightly.sh from an empty history on: a scratch repository whose builds copy
# a command line that measures planted times (planted_bench) and judges with the
# real one. The first nights have no past; then identical code is green, also
# where noise makes one night unsure, which is measured again; a benchmark that
# takes 15% more is red.
#
#   bazel test //ci:nightly_test
set -euo pipefail

. "$(dirname "$0")/planted_project.sh" "$@"
history=$TEST_TMPDIR/history

runs() {
  "$OPTRAIL" log --limit=1000 --format=csv --history="$history" | tail -n +2 | wc -l
}
night() { # night NAME EXPECTED_CODE
  local code=0
  git add -A
  git commit -qm "$1"
  "$script" "$history" "$TEST_TMPDIR/report.html" >"$TEST_TMPDIR/$1.txt" \
    2>"$TEST_TMPDIR/$1.log" || code=$?
  echo "== $1: exit $code, $(runs) runs"
  tail -n 5 "$TEST_TMPDIR/$1.txt"
  [ "$code" -eq "$2" ] || {
    fail "$1: exit $code, expected $2"
    tail -20 "$TEST_TMPDIR/$1.log" >&2
  }
}

for i in 1 2 3 4 5; do
  echo "$i" >readme
  night "first_$i" 0
  grep -q "not enough history" "$TEST_TMPDIR/first_$i.txt" ||
    fail "night $i: judged"
done
[ "$(runs)" -eq 5 ] || fail "the first nights are not one run each"
echo 6 >readme
night calm 0
grep -q green "$TEST_TMPDIR/calm.txt" || fail "calm: not green"

for i in 1 2 3; do
  echo .04 >noise
  echo "noisy $i" >readme
  night "noisy_$i" 0
done
grep -q "measuring again" "$TEST_TMPDIR"/noisy_*.log ||
  fail "noisy: never measured again"
[ "$(runs)" -gt 9 ] || fail "noisy: no run was added"

echo "BM_2 1.15" >slow
night slow 1
grep -q BM_2 "$TEST_TMPDIR/slow.txt" || fail "slow: does not name it"

exit "$failed"

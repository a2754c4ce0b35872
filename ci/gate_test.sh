#!/usr/bin/env bash
# ci/gate.sh from a pull request to its verdict: a scratch repository whose
# builds copy a command line that measures planted times (planted_bench) and
# judges with the real one. An unchanged head is green; one benchmark that takes
# 10% or 5% more is red, through a machine that drifts by 15% from round to
# round; what cannot be told within its rounds ends with 3.
#
#   bazel test //ci:gate_test
set -euo pipefail

. "$(dirname "$0")/planted_project.sh" "$@"
git add .
git commit -qm "base"
git checkout -qb head

pull_request() { # pull_request NAME EXPECTED_CODE
  local code=0
  "$script" main >"$TEST_TMPDIR/$1.txt" 2>"$TEST_TMPDIR/$1.log" || code=$?
  echo "== $1: exit $code"
  cat "$TEST_TMPDIR/$1.txt"
  [ "$code" -eq "$2" ] || {
    fail "$1: exit $code, expected $2"
    tail -20 "$TEST_TMPDIR/$1.log" >&2
  }
  [ "$(git worktree list | wc -l)" -eq 1 ] || fail "$1: a worktree is left"
}
commit() {
  git add -A
  git commit -qm "$1"
}
holds() { # holds NAME TEXT
  grep -qF -e "$2" "$TEST_TMPDIR/$1.txt" || fail "$1: no '$2' in its verdict"
}

echo "words" >readme
commit "nothing that matters"
pull_request unchanged 0
grep -q '"exit_code": *0' .optrail/verdict.json || fail "unchanged: its JSON"
# What is clear is not measured again: benchmarks end after different rounds.
[ "$(grep -o '"processes": *[0-9]*' .optrail/verdict.json | sort -u | wc -l)" \
  -gt 1 ] || fail "unchanged: every benchmark has as many rounds"

# Flags that the bench does not take are wrong use, not a regression.
OPTRAIL_HEAD_FLAGS=--no_such_flag pull_request wrong_flag 2

echo "BM_2 1.10" >slow
commit "ten percent"
pull_request ten_percent 1
holds ten_percent BM_2
holds ten_percent rounds
grep -q 'BM_2' .optrail/gate.md || fail "ten percent: its Markdown"

echo "BM_1 1.05" >slow
commit "five percent"
pull_request five_percent 1
holds five_percent BM_1

# It goes on until it can tell, and not beyond the rounds that it has: can't tell
# is not green.
git rm -q slow
commit "as before"
pull_request as_before 0
echo .2 >noise
commit "noisy"
OPTRAIL_ROUNDS=1 OPTRAIL_MAX_ROUNDS=0 pull_request few_rounds 3
holds few_rounds "5 rounds"
git rm -q noise
commit "calm"

# A head that does not build is no regression.
touch broken
commit "broken"
pull_request broken 2
git checkout -q main
pull_request nothing_to_gate 2

exit "$failed"

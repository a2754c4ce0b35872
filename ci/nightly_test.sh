#!/usr/bin/env bash
# ci/nightly.sh from an empty history on: a scratch repository whose builds copy
# a command line that measures planted times (planted_bench) and judges with the
# real one. The first nights have no past; then identical code is green, also
# where noise makes one night unsure, which is measured again; a benchmark that
# takes 15% more is red.
#
#   bazel test //ci:nightly_test
set -euo pipefail

export OPTRAIL=$PWD/$1 PLANTED_BENCH=$PWD/$2
nightly=$PWD/$3

failed=0
fail() {
  echo "FAILED: $1" >&2
  failed=1
}

scratch=$TEST_TMPDIR/project
history=$TEST_TMPDIR/history
mkdir -p "$scratch/ci"
cd "$scratch"
export GIT_CONFIG_NOSYSTEM=1 HOME=$TEST_TMPDIR
export GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@example.com
export GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@example.com
# Ids of commits are what planted_bench draws its noise by: always the same.
export GIT_AUTHOR_DATE='2026-01-01T00:00:00Z'
export GIT_COMMITTER_DATE='2026-01-01T00:00:00Z'

# A build that takes no time.
cat >bazelw <<EOF
#!/usr/bin/env bash
set -e
mkdir -p bazel-bin/cli
cat >bazel-bin/cli/optrail <<'IN'
#!/usr/bin/env bash
case \$1 in suite | bench) exec "\$PLANTED_BENCH" "\$@" ;; esac
exec "\$OPTRAIL" "\$@"
IN
chmod +x bazel-bin/cli/optrail
EOF
chmod +x bazelw
printf 'bazel-bin\n.optrail\n' >.gitignore
printf '# the defaults: 3%% counts, 5%% must be found\n' >ci/policy.textproto
git init -q -b main .

runs() {
  "$OPTRAIL" log --limit=1000 --format=csv --history="$history" | tail -n +2 | wc -l
}
night() { # night NAME EXPECTED_CODE
  local code=0
  git add -A
  git commit -qm "$1"
  "$nightly" "$history" "$TEST_TMPDIR/report.html" >"$TEST_TMPDIR/$1.txt" \
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
grep -q "more runs" "$TEST_TMPDIR"/noisy_*.log ||
  fail "noisy: never measured again"
[ "$(runs)" -gt 9 ] || fail "noisy: no run was added"

echo "BM_2 1.15" >slow
night slow 1
grep -q BM_2 "$TEST_TMPDIR/slow.txt" || fail "slow: does not name it"

exit "$failed"

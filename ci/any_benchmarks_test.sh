#!/usr/bin/env bash
# docs/guide/any_benchmarks.md in a scratch project with make, six Google Benchmark
# programs and 40 commits, one of which is 8% slower: its commands as they stand
# there, and what they must find. Skipped, saying so, where git, make, g++ or
# Google Benchmark is missing.
#   any_benchmarks_test.sh OPTRAIL PROJECT_SH ANY_BENCHMARKS_MD
set -uo pipefail

optrail=$PWD/$1
project=$PWD/$2
page=$PWD/$3
for tool in git make g++; do
  command -v "$tool" >/dev/null || { echo "skipped: no $tool" && exit 0; }
done
[ -e /usr/include/benchmark/benchmark.h ] ||
  { echo "skipped: libbenchmark-dev is not installed" && exit 0; }

export HOME=$TEST_TMPDIR XDG_CACHE_HOME=$TEST_TMPDIR/cache
unset BUILD_WORKSPACE_DIRECTORY BUILD_WORKING_DIRECTORY
mkdir -p "$TEST_TMPDIR/bin"
ln -sf "$optrail" "$TEST_TMPDIR/bin/optrail"
PATH=$TEST_TMPDIR/bin:$PATH
culprit=$("$project" "$TEST_TMPDIR/project") || exit 1
cd "$TEST_TMPDIR/project" || exit 1

failures=0
fail() {
  echo "FAILED: $*"
  failures=$((failures + 1))
}
check() { # check CODE TEXT: what `run` left in $code and out
  [ "$code" = "$1" ] || fail "$what: exit code $code, expected $1: $(tail -5 out)"
  grep -q -- "$2" out || fail "$what: does not say $2: $(cat out)"
}

# The commands of the page, in its order, and the two variables before them.
sed -n '/^## Five commands/,/^## /p' "$page" | sed -n '/^```sh/,/^```/p' |
  grep -v '^```' >commands
[ "$(grep -c '^optrail' commands)" -le 6 ] || fail "more than six commands"
eval "$(grep -v '^optrail' commands)"
run_command() { # run_command NAME: the page's command of that name
  what=$1
  line=$(grep "^optrail $1" commands) || fail "the page has no $1"
  SECONDS=0
  eval "$line" >out 2>&1
  code=$?
  echo "optrail $1: exit code $code in $SECONDS s"
}

run_command watch
check 0 measured
[ "$(grep -c '| *measured\|  measured  ' out)" -ge 39 ] ||
  [ "$(grep -c measured out)" -ge 39 ] || fail "not all commits are measured"
run_command watch
check 0 "39 measured before"
# HEAD against HEAD~20 holds the culprit; the exit code stops a merge.
run_command gate
check 1 BM_hash
grep -q 'at commit unknown' out && fail "gate: a row does not name its commit"
grep -q 'BM_parse.*slower' out && fail "gate: a benchmark that did not change is slower"
run_command bisect
check 0 "${culprit:0:12}.*yes"
run_command changes
grep -q BM_hash out || fail "changes: does not name BM_hash: $(cat out)"
run_command report
check 0 report.html

# Commits that change nothing pass: four pairs on either side of the change.
for pair in "HEAD~30 HEAD~25" "HEAD~22 HEAD~19" "HEAD~16 HEAD~8" "HEAD~5 HEAD"; do
  set -- $pair
  what="gate $pair"
  optrail gate --build="$build" --run="$run" --baseline="commit:$1" \
    --candidate="$2" --quiet >out 2>&1
  code=$?
  [ "$code" = 0 ] || fail "$what: exit code $code: $(cat out)"
done

# Nothing of this touched the working tree.
[ -z "$(git status --porcelain -- src Makefile version)" ] || fail "the tree is dirty"
if [ "$failures" -gt 0 ]; then
  echo "$failures failures"
  exit 1
fi
echo "all as expected"

#!/usr/bin/env bash
# For projects of any build system: gates a pull request, or records main.
# Copy it and change the two commands, or call it as `optrail-ci` where the
# package is installed. `optrail` is on PATH.
#
#   ci/any_benchmarks.sh gate [BASE]     BASE: the branch to merge into, default
#                                        main; exit code 0 fine, 1 red, 2 it
#                                        could not run, 3 can't tell
#   ci/any_benchmarks.sh record HISTORY  measures what HISTORY lacks of the last
#                                        commits and writes report.html
#
# Environment: OPTRAIL_BUILD and OPTRAIL_RUN, the two commands; OPTRAIL_METRIC,
# such as cpu_time on a shared machine, or OPTRAIL_POLICY, a policy file;
# OPTRAIL_ALERT, a command for bad news; OPTRAIL_COMMITS, how far
# back to measure, default 50; and of a pull request OPTRAIL_PULL_REQUEST, its
# number: then ci/comment.sh says the verdict there.
set -euo pipefail

build=${OPTRAIL_BUILD:-make -s}
# shellcheck disable=SC2016
run='for p in bin/*_bench; do
  $p --benchmark_out={out_dir}/${p##*/}.json --benchmark_out_format=json
done'
run=${OPTRAIL_RUN:-$run}
here=$(dirname "$(readlink -f "$0")") # of the link that a package installs

case ${1:-} in
gate)
  code=0
  optrail gate --build="$build" --run="$run" \
    --baseline="merge-base:${2:-main}" \
    ${OPTRAIL_POLICY:+--policy="$OPTRAIL_POLICY"} \
    ${OPTRAIL_METRIC:+--metric="$OPTRAIL_METRIC"} \
    --markdown_out=.optrail/gate.md --verdict_out=.optrail/verdict.json \
    --badge_out=.optrail/badge.svg --annotations=github \
    ${OPTRAIL_ALERT:+--alert_command="$OPTRAIL_ALERT"} || code=$?
  # A gate that could not run (2) has nothing to say there.
  if [ -n "${OPTRAIL_PULL_REQUEST:-}" ] && [ "$code" != 2 ]; then
    "$here/comment.sh" "$OPTRAIL_PULL_REQUEST" .optrail/gate.md ||
      echo "any_benchmarks: no comment could be written" >&2
  fi
  exit "$code"
  ;;
record)
  history=${2:?"usage: ci/any_benchmarks.sh record HISTORY"}
  commits=${OPTRAIL_COMMITS:-50}
  range=HEAD
  # A young repository has fewer.
  if git rev-parse --quiet --verify "HEAD~$commits" >/dev/null; then
    range=HEAD~$commits..HEAD
  fi
  optrail watch "$range" --build="$build" --run="$run" --history="$history"
  optrail report --history="$history" --out=report.html
  optrail changes --history="$history"
  ;;
*)
  echo "usage: ci/any_benchmarks.sh gate [BASE] | record HISTORY" >&2
  exit 2
  ;;
esac

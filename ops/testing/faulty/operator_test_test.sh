#!/usr/bin/env bash
# The operator test on a kernel that misbehaves: it names each config that does,
# whatever that does to the process, and a kernel that refuses everything fails.
set -uo pipefail
operator_test=$1
failures=0

expect() {  # expect CODE TEXT ARGUMENT...
  local code=$1 text=$2 output got
  shift 2
  output=$("$operator_test" --op=faulty --sampled_configs=0 "$@" 2>&1)
  got=$?
  [[ $code == fails && $got != 0 || $code == "$got" ]] &&
    grep -q -- "$text" <<<"$output" && return
  echo "$*: exit code $got, expected $code and \"$text\" in:"
  tail -n 16 <<<"$output"
  failures=$((failures + 1))
}

expect 0 PASSED --config=behaviour=ok,work=1
for behaviour in write_nan write_nothing write_out_of_bounds write_before \
  change_input wrong_last wrong_beyond_one wrong_denormals wrong_ties \
  wrong_large wrong_later; do
  expect fails "config behaviour=$behaviour,work=1 .*operand" \
    "--config=behaviour=$behaviour,work=1"
done
expect fails "FAILED: .*behaviour=crash.*signal 11" \
  --config=behaviour=crash,work=1
expect fails "FAILED: .*behaviour=abort.*signal 6" \
  --config=behaviour=abort,work=1
expect fails "FAILED: .*behaviour=exit.*code 3" --config=behaviour=exit,work=1
expect fails "FAILED: .*behaviour=hang.*no answer within 1s" \
  --config=behaviour=hang,work=1 --config_deadline=1s
expect fails "behaviour=refuse,work=1 .*refused on request" \
  --config=behaviour=refuse,work=1
expect fails "compile=refuse,work=1 .*this is no program" \
  --config=compile=refuse,work=1
expect fails "no backend has such a config" --config=behaviour=ok,work=3
expect fails "unknown_flag" --unknown_flag=1
exit "$((failures > 0))"

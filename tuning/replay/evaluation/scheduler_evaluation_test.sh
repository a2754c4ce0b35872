#!/bin/bash
# The evaluation refuses flags without an effect, and prints no gain of nothing.
#   scheduler_evaluation_test.sh SCHEDULER_EVALUATION
set -u
evaluation=$1
data=tuning/replay/recordings/data
spaces=$data/convolution_1000x3000.json.xz,$data/convolution_2048x2048.json.xz
small="--spaces=$spaces --strategy=random --seeds=2 --most_trials=8 --totals=8"
failed=0

# expect WHAT TEXT: the last call's output has the text.
expect() {
  [[ "$output" == *"$2"* ]] && return
  echo "$1: expected \"$2\", got: $output"
  failed=1
}

for flag in workloads spread; do
  output=$($evaluation $small --calls=1,2 --$flag=12 2>&1) && failed=1
  expect "--calls with --$flag" "flag --$flag: it draws shares"
done

output=$($evaluation $small --calls=1,2 2>&1) || failed=1
expect "gains" "total_trials,trials_per_task,equal,"
[[ "$output" == *nan* || "$output" == *inf* || "$output" == *note:* ]] && failed=1

# A default that nothing beats.
output=$($evaluation $small --calls=1,2 --starts_ms=1e-9,1e-9 2>&1) || failed=1
expect "no gain" "note: 2 of 2 workloads gain nothing"
expect "no gain" ",0.500,,,"
[[ "$output" == *nan* || "$output" == *inf* ]] && failed=1
exit $failed

#!/bin/sh
# Runs the CUDA kernels of operators' tests under compute-sanitizer:
#
#   ./bazelw build //ops/softmax:softmax_test //ops/matmul:matmul_test
#   sh ops/evaluation/sanitize.sh softmax=bazel-bin/ops/softmax/softmax_test \
#       matmul=bazel-bin/ops/matmul/matmul_test
#
# The default config of each kernel with every shape of the test, odd ones
# among them; $CONFIGS others beside it. $TOOLS: "memcheck racecheck". A line a
# test; 1 if any found something, 3 where there is no sanitizer or no GPU.
set -u

sanitizer=${SANITIZER:-$(command -v compute-sanitizer ||
  echo /usr/local/cuda/bin/compute-sanitizer)}
if [ ! -x "$sanitizer" ]; then
  echo "unsupported here: compute-sanitizer not found" >&2
  exit 3
fi
if [ ! -e /proc/driver/nvidia/version ]; then
  echo "unsupported here: no NVIDIA driver" >&2
  exit 3
fi

log=$(mktemp)
trap 'rm -f "$log"' EXIT
code=0
for test in "$@"; do
  op=${test%%=*}
  binary=${test#*=}
  for tool in ${TOOLS:-memcheck racecheck}; do
    if "$sanitizer" --tool "$tool" --error-exitcode 9 \
      "$binary" --op="$op" --sampled_configs="${CONFIGS:-0}" \
      --config_deadline=10m --watched=false \
      --gtest_filter='*.KernelsOfOtherDevicesMatchTheReference' \
      >"$log" 2>&1 && grep -q '\[  PASSED  \] 1 test' "$log" &&
      ! grep -q 'not tested: ' "$log"; then
      echo "$op, $tool: $(grep -a SUMMARY "$log" | tail -n 1)"
    else
      code=1
      echo "$op, $tool: FAILED"
      tail -n 20 "$log"
    fi
  done
done
exit $code

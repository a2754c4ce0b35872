#!/bin/bash
# A C program that knows the CUDA driver alone runs a kernel of `optrail export`
# and gets relu of its input. Driver and compiler are those of tests
# (ops/device/cuda/testing): the driver computes relu on the host's memory.
set -euo pipefail

readonly root="$PWD"
readonly optrail="$root/$1"
readonly testing="$root/ops/device/cuda/testing"
cd "$TEST_TMPDIR"
export HOME="$TEST_TMPDIR"
unset BUILD_WORKSPACE_DIRECTORY BUILD_WORKING_DIRECTORY

LD_LIBRARY_PATH="$testing" "$optrail" export --op=relu \
  --shape=n=4096/f32 --hw=nvidia-h200 --out=kernels

mkdir driver
cp "$testing/libfake_cuda.so" driver/libcuda.so.1
cc -std=c11 "$root/lib/examples/exported.c" -Ldriver -l:libcuda.so.1 -o exported

python3 -c '
import array
array.array("f", [i % 17 - 8 for i in range(4096)]).tofile(open("x", "wb"))'
LD_LIBRARY_PATH=driver ./exported kernels 0 x y
python3 -c '
import array
x, y = array.array("f"), array.array("f")
x.fromfile(open("x", "rb"), 4096)
y.fromfile(open("y", "rb"), 4096)
assert list(y) == [max(v, 0) for v in x], list(y)[:20]'

# An operand of another size is refused.
head -c 100 x > short
if LD_LIBRARY_PATH=driver ./exported kernels 0 short y 2> message; then
  echo "FAILED: it took 100 bytes"
  exit 1
fi
grep -q "short has 100 bytes, expected 16384" message

# Without a compiler the message says what is missing.
if "$optrail" export --op=relu --shape=n=4096/f32 --hw=nvidia-h200 \
  --out=none 2> message; then
  echo "a compiler is here"
else
  grep -q "libnvrtc" message
  [[ ! -e none ]]
fi

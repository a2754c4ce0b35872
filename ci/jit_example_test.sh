#!/usr/bin/env bash
# The kernel of docs/guide/add_backend.md that is compiled at run time compiles
# with what a reader sees there, by the options that it gets (ops/core/jit.h) and
# with the knob that the page gives it.
#   jit_example_test.sh FOLLOW JIT_HEADER
set -euo pipefail
"$1" --extract_only "$TEST_TMPDIR/pages"
kernel=$TEST_TMPDIR/pages/kernels/axpy/axpy_plain.jit.cc
[ -s "$kernel" ]
for standard in c++17 c++20; do
  c++ -std="$standard" -Wall -Wextra -Werror -O2 -shared -fPIC -march=native \
    -DOPTRAIL_BLOCK_ELEMENTS=65536 -include "$2" -o "$TEST_TMPDIR/kernel.so" \
    "$kernel"
done
nm -D "$TEST_TMPDIR/kernel.so" | grep -q ' T optrail_jit_kernel$'

#!/usr/bin/env bash
# Follows docs/guide/add_operator.md in a scratch workspace, then breaks the operator
# it added in every way a declaration can be wrong, and expects each to fail
# with file, line and knob.
#
# Argument: the WORKSPACE file.
set -euo pipefail

. "$(dirname "$(readlink -f "$0")")/scratch_workspace.sh" "$1"

"$root/docs/follow_add_operator.sh" "$scratch" $options
cd "$scratch"

# Declarations that must fail ---------------------------------------------------
space=$(find . -name '*.space.textproto' -not -path './bazel-*' | head -n 1)
package=$(dirname "${space#./}")
build=$package/BUILD
checks=0

# expect WHAT PATTERN: the build must fail with a message that matches.
expect() {
  local log=$TEST_TMPDIR/log
  if bazel build "//$package/..." >"$log" 2>&1; then
    echo "FAILED: $1 built"
    exit 1
  fi
  if ! grep -qE "$2" "$log"; then
    echo "FAILED: $1: no line matches \"$2\":"
    tail -n 20 "$log"
    exit 1
  fi
  checks=$((checks + 1))
  echo "ok: $1: $(grep -m 1 -oE "[^ ]*$2.*" "$log" | cut -c 1-150)"
  cp saved/* "$package/"
}
mkdir saved
cp "$package"/* saved/

echo 'constraint { expr: "no_such_knob > 0" why: "a typo" }' >>"$space"
expect "a constraint on an unknown knob" "space.textproto:[0-9]+:[0-9]+.*no_such_knob"

echo 'constraint { expr: "hw.warp_size > 0" why: "no CPU has one" }' >>"$space"
expect "an attribute of another device kind" "space.textproto:[0-9]+:[0-9]+: unknown attribute .hw.warp_size.*l2_bytes"

echo 'constraint { expr: "attr.padding > 0" why: "not declared" }' >>"$space"
expect "an attribute that is not declared" "space.textproto:[0-9]+:[0-9]+: unknown attribute .attr.padding"

echo 'constraint { expr: "dim.n < 0" why: "no array is that short" }' >>"$space"
expect "a space without configs" "space.textproto:[0-9]+:[0-9]+ removes the last ones"

grep -m 1 -A 20 '^knob' "$space" | sed '/^}/q' >>"$space"
expect "a knob declared twice" "space.textproto:[0-9]+:[0-9]+.*(twice|again|duplicate|already)"

call=$(grep '^operator(' "$build")
echo "$call" >>"$build"
expect "an operator declared twice" "conflicts with existing.*BUILD:[0-9]+"

echo '#include "ops/lib/no_such_header.h"' >>"$package/axpy_plain.jit.cc"
expect "a header that no dependency declares" \
  "axpy_plain.jit.cc:[0-9]+: includes .ops/lib/no_such_header.h., which no dependency"

printf 'operator(name = "other", spaces = {"gpu": "x.space.textproto"})\n' >>"$build"
expect "a space of a backend that the operator does not have" \
  "operator other: a space is given for backend gpu, which it does not have"

echo "$checks wrong declarations were refused"

# Ids -----------------------------------------------------------------------------
# ids: a line for each backend, the hash of its sources.
ids() {
  bazel build "//$package:axpy_registration" >"$TEST_TMPDIR/log" 2>&1 ||
    { tail -n 20 "$TEST_TMPDIR/log" >&2; return 1; }
  sed -nE 's/.*auto& backend = files.backends\["([a-z_]+)"\].*/\1/p
    s/^ *backend\.(sources_hash = .*)/\1/p' \
    "bazel-bin/$package/axpy_registration.cc" | paste - -
}
printf '// A header of the package, with a .cc beside it.\n#include "%s/far.h"\n' \
  "$package" >"$package/near.h"
echo 'constexpr int kNear = 1;' >>"$package/near.h"
echo 'int Far();' >"$package/far.h"
printf '#include "far.h"\nint Far() { return 2; }\n' >"$package/far.cc"
sed -i "s|^#include \"ops/core/cpu_kernel.h\"|#include \"$package/near.h\"\n&|" \
  "$package/axpy_cpu.cc"
ids >"$TEST_TMPDIR/ids"
[ "$(wc -l <"$TEST_TMPDIR/ids")" = 2 ] || { cat "$TEST_TMPDIR/ids"; exit 1; }

# expect_ids WHAT BACKENDS: those whose ids are others now.
expect_ids() {
  ids >"$TEST_TMPDIR/now"
  local changed
  changed=$(comm -13 <(sort "$TEST_TMPDIR/ids") <(sort "$TEST_TMPDIR/now") |
    cut -f 1 | paste -sd ' ')
  if [ "$changed" != "$2" ]; then
    echo "FAILED: $1: the ids of \"$changed\" changed, expected \"$2\""
    exit 1
  fi
  echo "ok: $1 changes the ids of: ${2:-none}"
  cp "$TEST_TMPDIR/now" "$TEST_TMPDIR/ids"
}
for file in axpy_cpu.cc axpy_plain.jit.cc near.h far.h far.cc; do
  printf '\n  /* Reworded. */  // Twice.\n' >>"$package/$file"
done
expect_ids "a comment in every file" ""
sed -i 's/kNear = 1/kNear = 3/' "$package/near.h"
expect_ids "a constant in a header" cpu
sed -i 's/return 2/return 4/' "$package/far.cc"
expect_ids "a constant in the source beside a header of a header" cpu
sed -i 's/0.5f/0.25f/' "$package/axpy_plain.jit.cc"
expect_ids "a constant of another backend" plain
rm "$package"/near.h "$package"/far.*
cp saved/* "$package/"
ids >"$TEST_TMPDIR/ids"
sed -i '/^operator(/d' "$build"
cat >>"$build" <<'END'
operator(
    name = "axpy",
    srcs = ["axpy.cc"],
    backends = {"plain": ["axpy_plain.jit.cc"]},
    cpu = ["axpy_cpu.cc"],
    shapes = "axpy.shapes.textproto",
    space = "axpy.space.textproto",
)
END
expect_ids "a declaration that names every file" ""
sed -i 's|^    cpu = .*|&\n    uses = ["@optrail//ops/lib:simd-inl.h"],|' "$build"
expect_ids "a file that the declaration uses" cpu
cp saved/* "$package/"

# Configs that misbehave ----------------------------------------------------------
# Each is an outcome, the session goes on, and what wins is right.
kernel=$package/axpy_cpu.cc
sed -i 's|^    const int64_t block = knobs_.block_elements;|&\
    if (block == 1024) y[n_ - 1] += 1;                    // wrong\
    if (block == 2048) std::abort();                      // crashes\
    for (volatile bool stuck = block == 4096; stuck;) {}  // hangs\
    if (block == 8192) y[n_] = 1;                         // outside|' "$kernel"
sed -i 's|^#include <cstdint>|&\n#include <cstdlib>|' "$kernel"
bazel build "//$package:axpy_tune"
# Said, because this lies in a folder of bazel's below the repository's .git:
# what earlier runs of this test tuned would be known.
export BUILD_WORKSPACE_DIRECTORY=$scratch
"bazel-bin/$package/axpy_tune" --shape=n=16384/f32 --trials=15 --retune \
  --config_deadline=1s --processes=2 --quiet >"$TEST_TMPDIR/tuned" 2>&1 ||
  tail -n 20 "$TEST_TMPDIR/tuned"
for said in "6 x WRONG_RESULT, first .*block_elements=(1024|8192)" \
  "3 x CRASHED, all 3 have block_elements=2048, none of .*, first " \
  "3 x TIMED_OUT, all 3 have block_elements=4096, none of .*, first " \
  "^axpy n=16384/f32 .*block_elements=16384,"; do
  if ! grep -qE "$said" "$TEST_TMPDIR/tuned"; then
    echo "FAILED: configs that misbehave: no line matches \"$said\":"
    cat "$TEST_TMPDIR/tuned"
    exit 1
  fi
done
echo "ok: wrong, crashing and hanging configs are outcomes and never win"
cp saved/* "$package/"

# A test that fails ---------------------------------------------------------------
# Says why on the console: nobody should have to look for a file.
unset BUILD_WORKSPACE_DIRECTORY
mkdir failing
printf 'sh_test(name = "failing_test", srcs = ["failing_test.sh"])\n' >failing/BUILD
printf '#!/bin/sh\necho "why it failed"\nexit 1\n' >failing/failing_test.sh
chmod +x failing/failing_test.sh
if bazel test //failing:failing_test >"$TEST_TMPDIR/log" 2>&1; then
  echo "FAILED: a failing test passed"
  exit 1
fi
if ! grep -q "^why it failed" "$TEST_TMPDIR/log"; then
  echo "FAILED: the log of a failing test does not reach the console:"
  cat "$TEST_TMPDIR/log"
  exit 1
fi
echo "ok: the log of a failing test reaches the console"

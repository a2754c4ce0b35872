#!/usr/bin/env bash
# Builds the service of ci/example_service in a workspace of its own, with
# nothing of Optrail but //tuning:lookup, and asks it for configs.
#
# Argument: the WORKSPACE file.
set -euo pipefail

. "$(dirname "$(readlink -f "$0")")/scratch_workspace.sh" "$1"

# WORKSPACE and .bazelrc as docs/guide/add_operator.md shows them.
"$root/docs/follow_add_operator.sh" --extract_only "$scratch"
cd "$scratch"
rm -rf kernels
mkdir service
cp "$root/ci/example_service/service.cc" service/
cp "$root/ci/example_service/service.BUILD" service/BUILD
cp "$root/ci/example_service/softmax.tuned.textproto" .

bazel build //service

# expect CODE PATTERN SHAPE...: exit code and a line of either output.
expect() {
  local code=0
  bazel-bin/service/service softmax.tuned.textproto amd-epyc-zen4-2c \
    "${@:3}" >out 2>&1 || code=$?
  if [ "$code" != "$1" ] || ! grep -qE "$2" out; then
    echo "FAILED: exit code $code, expected $1 and a line like \"$2\":"
    cat out
    exit 1
  fi
}
expect 0 "^rows=6144,cols=384/f32 cols_tile=64 algorithm=online$" \
  rows=6144,cols=384/f32
expect 0 "\(the nearest, of rows=6144,cols=384/f32, is not expected to beat" \
  rows=6144,cols=512/f32
expect 0 "^rows=4,cols=4/f16 cols_tile=16 algorithm=two_pass$" rows=4,cols=4/f16
expect 2 'dimension "cols"' rows=4,cols=0/f32

# No operators, no stopwatch, no history.
bazel query 'deps(//service)' --output=package 2>/dev/null >packages
if grep -E '^@optrail//(ops|suites|tracker|reports|cli)' packages; then
  echo "FAILED: a lookup brings these along"
  exit 1
fi
grep -q '^@optrail//tuning$' packages
echo "a service of another workspace finds its configs"

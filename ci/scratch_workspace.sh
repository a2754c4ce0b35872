# Sourced by tests that run bazel in a workspace of their own beside this one:
#
#   . "$(dirname "$0")/scratch_workspace.sh" WORKSPACE_FILE
#
# Sets `root`, the workspace under test, and `scratch`, where the other is to be
# made, and defines bazel() with an output base of its own. What one of these
# tests compiled is not compiled by the next: they share a cache, which lies
# where bazel keeps the tests' temporary folders and goes with them.

root=$(dirname "$(readlink -f "$1")")
scratch=$TEST_TMPDIR/scratch
export HOME=$TEST_TMPDIR
# Nor is what only drives kernels optimised, which takes a fifth less.
cat >"$HOME/.bazelrc" <<EOF
build --disk_cache=$(dirname "$TEST_TMPDIR")/scratch_disk_cache
build --per_file_copt=external/optrail/(base|cli|ops/core|reports|suites|tracker|tuning)/.*@-O0,-U_FORTIFY_SOURCE
EOF
options="--output_base=$TEST_TMPDIR/output_base --max_idle_secs=15 --host_jvm_args=-Xmx600m"
# Options are words.
# shellcheck disable=SC2086
bazel() { command bazel $options "$@"; }
trap 'cd "$scratch" && bazel shutdown >/dev/null 2>&1 || true; chmod -R u+w "$TEST_TMPDIR/output_base" 2>/dev/null || true' EXIT

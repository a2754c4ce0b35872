#!/usr/bin/env bash
# Adds a kind of device in a workspace of its own (ci/another_device), with
# public targets of Optrail alone and no change to any: a number that
# context.proto does not list, with a clock, a monitor, a meter, hw.* names, a
# compile step, a space and backends of its own. Tunes, benchmarks and records
# it there, and reads, gates and reports what was recorded by a binary that has
# never heard of it.
#
# Arguments: the WORKSPACE file, optrail.
set -euo pipefail

. "$(dirname "$(readlink -f "$0")")/scratch_workspace.sh" "$1"
optrail=$(readlink -f "$2")
log=$TEST_TMPDIR/log

# WORKSPACE and .bazelrc as docs/guide/add_operator.md shows them.
"$root/docs/follow_add_operator.sh" --extract_only "$scratch"
cd "$scratch"
rm -rf kernels commands.sh
for package in clockwork scale; do
  cp -r "$root/ci/another_device/$package" .
  mv "$package/$package.BUILD" "$package/BUILD"
done

# expect CODE PATTERN COMMAND...: exit code and a line of either output.
checks=0
expect() {
  local code=0
  "${@:3}" >"$log" 2>&1 || code=$?
  if [ "$code" != "$1" ] || ! grep -qE -- "$2" "$log"; then
    echo "FAILED: ${*:3}"
    echo "exit code $code, expected $1 and a line like \"$2\":"
    tail -n 60 "$log"
    exit 1
  fi
  checks=$((checks + 1))
}

# The operator's test runs its kernels on the device. ---------------------------
bazel test //scale:scale_test
expect 0 "KernelsOfOtherDevicesMatchTheReference" \
  cat bazel-testlogs/scale/scale_test/test.log
expect 0 "[1-9][0-9]* configs ran" cat bazel-testlogs/scale/scale_test/test.log
bazel build //scale:scale_tune //scale:scale_bench
tune=$PWD/bazel-bin/scale/scale_tune
bench=$PWD/bazel-bin/scale/scale_bench

# A name that the device does not declare fails the build, with its place.
echo 'constraint { expr: "teeth < hw.simd_bits" why: "no clockwork has any" }' \
  >>scale/scale.space.textproto
expect 1 "scale.space.textproto:[0-9]+:[0-9]+: unknown attribute .hw.simd_bits.*gears" \
  bazel build //scale
sed -i '$d' scale/scale.space.textproto

printf 'bazel-*\n.optrail\nout\n' >.gitignore
git init -q -b main .
git config user.name Clockmaker
git config user.email clockmaker@example.org
git add . && git commit -q -m "gears"
export BUILD_WORKSPACE_DIRECTORY=$PWD

# Tuning ------------------------------------------------------------------------
expect 2 'no device "clokwork"; this binary has: .*clockwork' \
  "$tune" --device=clokwork
expect 2 "4 threads: expected 1 on clockwork" \
  "$tune" --device=clockwork --threads=4
# Sixteen teeth on two gears; the cutter has no eight.
CLOCKWORK_BROKEN_CUTTER=8 expect 0 \
  "^scale n=4096/f32,.*trials_spent,\"gears=2,teeth=16\"" \
  "$tune" --device=clockwork --trials=12 --quiet --format=csv
cp "$log" out
expect 0 "COMPILE_ERROR, all 3 have teeth=8, .*: the cutter is broken" cat out
store=.optrail/store/scale/acme-clockwork-4g.textproto
expect 0 "^device_kind: 1042" cat $store
expect 0 'config: "gears=2,teeth=16"' cat $store
expect 0 "." ls .optrail/state/compiled
# For another objective, beside it: four teeth on one gear spare the spring.
expect 2 "clockwork has no such objective here, expected time, memory, error, spring_joules" \
  "$tune" --device=clockwork --objective=joules
expect 0 "gears=1,teeth=4" \
  "$tune" --device=1042 --objective=spring_joules --trials=12 --quiet
expect 0 'objective: "spring_joules"' cat $store
expect 0 'config: "gears=2,teeth=16"' cat $store

# Benchmarks ----------------------------------------------------------------------
record() {
  expect 0 "recorded: run" \
    "$bench" --device=clockwork --record --processes=12 --quiet "$@"
}
expect 0 "escapement" \
  "$bench" --device=clockwork --backend=all --shape=n=1000/ --quiet
for i in 1 2 3 4 5 6; do
  git commit -q --allow-empty -m "unchanged $i"
  record
done
# What spares the spring is the default, so its row stands for both.
expect 0 "scale/1042/n=1000/f32/default/.* the tuned config is the default" \
  "$bench" --device=clockwork --objective=spring_joules --record --quiet \
  --suite=spring --processes=3

# Read by a binary that does not know the device ---------------------------------
expect 0 "acme-clockwork-4g" "$optrail" log
expect 0 "^scale/1042/n=1000/f32/tuned=spring_joules/threads=1/hot +spring_joules" \
  "$optrail" show latest
expect 0 "^scale/1042/n=4096/f32/tuned/threads=1/hot.time.ns.acme-clockwork-4g" \
  "$optrail" history export
cat >policy.textproto <<'POLICY'
baseline { window { branch: "main" runs: 10 } }
rule { metric: "time" min_effect: 0.03 detect_effect: 0.05 }
POLICY
expect 0 "^gate: green" "$optrail" gate --policy=policy.textproto --suite=scale
git commit -q --allow-empty -m "rust"
CLOCKWORK_FRICTION=1.2 record
expect 1 "^slower: scale/1042/n=4096/f32/tuned/threads=1/hot" \
  "$optrail" gate --policy=policy.textproto --suite=scale
expect 0 ", 4 tuning sessions" "$optrail" report --out=out.html
expect 0 "acme-clockwork-4g" cat out.html
expect 0 "findings in 4 sessions" "$optrail" convergence
expect 0 "^scale +n=1000/f32, threads 1, hot, for spring_joules +acme-clockwork-4g" \
  "$optrail" store show
echo "$checks things hold of a device that Optrail does not know"

# Sourced by tests of scripts that build, measure and judge a project:
#
#   . "$(dirname "$0")/planted_project.sh" OPTRAIL PLANTED_BENCH SCRIPT
#
# Makes a scratch repository, goes there, and sets `script`, the one under test.
# Its builds copy a command line that measures planted times (planted_bench) and
# judges with the real one; with a file `broken` they fail. fail() notes what
# went wrong in `failed`.

export OPTRAIL=$PWD/$1 PLANTED_BENCH=$PWD/$2
script=$PWD/$3

failed=0
fail() {
  echo "FAILED: $1" >&2
  failed=1
}

scratch=$TEST_TMPDIR/project
mkdir -p "$scratch/ci"
cd "$scratch"
export GIT_CONFIG_NOSYSTEM=1 HOME=$TEST_TMPDIR
export GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@example.com
export GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@example.com
# Ids of commits are what planted_bench draws its noise by: always the same.
export GIT_AUTHOR_DATE='2026-01-01T00:00:00Z'
export GIT_COMMITTER_DATE='2026-01-01T00:00:00Z'

# A build that takes no time.
cat >bazelw <<EOF
#!/usr/bin/env bash
set -e
[ "\$1" = build ] || exit 0
[ ! -e broken ] || { echo "error: no such thing"; exit 1; }
mkdir -p bazel-bin/cli
cat >bazel-bin/cli/optrail <<'IN'
#!/usr/bin/env bash
case \$1 in suite | bench) exec "\$PLANTED_BENCH" "\$@" ;; esac
exec "\$OPTRAIL" "\$@"
IN
chmod +x bazel-bin/cli/optrail
EOF
chmod +x bazelw
printf 'bazel-bin\n.optrail\n' >.gitignore
printf '# the defaults: 3%% counts, 5%% must be found\n' >ci/policy.textproto
git init -q -b main .

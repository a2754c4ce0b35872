#!/bin/sh
# What --config=stamp writes into binaries: the commit that is built ("+" with
# changes) and its time, which orders the packages of a day. Outside a git work tree nothing, which is "unstamped".
commit=$(git rev-parse --short=12 HEAD 2>/dev/null) || exit 0
test -z "$(git status --porcelain 2>/dev/null)" || commit="$commit+"
echo "STABLE_OPTRAIL_COMMIT $commit"
echo "STABLE_OPTRAIL_DATE $(TZ=UTC git show -s --format=%cd \
  --date=format-local:%Y-%m-%dT%H:%MZ HEAD)"

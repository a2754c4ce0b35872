#!/usr/bin/env bash
# Fails if docs/reference/threats.md names a test that does not exist: a promise that
# nothing holds. Argument: the WORKSPACE file.
set -euo pipefail

root=$(dirname "$(readlink -f "$1")")
cd "$root"
checked=0
failed=0
while read -r name; do
  suite=${name%.*}
  test=${name#*.}
  pattern="TEST(_F|_P)?\\($suite,[[:space:]]*$test\\)"
  # The macro's arguments may stand on two lines.
  if ! grep -rlE --include='*_test.cc' "$test" base carbon tracker tuning reports \
    suites cli | xargs -r cat | tr '\n' ' ' | grep -E "$pattern" >/dev/null; then
    echo "docs/reference/threats.md names $name, and there is no such test"
    failed=1
  fi
  checked=$((checked + 1))
done < <(grep -oE '`[A-Z][A-Za-z0-9]*\.[A-Z][A-Za-z0-9]*`' docs/reference/threats.md |
  tr -d '`' | sort -u)
if [ "$checked" -lt 15 ]; then
  echo "only $checked tests are named in docs/reference/threats.md"
  exit 1
fi
echo "$checked tests that docs/reference/threats.md names exist"
exit $failed

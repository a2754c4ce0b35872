#!/usr/bin/env bash
# Fails if a source file is not laid out as clang-format (Google style) and
# buildifier lay it out, and says how to mend it.
# Arguments: the WORKSPACE file, buildifier for x86-64, buildifier for arm64.
set -euo pipefail

root=$(dirname "$(readlink -f "$1")")
case $(uname -m) in
  x86_64) buildifier=$(readlink -f "$2") ;;
  aarch64) buildifier=$(readlink -f "$3") ;;
  *) echo "unsupported here: no buildifier for $(uname -m)"; exit 1 ;;
esac
cd "$root"

mapfile -t sources < <(git ls-files --cached --others --exclude-standard \
  '*.h' '*.cc' 2>/dev/null || find . -name '*.h' -o -name '*.cc')
mapfile -t builds < <(git ls-files --cached --others --exclude-standard \
  WORKSPACE BUILD '*/BUILD' '*.bzl' 2>/dev/null ||
  find . -name BUILD -o -name '*.bzl' -o -name WORKSPACE)
if [ "${#sources[@]}" -lt 50 ] || [ "${#builds[@]}" -lt 10 ]; then
  echo "found only ${#sources[@]} sources and ${#builds[@]} BUILD files in $root"
  exit 1
fi

failed=0
if ! clang-format --dry-run -Werror "${sources[@]}" 2>"$TEST_TMPDIR/format.log"; then
  grep -o '^[^:]*:[0-9]*' "$TEST_TMPDIR/format.log" | sort -u | head -20
  echo "next: clang-format -i FILE"
  failed=1
fi
if ! "$buildifier" --mode=check "${builds[@]}"; then
  echo "next: $buildifier FILE"
  failed=1
fi
echo "${#sources[@]} sources and ${#builds[@]} BUILD files checked"
exit $failed

#!/bin/sh
# Follows docs/guide/add_operator.md and add_backend.md: writes the files they show into a scratch
# workspace beside this one and runs the commands of its "# run:" blocks.
#
#   docs/follow_add_operator.sh [--extract_only] FOLDER [BAZEL OPTIONS...]
#
# FOLDER is created and becomes the workspace. Options go before the command of
# bazel, for example --output_base=...; $BAZEL names another bazel.
set -eu

extract_only=
if [ "${1-}" = --extract_only ]; then
  extract_only=1
  shift
fi
if [ $# -lt 1 ]; then
  echo "usage: $0 [--extract_only] FOLDER [BAZEL OPTIONS...]" >&2
  exit 2
fi
optrail=$(cd "$(dirname "$0")/.." && pwd)
guide=$optrail/docs/guide
scratch=$1
shift
mkdir -p "$scratch"
scratch=$(cd "$scratch" && pwd)
rm -f "$scratch/commands.sh"

# A block's first line is "# file: PATH" or "// file: PATH"; "# run:" blocks are
# collected as commands.
awk -v root="$scratch" '
  /^```/ {
    if (inside) { if (out != "") close(out) } else { first = 1 }
    inside = !inside
    out = ""
    next
  }
  inside && first {
    first = 0
    if ($2 == "file:") {
      out = root "/" $3
      folder = out
      sub("/[^/]*$", "", folder)
      system("mkdir -p \"" folder "\"")
      printf "" > out
    } else if ($2 == "run:") {
      out = root "/commands.sh"
      next
    }
  }
  inside && out != "" { print >> out }
' "$guide/add_operator.md" "$guide/add_backend.md"

# The page calls the clone ../optrail.
sed -i "s|\\.\\./optrail|$optrail|; s|%workspace%/$optrail|$optrail|" \
  "$scratch/WORKSPACE" "$scratch/.bazelrc"
grep -q . "$scratch/commands.sh"
[ -z "$extract_only" ] || exit 0

cd "$scratch"
bazel() { command "${BAZEL:-bazel}" "$@"; }
bazel_options=$*
while read -r command; do
  code=0
  # Intended splitting: options first, then the rest of "bazel test ...".
  # shellcheck disable=SC2086
  bazel $bazel_options ${command#bazel } </dev/null || code=$?
  case "$command:$code" in
    *:0) ;;
    # What ran and found its machine too busy to conclude anything did run.
    "bazel run"*:1) echo "note: exit code 1: $command" ;;
    *) exit "$code" ;;
  esac
done < commands.sh

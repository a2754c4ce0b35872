#!/bin/sh
# Writes one of the functions of embedded_texts.h: files, as text, by their names
# up to the first dot.
#
#   embed_texts.sh FUNCTION FILE... > out.cc
set -eu

function=$1
shift
cat <<END
#include "cli/embedded_texts.h"

namespace optrail::cli {

const std::map<std::string, absl::string_view>& $function() {
  static const auto* const all = new std::map<std::string, absl::string_view>{
END
for file in "$@"; do
  if grep -q ')embedded"' "$file"; then
    echo "embed_texts.sh: $file ends a raw string" >&2
    exit 1
  fi
  name=${file##*/}
  printf '      {"%s", R"embedded(' "${name%%.*}"
  cat "$file"
  printf ')embedded"},\n'
done
cat <<'END'
  };
  return *all;
}

}  // namespace optrail::cli
END

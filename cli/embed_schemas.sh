#!/bin/sh
# Writes the C++ file behind json_schemas.h: NAME.schema.json files as text.
#
#   embed_schemas.sh FILE... > out.cc
set -eu

cat <<'END'
#include "cli/json_schemas.h"

namespace optrail::cli {

const std::map<std::string, absl::string_view>& JsonSchemas() {
  static const auto* const all = new std::map<std::string, absl::string_view>{
END
for file in "$@"; do
  if grep -q ')schema"' "$file"; then
    echo "embed_schemas.sh: $file ends a raw string" >&2
    exit 1
  fi
  name=${file##*/}
  printf '      {"%s", R"schema(' "${name%.schema.json}"
  cat "$file"
  printf ')schema"},\n'
done
cat <<'END'
  };
  return *all;
}

}  // namespace optrail::cli
END

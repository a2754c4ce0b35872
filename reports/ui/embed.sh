#!/bin/sh
# Writes a C++ file that holds text files as constants.
#
#   embed.sh NAMESPACE [NAME=FILE | NAME+sha256=FILE]... > out.cc
#
# NAME becomes an absl::string_view with the file's bytes; with +sha256 also
# NAMESha256Hex with their hash.
set -eu

delimiter=optrail_embed
namespace=$1
shift

printf '#include "reports/ui/assets.h"\n\nnamespace %s {\n\n' "$namespace"
for item in "$@"; do
  name=${item%%=*}
  file=${item#*=}
  if grep -q ")$delimiter\"" "$file"; then
    echo "embed.sh: $file holds )$delimiter\", which ends a raw string" >&2
    exit 1
  fi
  constant=${name%+sha256}
  printf 'const absl::string_view %s(R"%s(' "$constant" "$delimiter"
  cat "$file"
  printf ')%s", %s);\n' "$delimiter" "$(wc -c < "$file")"
  if [ "$constant" != "$name" ]; then
    printf 'const absl::string_view %sSha256Hex("%s");\n' \
      "$constant" "$(sha256sum < "$file" | cut -d' ' -f1)"
  fi
done
printf '\n}  // namespace %s\n' "$namespace"

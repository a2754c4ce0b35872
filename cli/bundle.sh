#!/usr/bin/env bash
# Packs the command line with every library that it needs, the C library
# included: it runs on any x86-64 Linux machine, a bare one too. Tuned configs
# and workloads are part of the binary; schemas of what --format=json prints,
# protos of the history, the docs, and scripts for CI lie beside it.
#   ./bazelw run //:bundle -- --out=optrail.tar.gz
#   ./bazelw run //:bundle -- --out=optrail.deb
set -euo pipefail

usage() {
  echo "usage: bundle --out=FILE.tar.gz or --out=FILE.deb" >&2
  exit 2
}
out=
for argument in "$@"; do
  case "$argument" in
    --out=?*.tar.gz | --out=?*.deb) out=${argument#--out=} ;;
    *)
      echo "bundle: $argument: expected --out=FILE.tar.gz or --out=FILE.deb" >&2
      usage
      ;;
  esac
done
[ -n "$out" ] || usage
case "$out" in /*) ;; *) out=${BUILD_WORKING_DIRECTORY:-$PWD}/$out ;; esac
case "$out" in
  *.deb) command -v dpkg-deb >/dev/null ||
    { echo "bundle: unsupported here: a .deb needs dpkg-deb" >&2; exit 2; } ;;
esac

runfiles=${RUNFILES_DIR:-$0.runfiles}/optrail
[ -d "$runfiles" ] || runfiles=$PWD
binary=$runfiles/cli/optrail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
bundle=$folder/optrail
mkdir -p "$bundle/lib" "$bundle/share/schemas" "$bundle/ci"
cp -L "$runfiles/cli/bundle_launcher" "$bundle/optrail"
cp -L "$binary" "$bundle/lib/optrail"
chmod u+w "$bundle/optrail" "$bundle/lib/optrail"
strip "$bundle/optrail" "$bundle/lib/optrail"
# "libz.so.1 => /lib/x86_64-linux-gnu/libz.so.1 (0x...)", and the loader alone.
ldd "$binary" | awk '$2 == "=>" && $3 ~ /^\// { print $3 } $1 ~ /^\// { print $1 }' \
  >"$folder/libraries"
# Libraries of drivers still ask for parts that the C library has taken in.
libc=$(dirname "$(ldd "$binary" | awk '$1 == "libc.so.6" { print $3 }')")
printf '%s\n' "$libc/libdl.so.2" "$libc/libpthread.so.0" "$libc/librt.so.1" \
  >>"$folder/libraries"
while read -r library; do
  cp -L "$library" "$bundle/lib/"
done <"$folder/libraries"
if missing=$(ldd "$binary" | grep "not found"); then
  echo "bundle: the binary lacks libraries here: $missing" >&2
  exit 1
fi
for schema in "$runfiles"/docs/json_schemas/*.json; do
  cp -L "$schema" "$bundle/share/schemas/"
done
for proto in "$runfiles"/{tracker,tuning}/proto/*.proto; do
  name=share/proto/${proto#"$runfiles"/}
  mkdir -p "$bundle/$(dirname "$name")"
  cp -L "$proto" "$bundle/$name"
done
# The tree is that of the sources, so that pages find what they link to.
for file in "$runfiles"/docs/{guide,lab,method,reference}/*.md \
  "$runfiles"/docs/images/* "$runfiles"/ci/*.{sh,yml} "$runfiles"/ci/{example_service,github_action}/* \
  "$runfiles/lib/optrail.h" "$runfiles/lib/examples/products.c"; do
  name=${file#"$runfiles"/}
  mkdir -p "$bundle/$(dirname "$name")"
  cp -L "$file" "$bundle/$name"
done
chmod u+w "$bundle"/docs/*/*.md
sed -i -e 's|](\.\./\.\./\([a-z]*\)/proto/|](../../share/proto/\1/proto/|' \
  -e 's|](\.\./json_schemas)|](../../share/schemas)|' "$bundle"/docs/*/*.md

# The Debian packages whose code the bundle holds: those of its libraries, and
# those that are compiled into the binary.
packages_of_bundle() {
  xargs readlink -f <"$folder/libraries" >"$folder/paths"
  # Packages name files with or without the /usr of merged folders. What one
  # of the two spellings does not find makes the exit code 1.
  { xargs dpkg-query --search; sed 's|^/usr||' "$folder/paths" | xargs dpkg-query --search; } \
    <"$folder/paths" >"$folder/found" 2>/dev/null || true
  while read -r path; do
    awk -v path="${path#/usr}" '$NF == path || $NF == "/usr" path {
        sub(/:.*/, "")
        print
        found = 1
        exit
      }
      END { exit !found }' "$folder/found" || {
      echo "bundle: no package has $path, so its terms are not known" >&2
      return 2
    }
  done <"$folder/paths"
  awk '$1 ~ /^(lib|nlohmann)/ && $1 !~ /^lib(gmock|gtest)-dev$/ { print $1 }' \
    "$runfiles/third_party/debian_packages.txt"
}

# Terms of all of them: each text once, after the packages that it is of, then
# the licences that the texts refer to.
write_copyright() {
  packages_of_bundle >"$folder/packages" || return
  mkdir "$folder/texts"
  sort -u "$folder/packages" | while read -r package; do
    text=/usr/share/doc/$package/copyright
    [ -s "$text" ] || { echo "bundle: $text is missing" >&2; return 2; }
    sum=$(sha256sum <"$text" | cut -c1-64)
    cp -L "$text" "$folder/texts/$sum"
    echo "$package" >>"$folder/texts/$sum.packages"
  done || return
  echo "Optrail, with code of these packages of Debian, under these terms."
  for names in "$folder"/texts/*.packages; do
    printf '\n==== %s\n\n' "$(paste -sd' ' "$names")"
    cat "${names%.packages}"
  done
  grep -oh '/usr/share/common-licenses/[A-Za-z0-9.-]*[A-Za-z0-9]' \
    "$folder"/texts/* | sort -u | while read -r licence; do
    [ -s "$licence" ] || continue
    printf '\n==== %s\n\n' "$licence"
    cat "$licence"
  done
}
write_copyright >"$bundle/share/copyright"

find "$bundle" -type f -exec chmod u+rw,go+r,go-w {} +
libraries=$(find "$bundle/lib" -name '*.so*' | wc -l)

pack_deb() {
  root=$folder/deb
  mkdir -p "$root/DEBIAN" "$root/usr/lib" "$root/usr/bin" "$root/usr/share/doc/optrail"
  mv "$bundle" "$root/usr/lib/optrail"
  ln -s ../lib/optrail/optrail "$root/usr/bin/optrail"
  ln -s ../lib/optrail/ci/any_benchmarks.sh "$root/usr/bin/optrail-ci"
  # A browser goes up from docs/guide by name, not through the link.
  for part in ci docs lib share; do
    ln -s "../../../lib/optrail/$part" "$root/usr/share/doc/optrail/$part"
  done
  # "optrail 1a2b3c4d5e6f (2026-11-24T10:11Z)"; an unstamped build has no commit,
  # and is older than any that has one.
  version=$("$binary" --version |
    sed -nE 's/^optrail ([0-9a-f]+)\+? \(([0-9TZ:-]+)\)$/0.1+\2.\1/p' |
    tr -d 'TZ:-')
  mv "$root/usr/lib/optrail/share/copyright" "$root/usr/share/doc/optrail/"
  cat >"$root/DEBIAN/control" <<END
Package: optrail
Version: ${version:-0.1~unstamped}
Architecture: amd64
Maintainer: Optrail <optrail@localhost>
Section: devel
Priority: optional
Installed-Size: $(du -sk "$root/usr" | cut -f1)
Description: tunes, benchmarks and watches compute operators
 One command line: it searches fast configurations of operators, keeps results
 as a history, finds the commit that made a benchmark slower, and gates pull
 requests of any project's benchmarks. It brings the libraries that it needs.
END
  SOURCE_DATE_EPOCH=0 dpkg-deb --root-owner-group -Zgzip --build "$root" "$out" >/dev/null
}

case "$out" in
  *.deb) pack_deb ;;
  *) tar -C "$folder" --owner=0 --group=0 --sort=name --mtime=@0 -czf "$out" optrail ;;
esac
echo "$out: $(du -h "$out" | cut -f1)B, $libraries libraries"

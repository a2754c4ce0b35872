#!/usr/bin/env bash
# Packs liboptrail for programs of any build system: header, shared object,
# pkg-config file, CMake package, Python package, examples. Unpacked anywhere,
# it works there.
#   ./bazelw run //lib:archive -- --out=liboptrail.tar.gz
set -euo pipefail

case "$#:${1:-}" in
  1:--out=?*.tar.gz) out=${1#--out=} ;;
  *)
    echo "archive: expected --out=FILE.tar.gz, got: $*" >&2
    exit 2
    ;;
esac
case "$out" in /*) ;; *) out=${BUILD_WORKING_DIRECTORY:-$PWD}/$out ;; esac
runfiles=${RUNFILES_DIR:-$0.runfiles}/optrail
[ -d "$runfiles" ] || runfiles=$PWD
version=$(sed -nE 's/^#define OPTRAIL_VERSION ([0-9]+)$/\1/p' "$runfiles/lib/optrail.h")
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
root=$folder/liboptrail
own=$root/lib/optrail
mkdir -p "$root"/{include,lib/pkgconfig,lib/cmake/Optrail,share/optrail} "$own"

cp -L "$runfiles/lib/optrail.h" "$root/include/"
cp -L "$runfiles/lib/liboptrail.so" "$root/lib/liboptrail.so.0"
ln -s liboptrail.so.0 "$root/lib/liboptrail.so"
implementation=$own/liboptrail_impl.so
cp -L "$runfiles/lib/liboptrail_impl.so" "$implementation"
chmod u+w "$root/lib/liboptrail.so.0" "$implementation"
strip --strip-unneeded "$root/lib/liboptrail.so.0" "$implementation"

# Libraries that the implementation needs, but for those of the C and C++
# runtimes: "libz.so.1 => /lib/x86_64-linux-gnu/libz.so.1 (0x...)".
ldd "$implementation" >"$folder/needed"
if grep "not found" "$folder/needed" >&2; then
  echo "archive: the implementation lacks these libraries here" >&2
  exit 1
fi
awk '$2 == "=>" && $1 !~ /^(libc|libm|libdl|libpthread|librt|libmvec|libgcc_s|libstdc\+\+)\.so/ { print $3 }' \
  "$folder/needed" >"$folder/libraries"
while read -r library; do cp -L "$library" "$own/"; done <"$folder/libraries"
chmod u+w "$own"/*
/usr/bin/python3 "$runfiles/lib/make_private.py" "$own"

sed "s/@VERSION@/$version/" "$runfiles/lib/optrail.pc.in" >"$root/lib/pkgconfig/optrail.pc"
for name in OptrailConfig OptrailConfigVersion; do
  sed "s/@VERSION@/$version/" "$runfiles/lib/$name.cmake" \
    >"$root/lib/cmake/Optrail/$name.cmake"
done
cp -L "$runfiles"/lib/python/optrail-*.whl "$root/share/optrail/"
cp -rL "$runfiles/lib/examples" "$root/share/optrail/"
cp -L "$runfiles/lib/README.md" "$root/"

# The packages that own these libraries, and their terms: "libprotobuf32:amd64: /usr/lib/...".
# Packages name a library by a path with /usr or without.
{ xargs dpkg-query -S <"$folder/libraries"
  sed 's|^|/usr|' "$folder/libraries" | xargs dpkg-query -S; } >"$folder/owners" 2>/dev/null || true
sed -E 's|^([^:]+)(:[^:]+)?: .*/lib([^/]+)$|lib/optrail/opt\3: of Debian'"'"'s \1|' \
  "$folder/owners" | sort -u >"$root/share/optrail/copyright"
for package in $(cut -d: -f1 "$folder/owners" | sort -u); do
  cp -L "/usr/share/doc/$package/copyright" "$root/share/optrail/copyright.$package" || true
done

find "$root" -type f -exec chmod u+rw,go+r,go-w {} +
tar -C "$folder" --owner=0 --group=0 --sort=name --mtime=@0 -czf "$out" liboptrail
echo "$out: $(du -h "$out" | cut -f1)B, $(wc -l <"$folder/libraries") libraries"

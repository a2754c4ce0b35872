#!/usr/bin/env bash
# Packs the command line with every library that it needs, the C library
# included: it runs on any x86-64 Linux machine, a bare one too. Tuned configs
# and workloads are part of the binary.
#   ./bazelw run //:bundle -- --out=optrail.tar.gz
set -euo pipefail

usage() {
  echo "usage: bundle --out=FILE.tar.gz" >&2
  exit 2
}
out=
for argument in "$@"; do
  case "$argument" in
    --out=?*.tar.gz) out=${argument#--out=} ;;
    *)
      echo "bundle: $argument: expected --out=FILE.tar.gz" >&2
      usage
      ;;
  esac
done
[ -n "$out" ] || usage
case "$out" in /*) ;; *) out=${BUILD_WORKING_DIRECTORY:-$PWD}/$out ;; esac

runfiles=${RUNFILES_DIR:-$0.runfiles}/optrail
[ -d "$runfiles" ] || runfiles=$PWD
binary=$runfiles/cli/optrail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
mkdir -p "$folder/optrail/lib"
cp -L "$runfiles/cli/bundle_launcher" "$folder/optrail/optrail"
cp -L "$binary" "$folder/optrail/lib/optrail"
chmod u+w "$folder/optrail/optrail" "$folder/optrail/lib/optrail"
strip "$folder/optrail/optrail" "$folder/optrail/lib/optrail"
# "libz.so.1 => /lib/x86_64-linux-gnu/libz.so.1 (0x...)", and the loader alone.
ldd "$binary" | awk '$2 == "=>" && $3 ~ /^\// { print $3 } $1 ~ /^\// { print $1 }' |
  while read -r library; do
    cp -L "$library" "$folder/optrail/lib/"
  done
# Libraries of drivers still ask for parts that the C library has taken in.
libc=$(dirname "$(ldd "$binary" | awk '$1 == "libc.so.6" { print $3 }')")
for part in libdl.so.2 libpthread.so.0 librt.so.1; do
  cp -L "$libc/$part" "$folder/optrail/lib/"
done
if missing=$(ldd "$binary" | grep "not found"); then
  echo "bundle: the binary lacks libraries here: $missing" >&2
  exit 1
fi
tar -C "$folder" --owner=0 --group=0 --sort=name --mtime=@0 -czf "$out" optrail
echo "$out: $(du -h "$out" | cut -f1)B, $(find "$folder/optrail/lib" -name '*.so*' | wc -l) libraries"

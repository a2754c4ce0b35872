#!/usr/bin/env bash
# The archive alone, unpacked into a folder with a space: a C program, a CMake
# project, a Python script and a program with another Protobuf use it.
set -euo pipefail

for tool in cc c++ pkg-config cmake protoc; do
  command -v "$tool" >/dev/null ||
    { echo "unsupported here: no $tool; next: ./bazelw installs it" >&2; exit 1; }
done
/usr/bin/python3 -c 'import numpy' ||
  { echo "unsupported here: no python3-numpy; next: ./bazelw installs it" >&2; exit 1; }

sources=$PWD/lib
scratch=$TEST_TMPDIR
lib/archive --out="$scratch/liboptrail.tar.gz"
if lib/archive --out=x.zip 2>"$scratch/refused"; then exit 1; fi
grep -q "expected --out=FILE.tar.gz, got: --out=x.zip" "$scratch/refused"
tar -C "$scratch" -xzf "$scratch/liboptrail.tar.gz"
cd "$scratch"
root="$scratch/else where"
mv liboptrail "$root"
shared=$root/lib/liboptrail.so.0

# check PATTERN COMMAND...: the command succeeds and says so.
check() {
  local pattern=$1
  shift
  "$@" >out 2>&1 || { echo "FAILED ($?): $*"; cat out; exit 1; }
  grep -qE -- "$pattern" out || { echo "FAILED: no line like $pattern: $*"; cat out; exit 1; }
}

# Only functions of the header are exported, each with a version.
nm -D --defined-only "$shared" | awk '$2 != "A" { print $3 }' | sort >exported
grep -oE '\boptrail_[a-z_]+\(' "$root/include/optrail.h" | tr -d "(" | sort -u >declared
sed 's/@@.*//' exported | sort -u >names
diff names declared
if grep -vE '@@OPTRAIL_[12]$' exported; then echo "FAILED: no symbol version"; exit 1; fi
readelf -d "$shared" >dynamic
grep -q 'SONAME.*\[liboptrail.so.0\]' dynamic
# Nothing of C++ is needed by what programs link.
[ "$(grep -c NEEDED dynamic)" = 1 ]

# C, by pkg-config. Its paths come with escaped spaces.
export PKG_CONFIG_PATH="$root/lib/pkgconfig"
eval "cc -std=c99 -Wall -Wextra -Werror \
  '$root/share/optrail/examples/products.c' \
  $(pkg-config --cflags --libs optrail) -lm -o products"
[ "$(wc -l <"$root/share/optrail/examples/products.c")" -le 60 ]
check "^largest errors: matmul " env -i ./products
check '^2$' pkg-config --modversion optrail

# CMake.
check "" cmake -S "$root/share/optrail/examples/cmake" -B build \
  -DCMAKE_PREFIX_PATH="$root" -DCMAKE_BUILD_TYPE=Release
check "" cmake --build build
check "^largest errors: matmul " env -i build/products
check "^right on 2 threads" env -i build/own_threads
mkdir future
sed 's/Optrail 1 /Optrail 99 /' "$root/share/optrail/examples/cmake/CMakeLists.txt" \
  >future/CMakeLists.txt
if cmake -S future -B future/build -DCMAKE_PREFIX_PATH="$root" >out 2>&1; then
  echo "FAILED: version 99 was found"
  exit 1
fi
grep -q "99" out

# Python.
wheel=$(echo "$root"/share/optrail/optrail-*.whl)
python() {
  env -i OPTRAIL_LIBRARY="$shared" PYTHONPATH="$wheel" /usr/bin/python3 "$@"
}
check "^largest errors: matmul " python "$root/share/optrail/examples/products.py"
check " refusals$" python "$sources/testdata/statuses.py"
check "^right on a GPU that there is not|libnvrtc" env -i OPTRAIL_LIBRARY="$shared" \
  PYTHONPATH="$wheel" LD_LIBRARY_PATH="$sources/fake_driver" \
  /usr/bin/python3 "$sources/testdata/cuda_arrays.py"
check "ImportError: unsupported here: optrail.torch needs PyTorch|^torch is here" \
  bash -c "! env -i OPTRAIL_LIBRARY='$shared' PYTHONPATH='$wheel' \
    /usr/bin/python3 -c 'import optrail.torch' || echo torch is here"
# What the wheel says of its files is so.
python - "$wheel" <<'END'
import base64, hashlib, sys, zipfile
with zipfile.ZipFile(sys.argv[1]) as wheel:
    record = next(name for name in wheel.namelist() if name.endswith("/RECORD"))
    lines = [line.split(",") for line in wheel.read(record).decode().splitlines()]
    assert sorted(line[0] for line in lines) == sorted(wheel.namelist())
    for name, digest, size in lines:
        if name == record:
            continue
        data = wheel.read(name)
        hashed = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=")
        assert digest == "sha256=" + hashed.decode() and int(size) == len(data), name
END

# A program with a Protobuf of its own.
mkdir protos
protoc -I "$sources/testdata" --cpp_out=protos tuning/proto/config.proto
# shellcheck disable=SC2046
c++ -std=c++17 -I protos -I "$root/include" "$sources/testdata/another_protobuf.cc" \
  protos/tuning/proto/config.pb.cc "$shared" "-Wl,-rpath,$root/lib" \
  $(pkg-config --cflags --libs protobuf) -o another_protobuf
echo "operator_name: 7" >broken.textproto
check "^both Protobufs work" env -i ./another_protobuf broken.textproto

# Parts that are missing or of another time.
cp -r "$root" broken
mv broken/lib/optrail broken/lib/elsewhere
check "UNAVAILABLE: .*liboptrail_impl.so.*install the whole lib folder" \
  bash -c "! env -i LD_LIBRARY_PATH=broken/lib OPTRAIL_LIBRARY=broken/lib/liboptrail.so.0 \
    PYTHONPATH='$wheel' /usr/bin/python3 -c 'import optrail; optrail.hardware_id()'"
mv broken/lib/elsewhere broken/lib/optrail
# Cut off, as by a copy for which the disk had no room.
for bytes in 100000 3000000; do
  head -c "$bytes" "$root/lib/optrail/liboptrail_impl.so" >broken/lib/optrail/liboptrail_impl.so
  check "is cut off: .*liboptrail_impl.so is shorter than its headers say" \
    bash -c "! LD_LIBRARY_PATH=broken/lib ./products"
done
echo 'int optrail_version(void) { return 0; }' >older.c
cc -shared -fPIC older.c -o broken/lib/optrail/liboptrail_impl.so
check "is of version 0 and liboptrail.so of 2" \
  bash -c "! LD_LIBRARY_PATH=broken/lib ./products"
cc -shared -fPIC older.c -o older.so
check "ImportError: .*is of version 0, and this package needs 2" \
  bash -c "! env -i OPTRAIL_LIBRARY=$scratch/older.so PYTHONPATH='$wheel' \
    /usr/bin/python3 -c 'import optrail'"
check "ImportError: liboptrail cannot be loaded.*OPTRAIL_LIBRARY" \
  bash -c "! env -i OPTRAIL_LIBRARY=/nowhere.so PYTHONPATH='$wheel' \
    /usr/bin/python3 -c 'import optrail'"
# A program that was linked with this one does not start with an older one.
cc -shared -fPIC -Wl,-soname,liboptrail.so.0 older.c -o broken/lib/liboptrail.so.0
if LD_LIBRARY_PATH=broken/lib ./products >out 2>&1; then exit 1; fi
grep -qE "undefined symbol: optrail_.*OPTRAIL_1|version .OPTRAIL_1. not found" out
echo "the archive works on its own"

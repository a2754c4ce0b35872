#!/usr/bin/env bash
# A bundle needs nothing of the machine: it runs where there is no other file,
# and starts the processes that it measures in.
set -euo pipefail
folder=$TEST_TMPDIR
cli/bundle --out="$folder/optrail.tar.gz"
tar -C "$folder" -xzf "$folder/optrail.tar.gz"

# A moved folder, an empty environment, another working directory.
mv "$folder/optrail" "$folder/else where"
cd /
env -i "$folder/else where/optrail" --version
env -i HOME="$folder" BUILD_WORKSPACE_DIRECTORY="$folder" \
  "$folder/else where/optrail" bench --op=add --shape=n=393216/f32 \
  --select=default --processes=1 >"$folder/bench" 2>&1 ||
  grep -q CONTENDED "$folder/bench" || { cat "$folder/bench"; exit 1; }
grep -q "add" "$folder/bench"

if unshare --user --map-root-user true 2>/dev/null; then
  unshare --user --map-root-user /usr/sbin/chroot "$folder/else where" /optrail --version
else
  echo "unsupported here: user namespaces, so no chroot without packages"
fi

if "$OLDPWD/cli/bundle" --out=x.zip 2>"$folder/refused"; then exit 1; fi
grep -q "x.zip: expected --out=FILE.tar.gz" "$folder/refused"

#!/usr/bin/env bash
# A bundle needs nothing of the machine: it runs where there is no other file,
# and starts the processes that it measures in.
set -euo pipefail
folder=$TEST_TMPDIR
cli/bundle --out="$folder/optrail.tar.gz"
! command -v dpkg-deb >/dev/null || cli/bundle --out="$folder/optrail.deb"
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
grep -q "x.zip: expected --out=FILE.tar.gz or --out=FILE.deb" "$folder/refused"

# The package: what it says of itself, and what it brings, from any folder.
if ! command -v dpkg-deb >/dev/null; then
  echo "unsupported here: dpkg-deb, so no package"
  exit 0
fi
[ "$(dpkg-deb --field "$folder/optrail.deb" Package Architecture | tr '\n' ' ')" = \
  "Package: optrail Architecture: amd64 " ]
dpkg-deb --field "$folder/optrail.deb" Version | grep -qE '^0\.1(\+[0-9]{12}\.[0-9a-f]{12}|~unstamped)$'
dpkg-deb --extract "$folder/optrail.deb" "$folder/root"
root=$folder/root/usr
# Terms of the libraries, as texts.
for text in "GNU Lesser General Public License" "The RE2 Authors" \
  "Apache License" "==== .*libabsl" "==== .*libc6"; do
  grep -qiE "$text" "$root/share/doc/optrail/copyright" ||
    { echo "the copyright file lacks: $text"; exit 1; }
done
env -i "$root/bin/optrail" --version
mkdir "$folder/looked at"
cd "$folder/looked at"
env -i HOME="$folder" "$root/bin/optrail" demo >said
grep -q "Every number is made up" said
[ -s optrail_demo/report.html ]
# What the demo says to try works as it stands there.
sed -n 's/^  optrail //p' said >commands
[ "$(wc -l <commands)" -ge 4 ]
while read -r line; do
  code=0
  eval "env -i HOME='$folder' '$root/bin/optrail' $line" >tried 2>&1 || code=$?
  [ "$code" -le 1 ] || { echo "optrail $line: exit code $code"; cat tried; exit 1; }
done <commands
# A report names commits by their first digits; no clone of them is here.
commit=$(sed -n 's/.*--candidate=\([0-9a-f]*\).*/\1/p' said)
env -i HOME="$folder" "$root/bin/optrail" ack 'BM_Hash.*' "$commit" --reason=known \
  --history=optrail_demo/history >answered
grep -q "$commit" answered
cmp "$root/lib/optrail/share/schemas/gate.schema.json" \
  <(env -i "$root/bin/optrail" schema gate)
[ -s "$root/lib/optrail/share/proto/tracker/proto/run.proto" ]
# No page has a dead link, neither in the folder nor where browsers look.
for top in "$root/lib/optrail" "$root/share/doc/optrail" "$folder/else where"; do
  (
    cd "$top"
    links=0
    for page in docs/*/*.md; do
      while read -r link; do
        links=$((links + 1))
        [ -e "$(realpath -ms "$(dirname "$page")/$link")" ] ||
          { echo "$top/$page links to $link, which is not there"; exit 1; }
      done < <(grep -oE '\]\([^):# ]+[)#]' "$page" | sed 's/^](//; s/[)#]$//')
    done
    [ "$links" -gt 100 ]
  )
done
# Help texts name it.
[ -s "$root/share/doc/optrail/docs/reference/policy_format.md" ]
[ -s "$root/share/doc/optrail/docs/guide/gate_pull_request.md" ]
[ -s "$root/share/doc/optrail/docs/method/gating.md" ]
code=0
env -i PATH="$root/bin:/usr/bin:/bin" "$root/bin/optrail-ci" 2>used || code=$?
[ "$code" = 2 ] && grep -q "gate \[BASE\]" used
[ -x "$root/lib/optrail/ci/comment.sh" ]

#!/usr/bin/env bash
# ci/comment.sh against a stand-in for GitHub's command line: the first call
# writes a comment, later ones change it, and nobody else's is touched.
#   comment_test.sh COMMENT_SH
set -euo pipefail

comment=$PWD/$1
cd "$TEST_TMPDIR"
mkdir -p bin
# Keeps the comment in a file; the list has a copied marker by somebody else.
cat >bin/gh <<'END'
#!/usr/bin/env bash
echo "$*" >>calls
case "$*" in
*" user "* | "api user"*) echo bot ;;
*PATCH* | *POST*)
  for argument; do case $argument in body=@*) cp "${argument#body=@}" comment ;; esac; done ;;
*comments*)
  case "$*" in *'"bot"'*startswith*optrail:gate*) ;; *) exit 1 ;; esac
  [ ! -e comment ] || echo 17 ;;
esac
END
chmod +x bin/gh
PATH=$PWD/bin:$PATH

fail() {
  echo "FAILED: $*"
  exit 1
}

echo "red: BM_x is 8% slower" >gate.md
"$comment" 5 gate.md
grep -q "POST.*issues/5/comments" calls || fail "no comment was written"
head -n 1 comment | grep -qx '<!-- optrail:gate -->' || fail "no marker"
grep -q "8% slower" comment || fail "no text"

echo "green" >gate.md
"$comment" 5 gate.md
grep -q "PATCH.*issues/comments/17" calls || fail "the comment was not updated"
[ "$(grep -c POST calls)" = 1 ] || fail "a second comment was written"
grep -q green comment || fail "the old text is still there"

head -c 100000 /dev/zero | tr '\0' x >gate.md
"$comment" 5 gate.md
[ "$(wc -c <comment)" -lt 65536 ] || fail "too long for a code host"
grep -q "cut off" comment || fail "does not say that it was cut off"

for wrong in "" 5x "1;2"; do
  if "$comment" "$wrong" gate.md 2>/dev/null; then fail "took '$wrong'"; fi
done
echo "all as expected"

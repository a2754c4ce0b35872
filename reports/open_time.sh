#!/bin/sh
# How long a report of many series takes to open in headless Chromium: from the
# start of loading until everything is laid out, as the page itself measures it.
#
#   bazel run //reports:open_time -- [SHAPES [COMMITS]]   # 42 series a shape
set -eu

sample=$1
shapes=${2:-240}
commits=${3:-60}
browser=$(command -v chromium || command -v chromium-browser ||
  command -v google-chrome) || {
  echo "unsupported here: chromium not found; next: apt-get install chromium" >&2
  exit 2
}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"$sample" "$work/page.html" "$commits" "$shapes"
echo "$((shapes * 42)) series of $commits commits"
for round in 1 2 3 4 5; do
  "$browser" --headless --no-sandbox --disable-gpu --no-first-run \
    --disable-background-networking --user-data-dir="$work/profile" \
    --window-size=1280,900 --dump-dom "file://$work/page.html" \
    2> /dev/null | sed -n 's/.*data-opened="\([0-9]*\)".*/open after \1 ms/p'
done

#!/bin/sh
# Opens generated reports in headless Chromium and looks at the page that its
# scripts made. Without Chromium it says so and tests nothing.
set -u

sample=$1
for browser in chromium chromium-browser google-chrome; do
  command -v "$browser" > /dev/null && break
  browser=
done
if [ -z "$browser" ]; then
  echo "skipped: chromium not installed"
  exit 0
fi

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failures=0

fail() {
  echo "FAILED: $*"
  failures=$((failures + 1))
}

# dump NAME FILE#FRAGMENT: the page after its scripts ran, as $work/NAME.
dump() {
  timeout 120 "$browser" --headless --no-sandbox --disable-gpu \
    --no-first-run --disable-background-networking \
    --disable-component-update --disable-sync --enable-logging=stderr \
    --user-data-dir="$work/profile-$1" --window-size="${3:-1400,1000}" \
    --virtual-time-budget=4000 --dump-dom "file://$2" \
    > "$work/$1" 2> "$work/$1.log" || fail "$1: the browser failed"
  grep -q 'data-ready="true"' "$work/$1" || fail "$1: the script did not finish"
  grep -q 'class="notice error"' "$work/$1" && fail "$1: the page says it failed"
  grep -a 'CONSOLE' "$work/$1.log" && fail "$1: messages in the console"
}

# The page without what it was delivered with: only what the scripts made.
made_by_script() {
  sed -n '/<main/,/<\/main>/p' "$work/$1"
}

expect() {
  made_by_script "$1" | grep -F -- "$2" >/dev/null || fail "$1: no $2"
}

refuse() {
  made_by_script "$1" | grep -F -- "$2" >/dev/null && fail "$1: has $2"
}

expect_rows() {
  rows=$(made_by_script "$1" | grep -o 'role="option"' | wc -l)
  [ "$rows" -ge "$2" ] && [ "$rows" -le "$3" ] ||
    fail "$1: $rows rows, expected $2 to $3"
}

"$sample" "$work/plain.html" 60 2 > /dev/null || fail "no sample"
"$sample" "$work/large.html" 12 24 > /dev/null || fail "no large sample"
"$sample" "$work/hostile.html" 20 1 hostile > /dev/null ||
  fail "no hostile sample"
"$sample" "$work/imported.html" 2 1 imported > /dev/null ||
  fail "no imported sample"
"$sample" "$work/empty.html" 0 0 > /dev/null || fail "no empty sample"

dump overview "$work/plain.html"
expect overview '84 series'
expect overview 'Wants attention'
expect overview 'Synthetic data'
expect_rows overview 10 40

# Of the model that the sample has: its times, layers and what fusion gains.
expect overview 'sample_model'
expect overview 'By the best backends'
expect overview '<li><bdi title="norm">norm</bdi>: <bdi title="fused">fused'
expect overview '<bdi title="norm, separate">'
refuse overview 'NaN'

# Only the rows in view exist, whatever the number of series.
dump large "$work/large.html"
expect large '1,008 series'
expect_rows large 10 40

# The filter, and what it finds.
dump filtered "$work/plain.html#/?q=softmax%20tuned%20h200"
expect filtered '2 of 84 series'
expect_rows filtered 2 2
refuse filtered 'row-2"'
dump nothing "$work/plain.html#/?q=no-such-series"
expect nothing 'No series matches this filter.'
expect_rows nothing 0 0

# A series opens with its chart and its table; charts are drawn.
name=softmax%2Fcpu%2Frows%3D4096%2Ccols%3D1024%2Ff32%2Ftuned%2Fthreads%3D8%2Fhot
dump open "$work/plain.html#/?open=$name" 1400,9000
expect open 'Against the level before'
expect open '<canvas'
expect open 'Points of the series, newest first'
expect open 'confirmed'
expect open 'What each knob did'

# A session over schedules: what it tried, and its winner as loops.
session=$(grep -o '"id":"[0-9TZ]*-[0-9a-f]*"' "$work/plain.html" | sed -n 2p |
  cut -d'"' -f4)
dump schedule "$work/plain.html#/?session=$session" 1400,9000
expect schedule 'Sketches tried'
expect schedule 'softmax at root'
expect schedule 'What each rule did'
expect schedule 'multi_level_tiling'
expect schedule 'softmax = f(power, sum)'
expect schedule 's3_tile0'

# Results of other tools: no config, no shape, two branches, no past. What is
# not there is left out, and nothing is called unchanged that was not judged.
dump imported "$work/imported.html#/?open=matmul%2F1&branch=dev" 1400,9000
expect imported 'Points of the series, newest first'
refuse imported 'null<'
refuse imported 'By the best backends'
expect imported 'no baseline'
refuse imported 'Nothing changed'
expect imported 'title="time · dev"'
expect imported 'title="time · main"'
dump imported_phone "$work/imported.html" 400,2000
expect imported_phone '<small class="narrow"><bdi title="time · main">'

# A pane without a series takes no room.
sed 's/<meta http-equiv="Content-Security-Policy"[^>]*>//' \
  "$work/plain.html" > "$work/pane.html"
cat >> "$work/pane.html" << 'END'
<script>
document.title =
    'pane: ' + document.querySelector('.detail').getBoundingClientRect().height;
</script>
END
dump pane "$work/pane.html"
grep -q '<title>pane: 0<' "$work/pane" || fail "pane: an empty box is shown"

# The keyboard alone: "/" goes to the filter, Enter from there to the list,
# arrows move, Enter opens, Escape closes. A copy of the page without its
# security policy gets a script that types.
type_keys() { # type_keys NAME KEYS: keys as a JavaScript array
  sed 's/<meta http-equiv="Content-Security-Policy"[^>]*>//' \
    "$work/plain.html" > "$work/$1.html"
  cat >> "$work/$1.html" << END
<script>
for (const key of $2) {
  document.activeElement.dispatchEvent(
      new KeyboardEvent('keydown', {key, bubbles: true, cancelable: true}));
}
document.title = 'focus: ' + (document.activeElement.getAttribute('role') ||
                              document.activeElement.tagName);
</script>
END
  dump "$1" "$work/$1.html" 1400,9000
}
type_keys slash "['/']"
grep -q '<title>focus: INPUT' "$work/slash" || fail "slash: no filter in focus"
type_keys arrows "['/', 'Enter', 'ArrowDown', 'ArrowDown', 'Enter']"
grep -q '<title>focus: listbox' "$work/arrows" || fail "arrows: no list in focus"
expect arrows 'aria-activedescendant="row-2"'
expect arrows 'Points of the series, newest first'
type_keys escape "['/', 'Enter', 'ArrowDown', 'Enter', 'Escape']"
refuse escape 'Points of the series, newest first'

# Both themes.
dump dark "$work/plain.html#/?theme=dark&q=matmul"
grep -q '<html[^>]*data-theme="dark"' "$work/dark" || fail "dark: is not dark"
dump light "$work/plain.html#/?theme=light&q=matmul"
grep -q '<html[^>]*data-theme="light"' "$work/light" || fail "light: is not light"

# Names that try to be markup are text: shown, and without effect.
dump hostile "$work/hostile.html" 1400,9000
grep -q '<title>owned' "$work/hostile" && fail "hostile: a name ran"
refuse hostile '<img'
refuse hostile '<script>'
refuse hostile '<b>bold'
expect hostile '&lt;img src=x onerror='
expect hostile '&lt;U+202E&gt;gnp.exe'
dump hostile_open "$work/hostile.html#/?q=onerror&open=%3Cimg%20src%3Dx%20onerror%3D%22document.title%3D%27owned%27%22%3E" 1400,9000
expect hostile_open '<canvas'
refuse hostile_open '<img'
grep -q '<title>owned' "$work/hostile_open" && fail "hostile_open: a name ran"

# No data is said, with the next command.
dump empty "$work/empty.html"
expect empty 'There is no data to show'
expect empty 'optrail bench --record'

# A phone.
dump phone "$work/plain.html" 400,800
expect phone '84 series'
# All hardware is in view, below each other.
sed 's/<meta http-equiv="Content-Security-Policy"[^>]*>//' \
  "$work/plain.html" > "$work/beside.html"
cat >> "$work/beside.html" << 'END'
<script>
const box = document.querySelector('.matrix').parentNode;
document.title = 'beside: ' + (box.scrollWidth - box.clientWidth);
</script>
END
dump beside "$work/beside.html" 400,800
grep -q '<title>beside: 0<' "$work/beside" || fail "phone: hardware is cut off"

if [ "$failures" -gt 0 ]; then
  echo "$failures failures"
  exit 1
fi
echo "passed in $browser"

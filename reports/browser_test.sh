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

# One browser opens all pages, one after the other, in frames of a page that it
# is given. So pages() runs twice: first it only lists pages, then it looks at
# what the browser made of them.
looking=false

# dump NAME FILE#FRAGMENT [SIZE]: the page after its scripts ran, as $work/NAME.
dump() {
  if ! $looking; then
    echo "['$1', 'file://$2', ${3:-1400,1000}]," >> "$work/list"
    return
  fi
  sed -n "s/^dump $1 //p" "$work/dumps" | base64 -d > "$work/$1"
  grep -q 'data-ready="true"' "$work/$1" || fail "$1: the script did not finish"
  grep -q 'class="notice error"' "$work/$1" && fail "$1: the page says it failed"
}

open_all() {
  {
    printf '<!DOCTYPE html><style>* { margin: 0; border: 0 }</style><body>'
    printf '<script>const pages = [\n'
    cat "$work/list"
    cat <<'SCRIPT'
];
// Time here is counted in frames that the browser drew: charts are drawn after
// a frame has told that they are in view, however long that takes under load.
const frame = () => new Promise(resolve => requestAnimationFrame(resolve));
async function openPage([name, url, width, height]) {
  const element = document.createElement('iframe');
  element.width = width;
  element.height = height;
  element.src = url;
  await new Promise(resolve => {
    element.onload = resolve;
    document.body.append(element);
  });
  const page = element.contentDocument.documentElement;
  const waits = chart => chart.getBoundingClientRect().top < height &&
      !chart.querySelector('canvas');
  const drawn = () => page.dataset.ready &&
      ![...page.querySelectorAll('.chart')].some(waits);
  // A page that is done stays so for a few frames.
  for (let done = 0, all = 0; done < 5 && all < 300; ++all) {
    await frame();
    done = drawn() ? done + 1 : 0;
  }
  // Its own scripts are most of a page, and of no interest.
  for (const own of page.querySelectorAll('body > script')) own.remove();
  const bytes = new TextEncoder().encode(page.outerHTML);
  let text = '';
  for (const byte of bytes) text += String.fromCharCode(byte);
  element.remove();
  const line = document.createElement('pre');
  line.textContent = `\ndump ${name} ${btoa(text)}\n`;
  document.head.append(line);
}
// The browser prints the page once it has loaded. That is when the document of
// this frame is closed.
const hold = document.createElement('iframe');
document.documentElement.append(hold);
hold.contentDocument.open();
(async () => {
  for (const page of pages) await openPage(page);
  hold.contentDocument.close();
})();
</script>
SCRIPT
  } > "$work/all.html"
  timeout 840 "$browser" --headless --no-sandbox --disable-gpu \
    --no-first-run --disable-background-networking \
    --disable-component-update --disable-sync --enable-logging=stderr \
    --allow-file-access-from-files --user-data-dir="$work/profile" \
    --window-size=1400,9000 --dump-dom \
    "file://$work/all.html" > "$work/dumps" 2> "$work/log" ||
    fail "the browser failed"
  grep -a 'CONSOLE' "$work/log" && fail "messages in the console"
}

# The page without what it was delivered with: only what the scripts made.
made_by_script() {
  sed -n '/<main/,/<\/main>/p' "$work/$1"
}

expect() {
  $looking || return 0
  made_by_script "$1" | grep -F -- "$2" >/dev/null || fail "$1: no $2"
}

refuse() {
  $looking || return 0
  made_by_script "$1" | grep -F -- "$2" >/dev/null && fail "$1: has $2"
}

expect_rows() {
  $looking || return 0
  rows=$(made_by_script "$1" | grep -o 'role="option"' | wc -l)
  [ "$rows" -ge "$2" ] && [ "$rows" -le "$3" ] ||
    fail "$1: $rows rows, expected $2 to $3"
}

# with_script NAME PAGE SCRIPT [SIZE]: dumps a copy of the page, without its
# security policy, that ends with a script.
with_script() {
  $looking || sed 's/<meta http-equiv="Content-Security-Policy"[^>]*>//' \
    "$2" > "$work/$1.html"
  $looking || printf '<script>\n%s\n</script>\n' "$3" >> "$work/$1.html"
  dump "$1" "$work/$1.html" "${4:-1400,9000}"
}
# has NAME PATTERN WHY, has_not NAME PATTERN WHY: anywhere in the page.
has() {
  ! $looking || grep -q "$2" "$work/$1" || fail "$1: $3"
}
has_not() {
  $looking && grep -q "$2" "$work/$1" && fail "$1: $3"
}
titled() { # titled NAME TITLE
  $looking || return 0
  grep -q "<title>$2<" "$work/$1" ||
    fail "$1: $(grep -o -m1 '<title>[^<]*' "$work/$1"), expected $2"
}

type_keys() { # type_keys NAME KEYS: keys as a JavaScript array
  with_script "$1" "$work/plain.html" "for (const key of $2) {
  document.activeElement.dispatchEvent(
      new KeyboardEvent('keydown', {key, bubbles: true, cancelable: true}));
}
document.title = 'focus: ' + (document.activeElement.getAttribute('role') ||
                              document.activeElement.tagName);"
}

expect_sections() {
  $looking || return 0
  order=$(made_by_script "$1" | grep -o '<section id="[a-z]*"' |
    cut -d'"' -f2 | tr '\n' ' ')
  [ "$order" = "$2" ] || fail "$1: the sections are $order"
}

"$sample" "$work/plain.html" 60 2 > /dev/null || fail "no sample"
"$sample" "$work/large.html" 12 24 > /dev/null || fail "no large sample"
"$sample" "$work/hostile.html" 20 1 hostile > /dev/null ||
  fail "no hostile sample"
"$sample" "$work/imported.html" 2 1 imported > /dev/null ||
  fail "no imported sample"
"$sample" "$work/states.html" 60 1 states > /dev/null || fail "no states sample"
"$sample" "$work/empty.html" 0 0 > /dev/null || fail "no empty sample"

pages() {

dump overview "$work/plain.html"
expect overview '84 series'
expect overview 'Wants attention'
expect overview 'Synthetic data'
expect_rows overview 10 40

# What wants attention comes first, then commits and hardware, then series.
expect_sections overview \
  'overview attention heat series tuned roofline tuning diagnoses workloads about '

# The sample has a model: its times, its layers and the gain of fusion.
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
expect imported_phone ' · time · main">'
# Benchmarks of other tools are called benchmarks.
expect imported '>Benchmark</th>'
expect imported 'All benchmarks'
refuse imported 'perator</th>'
refuse imported 'bazel run'


# A pane without a series takes no room.
with_script pane "$work/plain.html" \
  'document.title =
       document.querySelector("#series .detail").getBoundingClientRect().height;'
titled pane 0

# Several suspects are narrowed by a command.
with_script suspects "$work/hostile.html" \
  'for (const row of document.querySelectorAll(".attention details")) {
     row.open = true;
   }'
expect suspects 'optrail bisect '

# A row for each range of commits, with what answers it.
with_script attention "$work/states.html" \
  'document.querySelector("#attention .more button").click();
   for (const row of document.querySelectorAll(".attention details")) {
     row.open = true;
   }'
expect attention 'optrail ack '
expect attention 'optrail compare '
expect attention 'git log --first-parent'
expect attention 'Suspected commit'
expect attention 'config: tile 64 -&gt; 32'
expect attention 'softmax: check that rows are finite'
expect attention 'BM_ParseStrict/4096'
expect attention '9 of 20 points; use gate or bisect'
expect attention 'command_server'
refuse attention 'NaN'
refuse attention 'undefined'

# Benchmarks over hardware; those of the plain page differ in their threads.
expect imported '26 benchmarks on several hardware: no news.'
with_script matrix "$work/plain.html" \
  'report.overview.matrix =
       {h: [0, 1], rows: [[0, null], [1, 2]], all: 250, quiet: 3};
   document.querySelector("main").append(matrixSection());'
expect matrix '250 benchmarks with news on some hardware, 3 without. The worst 2'
expect matrix '<td class="muted">not measured</td>'
refuse matrix 'undefined'

# No line is drawn over a commit that was measured without the benchmark.
with_script gap "$work/plain.html" \
  'const made = {...report.series[0], y: [1, 2, 3, 4], a: [2], cp: []};
   document.title = placesOf(made).point.join() + " " +
       seriesSparkline(made).innerHTML.match(/M/g).length;'
titled gap '0,1,-1,2,3 2'

# The heat map by the keyboard: one stop, arrows move, Enter opens a series.
with_script heat "$work/plain.html" \
  'const stops = document.querySelectorAll(".strip[tabindex=\"0\"]");
   stops[0].focus();
   const press = key => document.activeElement.dispatchEvent(
       new KeyboardEvent("keydown", {key, bubbles: true, cancelable: true}));
   press("ArrowDown");
   press("Home");
   press("ArrowRight");
   const strip = document.activeElement;
   document.title = stops.length + " " +
       (Number(strip.ariaValueNow) - Number(strip.ariaValueMin)) + " " +
       / on .*: [-+\u2212]?[0-9.]+|commit/.test(strip.ariaValueText);
   press("Enter");'
titled heat '1 1 true'
expect heat 'of 84 series'

# The roofline: drawn, with each ceiling's value and what has no place in it.
expect overview '<dt>Arithmetic</dt><dd>410'
expect overview '<dt>L2</dt>'
expect overview '<dt>memory</dt>'
expect overview 'the records hold no FLOP or no bytes'
expect imported 'results of other tools hold neither FLOP nor bytes'
refuse imported 'aria-label="Roofline of'
# By the keyboard: arrows move, Enter opens the diagnosis or else the series.
roofline_keys='const slider = document.querySelector("#roofline .chart");
   slider.focus();
   const press = key => slider.dispatchEvent(
       new KeyboardEvent("keydown", {key, bubbles: true, cancelable: true}));
   press("Home");
   const first = slider.ariaValueText;
   press("ArrowRight");
   while (slider.ariaValueText.includes("No diagnosis") !== wanted &&
          slider.ariaValueNow !== slider.ariaValueMax) press("ArrowRight");
   const moved = slider.ariaValueText !== first &&
       /FLOP per byte, bound by .* of the roofline/.test(slider.ariaValueText);
   press("Enter");'
with_script roofline_diagnosis "$work/plain.html" "const wanted = false;
   $roofline_keys
   document.title = moved + ' ' + document.activeElement.tagName + ' ' +
       document.activeElement.parentNode.open;" 1400,1000
titled roofline_diagnosis 'true SUMMARY true'
expect roofline_diagnosis 'of the time would go'
expect roofline_diagnosis 'Advice held to account'
expect roofline_diagnosis '0.410 (0.380 to 0.440)'
expect roofline_diagnosis ' predicted (<bdi'
expect roofline_diagnosis 'counters are not permitted'
with_script roofline_series "$work/plain.html" "const wanted = true;
   $roofline_keys
   document.title = moved + ' ' + (seriesList.open >= 0);" 1400,1000
titled roofline_series 'true true'
# A click on a point does what Enter does; all is drawn within the axes.
with_script roofline_click "$work/plain.html" 'const opened = [];
   roofline.open = () => opened.push(roofline.at);
   document.querySelector("#roofline").scrollIntoView();
   charts.createAll();
   charts.live.get(roofline.canvas).chart.trigger("click", {data: {place: 2}});
   const {xAxis, yAxis, series} = roofline.options();
   const inside = series.every(({data}) => data.every(point => {
     const [x, y] = point.value || point;
     return x >= xAxis.min && x <= xAxis.max && y >= yAxis.min * .999 &&
         y <= yAxis.max;
   }));
   document.title = opened.join() + " " + inside + " " + series.length;' 1400,1000
titled roofline_click '2 true 6'

# The keyboard alone: "/" goes to the filter, Enter from there to the list,
# arrows move, Enter opens, Escape closes.
type_keys slash "['/']"
titled slash 'focus: INPUT'
type_keys arrows "['/', 'Enter', 'ArrowDown', 'ArrowDown', 'Enter']"
titled arrows 'focus: listbox'
expect arrows 'aria-activedescendant="row-2"'
expect arrows 'Points of the series, newest first'
type_keys escape "['/', 'Enter', 'ArrowDown', 'Enter', 'Escape']"
refuse escape 'Points of the series, newest first'

# Both themes.
dump dark "$work/plain.html#/?theme=dark&q=matmul"
has dark '<html[^>]*data-theme="dark"' 'is not dark'
dump light "$work/plain.html#/?theme=light&q=matmul"
has light '<html[^>]*data-theme="light"' 'is not light'

# Names that try to be markup are text: shown, and without effect.
dump hostile "$work/hostile.html" 1400,9000
has_not hostile '<title>owned' 'a name ran'
refuse hostile '<img'
refuse hostile '<script>'
refuse hostile '<b>bold'
expect hostile '&lt;img src=x onerror='
expect hostile '&lt;U+202E&gt;gnp.exe'
dump hostile_open "$work/hostile.html#/?q=onerror&open=%3Cimg%20src%3Dx%20onerror%3D%22document.title%3D%27owned%27%22%3E" 1400,9000
expect hostile_open '<canvas'
refuse hostile_open '<img'
has_not hostile_open '<title>owned' 'a name ran'

# No data is said, with the next command.
dump empty "$work/empty.html"
expect empty 'There is no data to show'
expect empty 'optrail bench --record'

# A phone.
dump phone "$work/plain.html" 400,800
expect phone '84 series'
# Nothing is wider than the screen, the tables that scroll apart, with all rows
# open.
for page in plain imported hostile states; do
  with_script "wide_$page" "$work/$page.html" \
    'for (const row of document.querySelectorAll(".attention details")) {
       row.open = true;
     }
     const root = document.documentElement;
     requestAnimationFrame(() => requestAnimationFrame(() => {
       document.title = root.scrollWidth - root.clientWidth;
     }));' 390,2000
  titled "wide_$page" 0
done
}

pages
open_all
looking=true
pages

if [ "$failures" -gt 0 ]; then
  echo "$failures failures"
  exit 1
fi
echo "passed in $browser"

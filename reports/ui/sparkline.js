// Small lines without axes: a series' or an operator's level over commits.
'use strict';

// `xs` and `ys` are of the same length; null breaks the line, and so does a
// place in `breaks`, before it. `marks`: [{i, tone}] dots on the line.
function sparkline(xs, ys, {breaks = new Set(), marks = [], label = ''} = {}) {
  const width = 160;
  const height = 30;
  const finite = ys.filter(isNumber);
  const node = svg('svg', {
    class: 'spark',
    viewBox: `0 0 ${width} ${height}`,
    preserveAspectRatio: 'none',
    role: 'img',
    'aria-label': label || 'trend',
  });
  if (finite.length === 0) return node;
  let low = Math.min(...finite);
  let high = Math.max(...finite);
  // Noise of a percent must not look like a mountain.
  const middle = (low + high) / 2;
  const span = Math.max(high - low, Math.abs(middle) * 0.06) || 1;
  low = middle - span / 2;
  high = middle + span / 2;
  const firstX = xs[0];
  const spanX = xs[xs.length - 1] - firstX || 1;
  const x = i => xs.length === 1 ? width : (xs[i] - firstX) / spanX * width;
  const y = value => 2 + (high - value) / (high - low) * (height - 4);

  let path = '';
  let open = false;
  ys.forEach((value, i) => {
    if (!isNumber(value)) {
      open = false;
      return;
    }
    const joined = open && !breaks.has(i);
    path += (joined ? 'L' : 'M') + x(i).toFixed(1) + ' ' + y(value).toFixed(1);
    // One point alone is still seen.
    if (!joined) path += 'h0.01';
    open = true;
  });
  node.append(svg('path', {d: path}));
  for (const mark of marks) {
    if (!isNumber(ys[mark.i])) continue;
    // A stroke of no length with round ends is a dot that the stretched view
    // box cannot turn into an ellipse.
    node.append(svg('path', {
      d: `M${x(mark.i).toFixed(1)} ${y(ys[mark.i]).toFixed(1)}h0.01`,
      style: `stroke: var(--${mark.tone}); stroke-width: 6`,
    }));
  }
  return node;
}

// A series in at most 64 points: its own line and its confirmed changes.
function seriesSparkline(series) {
  const n = series.y.length;
  const step = Math.max(1, Math.ceil(n / 64));
  const marked = new Set(series.cp.map(change => change[0]));
  const gaps = new Set(series.a);
  const breaks = new Set();
  const xs = [];
  const ys = [];
  const marks = [];
  let broken = false;
  for (let i = 0; i < n; ++i) {
    broken = broken || gaps.has(i);
    if (i % step !== (n - 1) % step && !marked.has(i)) continue;
    if (marked.has(i)) {
      const change = series.cp.find(each => each[0] === i);
      marks.push({
        i: xs.length,
        tone: change[5] ? 'unsure' : change[6] ? 'worse' : 'better',
      });
    }
    if (broken) breaks.add(xs.length);
    broken = false;
    xs.push(i);
    ys.push(series.y[i]);
  }
  return sparkline(xs, ys, {breaks, marks, label: `trend of ${n} points`});
}

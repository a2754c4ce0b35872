// What all parts of the page share: the data, building DOM, numbers with units,
// verdicts, the theme.
//
// Text from the data goes into the page through textContent alone, after
// `clean`, so that a benchmark's name can neither run nor hide nor reorder
// anything. No part of this script sets innerHTML.
'use strict';

const report = JSON.parse(document.getElementById('data').textContent);
// What most series lack, and texts that many of them share, travel once.
report.series = report.series.map(series => ({
  ...report.usual, ...series,
  s: report.texts[series.s],
  x: report.texts[series.x],
  k: report.texts[series.k],
}));

// A failure of this script is said on the page, not only in the console.
function showProblem(message) {
  const box = document.createElement('p');
  box.className = 'notice error';
  box.setAttribute('role', 'alert');
  box.textContent = 'A part of this report could not be drawn: ' + message;
  document.getElementById('page').prepend(box);
}
addEventListener('error', event => showProblem(event.message));
addEventListener('unhandledrejection',
                 event => showProblem(String(event.reason)));
addEventListener('securitypolicyviolation',
                 event => showProblem('blocked: ' + event.violatedDirective));

// Control characters and those that change the direction of the text around
// them become visible as <U+202E>.
const kInvisible =
    /[\u0000-\u001f\u007f-\u009f\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]/g;
function clean(text) {
  return String(text).replace(
      kInvisible,
      c => '<U+' +
          c.charCodeAt(0).toString(16).toUpperCase().padStart(4, '0') + '>');
}

// el('td', {class: 'num'}, 'text', node, ...): strings become text nodes.
function el(tag, attributes, ...children) {
  const node = document.createElement(tag);
  setAll(node, attributes, children);
  return node;
}

function svg(tag, attributes, ...children) {
  const node = document.createElementNS('http://www.w3.org/2000/svg', tag);
  setAll(node, attributes, children);
  return node;
}

// What the pane shows now; null and undefined are left out.
function refill(node, ...children) {
  node.replaceChildren();
  setAll(node, null, children);
}

function setAll(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes || {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith('on')) {
      node.addEventListener(name.slice(2), value);
    } else {
      node.setAttribute(name, value === true ? '' : value);
    }
  }
  for (const child of children.flat(Infinity)) {
    if (child === null || child === undefined) continue;
    node.append(child instanceof Node ? child : clean(child));
  }
}

// Text of the data: isolated, so that its direction stays its own.
function data(text, attributes) {
  return el('bdi', {title: clean(text), ...attributes}, text);
}

// A sentence whose long names may go on after a comma or slash, where a line
// would end within a word otherwise.
function sentence(text) {
  return clean(text).split(/(?<=[,/])(?=[^\s,/])/).flatMap(
      (part, i) => i ? [el('wbr'), part] : [part]);
}

// Numbers ---------------------------------------------------------------------

const kMinus = '\u2212';
const kNarrowSpace = '\u202f';
const kNotMeasured = '\u2013';

function isNumber(x) {
  return typeof x === 'number' && isFinite(x);
}

// Three significant digits, never an exponent between 1e-3 and 1e6.
function digits(x, significant = 3) {
  if (!isNumber(x)) return kNotMeasured;
  const size = Math.abs(x);
  if (size !== 0 && (size < 1e-3 || size >= 1e6)) {
    return x.toExponential(2).replace('-', kMinus);
  }
  const decimals = size === 0 ?
      0 :
      Math.max(0, significant - 1 - Math.floor(Math.log10(size)));
  return x.toFixed(Math.min(decimals, 6)).replace('-', kMinus);
}

function count(n) {
  return Number(n).toLocaleString('en-US');
}

const kTimeUnits = [['ns', 1], ['\u00b5s', 1e3], ['ms', 1e6], ['s', 1e9]];

// The unit that suits values around `typical`: {name, scale}. Units other than
// times are shown as they are.
function unitFor(unit, typical) {
  const known = {ns: 1, us: 1e3, ms: 1e6, s: 1e9}[unit];
  if (!known || !isNumber(typical)) return {name: unit, scale: 1};
  const ns = Math.abs(typical) * known;
  let chosen = kTimeUnits[0];
  for (const each of kTimeUnits) {
    if (ns >= each[1]) chosen = each;
  }
  return {name: chosen[0], scale: known / chosen[1]};
}

function amount(value, unit) {
  if (!isNumber(value)) return kNotMeasured;
  const {name, scale} = unitFor(unit, value);
  return digits(value * scale) + (name ? kNarrowSpace + clean(name) : '');
}

function signedPercent(fraction, decimals = 1) {
  if (!isNumber(fraction)) return kNotMeasured;
  const text = Math.abs(fraction * 100).toFixed(decimals);
  if (Number(text) === 0) return '0%';
  return (fraction < 0 ? kMinus : '+') + text + '%';
}

// As tracker/series/series.h has it.
const kNoBound = 'faster than the roofline: the config does less work than ' +
    'the operator counts (Winograd), or its data lay nearer than was assumed';

function rooflineShare(fraction) {
  if (fraction <= 1.02) return percent(fraction);
  return el('span', {title: kNoBound}, 'no bound');
}

function percent(fraction, decimals = 0) {
  if (!isNumber(fraction)) return kNotMeasured;
  return (fraction * 100).toFixed(decimals) + '%';
}

function times(ratio) {
  return isNumber(ratio) ? digits(ratio) + '\u00d7' : kNotMeasured;
}

function bytes(n) {
  if (!isNumber(n)) return kNotMeasured;
  const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB'];
  let i = 0;
  while (n >= 1024 && i + 1 < units.length) {
    n /= 1024;
    ++i;
  }
  return digits(n) + kNarrowSpace + units[i];
}

function rate(n, unit) {
  if (!isNumber(n)) return kNotMeasured;
  const prefixes = ['', 'k', 'M', 'G', 'T', 'P'];
  let i = 0;
  while (n >= 1000 && i + 1 < prefixes.length) {
    n /= 1000;
    ++i;
  }
  return digits(n) + kNarrowSpace + prefixes[i] + unit;
}

// 0 is "not known"; the date is in UTC so that all readers see the same.
function date(unixSeconds) {
  if (!unixSeconds) return kNotMeasured;
  return new Date(unixSeconds * 1000).toISOString().slice(0, 10);
}

function dateTime(unixSeconds) {
  if (!unixSeconds) return kNotMeasured;
  return new Date(unixSeconds * 1000).toISOString().slice(0, 16)
             .replace('T', ' ') + ' UTC';
}

// Verdicts: names, order and meaning come with the data, worst first; a
// series names its verdict by the place in that list. ---------------------------

const kVerdictIcons = {
  dot: 'M6 5.2a.8.8 0 1 0 0 1.6.8.8 0 0 0 0-1.6',
  bars: 'M2 4.5h8M2 7.5h8',
  down: 'M6 1.5v9M2.5 7 6 10.5 9.5 7',
  up: 'M6 10.5v-9M2.5 5 6 1.5 9.5 5',
  caret: 'M2 8.5l4-5 4 5',
  question: 'M3.5 4a2.5 2.5 0 1 1 3.6 2.2C6.3 6.6 6 7 6 7.8M6 10v.4',
  cross: 'M2.5 2.5l7 7M9.5 2.5l-7 7',
  gone: 'M6 1.5a4.5 4.5 0 1 0 0 9 4.5 4.5 0 0 0 0-9M2.8 9.2l6.4-6.4',
};
const kVerdicts = report.verdicts;

function isVerdict(verdict, name) {
  return kVerdicts[verdict].name === name;
}

// What a verdict is called for metrics that are not times.
function verdictName(series) {
  if (series.m === 'time') return kVerdicts[series.v].name;
  return kVerdicts[series.v].name.replace('faster', 'better')
      .replace('slower', 'worse');
}

function verdictIcon(verdict) {
  return svg(
      'svg', {viewBox: '0 0 12 12', 'aria-hidden': 'true'},
      svg('path', {
        d: kVerdictIcons[kVerdicts[verdict].icon] || kVerdictIcons.dot,
        fill: 'none',
        stroke: 'currentColor',
        'stroke-width': 1.8,
        'stroke-linecap': 'round',
        'stroke-linejoin': 'round',
      }));
}

function verdictLabel(verdict, text) {
  return el('span', {class: 'verdict tone-' + kVerdicts[verdict].tone},
            verdictIcon(verdict),
            el('span', {}, text || kVerdicts[verdict].name));
}

// Names of things --------------------------------------------------------------

function commitOf(series, i) {
  const [id, subject, time, position, dirty, branch] =
      report.commits[series.c[i]] || ['', '', 0, null, 0, ''];
  return {id, subject, time, position, dirty, branch};
}

function shortId(commit) {
  if (!commit.id) return 'no commit';
  return commit.id.slice(0, 8) + (commit.dirty ? '+' : '');
}

// What series are grouped by: an operator, or the family of a benchmark that
// another tool measured.
function familyOf(item) {
  return report.families[item.o];
}

// A benchmark of another tool is called by its whole name.
function titleOf(series) {
  return series.i ? series.n : familyOf(series);
}

const kHasOperators = report.series.some(series => !series.i);
const kHasBenchmarks = report.series.some(series => series.i);
const kFamilyWord = !kHasOperators ? 'Benchmark' :
    kHasBenchmarks ? 'Operator or benchmark' : 'Operator';
const kFamiliesWord = !kHasOperators ? 'benchmarks' :
    kHasBenchmarks ? 'operators and benchmarks' : 'operators';

function hardwareOf(item) {
  return (report.hardware[item.h] || {id: '?'}).id;
}

// Branches tell series apart only where there are several.
const kBranches = new Set(report.series.map(series => series.b));

function branchOf(series) {
  return kBranches.size > 1 ? series.b || 'no branch' : '';
}

// Everything about a series but its operator: "m=512,n=512/f32 · tuned".
function variantOf(series) {
  return [series.s, series.x, series.k, series.m, branchOf(series)]
      .filter(Boolean).join(' \u00b7 ');
}

function lastValue(series) {
  for (let i = series.y.length - 1; i >= 0; --i) {
    if (isNumber(series.y[i])) return series.y[i];
  }
  return null;
}

// A worse value is a longer time, or a smaller throughput.
function changeOf(series) {
  return isNumber(series.r[0]) ? series.r[0] - 1 : null;
}

// "9 of 20 points" of a series that has too few for a verdict; else "".
function pointsWanted(series) {
  const [known, needed] = series.z;
  const open = isVerdict(series.v, "can't tell") ||
      isVerdict(series.v, 'no baseline');
  return open && known < needed ?
      `${count(known)} of ${count(needed)} points` : '';
}

function plural(n, word) {
  return `${count(n)} ${word}${n === 1 ? '' : 's'}`;
}

// What changed with a regression, the likeliest cause first; null where nothing
// is known.
function changedWith(series) {
  if (!series.ev || series.ev[2].length === 0) return null;
  return [el('h3', {}, 'Changed with it'),
          el('ul', {class: 'small changed'},
             series.ev[2].map(line => el('li', {}, data(line))))];
}

// Sections: a file in sections/ and one call of this -------------------------

const kSections = [];

// `build()` returns the section's element, or null where there is nothing to
// show; `id` is its address, `title` its name in the bar ("": not there).
function addSection({id, title, order, build}) {
  kSections.push({id, title, order, build});
  kSections.sort((a, b) => a.order - b.order);
}

// Small parts -----------------------------------------------------------------

function sectionHead(title, note) {
  return el('div', {class: 'section-head'}, el('h2', {}, title),
            note ? el('span', {class: 'muted'}, note) : null);
}

function fact(name, value, note) {
  return el('div', {}, el('dt', {}, name),
            el('dd', {}, value, note ? el('small', {}, note) : null));
}

function meter(fraction, worse) {
  return el('span', {class: 'meter', 'aria-hidden': 'true'}, el('i', {
    class: worse ? 'worse' : '',
    style: `width: ${(Math.max(0, Math.min(1, fraction)) * 100).toFixed(1)}%`,
  }));
}

// The first of many rows, and a button that shows the others (at most `most`).
function withMore(rows, shown, body, most = Infinity) {
  body.append(...rows.slice(0, shown).map(make => make()));
  const rest = Math.min(rows.length, most) - shown;
  if (rest <= 0) return null;
  return el('div', {class: 'more'}, el('button', {
    type: 'button',
    class: 'quiet',
    onclick: event => {
      body.append(...rows.slice(shown, most).map(make => make()));
      event.target.parentNode.remove();
    },
  }, `Show ${count(rest)} more`));
}

// A command with a button that copies it. Where the browser forbids that, the
// text is selected.
function commandLine(text) {
  const code = el('code', {}, el('bdi', {}, text));
  const button = el('button', {
    type: 'button',
    class: 'quiet copy',
    'aria-label': 'Copy the command ' + text.slice(0, 60),
    onclick: async () => {
      try {
        await navigator.clipboard.writeText(text);
        button.textContent = 'Copied';
      } catch (error) {
        getSelection().selectAllChildren(code);
        button.textContent = 'Selected';
      }
      setTimeout(() => { button.textContent = 'Copy'; }, 1500);
    },
  }, 'Copy');
  return el('div', {class: 'command'}, code, button);
}

// Theme ------------------------------------------------------------------------

const theme = {
  listeners: [],
  current() {
    return document.documentElement.dataset.theme;
  },
  set(name) {
    document.documentElement.dataset.theme = name;
    document.getElementById('theme').textContent =
        name === 'dark' ? 'Light' : 'Dark';
    for (const listener of this.listeners) listener();
  },
  // The colour of a CSS variable, for canvases.
  color(name) {
    return getComputedStyle(document.documentElement)
        .getPropertyValue('--' + name).trim();
  },
  start() {
    const dark = matchMedia('(prefers-color-scheme: dark)');
    let stored = null;
    try {
      stored = localStorage.getItem('optrail-theme');
    } catch (error) {
      // Storage is closed to pages from disk in some browsers: not remembered.
    }
    this.set(stored || (dark.matches ? 'dark' : 'light'));
    if (!stored) {
      dark.addEventListener(
          'change', () => this.set(dark.matches ? 'dark' : 'light'));
    }
    document.getElementById('theme').addEventListener('click', () => {
      const name = this.current() === 'dark' ? 'light' : 'dark';
      this.set(name);
      try {
        localStorage.setItem('optrail-theme', name);
      } catch (error) {
        // As above.
      }
    });
  },
};

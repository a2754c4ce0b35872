// Operators, or families of benchmarks, by commit and by hardware: a row of
// colour each, and what is known of it now.
'use strict';

// Colour is full at a change of this size, up or down.
const kFullColour = Math.log(1.2);

function heatColour(ratio) {
  const size = Math.log(ratio);
  const share = Math.min(1, Math.abs(size) / kFullColour);
  return `color-mix(in srgb, var(--${size > 0 ? 'worse' : 'better'}) ${
      (share * 100).toFixed(0)}%, var(--heat))`;
}

const heatMap = {
  strips: [],  // {node, cell, series}
  from: 0,     // the first commit that is shown

  build() {
    const {cells} = report.overview;
    const last = report.commits.length;
    if (cells.length === 0 || last === 0) return null;
    this.from = Math.min(...cells.flatMap(cell => cell.c), last - 1);
    const members = new Map();
    report.series.forEach((series, i) => {
      if (!series.j) return;
      const key = series.o + ' ' + series.h;
      if (!members.has(key)) members.set(key, []);
      members.get(key).push(i);
    });
    this.rows = cells.map(cell => ({
      cell, series: members.get(cell.o + ' ' + cell.h) || [],
    }));
    this.tuned = cells.some(cell => isNumber(cell.s));
    this.bound = cells.some(cell => isNumber(cell.f));
    this.body = el('tbody');
    this.told = el('p', {class: 'heat-told small', 'aria-hidden': 'true'});
    this.more = el('div');
    const order = el('select', {
      'aria-label': 'Order of the rows',
      onchange: () => this.fill(order.value),
    }, [['worst', 'Worst first'], ['family', `By ${kFamilyWord.toLowerCase()}`],
        ['hardware', 'By hardware']]
        .map(([value, text]) => el('option', {value}, text)));
    this.fill('worst');
    const heads = [kFamilyWord, 'Hardware'];
    return el(
        'section', {id: 'heat'},
        sectionHead('By commit and hardware',
                    'Mean time against the first commit; marks are changes of ' +
                        'single series, empty commits were not measured.'),
        el('div', {class: 'tools'}, order,
           el('span', {class: 'heat-scale', 'aria-hidden': 'true'},
              '20% faster ', el('i'), ' 20% slower'),
           el('span', {class: 'muted hint heat-hint'}, ['\u2190', '\u2192', '\u2191',
              '\u2193'].map(key => [el('kbd', {}, key), ' ']), 'move  ',
              el('kbd', {}, 'Enter'), ' open')),
        el('div', {class: 'card scroll-x'},
           el('table', {class: 'heat'},
              el('thead', {}, el('tr', {},
                 heads.map(text => el('th', {scope: 'col'}, text)),
                 el('th', {scope: 'col', class: 'commits'},
                    this.from > 0 ?
                        `The newest ${count(last - this.from)} of ${
                            count(last)} commits, oldest first` :
                        `${plural(last, 'commit')}, oldest first`),
                 el('th', {scope: 'col'}, 'Now'),
                 this.tuned ? el('th', {scope: 'col', class: 'num',
                   title: 'Geometric mean of default time / tuned time'},
                                 'Tuned') : null,
                 this.bound ? el('th', {scope: 'col', class: 'num',
                   title: 'Median share of the measured roofline, where it is ' +
                       'a bound'}, 'Roofline') : null)),
              this.body),
           this.told, this.more));
  },

  fill(order) {
    const hardware = row => report.hardware[row.cell.h].id;
    const family = row => row.cell.o;
    const orders = {
      worst: (a, b) => a.cell.w - b.cell.w || family(a) - family(b),
      family: (a, b) => family(a) - family(b) || a.cell.h - b.cell.h,
      hardware: (a, b) => a.cell.h - b.cell.h || family(a) - family(b),
    };
    const rows = [...this.rows].sort(orders[order]);
    this.strips = [];
    this.body.replaceChildren();
    this.more.replaceChildren();
    const more = withMore(rows.map(row => () => this.row(row)),
                          innerWidth < 600 ? 8 : 24, this.body);
    if (more) this.more.append(more);
    this.tell(null);
  },

  row(row) {
    const {cell} = row;
    const here = cell.v.filter(([verdict]) => verdict === cell.w);
    const n = here.length ? here[0][1] : 0;
    return el(
        'tr', {},
        el('th', {scope: 'row', class: 'clip'}, el('button', {
             type: 'button',
             class: 'link',
             onclick: () => this.open(row, null),
           }, data(familyOf(cell)))),
        el('td', {class: 'muted clip'}, data(hardwareOf(cell))),
        el('td', {class: 'commits'}, this.strip(row)),
        el('td', {}, verdictLabel(cell.w, n === cell.n ? kVerdicts[cell.w].name :
            `${count(n)} of ${count(cell.n)} ${kVerdicts[cell.w].name}`)),
        this.tuned ? el('td', {class: 'num'},
                        isNumber(cell.s) ? times(cell.s) : '') : null,
        this.bound ? el('td', {class: 'num'},
                        isNumber(cell.f) ? percent(cell.f) : '') : null);
  },

  // One element whatever the number of commits: its background is the colours.
  strip(row) {
    const {cell, series} = row;
    const n = report.commits.length - this.from;
    const place = commit => `${((commit - this.from) / n * 100).toFixed(3)}%`;
    const stops = [];
    let end = this.from;
    cell.c.forEach((commit, i) => {
      if (commit > end) stops.push(`transparent ${place(end)} ${place(commit)}`);
      end = commit + 1;
      stops.push(`${heatColour(cell.y[i])} ${place(commit)} ${place(end)}`);
    });
    if (end < report.commits.length) stops.push(`transparent ${place(end)} 100%`);
    const marks = new Map();
    for (const index of series) {
      const each = report.series[index];
      const mark = (point, tone) => {
        const commit = each.c[point];
        if (commit >= this.from) marks.set(commit + tone, [commit, tone]);
      };
      for (const change of each.cp) {
        mark(change[0], change[5] ? 'unsure' : change[6] ? 'worse' : 'better');
      }
      for (const point of Object.keys(each.q)) mark(point, 'broken');
    }
    const strip = {row, at: report.commits.length - 1};
    strip.cursor = el('i', {class: 'cursor', hidden: true});
    strip.node = el(
        'div', {
          class: 'strip',
          role: 'slider',
          tabindex: this.strips.length ? '-1' : '0',
          'aria-label': `${clean(familyOf(cell))} on ${clean(hardwareOf(cell))}`,
          'aria-valuemin': this.from,
          'aria-valuemax': report.commits.length - 1,
          style: stops.length ?
              `background-image: linear-gradient(90deg, ${stops.join(', ')})` : '',
          onfocus: () => this.moveTo(strip, strip.at),
          onblur: () => this.tell(null),
          onmousemove: event => this.moveTo(strip, this.commitAt(strip, event)),
          onmouseleave: () => this.tell(null),
          onclick: event => this.open(row, this.commitAt(strip, event)),
          onkeydown: event => this.key(event, strip),
        },
        [...marks.values()].map(([commit, tone]) => el('b', {
          class: 'change-mark tone-' + tone,
          style: `left: ${place(commit + 0.5)}`,
        })),
        strip.cursor);
    this.say(strip);
    this.strips.push(strip);
    return strip.node;
  },

  commitAt({node}, event) {
    const box = node.getBoundingClientRect();
    const n = report.commits.length - this.from;
    const share = (event.clientX - box.left) / box.width;
    return this.from + Math.max(0, Math.min(n - 1, Math.floor(share * n)));
  },

  // The series of a row that changed at a commit.
  changedAt(row, commit) {
    return row.series.filter(i => report.series[i].cp.some(
        change => report.series[i].c[change[0]] === commit));
  },

  text({row, at}) {
    const {cell} = row;
    const [id, subject, time, , dirty] = report.commits[at];
    const i = cell.c.indexOf(at);
    const changed = this.changedAt(row, at).length;
    return `${shortId({id, dirty})} ${date(time)} ${clean(subject)}: ` +
        `${clean(familyOf(cell))} on ${clean(hardwareOf(cell))} ` +
        (i < 0 ? 'was not measured' :
                 signedPercent(cell.y[i] - 1) + ' since the first commit') +
        (changed ? `; ${plural(changed, 'benchmark')} changed here` : '');
  },

  say(strip) {
    strip.node.setAttribute('aria-valuenow', strip.at);
    strip.node.setAttribute('aria-valuetext', this.text(strip));
  },

  moveTo(strip, at) {
    const n = report.commits.length - this.from;
    strip.at = Math.max(this.from, Math.min(report.commits.length - 1, at));
    strip.cursor.style.left = `${(strip.at - this.from) / n * 100}%`;
    strip.cursor.style.width = `max(3px, ${100 / n}%)`;
    this.say(strip);
    this.tell(strip);
  },

  tell(strip) {
    for (const each of this.strips) each.cursor.hidden = each !== strip;
    this.told.textContent = strip ? this.text(strip) :
                                    'Point at a commit, or move to one.';
  },

  key(event, strip) {
    const at = this.strips.indexOf(strip);
    const steps = {ArrowLeft: -1, ArrowRight: 1, PageUp: -10, PageDown: 10,
                   Home: -Infinity, End: Infinity};
    if (event.key in steps) {
      this.moveTo(strip, strip.at + steps[event.key]);
    } else if (event.key === 'ArrowUp' || event.key === 'ArrowDown') {
      const next = this.strips[at + (event.key === 'ArrowUp' ? -1 : 1)];
      if (next) {
        next.at = strip.at;
        strip.node.tabIndex = -1;
        next.node.tabIndex = 0;
        next.node.focus();
      }
    } else if (event.key === 'Enter' || event.key === ' ') {
      this.open(strip.row, strip.at);
    } else {
      return;
    }
    event.preventDefault();
  },

  // The series that changed most at the commit, or all of the row.
  open(row, commit) {
    const target = {section: 'series', family: familyOf(row.cell),
                    hardware: hardwareOf(row.cell)};
    const changed = commit === null ? [] : this.changedAt(row, commit);
    if (changed.length) {
      const size = i => Math.abs(changeOf(report.series[i]) || 0);
      target.index = changed.sort((a, b) => size(b) - size(a))[0];
    }
    navigate(target);
  },
};

addSection({id: 'heat', title: 'Commits', order: 30,
            build: () => heatMap.build()});

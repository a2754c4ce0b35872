// The list of series: filtered, and only the rows in view are in the page.
'use strict';

const kRowHeight = 48;

const seriesList = {
  filter: {text: '', verdict: '', op: '', hardware: '', metric: '',
           sort: 'attention'},
  shown: [],       // indices into report.series
  cursor: 0,       // index into `shown`
  open: -1,        // index into report.series; -1: none
  printing: false,
  haystacks: null, // lower-case text of every series, made once

  build() {
    const families = [...new Set(mainSeries().map(familyOf))].sort();
    const select = (name, label, options) => {
      const node = el('select', {
        'aria-label': label,
        onchange: () => {
          this.filter[name] = node.value;
          this.apply();
          remember();
        },
      }, options.map(([value, text]) => el('option', {value}, text)));
      this.controls[name] = node;
      return node;
    };
    this.controls = {};
    this.search = el('input', {
      type: 'search',
      id: 'filter',
      placeholder: 'Filter by words',
      'aria-label': 'Filter the series',
      autocomplete: 'off',
      spellcheck: 'false',
      oninput: () => {
        this.filter.text = this.search.value;
        this.apply();
        remember();
      },
      onkeydown: event => {
        if (event.key === 'ArrowDown' || event.key === 'Enter') {
          event.preventDefault();
          this.list.focus();
        }
      },
    });
    this.count = el('span', {class: 'count', role: 'status'});
    this.rows = el('div', {class: 'rows'});
    this.list = el('div', {
      class: 'list card',
      id: 'series-list',
      role: 'listbox',
      tabindex: '0',
      'aria-label': 'Series',
      onscroll: () => this.draw(),
      onkeydown: event => this.key(event),
      onclick: event => {
        const row = event.target.closest('.row');
        if (row) this.openAt(Number(row.dataset.at));
      },
    }, this.rows);
    this.pane = el('div', {class: 'detail card', hidden: true});
    this.split = el(
        'div', {class: 'split'},
        el('div', {},
           el('div', {class: 'list-head', 'aria-hidden': 'true'},
              ['Verdict', 'Series', 'Hardware'].map(t => el('span', {}, t)),
              el('span', {class: 'num'}, 'Newest'),
              el('span', {class: 'num'}, 'Change'),
              el('span', {class: 'trend-cell'}, 'Trend')),
           this.list),
        this.pane);
    new ResizeObserver(() => this.draw()).observe(this.list);
    return el(
        'section', {id: 'series'},
        el('div', {class: 'section-head'}, el('h2', {}, 'Series'),
           el('span', {class: 'muted hint'}, el('kbd', {}, '/'), ' filter  ',
              el('kbd', {}, '\u2191'), ' ', el('kbd', {}, '\u2193'),
              ' move  ', el('kbd', {}, 'Enter'), ' open  ',
              el('kbd', {}, 'Esc'), ' close')),
        el('div', {class: 'tools'}, this.search,
           select('verdict', 'Verdict',
                  [['', 'All verdicts'],
                   ...kVerdicts.map((verdict, v) => [String(v), verdict])
                       .filter(([, verdict]) => verdict.series)
                       .map(([v, verdict]) => [v, verdict.name])]),
           select('op', kFamilyWord,
                  [['', `All ${kFamiliesWord}`], ...families.map(o => [o, o])]),
           select('hardware', 'Hardware',
                  [['', 'All hardware'],
                   ...report.hardware.map(h => [h.id, h.id])]),
           select('metric', 'Metrics',
                  [['', 'Judged metrics'], ['all', 'All metrics']]),
           select('sort', 'Order',
                  [['attention', 'Worst first'], ['name', 'By name'],
                   ['change', 'Largest change'], ['time', 'Slowest']]),
           this.count),
        this.split);
  },

  haystack(i) {
    if (!this.haystacks) {
      this.haystacks = report.series.map(series => {
        const newest = series.c.length ? commitOf(series, series.c.length - 1) :
                                         {id: ''};
        return [series.n, familyOf(series), series.s, series.x, series.k,
                hardwareOf(series), series.b, series.m, verdictName(series),
                newest.id]
            .join(' ').toLowerCase();
      });
    }
    return this.haystacks[i];
  },

  apply() {
    const words = this.filter.text.toLowerCase().split(/\s+/).filter(Boolean);
    const {verdict, op, hardware, metric, sort} = this.filter;
    const judged = metric === 'all' ? report.series.length :
                                      mainSeries().length;
    this.shown = [];
    report.series.forEach((series, i) => {
      if (metric !== 'all' && !series.j) return;
      if (verdict !== '' && series.v !== Number(verdict)) return;
      if (op !== '' && familyOf(series) !== op) return;
      if (hardware !== '' && hardwareOf(series) !== hardware) return;
      if (words.every(word => this.haystack(i).includes(word))) {
        this.shown.push(i);
      }
    });
    const size = i => Math.abs(Math.log(report.series[i].r[0] || 1));
    const rank = i => report.series[i].v;
    const orders = {
      attention: (a, b) => rank(a) - rank(b) || size(b) - size(a) || a - b,
      name: (a, b) => report.series[a].n < report.series[b].n ? -1 :
          report.series[a].n > report.series[b].n ? 1 : a - b,
      change: (a, b) => size(b) - size(a) || a - b,
      time: (a, b) => (lastValue(report.series[b]) || 0) -
              (lastValue(report.series[a]) || 0) || a - b,
    };
    this.shown.sort(orders[sort] || orders.attention);
    this.cursor = Math.max(0, this.shown.indexOf(this.open));
    for (const [name, node] of Object.entries(this.controls)) {
      node.value = this.filter[name];
    }
    if (this.search.value !== this.filter.text) {
      this.search.value = this.filter.text;
    }
    this.count.textContent = this.shown.length === judged ?
        `${count(judged)} series` :
        `${count(this.shown.length)} of ${count(judged)} series`;
    this.list.scrollTop = 0;
    this.draw();
  },

  // Puts the rows in view, and a few around them, into the page.
  draw() {
    const n = this.shown.length;
    const limit = this.printing ? 300 : Infinity;
    this.rows.style.height = n * kRowHeight + 'px';
    this.list.style.height = n ? n * kRowHeight + 2 + 'px' : 'auto';
    if (n === 0) {
      this.rows.style.height = 'auto';
      this.rows.replaceChildren(
          el('p', {class: 'empty'}, 'No series matches this filter.'));
      this.list.removeAttribute('aria-activedescendant');
      return;
    }
    const height = this.list.clientHeight || 720;
    let first = Math.floor(this.list.scrollTop / kRowHeight) - 6;
    let last = Math.ceil((this.list.scrollTop + height) / kRowHeight) + 6;
    if (this.printing) {
      first = 0;
      last = limit;
    }
    first = Math.max(0, first);
    last = Math.min(n, last);
    const have = new Map();
    for (const row of this.rows.children) {
      if (row.dataset.key) have.set(row.dataset.key, row);
    }
    const rows = [];
    for (let at = first; at < last; ++at) {
      const index = this.shown[at];
      // The same series at the same place keeps its row: scrolling only makes
      // the rows that come into view.
      const key = at + ':' + index;
      const row = have.get(key) || this.row(at, index, key);
      row.classList.toggle('cursor', at === this.cursor);
      row.setAttribute('aria-selected', String(index === this.open));
      rows.push(row);
    }
    this.rows.replaceChildren(...rows);
    this.list.setAttribute('aria-activedescendant', 'row-' + this.cursor);
  },

  row(at, index, key) {
    const series = report.series[index];
    const change = changeOf(series);
    const judged = kVerdicts[series.v].change ||
        isVerdict(series.v, 'unchanged');
    return el(
        'div', {
          class: 'row',
          role: 'option',
          id: 'row-' + at,
          'data-at': at,
          'data-key': key,
          'aria-setsize': this.shown.length,
          'aria-posinset': at + 1,
          style: `top: ${at * kRowHeight}px`,
        },
        verdictLabel(series.v, verdictName(series)),
        el('div', {class: 'name clip'},
           el('div', {}, data(titleOf(series)),
              el('span', {class: 'narrow-inline muted'},
                 series.x ? ' ' + series.x : '')),
           el('small', {class: 'wide'}, data(variantOf(series))),
           el('small', {class: 'narrow'},
              data([hardwareOf(series), series.s, series.m, branchOf(series)]
                       .filter(Boolean).join(' \u00b7 ')))),
        el('span', {class: 'wide clip muted'}, data(hardwareOf(series))),
        el('span', {class: 'num'}, amount(lastValue(series), series.u)),
        el('span', {
          class: 'wide num' +
              (kVerdicts[series.v].change ?
                   ' tone-' + kVerdicts[series.v].tone : ' muted'),
        }, pointsWanted(series) ||
            (judged && change !== null ? signedPercent(change) : kNotMeasured)),
        el('span', {class: 'wide trend-cell'}, seriesSparkline(series)));
  },

  moveTo(at) {
    if (this.shown.length === 0) return;
    this.cursor = Math.max(0, Math.min(this.shown.length - 1, at));
    const top = this.cursor * kRowHeight;
    const view = this.list.clientHeight;
    if (top < this.list.scrollTop) this.list.scrollTop = top;
    if (top + kRowHeight > this.list.scrollTop + view) {
      this.list.scrollTop = top + kRowHeight - view;
    }
    this.draw();
    // With a series open, moving shows the next one: the list is a menu.
    if (this.open >= 0) this.openAt(this.cursor);
  },

  key(event) {
    const page = Math.max(1, Math.floor(this.list.clientHeight / kRowHeight));
    const moves = {
      ArrowDown: this.cursor + 1,
      ArrowUp: this.cursor - 1,
      PageDown: this.cursor + page,
      PageUp: this.cursor - page,
      Home: 0,
      End: this.shown.length - 1,
    };
    if (event.key in moves) {
      event.preventDefault();
      this.moveTo(moves[event.key]);
    } else if (event.key === 'Enter' || event.key === ' ') {
      event.preventDefault();
      this.openAt(this.cursor);
    }
  },

  openAt(at) {
    if (at < 0 || at >= this.shown.length) return;
    this.cursor = at;
    this.openSeries(this.shown[at]);
  },

  openSeries(index) {
    if (this.open === index) return;
    this.open = index;
    this.split.classList.add('open');
    this.pane.hidden = false;
    drawSeries(this.pane, report.series[index]);
    this.draw();
    remember();
  },

  close() {
    if (this.open < 0) return false;
    this.open = -1;
    this.split.classList.remove('open');
    this.pane.hidden = true;
    disposeCharts(this.pane);
    this.pane.replaceChildren();
    this.draw();
    this.list.focus({preventScroll: true});
    remember();
    return true;
  },
};

addSection({id: 'series', title: 'Series', order: 40,
            build: () => report.series.length ? seriesList.build() : null});

// ECharts, tamed: charts are made when they come into view, follow the theme,
// and show text from the data only through DOM nodes.
'use strict';

const charts = {
  live: new Map(),  // element -> {chart, options}
  waiting: new Map(),  // element -> {options, onclick}
  observer: null,

  // `options()` returns ECharts options; it is called again when colours change.
  // `onclick`, if any, takes ECharts' event.
  add(element, options, onclick) {
    if (!this.observer) {
      this.observer = new IntersectionObserver(entries => {
        for (const entry of entries) {
          if (entry.isIntersecting) this.create(entry.target);
        }
      }, {rootMargin: '300px'});
      new ResizeObserver(() => this.resize()).observe(document.body);
      theme.listeners.push(() => this.redraw());
    }
    this.waiting.set(element, {options, onclick});
    this.observer.observe(element);
  },

  // The library is large: it runs when the first chart comes into view.
  load() {
    if (window.echarts) return;
    const text = document.getElementById('chart-library').textContent;
    const script = document.createElement('script');
    script.textContent = text;
    document.head.append(script);
  },

  create(element) {
    if (!this.waiting.has(element) || !element.isConnected) return;
    const {options, onclick} = this.waiting.get(element);
    this.waiting.delete(element);
    this.observer.unobserve(element);
    this.load();
    const chart = echarts.init(element, null, {renderer: 'canvas'});
    chart.setOption({...chartBase(), ...options()});
    if (onclick) chart.on('click', onclick);
    this.live.set(element, {chart, options});
  },

  createAll() {
    for (const element of [...this.waiting.keys()]) this.create(element);
  },

  redraw() {
    for (const element of this.live.keys()) this.update(element);
  },

  // Draws a chart again, if it is drawn: its options changed.
  update(element) {
    if (!this.live.has(element)) return;
    const {chart, options} = this.live.get(element);
    chart.setOption({...chartBase(), ...options()}, {notMerge: true});
  },

  resize() {
    for (const {chart} of this.live.values()) chart.resize();
  },

  dispose(root) {
    for (const [element, {chart}] of this.live) {
      if (!root.contains(element)) continue;
      chart.dispose();
      this.live.delete(element);
    }
    for (const element of this.waiting.keys()) {
      if (root.contains(element)) this.waiting.delete(element);
    }
  },
};

function disposeCharts(root) {
  charts.dispose(root);
}

const kFont = 'system-ui, -apple-system, "Segoe UI", Roboto, ' +
    '"Liberation Sans", Arial, sans-serif';

function chartBase() {
  return {
    animation: false,
    textStyle: {fontFamily: kFont, color: theme.color('muted')},
    aria: {enabled: false},
  };
}

function axis(extra) {
  const line = theme.color('line');
  const muted = theme.color('muted');
  return {
    axisLine: {lineStyle: {color: theme.color('strong-line')}},
    axisTick: {show: false},
    axisLabel: {color: muted, fontSize: 11},
    nameTextStyle: {color: muted, fontSize: 11},
    splitLine: {lineStyle: {color: line}},
    ...extra,
  };
}

// `content(params)` returns nodes and strings, never markup.
function tooltip(trigger, content) {
  return {
    trigger,
    confine: true,
    transitionDuration: 0,
    backgroundColor: theme.color('surface'),
    borderColor: theme.color('strong-line'),
    borderWidth: 1,
    padding: [8, 10],
    extraCssText: 'box-shadow: 0 4px 16px rgba(0, 0, 0, 0.12)',
    axisPointer: {
      type: 'line',
      lineStyle: {color: theme.color('strong-line'), type: 'solid'},
    },
    formatter: params => el('div', {class: 'tip'}, content(params)),
  };
}

// A legend of our own: its samples are those of the chart, it wraps and prints.
function legend(items) {
  const sample = kind => {
    const node = svg('svg', {width: 22, height: 10, 'aria-hidden': 'true'});
    const add = (tag, attributes) => node.append(svg(tag, attributes));
    const color = 'var(--series)';
    if (kind === 'line') {
      add('path', {d: 'M1 5h20', stroke: color, 'stroke-width': 2});
    } else if (kind === 'level') {
      add('path', {d: 'M1 5h20', stroke: 'var(--text)', 'stroke-width': 1.2,
                   'stroke-dasharray': '5 3'});
    } else if (kind === 'band') {
      add('rect', {x: 1, y: 1, width: 20, height: 8, style: 'fill: var(--band)'});
    } else if (kind === 'dot') {
      add('circle', {cx: 11, cy: 5, r: 2.5, style: 'fill: var(--dot)'});
    } else if (kind === 'open' || kind === 'full' || kind === 'ring') {
      add('circle', {cx: 11, cy: 5, r: 3.5, 'stroke-width': 2,
                     stroke: kind === 'ring' ? 'var(--worse)' : color,
                     fill: kind === 'full' ? color : 'none'});
    } else if (kind === 'config') {
      add('path', {d: 'M11 1l4 4-4 4-4-4z', style: 'fill: var(--unsure)'});
    } else if (kind === 'failed') {
      add('path', {d: 'M7 1l8 8M15 1l-8 8', stroke: 'var(--broken)',
                   'stroke-width': 2});
    } else if (kind === 'censored') {
      add('path', {d: 'M11 2l4 6h-8z', fill: 'none',
                   stroke: 'var(--muted)'});
    } else if (kind === 'default') {
      add('path', {d: 'M1 5h20', stroke: 'var(--unsure)', 'stroke-width': 1.5,
                   'stroke-dasharray': '2 3'});
    }
    return node;
  };
  return el('div', {class: 'legend'},
            items.map(([kind, text]) => el('span', {}, sample(kind), text)));
}

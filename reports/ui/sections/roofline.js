// The roofline: FLOP per byte against FLOP/s under the measured ceilings. An
// arrow joins default and tuned; a point leads to its diagnosis.
'use strict';

const roofline = {
  chart: null,  // the one that is shown
  at: 0,        // the point that is marked, by place in `order`

  build() {
    const {charts: all, missing} = report.roofline;
    if (all.length + missing.length === 0) return null;
    const section = el(
        'section', {id: 'roofline'},
        sectionHead('Roofline', 'Newest time of each benchmark under the ' +
                                'ceilings that were measured there.'));
    if (all.length) section.append(this.tools(all), this.card(all));
    section.append(...this.missingList(missing));
    return section;
  },

  tools(all) {
    const select = el('select', {
      'aria-label': 'Hardware and threads of the roofline',
      onchange: () => this.show(all[select.value]),
    }, all.map((chart, i) => el('option', {value: i}, this.title(chart))));
    return el('div', {class: 'tools'}, select,
              el('span', {class: 'muted hint heat-hint'},
                 ['\u2190', '\u2192'].map(key => [el('kbd', {}, key), ' ']),
                 'move  ', el('kbd', {}, 'Enter'), ' open'));
  },

  title(chart) {
    return `${clean(hardwareOf(chart))}, ${plural(chart.threads, 'thread')}`;
  },

  card(all) {
    this.canvas = el('div', {
      class: 'chart',
      role: 'slider',
      tabindex: '0',
      'aria-valuemin': 1,
      onkeydown: event => this.key(event),
    });
    this.told = el('p', {class: 'heat-told small', 'aria-hidden': 'true'});
    this.ceilings = el('dl', {class: 'facts'});
    const card = el('div', {class: 'card'}, this.canvas,
                    legend([['open', 'default'], ['full', 'tuned'],
                            ['ring', 'has a diagnosis'], ['line', 'ceiling']]),
                    this.told, this.ceilings);
    this.show(all[0]);
    charts.add(this.canvas, () => this.options(), event => {
      if (event.data && event.data.place >= 0) {
        this.moveTo(event.data.place);
        this.open();
      }
    });
    return card;
  },

  show(chart) {
    this.chart = chart;
    this.order = [...chart.points].sort((a, b) => a[2] - b[2]);
    this.canvas.setAttribute('aria-label', 'Roofline of ' + this.title(chart));
    this.canvas.setAttribute('aria-valuemax', this.order.length);
    refill(this.ceilings,
           fact('Arithmetic', rate(chart.peak, 'FLOP/s'), clean(chart.of)),
           chart.levels.map(([name, value]) => fact(name, rate(value, 'B/s'))),
           chart.more ? fact('Not drawn', plural(chart.more, 'benchmark'),
                             'those that take less time') : null);
    this.moveTo(0);
  },

  // What the picture says of a point.
  text([byDefault, tuned, intensity, defaultRate, tunedRate, limit, diagnosis]) {
    const series = report.series[tuned >= 0 ? tuned : byDefault];
    const rates = [[defaultRate, 'default'], [tunedRate, 'tuned']]
        .filter(([value]) => isNumber(value))
        .map(([value, name]) => `${rate(value, 'FLOP/s')} ${name}`);
    const share = isNumber(series.f) ? ', ' + (series.f <= 1.02 ?
        `${percent(series.f)} of the roofline` : kNoBound) : '';
    return `${clean(familyOf(series))} ${clean(series.s)}: ${rates.join(', ')}; ` +
        `${digits(intensity)} FLOP per byte` +
        (limit ? `, bound by ${clean(limit)}` : '') + share + '. ' +
        (diagnosis >= 0 ? clean(report.diagnoses[diagnosis].verdict) :
                          'No diagnosis is recorded; Enter opens the series.');
  },

  moveTo(place) {
    this.at = Math.max(0, Math.min(this.order.length - 1, place));
    const text = this.text(this.order[this.at]);
    this.told.textContent = text;
    this.canvas.setAttribute('aria-valuenow', this.at + 1);
    this.canvas.setAttribute('aria-valuetext', text);
    charts.update(this.canvas);
  },

  open() {
    const [byDefault, tuned, , , , , diagnosis] = this.order[this.at];
    if (diagnosis >= 0) {
      openDiagnosis(diagnosis);
    } else {
      navigate({section: 'series', index: tuned >= 0 ? tuned : byDefault});
    }
  },

  key(event) {
    const steps = {ArrowLeft: -1, ArrowRight: 1, PageUp: -10, PageDown: 10,
                   Home: -Infinity, End: Infinity};
    if (event.key in steps) {
      this.moveTo(this.at + steps[event.key]);
    } else if (event.key === 'Enter' || event.key === ' ') {
      this.open();
    } else {
      return;
    }
    event.preventDefault();
  },

  options() {
    const {peak, levels} = this.chart;
    const rates = this.order.flatMap(([, , , a, b]) => [a, b]).filter(isNumber);
    const intensities = this.order.map(point => point[2]);
    const ridges = levels.map(([, bandwidth]) => peak / bandwidth);
    const decade = (x, up) => Math.pow(10, up ? Math.ceil(Math.log10(x)) :
                                                Math.floor(Math.log10(x)));
    const left = decade(Math.min(...intensities, ...ridges) / 2, false);
    const right = decade(Math.max(...intensities, ...ridges) * 2, true);
    const bottom = decade(Math.min(
        ...rates, peak, ...levels.map(([, bandwidth]) => bandwidth * left)) / 1.5,
                          false);
    const ceiling = (data, name, position) => ({
      type: 'line', symbol: 'none', silent: true,
      lineStyle: {color: theme.color('series'), width: 1.5},
      data: data.map((value, i) => ({
        value, symbol: 'circle', symbolSize: .01,
        label: {show: name !== '' && i === 0, position, formatter: name,
                distance: 3, color: theme.color('muted'), fontSize: 11},
      })),
    });
    // A diagonal begins where it enters the picture.
    const diagonals = levels.map(([name, bandwidth], i) => {
      const from = Math.max(left, bottom / bandwidth);
      return ceiling([[from, from * bandwidth], [ridges[i], peak]], clean(name),
                     [6, 2]);
    });
    const top = ceiling([[right, peak], [Math.min(...ridges), peak]],
                        'arithmetic', 'left');
    top.data[0].label.position = [-58, -14];
    const points = [];
    const arrows = [];
    this.order.forEach((point, place) => {
      const [, , x, byDefault, tuned, , diagnosis] = point;
      for (const [y, symbol] of [[byDefault, 'emptyCircle'], [tuned, 'circle']]) {
        if (!isNumber(y)) continue;
        points.push({value: [x, y], place, symbol,
                     symbolSize: diagnosis >= 0 ? 12 : 8,
                     itemStyle: {color: theme.color(
                         diagnosis >= 0 ? 'worse' : 'series')}});
      }
      if (isNumber(byDefault) && isNumber(tuned)) {
        arrows.push([{coord: [x, byDefault]}, {coord: [x, tuned]}]);
      }
    });
    const [, , x, byDefault, tuned] = this.order[this.at];
    const log = (name, min, max) => axis({
      type: 'log', min, max, name,
      axisLabel: {color: theme.color('muted'), fontSize: 11,
                  formatter: v => rate(v, '')},
    });
    return {
      grid: {left: 8, right: 24, top: 30, bottom: 28, containLabel: true},
      tooltip: tooltip('item', params => params.data.place >= 0 ?
          [this.text(this.order[params.data.place])] : []),
      xAxis: {...log('FLOP per byte', left, right), nameLocation: 'middle',
              nameGap: 24, splitLine: {show: false}},
      yAxis: {...log('FLOP/s', bottom, decade(peak * 1.5, true)),
              axisLine: {show: false},
              nameTextStyle: {align: 'left', color: theme.color('muted'),
                              fontSize: 11}},
      series: [
        ...diagonals, top,
        {type: 'scatter', data: [byDefault, tuned].filter(isNumber).map(
            y => [x, y]), symbol: 'emptyCircle', symbolSize: 20, silent: true,
         itemStyle: {color: theme.color('accent')}},
        {type: 'scatter', data: points,
         markLine: {silent: true, symbol: ['none', 'arrow'], symbolSize: 6,
                    label: {show: false}, data: arrows,
                    lineStyle: {color: theme.color('muted'), type: 'solid',
                                width: 1}}},
      ],
    };
  },

  missingList(missing) {
    if (missing.length === 0) return [];
    return [
      el('p', {class: 'muted small'}, 'Not in the picture:'),
      el('ul', {class: 'fusion', 'data-missing': missing.length},
         missing.map(([why, n, example]) => el('li', {}, data(why), ': ',
             plural(n, 'series').replace(/seriess$/, 'series'),
             n > 1 ? ', such as ' : ', ', data(example)))),
    ];
  },
};

addSection({id: 'roofline', title: 'Roofline', order: 55,
            build: () => roofline.build()});

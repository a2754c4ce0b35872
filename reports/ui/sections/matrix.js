// Benchmarks by hardware: how each stands where it is measured, for those with
// news somewhere. What is slower on one hardware alone stands out.
'use strict';

function matrixCell(index) {
  if (index === null) {
    return el('td', {class: 'muted'}, 'not measured');
  }
  const series = report.series[index];
  const change = changeOf(series);
  return el(
      'td', {},
      el('button', {
           type: 'button',
           class: 'link',
           title: clean(series.d),
           onclick: () => navigate({section: 'series', index}),
         }, verdictLabel(series.v, verdictName(series) +
             (isNumber(change) && kVerdicts[series.v].change ?
                  ' ' + signedPercent(change) : ''))));
}

function matrixSection() {
  const {h: hardware, rows, all, quiet} = report.overview.matrix;
  if (hardware.length === 0) return null;
  const row = places => {
    const series = report.series[places.find(place => place !== null)];
    return el(
        'tr', {},
        el('th', {scope: 'row', class: 'clip'}, data(titleOf(series)), ' ',
           el('span', {class: 'muted'}, data(variantOf(series)))),
        places.map(matrixCell));
  };
  const body = el('tbody');
  const more = withMore(rows.map(places => () => row(places)), 10, body);
  const left = all - rows.length;
  return el(
      'section', {id: 'matrix'},
      sectionHead(
          'By hardware',
          all === 0 ?
              `${plural(quiet, 'benchmark')} on several hardware: no news.` :
              `${plural(all, 'benchmark')} with news on some hardware, ` +
                  `${count(quiet)} without.` +
                  (left > 0 ? ` The worst ${count(rows.length)} are shown.` :
                              '')),
      all === 0 ? null : el('div', {class: 'card scroll-x'},
         el('table', {class: 'plain'},
            el('thead', {}, el('tr', {},
               el('th', {scope: 'col'}, 'Benchmark'),
               hardware.map(h => el('th', {scope: 'col'},
                                    data(hardwareOf({h})))))),
            body),
         more));
}

addSection({id: 'matrix', title: 'Hardware', order: 35, build: matrixSection});

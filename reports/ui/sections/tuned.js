// Default against tuned: the newest point of both.
'use strict';

function tunedSection() {
  const pairs = [...report.overview.pairs].sort((a, b) => b[4] - a[4]);
  if (pairs.length === 0) return null;
  const largest = Math.max(...pairs.map(pair => pair[4]), 1);
  const row = ([, tunedIndex, defaultTime, tunedTime, speedup, same]) => {
    const series = report.series[tunedIndex];
    return el(
        'tr', {},
        el('td', {}, el('button', {
             type: 'button',
             class: 'link',
             onclick: () => navigate({section: 'series', index: tunedIndex}),
           }, data(familyOf(series)), ' ',
           el('span', {class: 'muted'}, data(series.s)))),
        kBranches.size > 1 ? el('td', {}, data(branchOf(series))) : null,
        el('td', {class: 'hide-narrow'}, data(hardwareOf(series))),
        el('td', {class: 'num'}, amount(defaultTime, 'ns')),
        el('td', {class: 'num'}, amount(tunedTime, 'ns')),
        el('td', {},
           same ?
               el('span', {
                 class: 'muted',
                 title: 'Tuning kept the default: the times differ by noise.',
               }, 'same config') :
               el('span', {class: 'with-meter'},
                  el('span', {}, times(speedup)),
                  meter(speedup / largest, speedup < 0.99))),
        el('td', {class: 'hide-narrow'},
           isNumber(series.f) ?
               el('span', {class: 'with-meter'},
                  el('span', {}, rooflineShare(series.f)), meter(series.f)) :
               el('span', {class: 'muted'}, 'not known')));
  };
  const body = el('tbody');
  const more = withMore(pairs.map(pair => () => row(pair)), 10, body);
  // Each branch is a world of its own: their pairs are never averaged together.
  const means = [...kBranches].sort().map(branch => {
    const logs = pairs.filter(pair => report.series[pair[1]].b === branch)
                     .map(pair => Math.log(pair[4]));
    if (logs.length === 0) return '';
    const mean = Math.exp(logs.reduce((sum, log) => sum + log, 0) / logs.length);
    return `${times(mean)} as fast over ${count(logs.length)} pairs` +
        (kBranches.size > 1 ? ` on ${clean(branch || 'no branch')}` : '');
  }).filter(Boolean);
  return el(
      'section', {id: 'tuned'},
      sectionHead('Default vs tuned', 'Newest point of each; tuned is ' +
                  `${means.join(', ')} (geometric mean).`),
      el('div', {class: 'card scroll-x'},
         el('table', {class: 'plain'},
            el('thead', {}, el('tr', {},
               el('th', {scope: 'col'}, 'Operator and shape'),
               kBranches.size > 1 ? el('th', {scope: 'col'}, 'Branch') : null,
               el('th', {scope: 'col', class: 'hide-narrow'}, 'Hardware'),
               el('th', {scope: 'col', class: 'num'}, 'Default'),
               el('th', {scope: 'col', class: 'num'}, 'Tuned'),
               el('th', {scope: 'col'}, 'Speedup'),
               el('th', {scope: 'col', class: 'hide-narrow'},
                  'Tuned, share of roofline'))),
            body),
         more));
}

addSection({id: 'tuned', title: 'Default vs tuned', order: 50,
            build: tunedSection});

// What a run of a whole model takes: layer by layer, the slowest first, by
// default, tuned and by the best backend; what fusion gains.
'use strict';

// A series of that layer to open, a tuned one where there is one; -1: none.
function seriesOfLayer(workload, operator, shape) {
  const fits = series => series.h === workload.h && series.s === shape &&
      familyOf(series) === operator && series.m === 'time';
  const tuned = report.series.findIndex(
      series => fits(series) && series.x === 'tuned');
  return tuned >= 0 ? tuned : report.series.findIndex(fits);
}

function workloadRow(workload, layer) {
  const {operator, shape, calls, share, part, way, doc} = layer;
  const {default_ns: defaultTime, tuned_ns: tunedTime, best_ns: bestTime} =
      layer;
  const time = ns => ns > 0 ? amount(ns, 'ns') : kNotMeasured;
  const name = [data(operator), ' ', el('span', {class: 'muted'}, data(shape))];
  const index = seriesOfLayer(workload, operator, shape);
  return el(
      'tr', {},
      el('td', {}, index < 0 ? name : el('button', {
           type: 'button',
           class: 'link',
           title: clean(doc),
           onclick: () => navigate({section: 'series', index}),
         }, name)),
      el('td', {class: 'num'}, count(calls)),
      el('td', {class: 'num'}, time(defaultTime)),
      el('td', {class: 'num hide-narrow'}, time(tunedTime)),
      el('td', {class: 'num'}, time(bestTime)),
      el('td', {class: 'hide-narrow'}, data(layer.best_backend)),
      el('td', {class: 'num'},
         defaultTime > 0 && bestTime > 0 ? times(defaultTime / bestTime) :
                                           kNotMeasured),
      el('td', {}, !layer.counts ?
                          el('span', {class: 'muted'}, data(`${part}, ${way}`)) :
                          el('span', {class: 'with-meter'},
                             el('span', {}, percent(share, 1)), meter(share))));
}

// "fused 31.0 ms, separate 35.1 ms: 1.13×".
function fusionItem({part, ways}) {
  const [{way: first, best_ns: own}, ...others] = ways;
  return el('li', {}, data(part), ': ', data(first), ' ', amount(own, 'ns'),
            others.map(({way, best_ns: ns}) => [
                ', ', data(way), ' ', amount(ns, 'ns'),
                ` (${times(ns / own)})`]));
}

// "oneDNN 2.6.3 60.1 ms, 25 layers its own, ours the others".
function libraryItem({library, layers, time_ns: ns}, measured) {
  return el('li', {}, 'By ', data(library), ': ', amount(ns, 'ns'),
            `, ${count(layers)} layer${layers === 1 ? '' : 's'} its own`,
            layers < measured ? ', ours the others' : '');
}

function workloadCard(workload) {
  const {default_ns: defaultTime, tuned_ns: tunedTime, best_ns: bestTime,
         limit_ns: limit, layers_measured: measured} = workload;
  const body = el('tbody');
  const more = withMore(
      workload.layers.map(layer => () => workloadRow(workload, layer)), 12, body);
  const gain = ns => isNumber(ns) && ns > 0 ? times(defaultTime / ns) + ' as fast' :
                                              '';
  return el(
      'div', {class: 'card workload'},
      el('h3', {}, data(workload.name),
         el('small', {class: 'muted'}, ' on ', data(hardwareOf(workload)), ', ',
            `${count(workload.threads)} thread${
                workload.threads === 1 ? '' : 's'}, `,
            shortId(workload.commit), ', ',
            dateTime(workload.started_unix_ns / 1e9))),
      el('dl', {class: 'facts'},
         fact('By default', amount(defaultTime, 'ns')),
         workload.layers_tuned ?
             fact('Tuned', amount(tunedTime, 'ns'), gain(tunedTime) +
                  (workload.layers_tuned < measured ?
                       `, ${count(workload.layers_tuned)} layers tuned` : '')) :
             fact('Tuned', kNotMeasured),
         fact('By the best backends', amount(bestTime, 'ns'), gain(bestTime)),
         limit > 0 ?
             fact('Limit by the ceilings', amount(limit, 'ns'), gain(limit)) :
             null,
         fact('Measured', `${count(measured)} of ${
                              count(workload.layers_that_count)} layers`,
              workload.not_measured.length ?
                  ['not measured: ', data(workload.not_measured.join(', '))] : '')),
      workload.libraries.length + workload.parts.length ?
          el('ul', {class: 'fusion'},
             workload.libraries.map(
                 library => libraryItem(library, measured)),
             workload.parts.map(fusionItem)) : null,
      el('div', {class: 'scroll-x'},
         el('table', {class: 'plain'},
            el('thead', {}, el('tr', {},
               el('th', {scope: 'col'}, 'Layer'),
               el('th', {scope: 'col', class: 'num'}, 'Calls'),
               el('th', {scope: 'col', class: 'num'}, 'Default'),
               el('th', {scope: 'col', class: 'num hide-narrow'}, 'Tuned'),
               el('th', {scope: 'col', class: 'num'}, 'Best'),
               el('th', {scope: 'col', class: 'hide-narrow'}, 'by'),
               el('th', {scope: 'col', class: 'num'}, 'Gain'),
               el('th', {scope: 'col'}, 'Share of the best'))),
            body)),
      more);
}

function workloadsSection() {
  if (report.workloads.length === 0) return null;
  return el(
      'section', {id: 'workloads'},
      sectionHead(
          'Workloads',
          'Newest run of each model: all calls of its operators, one after ' +
              'another. Layers in muted type are another way to compute a ' +
              'part and are not in the total.'),
      report.workloads.map(workloadCard));
}

addSection({id: 'workloads', title: 'Workloads', order: 70,
            build: workloadsSection});

// One series: its figures, its chart, and the same as a table.
'use strict';

// Process medians of point i in the series' unit; they travel as hundredths of a
// percent off the point's value.
function processesOf(series, i) {
  return series.p[i].map(off => series.y[i] * (1 + off / 1e4));
}

// Where points stand on the axis: a commit that its suite measured without it
// leaves a place free, so that no line is drawn over it. `point` has -1 there.
function placesOf(series) {
  const gaps = new Set(series.a);
  const point = [];
  const place = series.y.map((_, i) => {
    if (gaps.has(i)) point.push(-1);
    point.push(i);
    return point.length - 1;
  });
  return {point, place};
}

// The place of a point's config in report.texts; -1: none. A number stands for
// all points.
function configAt(series, i) {
  return isNumber(series.g) ? series.g : series.g[i];
}

// [point, before, after] wherever the tuned config changed.
function configChanges(series) {
  const changes = [];
  let before = null;
  for (let i = 0; i < series.y.length; ++i) {
    const config = configAt(series, i);
    if (config < 0) continue;
    if (before !== null && config !== before) {
      changes.push([i, report.texts[before], report.texts[config]]);
    }
    before = config;
  }
  return changes;
}

// "unroll 2 -> 4, tile 64 -> 32": only what differs.
function configDifference(before, after) {
  const parse = text => new Map(text.split(',').map(part => {
    const at = part.indexOf('=');
    return at < 0 ? [part, ''] : [part.slice(0, at), part.slice(at + 1)];
  }));
  const old = parse(before);
  const changed = [];
  for (const [knob, value] of parse(after)) {
    if (old.get(knob) !== value) {
      changed.push(`${knob} ${old.has(knob) ? old.get(knob) : 'unset'} ` +
                   `\u2192 ${value}`);
    }
  }
  return changed.join(', ') || 'same values';
}

function changeText(change) {
  const [, relative, low, high, confidence, provisional, , state] = change;
  let text = signedPercent(relative);
  if (isNumber(low) && isNumber(high)) {
    text += ` (${signedPercent(low)} to ${signedPercent(high)})`;
  }
  if (isNumber(confidence)) {
    text += confidence > 0.999 ? ', confidence above 99.9%' :
                                 `, confidence ${percent(confidence, 1)}`;
  }
  return text + (provisional ? '' : ', confirmed') + (state ? `, ${state}` : '');
}

function pointTip(series, i) {
  const commit = commitOf(series, i);
  const lines = [
    el('div', {}, el('b', {}, shortId(commit)), ' ', date(commit.time)),
    el('div', {}, el('bdi', {}, commit.subject)),
  ];
  const failure = series.q[i];
  if (failure) {
    lines.push(el('div', {class: 'tone-broken'},
                  el('b', {}, failure[0]), ' ', el('bdi', {}, failure[1])));
  }
  if (isNumber(series.y[i])) {
    const processes = processesOf(series, i);
    lines.push(el('div', {}, el('b', {}, amount(series.y[i], series.u)),
                  processes.length ?
                      ` median of ${processes.length} processes, ${
                          amount(processes[0], series.u)} to ${
                          amount(processes[processes.length - 1], series.u)}` :
                      ''));
  }
  for (const change of series.cp) {
    if (change[0] === i) lines.push(el('div', {}, changeText(change)));
  }
  for (const [at, what] of series.ep) {
    if (at === i) lines.push(el('div', {}, 'New epoch: ', el('bdi', {}, what)));
  }
  for (const [at, before, after] of configChanges(series)) {
    if (at === i) {
      lines.push(el('div', {}, 'Config: ',
                    el('bdi', {}, configDifference(before, after))));
    }
  }
  return lines;
}

function seriesOptions(series) {
  const {point, place} = placesOf(series);
  const n = point.length;
  const {name: unit, scale} = unitFor(series.u, lastValue(series));
  const at = list => point.map(i => i < 0 || !isNumber(list[i]) ? null : list[i]);
  const values = series.y.map(v => isNumber(v) ? v * scale : null);
  const low = [];
  const span = [];
  const dots = [];
  series.y.forEach((value, i) => {
    const processes = isNumber(value) ? processesOf(series, i) : [];
    if (processes.length === 0) return;
    low[i] = processes[0] * scale;
    span[i] = (processes[processes.length - 1] - processes[0]) * scale;
    for (const each of processes) dots.push([place[i], each * scale]);
  });
  const scaled = at(values);
  const alone = at => scaled[at - 1] == null && scaled[at + 1] == null;
  const levels = point.map(() => null);
  for (const [begin, end, value] of series.lv) {
    for (let k = place[begin]; k <= place[end]; ++k) levels[k] = value * scale;
  }
  const finite = scaled.filter(isNumber);
  const floor = finite.length ? Math.min(...finite, ...low.filter(isNumber)) : 0;

  const lines = series.cp.map(change => ({
    xAxis: place[change[0]],
    lineStyle: {
      color: theme.color(change[5] ? 'unsure' : change[6] ? 'worse' : 'better'),
      type: change[5] ? 'dashed' : 'solid',
      width: 1.5,
    },
    label: {
      formatter: signedPercent(change[1]) + (change[5] ? ' ?' : ''),
      color: theme.color(change[5] ? 'unsure' : change[6] ? 'worse' : 'better'),
      fontWeight: 600,
    },
  })).concat(series.ep.map(([first]) => ({
    xAxis: place[first],
    lineStyle: {color: theme.color('muted'), type: 'dotted', width: 1.5},
    label: {formatter: 'epoch', color: theme.color('muted')},
  })));

  const quiet = {silent: true, symbol: 'none', connectNulls: false};
  return {
    grid: {left: 8, right: 18, top: 34, bottom: n > 60 ? 58 : 28,
           containLabel: true},
    tooltip: tooltip('axis', params => {
      const list = Array.isArray(params) ? params : [params];
      if (list.length === 0) return [];
      const i = point[list[0].dataIndex];
      return i < 0 ? ['measured without this benchmark'] : pointTip(series, i);
    }),
    xAxis: axis({
      type: 'category',
      data: point.map(i => i < 0 ? '' : shortId(commitOf(series, i))),
      boundaryGap: n < 30,
      splitLine: {show: false},
      axisLabel: {color: theme.color('muted'), fontSize: 11, hideOverlap: true,
                  fontFamily: 'ui-monospace, Menlo, "DejaVu Sans Mono", monospace'},
    }),
    yAxis: axis({
      type: 'value',
      scale: true,
      name: `${series.m === 'time' ? 'time' : clean(series.m)}, ${clean(unit)}`,
      nameLocation: 'end',
      nameTextStyle: {align: 'left', color: theme.color('muted'), fontSize: 11},
      axisLine: {show: false},
      min: range => Math.max(0, range.min - (range.max - range.min) * 0.1 -
                             Math.abs(range.max) * 0.005),
      max: range => range.max + (range.max - range.min) * 0.1 +
          Math.abs(range.max) * 0.005,
      axisLabel: {color: theme.color('muted'), fontSize: 11,
                  formatter: v => digits(v), showMinLabel: false,
                  showMaxLabel: false},
    }),
    dataZoom: n > 60 ?
        [{type: 'inside', zoomOnMouseWheel: 'ctrl', moveOnMouseWheel: false,
          preventDefaultMouseMove: false},
         {type: 'slider', height: 18, bottom: 8, brushSelect: false,
          borderColor: theme.color('line'),
          fillerColor: theme.color('band'),
          handleStyle: {color: theme.color('surface'),
                        borderColor: theme.color('strong-line')},
          moveHandleStyle: {color: theme.color('strong-line')},
          dataBackground: {lineStyle: {color: theme.color('strong-line')},
                           areaStyle: {color: theme.color('raised')}},
          selectedDataBackground: {lineStyle: {color: theme.color('series')},
                                   areaStyle: {color: theme.color('band')}},
          textStyle: {color: theme.color('muted'), fontSize: 10},
          labelFormatter: () => ''}] :
        [],
    series: [
      {type: 'line', stack: 'band', data: at(low), lineStyle: {opacity: 0},
       areaStyle: {opacity: 0}, ...quiet},
      {type: 'line', stack: 'band', data: at(span), lineStyle: {opacity: 0},
       areaStyle: {color: theme.color('band'), opacity: 1}, ...quiet},
      {type: 'scatter', data: dots.length <= 1500 ? dots : [], symbolSize: 4,
       itemStyle: {color: theme.color('dot')}, silent: true,
       tooltip: {show: false}},
      {type: 'line', data: levels, step: 'middle', ...quiet,
       lineStyle: {color: theme.color('text'), width: 1.2, type: [5, 3],
                   opacity: 0.75}},
      {type: 'line', data: scaled, symbol: 'circle',
       symbolSize: (_, {dataIndex}) => n <= 120 || alone(dataIndex) ? 5 : 0,
       showSymbol: true, showAllSymbol: true, connectNulls: false,
       lineStyle: {color: theme.color('series'), width: 1.6},
       itemStyle: {color: theme.color('series')},
       markLine: {symbol: 'none', silent: true, data: lines}},
      {type: 'scatter', symbol: 'diamond', symbolSize: 11, silent: true, z: 6,
       itemStyle: {color: theme.color('unsure')},
       data: configChanges(series).filter(([i]) => isNumber(values[i]))
                 .map(([i]) => [place[i], values[i]])},
      {type: 'scatter', symbol: 'path://M1 0L5 4L9 0L10 1L6 5L10 9L9 10L5 6L1 10L0 9L4 5L0 1Z',
       symbolSize: 9, silent: true, itemStyle: {color: theme.color('broken')},
       data: Object.keys(series.q).map(i => [place[i], floor])},
    ],
  };
}

function figure(name, value, note) {
  return el('div', {}, el('dt', {}, name),
            el('dd', {}, value, note ? el('small', {}, note) : null));
}

function pointsTable(series) {
  const rows = [];
  const configs = configChanges(series);
  const minutes = [];
  series.w.reduce((sum, step, i) => minutes[i] = sum + step, 0);
  for (let i = series.y.length - 1; i >= 0; --i) {
    const commit = commitOf(series, i);
    const notes = [];
    if (series.q[i]) {
      notes.push(el('span', {class: 'tone-broken'}, series.q[i][0], ' ',
                    el('bdi', {}, series.q[i][1])));
    }
    for (const change of series.cp) {
      if (change[0] !== i) continue;
      notes.push(el('span', {class: 'tone-' +
            (change[5] ? 'unsure' : change[6] ? 'worse' : 'better')},
          'level ', changeText(change)));
    }
    for (const [at, what] of series.ep) {
      if (at === i) notes.push(el('span', {}, 'epoch: ', el('bdi', {}, what)));
    }
    for (const [at, before, after] of configs) {
      if (at === i) {
        notes.push(el('span', {}, 'config: ',
                      el('bdi', {}, configDifference(before, after))));
      }
    }
    const processes = isNumber(series.y[i]) ? processesOf(series, i) : [];
    rows.push(el(
        'tr', {}, el('td', {class: 'mono'}, shortId(commit)),
        el('td', {class: 'date'}, date(commit.time || minutes[i] * 60)),
        el('td', {class: 'num'}, amount(series.y[i], series.u)),
        el('td', {class: 'num'}, processes.length > 1 ?
               percent((processes[processes.length - 1] - processes[0]) /
                       series.y[i], 1) : kNotMeasured),
        el('td', {}, el('bdi', {}, commit.subject),
           notes.map(note => el('div', {class: 'small'}, note)))));
  }
  return el('div', {class: 'tall', tabindex: '0', role: 'region',
                    'aria-label': 'Points of the series, newest first'},
            el('table', {class: 'plain small'},
               el('thead', {}, el('tr', {},
                  ['Commit', 'Date'].map(t => el('th', {scope: 'col'}, t)),
                  el('th', {scope: 'col', class: 'num'}, 'Median'),
                  el('th', {scope: 'col', class: 'num'}, 'Spread'),
                  el('th', {scope: 'col'}, 'Subject and notes'))),
               el('tbody', {}, rows)));
}

function drawSeries(pane, series) {
  disposeCharts(pane);
  const change = changeOf(series);
  const newest = configAt(series, series.y.length - 1);
  const chart = el('div', {
    class: 'chart',
    role: 'img',
    'aria-label': `Chart of ${clean(series.n)}; the table below has the ` +
        'same points',
  });
  const items = [['line', 'median'], ['band', 'slowest to fastest process'],
                 ['dot', 'one process'], ['level', 'level']];
  if (configChanges(series).length) items.push(['config', 'config changed']);
  if (Object.keys(series.q).length) items.push(['failed', 'no valid reading']);
  const left = series.t - series.y.length;
  refill(
      pane,
      el('div', {class: 'detail-head'},
         el('div', {}, el('h3', {}, data(titleOf(series)), ' ',
                          el('span', {class: 'muted'}, data(series.s))),
            el('p', {class: 'muted small'},
               [series.m, series.x, series.k, hardwareOf(series), series.b]
                   .filter(Boolean).map((text, i) => [
                     i ? ' \u00b7 ' : '', data(text)]))),
         el('button', {type: 'button', class: 'quiet',
                       onclick: () => seriesList.close()}, 'Close ',
            el('kbd', {}, 'Esc'))),
      el('p', {}, verdictLabel(series.v, verdictName(series)),
         series.d ? [' ', el('bdi', {}, '\u2013 ' + series.d)] : null),
      series.ev ? el('p', {class: 'small'}, data(series.ev[0]),
                     series.ev[1] ? [el('br'), el('code', {},
                         el('bdi', {}, series.ev[1]))] : null) : null,
      changedWith(series),
      el('dl', {class: 'figures'},
         figure('Newest', amount(lastValue(series), series.u)),
         change === null ? null :
             figure('Against the level before', signedPercent(change),
                    isNumber(series.r[1]) && isNumber(series.r[2]) ?
                        `${signedPercent(series.r[1] - 1)} to ${
                            signedPercent(series.r[2] - 1)}` : ''),
         isNumber(series.e) ?
             figure('Smallest visible change', percent(series.e, 1)) : null,
         isNumber(series.f) ? figure('Roofline', rooflineShare(series.f)) : null,
         figure('Points', pointsWanted(series) || count(series.t),
                pointsWanted(series) ? 'for a verdict' :
                left > 0 ? `${count(series.y.length)} drawn` : '')),
      el('div', {}, chart, legend(items)),
      newest >= 0 ?
          el('p', {class: 'small'}, el('span', {class: 'muted'}, 'Config now: '),
             el('code', {}, el('bdi', {}, report.texts[newest]))) : null,
      pointsTable(series),
      el('p', {class: 'small muted'}, 'Series ',
         el('code', {}, el('bdi', {}, series.n))));
  charts.add(chart, () => seriesOptions(series));
}

// The charts of a tuning session: every trial, the best so far, the regret, and
// of several metrics each one and the front.
'use strict';

function trialTip(session, trial) {
  const [number, outcome, time, levels, elapsed, detail] = trial;
  return [
    el('div', {}, el('b', {}, `Trial ${count(number + 1)}`), ' ',
       session.outcomes[outcome], ', took ', duration(elapsed)),
    isNumber(time) ?
        el('div', {}, el('b', {}, amount(time, session.unit)), ' ',
           signedPercent(time / bestValue(session) - 1), ' from the best') :
        null,
    el('div', {class: 'mono'}, el('bdi', {}, configOf(session, levels))),
    detail ? el('div', {}, el('bdi', {}, detail)) : null,
  ];
}

function convergenceOptions(session) {
  const best = bestValue(session);
  const {name: unit, scale} = unitFor('ns', best);
  const ok = [];
  const censored = [];
  const failed = [];
  const of = session.outcomes;
  session.trials.forEach(trial => {
    const [number, outcome, time] = trial;
    if (of[outcome] === 'OK' && isNumber(time)) {
      ok.push({value: [number + 1, time * scale], trial});
    } else if (of[outcome] === 'CENSORED' && isNumber(time)) {
      censored.push({value: [number + 1, time * scale], trial});
    } else {
      failed.push({value: [number + 1, 0], trial});
    }
  });
  const step = session.best.map(([number, time]) => [number + 1, time * scale]);
  if (step.length) step.push([session.total, best * scale]);
  const largest = Math.max(...[...ok, ...censored].map(each => each.value[1]),
                           best * scale);
  const top = largest * 1.12;
  // A logarithm only where times span so much that it is needed.
  const wide = largest > 6 * best * scale;
  for (const each of failed) each.value[1] = top;
  const fallback = session.finalists.find(each => each.is_default);
  const lines = fallback && isNumber(fallback.verified_value) ? [{
    yAxis: fallback.verified_value * scale,
    lineStyle: {color: theme.color('unsure'), type: [2, 3], width: 1.5},
    label: {show: false},
  }] : [];
  return {
    grid: {left: 8, right: 12, top: 28, bottom: 26, containLabel: true},
    tooltip: tooltip('item', params => params.data && params.data.trial ?
        trialTip(session, params.data.trial) : ['best so far']),
    xAxis: axis({type: 'value', min: 1, max: Math.max(session.total, 2),
                 name: 'trial', nameLocation: 'middle', nameGap: 24,
                 splitLine: {show: false}, minInterval: 1}),
    yAxis: axis({type: wide ? 'log' : 'value',
                 name: `time, ${unit}` + (wide ? ' (log)' : ''),
                 logBase: 2, axisLine: {show: false},
                 nameTextStyle: {align: 'left', color: theme.color('muted'),
                                 fontSize: 11},
                 min: best * scale * 0.9, max: top * 1.05,
                 minorSplitLine: {show: false},
                 axisLabel: {color: theme.color('muted'), fontSize: 11,
                             formatter: v => digits(v), showMinLabel: false,
                             showMaxLabel: false}}),
    series: [
      {type: 'scatter', data: ok, symbolSize: 5,
       itemStyle: {color: theme.color('dot')}},
      {type: 'scatter', data: censored, symbol: 'emptyTriangle', symbolSize: 6,
       itemStyle: {color: theme.color('muted')}},
      {type: 'scatter', data: failed, symbolSize: 7,
       symbol: 'path://M1 0L5 4L9 0L10 1L6 5L10 9L9 10L5 6L1 10L0 9L4 5L0 1Z',
       itemStyle: {color: theme.color('broken')}},
      {type: 'line', data: step, step: 'end', symbol: 'none', silent: true,
       lineStyle: {color: theme.color('series'), width: 2},
       markLine: {symbol: 'none', silent: true, data: lines}},
    ],
  };
}

// How far the best so far is from the final best, in percent; below the floor
// it is as good as none, and a logarithm needs one.
function regretOptions(session) {
  const best = bestValue(session);
  const floor = 0.1;
  const step = session.best.map(([number, time]) =>
      [number + 1, Math.max(floor, (time / best - 1) * 100)]);
  if (step.length) step.push([session.total, floor]);
  return {
    grid: {left: 8, right: 12, top: 28, bottom: 26, containLabel: true},
    tooltip: tooltip('axis', params => {
      const at = (Array.isArray(params) ? params : [params])[0];
      if (!at) return [];
      return [`after trial ${count(at.value[0])}: ` +
              (at.value[1] <= floor ? 'at most ' : '') +
              `${digits(at.value[1])} % behind the final best`];
    }),
    xAxis: axis({type: 'value', min: 1, max: Math.max(session.total, 2),
                 name: 'trial', nameLocation: 'middle', nameGap: 24,
                 splitLine: {show: false}, minInterval: 1}),
    yAxis: axis({type: 'log', name: 'regret, % (log)', axisLine: {show: false},
                 nameTextStyle: {align: 'left', color: theme.color('muted'),
                                 fontSize: 11},
                 min: floor,
                 axisLabel: {color: theme.color('muted'), fontSize: 11,
                             formatter: v => digits(v)}}),
    series: [
      {type: 'line', data: step, step: 'end', symbol: 'none',
       lineStyle: {color: theme.color('series'), width: 2},
       markLine: {symbol: 'none', silent: true,
                  label: {position: 'insideEndTop', fontSize: 10,
                          color: theme.color('muted')},
                  lineStyle: {color: theme.color('strong-line'), type: 'dashed'},
                  data: [{yAxis: 5, label: {formatter: '5%'}},
                         {yAxis: 1, label: {formatter: '1%'}}]}},
    ],
  };
}

// One metric of every trial, and the best of it so far.
function metricOptions(session, k) {
  const {metric, unit, lower_is_better: lower, limit} = session.objectives[k];
  const dots = [];
  // The session's own steps are those of its first metric.
  const step = k === 0 ?
      session.best.map(([number, value]) => [number + 1, value]) : [];
  for (const trial of session.trials) {
    const [number, outcome, , , , , values] = trial;
    if (session.outcomes[outcome] !== 'OK' || !values) continue;
    const value = values[k];
    if (!isNumber(value)) continue;
    dots.push({value: [number + 1, value], trial});
    const last = step.length ? step[step.length - 1][1] : null;
    if (k > 0 &&
        (last === null || (lower ? value < last : value > last))) {
      step.push([number + 1, value]);
    }
  }
  if (step.length) step.push([session.total, step[step.length - 1][1]]);
  const lines = isNumber(limit) ? [{
    yAxis: limit, label: {formatter: 'limit', fontSize: 10},
    lineStyle: {color: theme.color('unsure'), type: [2, 3], width: 1.5},
  }] : [];
  return {
    grid: {left: 8, right: 12, top: 28, bottom: 26, containLabel: true},
    tooltip: tooltip('item', params => params.data && params.data.trial ?
        valuesTip(session, params.data.trial) : ['best so far']),
    xAxis: axis({type: 'value', min: 1, max: Math.max(session.total, 2),
                 name: 'trial', nameLocation: 'middle', nameGap: 24,
                 splitLine: {show: false}, minInterval: 1}),
    yAxis: axis({type: 'value', scale: true, axisLine: {show: false},
                 name: clean(metric) + (unit ? ', ' + clean(unit) : ''),
                 nameTextStyle: {align: 'left', color: theme.color('muted'),
                                 fontSize: 11},
                 axisLabel: {color: theme.color('muted'), fontSize: 11,
                             formatter: v => digits(v)}}),
    series: [
      {type: 'scatter', data: dots, symbolSize: 5,
       itemStyle: {color: theme.color('dot')}},
      {type: 'line', data: step, step: 'end', symbol: 'none', silent: true,
       lineStyle: {color: theme.color('series'), width: 2},
       markLine: {symbol: 'none', silent: true, data: lines}},
    ],
  };
}

function valuesTip(session, trial) {
  const [number, , , levels, , , values] = trial;
  return [
    el('div', {}, el('b', {}, `Trial ${count(number + 1)}`)),
    ...session.objectives.map(({metric, unit}, k) => el('div', {},
        el('bdi', {}, metric), ': ', amount(values[k], unit))),
    el('div', {class: 'mono'}, el('bdi', {}, configOf(session, levels))),
  ];
}

// The first two metrics against each other; the line is the front.
function frontOptions(session) {
  const name = k => clean(session.objectives[k].metric) +
      (session.objectives[k].unit ?
           ', ' + clean(session.objectives[k].unit) : '');
  const dots = session.trials
      .filter(trial => trial[6] && isNumber(trial[6][0]) &&
                  isNumber(trial[6][1]))
      .map(trial => ({value: [trial[6][0], trial[6][1]], trial}));
  const front = session.front.map(([number, levels, values]) => ({
    value: [values[0], values[1]],
    trial: [number, 0, null, levels, 0, '', values],
  }));
  const label = {color: theme.color('muted'), fontSize: 11,
                 formatter: v => digits(v)};
  return {
    grid: {left: 8, right: 16, top: 28, bottom: 26, containLabel: true},
    tooltip: tooltip('item', params => params.data && params.data.trial ?
        valuesTip(session, params.data.trial) : []),
    xAxis: axis({type: 'value', scale: true, name: name(0),
                 nameLocation: 'middle', nameGap: 24, axisLabel: label}),
    yAxis: axis({type: 'value', scale: true, name: name(1),
                 axisLine: {show: false}, axisLabel: label,
                 nameTextStyle: {align: 'left', color: theme.color('muted'),
                                 fontSize: 11}}),
    series: [
      {type: 'scatter', data: dots, symbolSize: 5,
       itemStyle: {color: theme.color('dot')}},
      {type: 'line', data: front, symbol: 'circle', symbolSize: 8,
       itemStyle: {color: theme.color('series')},
       lineStyle: {color: theme.color('series'), width: 1.5}},
    ],
  };
}

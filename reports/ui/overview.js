// The top of the page: what was measured, what wants attention, operators x
// hardware, default against tuned.
'use strict';

// What each benchmark is judged by: its time, or all metrics of one without.
function mainSeries() {
  return report.series.filter(series => series.j);
}

function verdictCounts() {
  const counts = kVerdicts.map(() => 0);
  for (const series of mainSeries()) ++counts[series.v];
  return counts;
}

// "48 series: 3 slower, 5 faster, 40 unchanged." Nothing is called unchanged
// that was not judged to be.
function headline(counts) {
  const parts = counts
      .map((n, v) => n > 0 ? `${count(n)} ${kVerdicts[v].name}` : '')
      .filter(Boolean);
  if (report.series.length === 0) return 'No benchmark was recorded yet.';
  const others = report.series.length - mainSeries().length;
  return `${count(mainSeries().length)} series: ${parts.join(', ')}.` +
      (others ? ` ${count(others)} of other metrics are not counted.` : '');
}

function fact(name, value, note) {
  return el('div', {}, el('dt', {}, name),
            el('dd', {}, value, note ? el('small', {}, note) : null));
}

function commitFact() {
  const named = report.commits.length;
  if (named === 0) return fact('Commit', 'none recorded');
  const [id, subject, time, , dirty, branch] = report.commits[named - 1];
  const head = shortId({id, dirty}) + (branch ? ' on ' + clean(branch) : '');
  return fact('Newest commit', el('span', {class: 'mono'}, head),
              el('bdi', {}, subject || date(time)));
}

function hardwareFact() {
  const names = report.hardware.map(hardware => hardware.id);
  if (names.length === 0) return fact('Hardware', 'none recorded');
  const first = report.hardware[0];
  const note = names.length === 1 ?
      [first.model, first.cores ? first.cores + ' cores' : '',
       first.memory_bytes ? bytes(first.memory_bytes) : '',
       first.virtual_machine ? 'virtual machine' : ''].filter(Boolean).join(', ') :
      `${names.length} kinds`;
  return fact('Hardware', names.slice(0, 4).join(', ') +
                  (names.length > 4 ? ', \u2026' : ''), note);
}

function toolchainFact() {
  const kinds = new Set(report.hardware.map(h => h.compiler).filter(Boolean));
  const systems = new Set(report.hardware.map(h => h.os).filter(Boolean));
  return fact('Toolchain', [...kinds].join(', ') || 'not recorded',
              [...systems].join(', '));
}

function timeFact() {
  let first = Infinity;
  let last = -Infinity;
  for (const series of report.series) {
    let minute = 0;
    for (const step of series.w) {
      minute += step;
      if (minute <= 0) continue;
      first = Math.min(first, minute);
      last = Math.max(last, minute);
    }
  }
  if (!isFinite(first)) return fact('Recorded', 'nothing yet');
  return fact('Last recorded', dateTime(last * 60),
              first === last ? '' : `first ${date(first * 60)}`);
}

function pageHead() {
  const counts = verdictCounts();
  const chips = counts.map((n, v) => n === 0 ? null : el('button', {
        type: 'button',
        class: 'chip',
        title: `Show the series that are ${kVerdicts[v].name}`,
        onclick: () => navigate({section: 'series', verdict: String(v)}),
      }, verdictLabel(v), el('b', {}, count(counts[v]))));
  return el(
      'section', {id: 'overview', class: 'head'},
      report.synthetic ?
          el('p', {class: 'notice'},
             'Synthetic data: every number on this page is made up.') :
          null,
      report.warnings.map(text => el('p', {class: 'notice'}, text)),
      el('div', {}, el('h1', {}, el('bdi', {}, report.title)),
         el('p', {class: 'headline'}, headline(counts))),
      el('div', {class: 'chips', role: 'group',
                 'aria-label': 'Verdicts; each shows its series'}, chips),
      el('dl', {class: 'facts card'}, commitFact(), hardwareFact(),
         toolchainFact(), timeFact(),
         fact('Benchmarks', `${count(report.series.length)} series`,
              `${count(report.runs)} runs, ${count(report.commits.length)} ` +
                  `commits, ${count(report.sessions.length)} tuning sessions`)));
}

// Where a verdict comes from: the commit of its newest change.
function changeCommit(series) {
  const changes = series.cp;
  if (changes.length === 0) return null;
  return commitOf(series, changes[changes.length - 1][0]);
}

// Series of one operator that got the same verdict at the same commit are one
// piece of news, however many shapes and hardware show it.
function attentionGroups() {
  const groups = new Map();
  for (const i of report.overview.attention) {
    const series = report.series[i];
    const changed = kVerdicts[series.v].change;
    const commit = changed ? changeCommit(series) : null;
    const key = JSON.stringify([series.v, series.o, commit && commit.id,
                                changed ? '' : series.d]);
    if (!groups.has(key)) groups.set(key, {changed, commit, members: []});
    groups.get(key).members.push(i);
  }
  return [...groups.values()];
}

function attentionItem({changed, commit, members}) {
  const all = members.map(i => report.series[i]);
  // Of several metrics of one benchmark its time is what one asks for first.
  const series = all.find(each => each.m === 'time') || all[0];
  const alone = members.length === 1;
  const changes = all.map(changeOf).filter(isNumber);
  const low = Math.min(...changes);
  const high = Math.max(...changes);
  const hardware = new Set(all.map(hardwareOf));
  let size = amount(lastValue(series), series.u);
  let note = '';
  if (changed && changes.length) {
    const own = changeOf(series);
    size = signedPercent(isNumber(own) ? own : changes[0]);
    if (alone && isNumber(series.r[1]) && isNumber(series.r[2])) {
      note = `${signedPercent(series.r[1] - 1)} to ${
          signedPercent(series.r[2] - 1)}`;
    } else if (!alone) {
      note = `${signedPercent(low)} to ${signedPercent(high)}`;
    }
  }
  return el('li', {}, el('button', {
    type: 'button',
    onclick: () => alone ?
        navigate({section: 'series', index: members[0]}) :
        navigate({section: 'series', op: operatorOf(series),
                  verdict: String(series.v)}),
  },
  verdictLabel(series.v, verdictName(series)),
  el('span', {class: 'name clip'}, data(operatorOf(series)),
     alone ? null :
             el('span', {class: 'many'}, ` ${count(members.length)} series`),
     el('small', {class: 'clip'}, alone ?
        [data(variantOf(series)), ' on ', data(hardwareOf(series))] :
        data('on ' + [...hardware].sort().join(', ')))),
  el('span', {class: 'amount'}, size, note ? el('small', {}, note) : null),
  el('span', {class: 'why clip'},
     commit ? [el('code', {}, shortId(commit)), ' ', data(commit.subject)] :
              el('span', {class: 'muted'}, data(series.d)))));
}

function attentionSection() {
  const groups = attentionGroups();
  if (groups.length === 0) return null;
  const shown = 8;
  const most = 200;
  const list = el('ul', {class: 'attention card'},
                  groups.slice(0, shown).map(attentionItem));
  const rest = Math.min(groups.length, most) - shown;
  return el(
      'section', {},
      el('div', {class: 'section-head'}, el('h2', {}, 'Wants attention'),
         el('span', {class: 'muted'},
            'Worst first; series of an operator that changed at the same ' +
                'commit are one line.')),
      list,
      rest > 0 ? el('div', {class: 'more'}, el('button', {
        type: 'button',
        class: 'quiet',
        onclick: event => {
          list.append(...groups.slice(shown, most).map(attentionItem));
          event.target.remove();
        },
      }, `Show ${count(rest)} more`)) : null);
}

function matrixCell(cell) {
  const parts = cell.v.filter(([verdict]) => verdict === cell.w);
  const counted = parts.length ? parts[0][1] : 0;
  const text = counted === cell.n ?
      kVerdicts[cell.w].name :
      `${count(counted)} of ${count(cell.n)} ${kVerdicts[cell.w].name}`;
  const operator = report.operators[cell.o];
  return el('button', {
    type: 'button',
    onclick: () => navigate({section: 'series', op: operator,
                             hardware: hardwareOf(cell)}),
  },
  sparkline(cell.c, cell.y, {
    base: 1,
    label: 'relative time over commits, 1 is the first commit',
  }),
  verdictLabel(cell.w, text),
  el('span', {class: 'pair'},
     el('span', {title: 'Geometric mean of default time / tuned time'},
        isNumber(cell.s) ? `tuned ${times(cell.s)}` : ''),
     el('span', {title: 'Median share of the measured roofline, where it is a bound'},
        isNumber(cell.f) ? `${percent(cell.f)} of roofline` : '')));
}

function matrixSection() {
  const {cells} = report.overview;
  if (cells.length === 0) return null;
  const used = report.hardware.map((_, h) => h)
      .filter(h => cells.some(cell => cell.h === h));
  const operators = [...new Set(cells.map(cell => cell.o))];
  const head = el('tr', {}, el('th', {scope: 'col'}, 'Operator'),
                  used.map(h => el('th', {scope: 'col'},
                                   data(report.hardware[h].id),
                                   el('small', {},
                                      data(report.hardware[h].model)))));
  const row = o => el(
      'tr', {}, el('th', {scope: 'row'}, data(report.operators[o])),
      used.map(h => {
        const cell = cells.find(each => each.o === o && each.h === h);
        return el(
            'td',
            {
              class: cell ? '' : 'absent',
              'data-hardware': clean(report.hardware[h].id),
            },
            cell ? matrixCell(cell) :
                   el('span', {class: 'none'}, 'not measured'));
      }));
  const shown = 30;
  const body = el('tbody', {}, operators.slice(0, shown).map(row));
  return el(
      'section', {},
      el('div', {class: 'section-head'},
         el('h2', {}, 'Operators by hardware'),
         el('span', {class: 'muted'},
            'Line: mean relative time of the operator\u2019s series over ' +
                'commits; the dashed line is the first commit, lower is ' +
                'faster.')),
      el('div', {class: 'card scroll-x'},
         el('table', {class: 'matrix'}, el('thead', {}, head), body)),
      operators.length > shown ?
          el('div', {class: 'more'}, el('button', {
               type: 'button',
               class: 'quiet',
               onclick: event => {
                 body.append(...operators.slice(shown).map(row));
                 event.target.remove();
               },
             }, `Show all ${count(operators.length)} operators`)) :
          null);
}

function meter(fraction, worse) {
  return el('span', {class: 'meter', 'aria-hidden': 'true'}, el('i', {
    class: worse ? 'worse' : '',
    style: `width: ${(Math.max(0, Math.min(1, fraction)) * 100).toFixed(1)}%`,
  }));
}

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
           }, data(operatorOf(series)), ' ',
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
  const shown = 10;
  const body = el('tbody', {}, pairs.slice(0, shown).map(row));
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
      el('div', {class: 'section-head'}, el('h2', {}, 'Default vs tuned'),
         el('span', {class: 'muted'},
            `Newest point of each; tuned is ${means.join(', ')} (geometric ` +
                'mean).')),
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
         pairs.length > shown ?
             el('div', {class: 'more'}, el('button', {
                  type: 'button',
                  class: 'quiet',
                  onclick: event => {
                    body.append(...pairs.slice(shown).map(row));
                    event.target.parentNode.remove();
                  },
                }, `Show all ${count(pairs.length)}`)) :
             null));
}

// Nothing was recorded: what to do about it.
function blankSection() {
  return el(
      'section', {id: 'overview', class: 'card blank'},
      report.warnings.map(text => el('p', {class: 'notice'}, text)),
      el('h1', {}, el('bdi', {}, report.title)),
      el('p', {}, 'There is no data to show: ',
         report.source ? el('code', {}, report.source) : 'the history',
         ' holds no run and no tuning session that could be read.'),
      el('p', {}, 'Record a first run, then build the report again:'),
      el('pre', {}, ['optrail tune --op=matmul', 'optrail bench --record',
                     'optrail report --out=report.html']
                        .map(line => el('div', {}, line))),
      el('p', {}, 'Results of Google Benchmark can be shown as well: ',
         el('code', {}, 'optrail import results.json')));
}

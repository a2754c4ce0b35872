// Tuning sessions: how the search went, whether its winner is one, and what each
// knob did.
'use strict';

const kOutcomeTone = {
  OK: 'series', CENSORED: 'strong-line', CONTENDED: 'unsure',
};

function outcomeTone(name) {
  return kOutcomeTone[name] || 'broken';
}

function configOf(session, levels) {
  return session.knobs.map((knob, k) =>
      levels[k] >= 0 ? `${knob.n}=${knob.l[levels[k]]}` : '')
      .filter(Boolean).join(', ');
}

function duration(ms) {
  if (ms < 1000) return count(ms) + kNarrowSpace + 'ms';
  const s = ms / 1000;
  if (s < 120) return digits(s) + kNarrowSpace + 's';
  if (s < 7200) return digits(s / 60) + kNarrowSpace + 'min';
  return digits(s / 3600) + kNarrowSpace + 'h';
}

// Values are of the session's first objective, time as a rule.
function bestValue(session) {
  const {best} = session;
  return best.length ? best[best.length - 1][1] : null;
}

// How many times what the best took: 1 and more.
function timesTheBest(session, value) {
  const best = bestValue(session);
  return session.lower ? value / best : best / value;
}

const tuning = {
  open: -1,

  build() {
    if (report.sessions.length === 0) return null;
    this.buttons = report.sessions.map((session, i) => el('button', {
      type: 'button',
      'aria-pressed': 'false',
      onclick: () => {
        this.show(i);
        remember();
      },
    },
    el('span', {class: 'clip'}, data(familyOf(session))),
    el('span', {title: session.proof ?
                    'The winner against the default, by the proof' :
                    'The winner against the default, as finalists'},
       isNumber(session.verified_speedup) ?
           times(session.verified_speedup) : kNotMeasured),
    el('small', {}, data(session.task)),
    el('small', {}, `${hardwareOf(session)} \u00b7 ${
        count(session.total)} trials \u00b7 ${date(session.started_unix_ns / 1e9)}`)));
    this.pane = el('div', {class: 'detail card'});
    const list = el('ul', {
      class: 'session-list card',
      onkeydown: event => {
        const at = this.buttons.indexOf(document.activeElement);
        const step = {ArrowDown: 1, ArrowUp: -1}[event.key];
        if (!step || at < 0) return;
        event.preventDefault();
        const next = this.buttons[at + step];
        if (next) {
          next.focus();
          next.click();
        }
      },
    }, this.buttons.map(button => el('li', {}, button)));
    return el(
        'section', {id: 'tuning'},
        el('div', {class: 'section-head'}, el('h2', {}, 'Tuning'),
           el('span', {class: 'muted'},
              'Each session searched the configs of one operator and shape, ' +
                  'or of a command; the number is how much better its winner ' +
                  'is than the default, by the proof where there is one.')),
        el('div', {class: 'sessions'}, list, this.pane));
  },

  show(i) {
    if (i < 0 || i >= report.sessions.length || i === this.open) return;
    this.open = i;
    this.buttons.forEach((button, k) =>
        button.setAttribute('aria-pressed', String(k === i)));
    drawSession(this.pane, report.sessions[i]);
  },
};

function frontPanel(session, chart) {
  return el(
      'div', {class: 'panel full', 'data-front': session.front.length},
      el('h3', {}, 'Front'),
      el('p', {}, 'Configs that no other one beats in every metric; the ' +
             'others are dots.'),
      chart,
      el('div', {class: 'scroll-x'}, el('table', {class: 'plain small'},
         el('thead', {}, el('tr', {}, el('th', {scope: 'col'}, 'Config'),
            session.objectives.map(({metric}) => el('th', {
              scope: 'col', class: 'num'}, el('bdi', {}, metric))))),
         el('tbody', {}, session.front.map(([, levels, values]) => el(
            'tr', {},
            el('td', {}, el('code', {}, el('bdi', {},
                                           configOf(session, levels)))),
            values.map((value, k) => el('td', {class: 'num'},
                amount(value, session.objectives[k].unit)))))))));
}

function outcomesPanel(session) {
  const order = session.outcomes.map((name, i) => [name, session.counts[i]])
      .sort((a, b) => b[1] - a[1]);
  return el(
      'div', {class: 'panel'}, el('h3', {}, 'Outcomes'),
      el('div', {class: 'stack', 'aria-hidden': 'true'},
         order.map(([name, n]) => el('i', {
           style: `flex: ${n} 0 0; background: var(--${outcomeTone(name)})`,
         }))),
      el('table', {class: 'plain small'}, el('tbody', {},
         order.map(([name, n]) => el('tr', {},
            el('td', {}, name.toLowerCase().replace(/_/g, ' ')),
            el('td', {class: 'num'}, count(n)),
            el('td', {class: 'num'}, percent(n / session.total, 1)))))));
}

// Hollow: first reading; filled: verified. The distance is what luck was worth.
function dumbbell(first, verified, low, high) {
  const width = 120;
  const x = value => 6 + (value - low) / (high - low || 1) * (width - 12);
  const node = svg('svg', {class: 'dumbbell', width, height: 14,
                           viewBox: `0 0 ${width} 14`, 'aria-hidden': 'true'});
  if (isNumber(first) && isNumber(verified)) {
    node.append(svg('line', {x1: x(first), x2: x(verified), y1: 7, y2: 7}));
  }
  if (isNumber(first)) {
    node.append(svg('circle', {class: 'first', cx: x(first), cy: 7, r: 4}));
  }
  if (isNumber(verified)) {
    node.append(svg('circle', {class: 'verified', cx: x(verified), cy: 7, r: 4}));
  }
  return node;
}

function finalistsPanel(session) {
  if (session.finalists.length === 0) return null;
  // The default is far off as a rule and would squeeze the others together.
  const all = session.finalists.filter(each => !each.is_default)
      .flatMap(each => [each.first_value, each.verified_value])
      .filter(value => isNumber(value) && value > 0);
  const low = Math.min(...all);
  const high = Math.max(...all);
  const rows = [...session.finalists]
      .sort((a, b) => session.lower ?
          (a.verified_value || Infinity) - (b.verified_value || Infinity) :
          (b.verified_value || 0) - (a.verified_value || 0))
      .map(({config, first_value: first, verified_value: verified, outcome,
             is_default: isDefault, is_winner: isWinner}) => el(
          'tr', {},
          el('td', {}, isWinner ? el('b', {}, 'winner ') : null,
             isDefault ? el('b', {}, 'default ') : null,
             el('code', {class: 'small'},
                          el('bdi', {}, config.replace(/,/g, ', ')))),
          el('td', {class: 'num'},
             first > 0 ? amount(first, session.unit) : kNotMeasured),
          el('td', {class: 'num'}, outcome === 'OK' ?
                 amount(verified, session.unit) :
                 el('span', {class: 'tone-broken'}, outcome)),
          el('td', {class: 'num'}, isNumber(verified) && first > 0 ?
                 signedPercent(verified / first - 1) : kNotMeasured),
          el('td', {class: 'hide-narrow'},
             isDefault ? null :
                         dumbbell(first > 0 ? first : null, verified, low,
                                  high))));
  return el(
      'div', {class: 'panel full'},
      el('h3', {}, 'Finalists, first reading against verified'),
      el('p', {}, 'Finalists are measured again in fresh processes, ' +
             'interleaved, since the search picks lucky readings: the ' +
             'winner\u2019s curse. ', session.curse ? `${session.curse}.` : ''),
      el('div', {class: 'scroll-x'}, el('table', {class: 'plain small'},
         el('thead', {}, el('tr', {}, el('th', {scope: 'col'}, 'Config'),
            ['First', 'Verified', 'Change'].map(
                t => el('th', {scope: 'col', class: 'num'}, t)),
            el('th', {scope: 'col', class: 'hide-narrow'},
               '\u25cb first  \u25cf verified'))),
         el('tbody', {}, rows))));
}

// Times by level: box from quartile to quartile, whiskers to the extremes, dots
// are trials. The scale is logarithmic and the same for all knobs of a session.
function knobBox(session, effect, low, high) {
  const knob = session.knobs[effect.k];
  const width = 300;
  const left = 74;
  const right = 34;
  const rowHeight = 20;
  const height = effect.l.length * rowHeight + 16;
  const x = time => left + Math.log(time / low) / Math.log(high / low || 2) *
          (width - left - right);
  const node = svg('svg', {
    class: 'box',
    viewBox: `0 0 ${width} ${height}`,
    role: 'img',
    'aria-label': `Median ${clean(session.metric)} by ${clean(knob.n)}: ` + effect.l.map(
        ([level, , , , median]) =>
            `${clean(knob.l[level])} ${amount(median, session.unit)}`).join('; '),
  });
  node.append(svg('line', {class: 'best', x1: x(low), x2: x(low), y1: 0,
                           y2: height - 14}));
  effect.l.forEach(([level, n, min, q1, median, q3, max], row) => {
    const y = row * rowHeight + rowHeight / 2;
    const name = clean(knob.l[level]);
    node.append(
        svg('text', {x: left - 8, y: y + 4, 'text-anchor': 'end'},
            name.length > 11 ? name.slice(0, 10) + '\u2026' : name,
            svg('title', {}, name)),
        svg('line', {class: 'whisker', x1: x(min), x2: x(max), y1: y, y2: y}));
    if (n >= 4) {
      node.append(svg('rect', {class: 'quartiles', x: x(q1), y: y - 5.5,
                               width: Math.max(1, x(q3) - x(q1)), height: 11,
                               rx: 2}));
    }
    let drawn = 0;
    for (const [number, outcome, time, levels] of session.trials) {
      if (levels[effect.k] !== level || !isNumber(time)) continue;
      if (session.outcomes[outcome] !== 'OK' || ++drawn > 80) continue;
      // A fixed scatter across the row, so that dots do not hide each other.
      const jitter = ((number * 7) % 9 - 4) * 0.9;
      node.append(svg('circle', {class: 'trial', cx: x(time), cy: y + jitter,
                                 r: 1.5}));
    }
    node.append(
        svg('line', {class: 'median', x1: x(median), x2: x(median), y1: y - 6,
                     y2: y + 6}),
        svg('text', {class: 'count', x: width, y: y + 4, 'text-anchor': 'end'},
            '\u00d7' + count(n)));
  });
  node.append(
      svg('text', {class: 'tick', x: x(low), y: height - 2}, amount(low, session.unit)),
      svg('text', {class: 'tick', x: x(high), y: height - 2,
                   'text-anchor': 'end'}, amount(high, session.unit)));
  return node;
}

function knobsPanel(session) {
  const effects = session.effects.filter(effect => effect.l.length > 0);
  if (effects.length === 0) return null;
  const low = Math.min(...effects.flatMap(e => e.l.map(l => l[2])));
  const high = Math.max(...effects.flatMap(e => e.l.map(l => l[6])));
  return el(
      'div', {class: 'panel full'}, el('h3', {}, 'What each knob did'),
      el('p', {}, `The ${clean(session.metric)} of the valid trials by level ` +
             '(box: middle half, thick ' +
             'line: median, \u00d7: trials, log scale). Importance is ' +
             'estimated: the share of the variance of its logarithm that the ' +
             'knob explains alone, among the configs that the search chose to try; ' +
             'shares need not add up, since knobs interact.'),
      el('div', {class: 'knobs'}, effects.map(effect => el(
          'div', {class: 'knob'},
          el('div', {class: 'knob-head'},
             data(session.knobs[effect.k].n, {class: 'clip'}),
             meter(effect.i || 0),
             el('span', {class: 'num', title: 'estimated importance'},
                isNumber(effect.i) ? '~' + percent(effect.i) :
                                     'not known')),
          knobBox(session, effect, low, high)))));
}

function worstPanel(session) {
  const of = session.outcomes;
  const failed = session.trials.filter(
      trial => of[trial[1]] !== 'OK' && of[trial[1]] !== 'CENSORED');
  const slow = session.trials.filter(
      trial => of[trial[1]] === 'OK' && isNumber(trial[2]))
      .sort((a, b) => timesTheBest(session, b[2]) -
          timesTheBest(session, a[2])).slice(0, 5);
  const rows = [...slow, ...failed.slice(0, 12)];
  if (rows.length === 0) return null;
  return el(
      'div', {class: 'panel full'}, el('h3', {}, 'Worst and failed configs'),
      el('div', {class: 'scroll-x'}, el('table', {class: 'plain small'},
         el('thead', {}, el('tr', {}, el('th', {scope: 'col'}, 'Trial'),
            el('th', {scope: 'col'}, 'Outcome'),
            el('th', {scope: 'col', class: 'num'}, clean(session.metric)),
            el('th', {scope: 'col'}, 'Config and detail'))),
         el('tbody', {}, rows.map(([number, outcome, time, levels, , detail]) =>
            el('tr', {}, el('td', {class: 'num'}, count(number + 1)),
               el('td', {class: of[outcome] === 'OK' ? '' : 'tone-broken'},
                  of[outcome] === 'OK' ?
                      session.lower ?
                          `${digits(timesTheBest(session, time), 2)}\u00d7 the best` :
                          `${percent(1 / timesTheBest(session, time))} of the best` :
                      of[outcome].toLowerCase().replace(/_/g, ' ')),
               el('td', {class: 'num'}, amount(time, session.unit)),
               el('td', {}, el('code', {}, el('bdi', {}, configOf(session, levels))),
                  detail ? el('div', {class: 'muted'}, el('bdi', {}, detail)) :
                           null)))))));
}

function drawSession(pane, session) {
  disposeCharts(pane);
  const label = text => ({class: 'chart low', role: 'img', 'aria-label': text});
  const isTime = session.objectives.length === 0;
  const hasBest = isTime && isNumber(bestValue(session));
  const convergence = el('div', label(
      'Time of every trial and the best so far'));
  const regret = el('div', label('Distance from the final best, by trial'));
  const items = [['line', 'best so far'], ['dot', 'trial']];
  if (session.outcomes.includes('CENSORED')) {
    items.push(['censored', 'stopped early, lower bound']);
  }
  if (session.outcomes.some(o => o !== 'OK' && o !== 'CENSORED')) {
    items.push(['failed', 'failed']);
  }
  if (session.finalists.some(each => each.is_default && isNumber(each.verified_value))) {
    items.push(['default', 'default config']);
  }
  const metrics = session.objectives.map(({metric}) => el('div', label(
      `${clean(metric)} of every trial and the best so far`)));
  const front = session.front.length ?
      el('div', label('The front of the first two metrics')) : null;
  const drawn = session.trials.length;
  refill(
      pane,
      el('div', {}, el('h3', {}, data(session.task)),
         el('p', {class: 'muted small'},
            `${hardwareOf(session)} \u00b7 `, data(session.strategy),
            ` \u00b7 seed ${session.seed} \u00b7 ${dateTime(session.started_unix_ns / 1e9)}`,
            session.commit.id ?
                [' \u00b7 ', el('code', {}, shortId(session.commit))] :
                null)),
      ...session.findings.map(
          text => el('p', {class: 'notice'}, data(text))),
      ...session.nodes.map(({lost, text}) => el(
          'p', {'data-node': '', class: lost ? 'notice' : 'muted small'},
          data(text))),
      session.command ? commandLine(session.command) : null,
      session.winner ? el('p', {'data-winner': ''}, data(session.winner)) : null,
      el('dl', {class: 'figures'},
         figure(isTime ? 'Speedup' : 'Gain', isNumber(session.verified_speedup) ?
                times(session.verified_speedup) : 'not known',
                session.proof ? 'by the proof' : 'as finalists, not proven'),
         figure('Best', amount(bestValue(session), session.unit),
                isTime ? 'first reading' : clean(session.metric)),
         figure('Trials', count(session.total),
                [session.valid_config_count ?
                     `of ${count(session.valid_config_count)} valid configs` : '',
                 session.warm_start_trials ?
                     `beside ${count(session.warm_start_trials)} of earlier sessions` : '']
                    .filter(Boolean).join(', ')),
         figure('To 95% of the best', session.trials_to_95_percent === null ?
                kNotMeasured : count(session.trials_to_95_percent), 'trials'),
         figure('To 99%', session.trials_to_99_percent === null ?
                kNotMeasured : count(session.trials_to_99_percent), 'trials'),
         figure('Took', duration(session.elapsed_ns / 1e6),
                session.stop_reason)),
      el('div', {class: 'panels'},
         ...metrics.map((chart, k) => el('div', {class: 'panel'},
             el('h3', {}, data(session.objectives[k].metric)), chart)),
         front ? frontPanel(session, front) : null,
         weightPanel(session), sidesPanel(session),
         hasBest ? el('div', {class: 'panel full'}, el('h3', {}, 'Convergence'),
                      convergence, legend(items),
                      drawn < session.total ?
                          el('p', {}, `${count(drawn)} of ${
                              count(session.total)} trials drawn.`) : null) :
         metrics.length ? null :
                   el('p', {class: 'notice'}, 'No trial gave a valid time.'),
         hasBest ? el('div', {class: 'panel'}, el('h3', {}, 'Regret'), regret) :
                   null,
         outcomesPanel(session), finalistsPanel(session),
         ...schedulePanels(session), knobsPanel(session),
         worstPanel(session)));
  metrics.forEach((chart, k) =>
      charts.add(chart, () => metricOptions(session, k)));
  if (front) charts.add(front, () => frontOptions(session));
  if (hasBest) {
    charts.add(convergence, () => convergenceOptions(session));
    charts.add(regret, () => regretOptions(session));
  }
}

addSection({id: 'tuning', title: 'Tuning', order: 60,
            build: () => tuning.build()});

// A session over schedules: the sketches that it tried, its winner as loops and
// as decisions, and which rules mattered.
'use strict';

function sketchesPanel(schedule) {
  if (schedule.sketches.length === 0) return null;
  const left = schedule.of - schedule.sketches.length;
  return el(
      'div', {class: 'panel full', 'data-sketches': schedule.of},
      el('h3', {}, 'Sketches tried'),
      el('p', {}, 'Programs that compute their stages in the same places and ' +
             'differ in sizes; the fastest first' +
             (left > 0 ? `, ${count(left)} slower ones left out.` : '.')),
      el('div', {class: 'scroll-x'}, el('table', {class: 'plain small'},
         el('thead', {}, el('tr', {}, el('th', {scope: 'col'}, 'Sketch'),
            ['Trials', 'Failed', 'Best', 'Median'].map(
                t => el('th', {scope: 'col', class: 'num'}, t)))),
         el('tbody', {}, schedule.sketches.map(
            ({sketch, trials, failed, best_ns: best, median_ns: median,
              is_winner: ofWinner}) => el('tr', {},
                el('td', {}, ofWinner ? el('b', {}, 'winner ') : null,
                   el('bdi', {}, sketch)),
                el('td', {class: 'num'}, count(trials)),
                el('td', {class: 'num'}, failed ? count(failed) : ''),
                el('td', {class: 'num'}, amount(best, 'ns')),
                el('td', {class: 'num'}, amount(median, 'ns'))))))));
}

function rulesPanel(schedule) {
  if (schedule.rules.length === 0) return null;
  return el(
      'div', {class: 'panel'}, el('h3', {}, 'What each rule did'),
      el('p', {}, 'The variance of log time that its decisions explain, each ' +
             'alone, added up: an estimate, among what the search chose to try.'),
      el('table', {class: 'plain small'},
         el('thead', {}, el('tr', {}, el('th', {scope: 'col'}, 'Rule'),
            el('th', {scope: 'col', class: 'num'}, 'Decisions'),
            el('th', {scope: 'col'}, ''),
            el('th', {scope: 'col', class: 'num'}, 'Importance'))),
         el('tbody', {}, schedule.rules.map(
            ({rule: name, decisions, estimated_importance: importance}) =>
            el('tr', {}, el('td', {}, el('code', {}, el('bdi', {}, name))),
               el('td', {class: 'num'}, count(decisions)),
               el('td', {}, meter(Math.min(importance || 0, 1))),
               el('td', {class: 'num'}, isNumber(importance) ?
                      '~' + percent(importance) : 'not known'))))));
}

function loopsPanel(schedule) {
  if (!schedule.winner.loops) return null;
  return el('div', {class: 'panel'}, el('h3', {}, 'The winner\u2019s loops'),
            el('pre', {class: 'loops'}, schedule.winner.loops.trimEnd().split('\n')
                .flatMap(line => [line, el('br', {})])));
}

function decisionsPanel(schedule) {
  if (schedule.winner.decisions.length === 0) return null;
  return el(
      'div', {class: 'panel full'}, el('h3', {}, 'The winner\u2019s decisions'),
      el('p', {}, 'Bold: not what the rules do by themselves.'),
      el('div', {class: 'scroll-x'}, el('table', {class: 'plain small'},
         el('thead', {}, el('tr', {}, el('th', {scope: 'col'}, 'Stage'),
            el('th', {scope: 'col'}, 'Decision'),
            el('th', {scope: 'col'}, 'Rule'),
            ['Value', 'Usual', 'Importance'].map(
                t => el('th', {scope: 'col', class: 'num'}, t)))),
         el('tbody', {}, schedule.winner.decisions.map(
            ({decision: name, stage, rule, value, usual,
              estimated_importance: importance}) => el('tr', {},
                el('td', {}, el('bdi', {}, stage)),
                el('td', {}, el('code', {}, el('bdi', {}, name))),
                el('td', {}, el('bdi', {}, rule)),
                el('td', {class: 'num'}, value === usual ? String(value) :
                       el('b', {}, String(value))),
                el('td', {class: 'num'}, usual === null ? '\u2013' :
                       String(usual)),
                el('td', {class: 'num'}, isNumber(importance) ?
                       '~' + percent(importance) : '')))))));
}

// Panels of a session that has them; none of others.
function schedulePanels(session) {
  const {schedule} = session;
  if (!schedule) return [];
  if (schedule.note) return [el('p', {class: 'notice'}, data(schedule.note))];
  return [sketchesPanel(schedule), loopsPanel(schedule), rulesPanel(schedule),
          decisionsPanel(schedule)];
}

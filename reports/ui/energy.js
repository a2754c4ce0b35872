// What a session with several objectives chose from: weights that the reader
// moves along the front, and both sides of the proof.
'use strict';

// The config of the front whose weighted product of costs is least: `weight`
// goes to the first metric, the rest to the second.
function chosenByWeight(session, weight) {
  const weights = [weight, 1 - weight];
  const cost = ([, , values]) => weights.reduce((sum, w, k) => {
    const sign = session.objectives[k].lower_is_better ? 1 : -1;
    return sum + w * sign * Math.log(values[k]);
  }, 0);
  const known = session.front.filter(([, , values]) =>
      values.slice(0, 2).every(value => isNumber(value) && value > 0));
  return known.reduce((best, each) =>
      best === null || cost(each) < cost(best) ? each : best, null);
}

function weightPanel(session) {
  if (session.front.length < 2 || session.objectives.length < 2) return null;
  const [first, second] = session.objectives.map(({metric}) => clean(metric));
  const chosen = el('output', {'data-chosen': '', 'aria-live': 'polite'});
  const slider = el('input', {
    type: 'range', min: 0, max: 100, step: 5, value: 50,
    'aria-label': `Weight of ${first} against ${second}, percent`,
    oninput: show,
  });
  function show() {
    const best = chosenByWeight(session, Number(slider.value) / 100);
    slider.setAttribute('aria-valuetext',
        `${slider.value} % ${first}, ${100 - slider.value} % ${second}`);
    refill(chosen,
        `${slider.value} % ${first}, ${100 - slider.value} % ${second}: `,
        best === null ? kNotMeasured : [
          session.objectives.map(({metric, unit}, k) => [
            k ? ', ' : '', el('bdi', {}, metric), ' ',
            amount(best[2][k], unit)]),
          ' with ', el('code', {}, el('bdi', {}, configOf(session, best[1])))]);
  }
  show();
  return el('div', {class: 'panel full', 'data-weights': ''},
      el('h3', {}, 'What weights choose'),
      el('p', {}, 'The config of the front with the least weighted product ',
         'of its values. Arrow keys move the weight.'),
      el('p', {}, second + ' ', slider, ' ' + first), el('p', {}, chosen));
}

// Below a thousandth, how far below says little.
function pValue(p) {
  return !isNumber(p) ? kNotMeasured : p < .001 ? '< 0.001' : digits(p, 2);
}

function sidesPanel(session) {
  if (!session.sides || session.sides.length < 2) return null;
  return el('div', {class: 'panel full', 'data-sides': session.sides.length},
      el('h3', {}, 'Default and chosen config'),
      el('p', {}, 'In the rounds of the proof, both sides of a round one after ',
         'the other. Intervals and p-values hold whenever the rounds end.',
         session.sides.some(side => side.metric === 'error') ?
             ' The error is that of one check: the same inputs give the same ' +
             'result, so that it has neither.' : ''),
      el('div', {class: 'scroll-x'}, el('table', {class: 'plain small'},
         el('thead', {}, el('tr', {}, el('th', {scope: 'col'}, 'Metric'),
            ['Default', 'Chosen', 'Ratio', 'Interval', 'p', 'Rounds'].map(
                text => el('th', {scope: 'col', class: 'num'}, text)))),
         el('tbody', {}, session.sides.map(side => el('tr', {},
            el('th', {scope: 'row'}, el('bdi', {}, side.metric)),
            [amount(side.baseline, side.unit), amount(side.chosen, side.unit),
             digits(side.ratio),
             isNumber(side.low) ?
                 `${digits(side.low)} to ${digits(side.high)}` : kNotMeasured,
             pValue(side.p_value), count(side.rounds)].map(
                text => el('td', {class: 'num'}, text))))))));
}

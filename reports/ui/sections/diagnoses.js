// Why operators are slow: recorded diagnoses (`optrail diagnose`), the newest
// first, with their evidence and what became of their advice.
'use strict';

function gainText([value, low, high]) {
  return percent(value) +
      (isNumber(low) ? ` (${percent(low)} to ${percent(high)})` : '');
}

function evidenceItem([name, [value, low, high], how]) {
  return el('li', {class: 'muted small'}, data(name), ' ', digits(value),
            isNumber(low) ? ` (${digits(low)} to ${digits(high)})` : '', ': ',
            data(how));
}

// A chain from the symptom to its root, each link below the one before it.
function chainItem([[name, says, evidence], ...rest]) {
  return el('li', {}, el('b', {}, data(name)), ': ', data(says),
            el('ul', {}, evidence.map(evidenceItem),
               rest.length ? chainItem(rest) : null));
}

function adviceItem({text, predicted, confidence, realised, outcome}) {
  return el('li', {}, data(text), ': ', percent(predicted), ' predicted (',
            data(confidence), '), ',
            isNumber(realised) ? percent(realised) + ' realised' : 'not tried',
            outcome ? [': ', data(outcome)] : '');
}

function diagnosisCard(diagnosis, index) {
  const {causes, advice, unknown} = diagnosis;
  return el(
      'details', {id: 'diagnosis-' + index, class: 'card diagnosis'},
      el('summary', {}, el('b', {}, data(diagnosis.task)), ' ',
         data(diagnosis.verdict)),
      el('dl', {class: 'facts'},
         fact('Time', amount(diagnosis.time, 'ns')),
         fact('Share of the roofline', isNumber(diagnosis.f) ?
             rooflineShare(diagnosis.f) : kNotMeasured),
         fact('Hardware', data(diagnosis.hardware)),
         fact('Diagnosed', dateTime(diagnosis.at), data(diagnosis.id)),
         diagnosis.config ? fact('Config', data(diagnosis.config)) : null),
      causes.length ? el('h3', {}, 'Causes') : null,
      el('ul', {}, causes.map(([recoverable, chain]) => [
           el('li', {}, gainText(recoverable), ' of the time would go'),
           el('ul', {}, chainItem(chain))])),
      advice.length ? el('h3', {}, 'Advice') : null,
      el('ul', {}, advice.map(adviceItem)),
      unknown.length ? el('p', {class: 'muted small'}, 'Not known: ',
         unknown.map(([name, why], i) =>
             [i ? '; ' : '', data(name), ' (', data(why), ')'])) : null);
}

function openDiagnosis(index) {
  const card = document.getElementById('diagnosis-' + index);
  card.open = true;
  card.scrollIntoView();
  card.querySelector('summary').focus({preventScroll: true});
}

// Predicted against realised gains of the advice that was tried.
function calibrationTable() {
  const cell = value => el('td', {class: 'num'},
                           isNumber(value) ? percent(value) : kNotMeasured);
  const row = each => el(
      'tr', {}, el('td', {}, data(each.advice)),
      el('td', {class: 'num'}, count(each.given)),
      el('td', {class: 'num'}, count(each.tried)),
      cell(each.median_predicted_gain), cell(each.median_realised_gain),
      cell(each.median_relative_error), cell(each.half_or_more_share));
  const names = ['Given', 'Tried', 'Predicted gain', 'Realised gain',
                 'Error of the prediction', 'Brought half or more'];
  return el('div', {class: 'card scroll-x', id: 'calibration'},
            el('h3', {}, 'Advice held to account'),
            el('p', {class: 'muted small'},
               'Medians over the advice that diagnose --try and convergence ' +
               '--try applied.'),
            el('table', {class: 'plain small'},
               el('thead', {}, el('tr', {}, el('th', {scope: 'col'}, 'Advice'),
                  names.map(name => el('th', {scope: 'col', class: 'num'},
                                         name)))),
               el('tbody', {}, report.calibration.map(row))));
}

function diagnosesSection() {
  if (report.diagnoses.length === 0) return null;
  return el('section', {id: 'diagnoses'},
            sectionHead('Diagnoses', 'Why operators are slow, as ' +
                                     'optrail diagnose recorded it.'),
            report.calibration.length ? calibrationTable() : null,
            report.diagnoses.map(diagnosisCard));
}

addSection({id: 'diagnoses', title: 'Diagnoses', order: 65,
            build: diagnosesSection});

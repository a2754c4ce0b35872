// What was measured, what the words mean, licences; and the page of a history
// without data.
'use strict';

function hardwareFacts() {
  return report.hardware.map(hardware => fact(
      hardware.id, hardware.model || 'model not recorded',
      [hardware.cores ? plural(hardware.cores, 'core') : '',
       hardware.memory_bytes ? bytes(hardware.memory_bytes) : '',
       hardware.virtual_machine ? 'virtual machine' : '',
       hardware.compiler, hardware.os, hardware.driver]
          .filter(Boolean).join(', ')));
}

function timeFact() {
  const [first, last] = report.recorded;
  if (!first) return fact('Recorded', 'nothing yet');
  return fact('Last recorded', dateTime(last * 60),
              first === last ? '' : `first ${date(first * 60)}`);
}

function aboutSection() {
  return el(
      'section', {id: 'about', class: 'about'},
      sectionHead('About this report'),
      el('dl', {class: 'facts card'},
         fact('History', `${count(report.series.length)} series`,
              `${plural(report.runs, 'run')}, ${
                  plural(report.commits.length, 'commit')}, ${
                  plural(report.sessions.length, 'tuning session')}`),
         timeFact(), hardwareFacts()),
      el('p', {}, 'A point is the median of its processes\u2019 medians; the ' +
             'band spans the processes. Processes, not samples, are the ' +
             'evidence: a level is said to change only when processes say so. ' +
             'Axes of series do not start at zero. Where a commit was not ' +
             'measured, or failed, the line breaks.'),
      el('dl', {}, kVerdicts.map((verdict, at) => !verdict.series ? [] : [
        el('dt', {}, verdictLabel(at)), el('dd', {}, verdict.meaning)])),
      el('p', {}, report.source ? ['Made from ', el('code', {}, report.source),
                                   '. '] : '',
         'The page is complete: it loads nothing and sends nothing.'),
      el('details', {}, el('summary', {}, 'Licences'),
         el('p', {}, 'Charts are drawn by Apache ECharts 5.6.0, Copyright ' +
                '2017\u20132024 The Apache Software Foundation, under the ' +
                'Apache License, Version 2.0:'),
         el('pre', {tabindex: '0'},
            document.getElementById('echarts-license').textContent
                .split('\n').map(line => [line, document.createTextNode('\n')]))));
}

// Nothing was recorded: what to do about it.
function blankSection() {
  return el(
      'section', {id: 'overview', class: 'card blank'},
      report.warnings.map(text => el('p', {class: 'notice'}, sentence(text))),
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

addSection({id: 'about', title: 'About', order: 90, build: aboutSection});

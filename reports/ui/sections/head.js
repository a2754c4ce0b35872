// The top of the page: what this is, how many series stand how.
'use strict';

// What each benchmark is judged by: its time, or all metrics of one without.
function mainSeries() {
  return report.series.filter(series => series.j);
}

// "84 series: 14 slower, 2 failed." Nothing is called unchanged that was not
// judged to be.
function headline() {
  const main = mainSeries();
  if (main.length === 0) return 'No benchmark was recorded yet.';
  const of = (word, verdicts) => {
    const rows = report.overview.attention.filter(
        row => verdicts.includes(kVerdicts[row.v].name));
    const n = rows.reduce((sum, row) => sum + row.series.length, 0);
    return n ? `${count(n)} ${word}` : '';
  };
  const parts = ['slower', 'failed', 'missing', 'maybe slower', 'faster']
                    .map(verdict => of(verdict, [verdict])).filter(Boolean);
  const open = main.filter(series => ['no baseline', "can't tell"].includes(
                               kVerdicts[series.v].name)).length;
  if (open) parts.push(`${count(open)} without a verdict yet`);
  const others = report.series.length - main.length;
  return `${count(main.length)} series: ` +
      (parts.join(', ') || 'nothing wants attention') + '.' +
      (others ? ` ${count(others)} of other metrics are not counted.` : '');
}

function newestText() {
  if (report.commits.length === 0) return null;
  const [id, subject, time, , dirty, branch] =
      report.commits[report.commits.length - 1];
  return [
    'Newest commit ', el('code', {}, shortId({id, dirty})),
    branch ? [' on ', data(branch)] : '', time ? `, ${date(time)}` : '',
    subject ? [': ', data(subject)] : '',
  ];
}

function headSection() {
  const counts = kVerdicts.map(() => 0);
  for (const series of mainSeries()) ++counts[series.v];
  const chips = counts.map((n, v) => n === 0 ? null : el('button', {
        type: 'button',
        class: 'chip',
        title: `Show the series that are ${kVerdicts[v].name}`,
        onclick: () => navigate({section: 'series', verdict: String(v)}),
      }, verdictLabel(v), el('b', {}, count(n))));
  return el(
      'section', {id: 'overview', class: 'head'},
      report.synthetic ?
          el('p', {class: 'notice'},
             'Synthetic data: every number on this page is made up.') :
          null,
      el('div', {}, el('h1', {}, el('bdi', {}, report.title)),
         el('p', {class: 'headline'}, headline()),
         report.series.length ?
             el('p', {class: 'muted small'}, report.changes, '.') : null,
         el('p', {class: 'muted small clip'}, newestText())),
      el('div', {class: 'chips', role: 'group',
                 'aria-label': 'Verdicts; each shows its series'}, chips));
}

addSection({id: 'overview', title: 'Overview', order: 10, build: headSection});

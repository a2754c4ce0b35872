// What wants attention: a row for the series of a verdict that one commit may
// explain, with the commands that answer it. A range of commits in which some
// series got slower and others faster has a row for each.
'use strict';

function rangeText(row) {
  const [id, subject] = report.commits[row.bad] || ['', ''];
  const alone = row.suspects.length === 1 && (row.count === 1 || row.count === null);
  if (!row.range) {
    return el('span', {class: 'muted'}, 'last measured at ',
              el('code', {}, (report.commits[row.good] || ['?'])[0].slice(0, 8)));
  }
  if (alone) return [el('code', {}, id.slice(0, 8)), ' ', data(subject)];
  const [from, to] = row.range.split('..');
  const many = isNumber(row.count) ? plural(row.count, 'commit') :
                                     plural(row.suspects.length, 'measured commit');
  return [el('code', {}, to ? `${from.slice(0, 8)}..${to.slice(0, 8)}` : from),
          el('span', {class: 'muted'}, ` one of ${many}`)];
}

function intervalText(series) {
  if (!isNumber(series.r[1]) || !isNumber(series.r[2])) return '';
  return `${signedPercent(series.r[1] - 1)} to ${
      signedPercent(series.r[2] - 1)}`;
}

// The size of the change, and how sure it is.
function sizeCell(row) {
  if (!isNumber(row.low)) return el('span', {class: 'amount'});
  const series = report.series[row.series[0]];
  const same = signedPercent(row.low) === signedPercent(row.high);
  return el('span', {class: 'amount tone-' + kVerdicts[row.v].tone},
            (same ? '' : 'up to ') + signedPercent(changeOf(series)),
            intervalText(series) ?
                el('small', {}, row.series.length === 1 ?
                       '95% interval: ' + intervalText(series) :
                       '95% interval of the largest alone: ' +
                           intervalText(series)) :
                null);
}

// "softmax, attention": what the series belong to.
function familiesText(row) {
  const names = [...new Set(row.series.map(i => familyOf(report.series[i])))];
  return names.slice(0, 3).join(', ') +
      (names.length > 3 ? ` and ${count(names.length - 3)} more` : '');
}

function memberRow(index) {
  const series = report.series[index];
  const change = changeOf(series);
  return el(
      'tr', {},
      el('td', {class: 'hide-narrow'},
         verdictLabel(series.v, verdictName(series))),
      el('td', {}, el('button', {
           type: 'button',
           class: 'link',
           onclick: () => navigate({section: 'series', index}),
         }, data(titleOf(series)), ' ',
         el('span', {class: 'muted'}, data(variantOf(series)))),
         el('small', {class: 'only-narrow muted'}, verdictName(series), ' on ',
            data(hardwareOf(series)),
            intervalText(series) ?
                ', 95% interval: ' + intervalText(series) : '')),
      el('td', {class: 'hide-narrow'}, data(hardwareOf(series))),
      el('td', {class: 'num'}, change === null ? '' : signedPercent(change)),
      el('td', {class: 'num hide-narrow'}, intervalText(series)));
}

function suspectRow(at) {
  const [id, subject, time] = report.commits[at];
  return el('tr', {}, el('td', {}, el('code', {}, id.slice(0, 12) || 'no commit')),
            el('td', {class: 'date'}, date(time)), el('td', {}, data(subject)));
}

function attentionBody(row) {
  const members = el('tbody');
  const more = withMore(row.series.map(i => () => memberRow(i)), 8, members, 300);
  const suspects = el('tbody');
  const moreSuspects = withMore(
      [...row.suspects].reverse().map(at => () => suspectRow(at)), 8, suspects,
      300);
  const unseen = isNumber(row.count) ? row.count - row.suspects.length : 0;
  return el(
      'div', {class: 'attention-body'},
      el('p', {class: 'small'}, data(row.text)),
      changedWith(report.series[row.series[0]]),
      el('div', {class: 'scroll-x'},
         el('table', {class: 'plain small'},
            el('thead', {}, el('tr', {},
               el('th', {scope: 'col', class: 'hide-narrow'}, 'Verdict'),
               el('th', {scope: 'col'}, 'Benchmark'),
               el('th', {scope: 'col', class: 'hide-narrow'}, 'Hardware'),
               el('th', {scope: 'col', class: 'num'}, 'Change'),
               el('th', {scope: 'col', class: 'num hide-narrow'},
                  '95% interval'))),
            members)),
      more,
      row.range && row.suspects.length ? [
        el('h3', {}, row.suspects.length + unseen > 1 ? 'Suspected commits' :
                                                        'Suspected commit',
           unseen > 0 ? el('small', {class: 'muted'},
                           ` and ${count(unseen)} that nobody measured`) : null),
        el('div', {class: 'scroll-x'},
           el('table', {class: 'plain small'}, suspects)),
        moreSuspects,
      ] : null,
      row.commands.length ? el('h3', {}, 'Next') : null,
      row.commands.map(({what, command}) => el(
          'div', {class: 'next'}, el('span', {class: 'muted'}, what),
          commandLine(command))));
}

// Where it shows, and where the same operators were measured and it does not.
function hardwareText(row) {
  const families = new Set(row.series.map(i => report.series[i].o));
  const others = new Set(report.overview.cells
      .filter(cell => families.has(cell.o) && !row.hardware.includes(cell.h))
      .map(cell => cell.h));
  const names = list => [...list].map(h => report.hardware[h].id).join(', ');
  const without = isVerdict(row.v, 'missing') ? '; measured on ' :
      isVerdict(row.v, 'failed') ? '; no such failure on ' :
                                   '; no such change found on ';
  return 'on ' + names(row.hardware) +
      (others.size ? without + names(others) : '');
}

function attentionItem(row) {
  const first = report.series[row.series[0]];
  const alone = row.series.length === 1;
  const dated = row.range && row.bad >= 0;
  const item = el('details', {}, el('summary', {},
      verdictLabel(row.v, verdictName(first)), sizeCell(row),
      el('span', {class: 'name clip'}, data(alone ? titleOf(first) : familiesText(row)),
         el('span', {class: 'muted'},
            alone ? '' : ` ${plural(row.series.length, 'benchmark')}`),
         el('small', {class: 'clip'}, alone ?
                [data(variantOf(first)), ' ', data(hardwareText(row))] :
                data(hardwareText(row)))),
      el('span', {class: 'why clip'}, rangeText(row),
         el('small', {class: 'clip muted'},
            dated ? date(report.commits[row.bad][2]) : '',
            first.d ? [dated ? ', ' : '', data(first.d)] : null))));
  // Only what is opened, or printed, is made.
  const fill = () => {
    if (item.children.length === 1) item.append(attentionBody(row));
  };
  item.addEventListener('toggle', () => item.open && fill());
  addEventListener('beforeprint', () => {
    fill();
    item.open = true;
  });
  return el('li', {}, item);
}

// What people have said of changes, so that nobody wonders where they are.
function answersList() {
  const rows = [];
  report.series.forEach((series, index) => {
    if (!series.j) return;
    for (const change of series.cp) {
      if (change[8]) rows.push([index, change]);
    }
  });
  if (rows.length === 0) return null;
  const body = el('tbody');
  const more = withMore(rows.map(([index, change]) => () => el(
      'tr', {},
      el('td', {}, el('button', {
           type: 'button',
           class: 'link',
           onclick: () => navigate({section: 'series', index}),
         }, data(titleOf(report.series[index])))),
      el('td', {class: 'num'}, signedPercent(change[1])),
      el('td', {}, data(change[7])))), 20, body, 300);
  return el('details', {class: 'answers'},
            el('summary', {}, plural(rows.length, 'change'),
               ' that somebody answered or muted'),
            el('div', {class: 'card scroll-x'},
               el('table', {class: 'plain small'}, body), more));
}

// Why series have no verdict: the judge's reasons, the most frequent first.
function reasonsText() {
  const reasons = new Map();
  for (const series of mainSeries()) {
    const open = isVerdict(series.v, "can't tell") ||
        isVerdict(series.v, 'no baseline');
    if (open) reasons.set(series.d, (reasons.get(series.d) || 0) + 1);
  }
  const all = [...reasons].sort((a, b) => b[1] - a[1]);
  if (all.length === 0) return null;
  return el('p', {class: 'muted small'}, 'No verdict yet: ',
            all.slice(0, 5).map(([why, n], i) => [
              i ? ', ' : '', `${count(n)} series (`, el('bdi', {}, why), ')']),
            all.length > 5 ?
                `, ${plural(all.length - 5, 'other reason')}` : '', '.');
}

// Warnings say "...; next: COMMAND" where a command answers them.
function notice(text) {
  const [told, command] = text.split('; next: ');
  return el('div', {class: 'notice'}, el('p', {}, sentence(told),
                                           told.endsWith('.') ? '' : '.'),
            command ? commandLine(command) : null);
}

function attentionSection() {
  const notices = report.warnings.map(notice);
  if (report.series.length === 0) {
    return notices.length ? el('section', {id: 'attention'}, notices) : null;
  }
  const rows = report.overview.attention;
  const list = el('ul', {class: 'attention card'});
  const more = withMore(rows.map(row => () => attentionItem(row)), 8, list, 200);
  // Several rows stay closed: the first screen has room for all that got slower.
  if (rows.length === 1) list.firstChild.firstChild.open = true;
  return el(
      'section', {id: 'attention'},
      sectionHead('Wants attention', rows.length ?
          'A row joins what one commit may explain. What got slower comes ' +
              'first. Open a row for its benchmarks and commands.' : null),
      rows.length ? list :
          el('p', {class: 'card calm'}, 'Nothing failed, is missing or changed ' +
             'its level.'),
      more, notices, reasonsText(), answersList());
}

addSection({id: 'attention', title: 'Attention', order: 20,
            build: attentionSection});

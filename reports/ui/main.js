// Puts the page together; the address' fragment says what is open, so that a
// view can be linked to: "#/series?q=softmax&open=NAME&on=HARDWARE".
'use strict';

// The fragment ----------------------------------------------------------------

let remembering = true;

function parameters() {
  const [path, query] = decodeFragment(location.hash);
  return {section: path, query: new URLSearchParams(query)};
}

function decodeFragment(hash) {
  const text = hash.replace(/^#\/?/, '');
  const at = text.indexOf('?');
  return at < 0 ? [text, ''] : [text.slice(0, at), text.slice(at + 1)];
}

// Writes what is open into the address, without a new entry in the history.
function remember() {
  if (!remembering) return;
  const query = new URLSearchParams();
  const {filter, open} = seriesList;
  const put = (name, value, normal) => {
    if (value !== normal) query.set(name, value);
  };
  put('q', filter.text, '');
  put('verdict', filter.verdict, '');
  put('op', filter.op, '');
  put('hardware', filter.hardware, '');
  put('metrics', filter.metric, '');
  put('sort', filter.sort, 'attention');
  if (open >= 0) {
    query.set('open', report.series[open].n);
    query.set('on', hardwareOf(report.series[open]));
    put('metric', report.series[open].m, 'time');
    put('branch', report.series[open].b, '');
  }
  if (tuning.open > 0) query.set('session', report.sessions[tuning.open].id);
  const text = query.toString();
  history.replaceState(null, '', '#/' + (open >= 0 || text ? 'series' : '') +
                       (text ? '?' + text : ''));
}

// navigate({section, verdict, family, hardware, index}): shows exactly that;
// `index` is of one series.
function navigate(target) {
  seriesList.filter = {
    ...seriesList.filter,
    text: '',
    verdict: target.verdict || '',
    op: target.family || '',
    hardware: target.hardware || '',
    metric: target.index !== undefined && !report.series[target.index].j ?
        'all' : '',
  };
  seriesList.apply();
  if (target.index !== undefined) {
    seriesList.openSeries(target.index);
    seriesList.moveTo(seriesList.shown.indexOf(target.index));
  } else {
    seriesList.close();
  }
  remember();
  const section = document.getElementById(target.section);
  section.scrollIntoView();
  seriesList.list.focus({preventScroll: true});
}

// What the address asks for, when the page opens or the reader edits it.
function follow() {
  const {section, query} = parameters();
  remembering = false;
  if (query.get('theme') === 'dark' || query.get('theme') === 'light') {
    theme.set(query.get('theme'));
  }
  if (report.series.length) {
    Object.assign(seriesList.filter, {
      text: query.get('q') || '',
      verdict: query.get('verdict') || '',
      op: query.get('op') || '',
      hardware: query.get('hardware') || '',
      metric: query.get('metrics') || '',
      sort: query.get('sort') || 'attention',
    });
    seriesList.apply();
    const asked = (name, value) => !query.has(name) || query.get(name) === value;
    const index = report.series.findIndex(
        series => series.n === query.get('open') &&
            asked('on', hardwareOf(series)) && asked('branch', series.b) &&
            series.m === (query.get('metric') || 'time'));
    if (index >= 0) {
      if (!report.series[index].j) {
        seriesList.filter.metric = 'all';
        seriesList.apply();
      }
      seriesList.openSeries(index);
      seriesList.moveTo(seriesList.shown.indexOf(index));
    }
  }
  if (report.sessions.length) {
    tuning.show(Math.max(0, report.sessions.findIndex(
        session => session.id === query.get('session'))));
  }
  remembering = true;
  const target = section && document.getElementById(section);
  if (target) target.scrollIntoView();
}

// Keys that work everywhere ---------------------------------------------------

function onKey(event) {
  if (event.defaultPrevented || event.ctrlKey || event.metaKey ||
      event.altKey) {
    return;
  }
  const typing = /^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName);
  if (event.key === '/' && !typing && seriesList.search) {
    event.preventDefault();
    document.getElementById('series').scrollIntoView();
    seriesList.search.focus({preventScroll: true});
    seriesList.search.select();
  } else if (event.key === 'Escape') {
    if (typing && seriesList.search === event.target &&
        seriesList.search.value) {
      seriesList.filter.text = '';
      seriesList.apply();
      remember();
      event.preventDefault();
    } else if (seriesList.rows && seriesList.close()) {
      event.preventDefault();
    }
  }
}

// Marks the section in view in the bar.
function watchSections() {
  const links = new Map();
  for (const link of document.querySelectorAll('.bar nav a')) {
    const section =
        document.getElementById(link.getAttribute('href').slice(2));
    links.set(section, link);
  }
  const update = () => {
    let current = null;
    for (const section of links.keys()) {
      if (section.getBoundingClientRect().top < 120) current = section;
    }
    current = current || links.keys().next().value;
    for (const [section, link] of links) {
      link.setAttribute('aria-current', String(section === current));
    }
  };
  addEventListener('scroll', update, {passive: true});
  update();
}

function preparePrint() {
  let before = null;
  addEventListener('beforeprint', () => {
    before = theme.current();
    theme.set('light');
    charts.createAll();
    if (seriesList.rows) {
      seriesList.printing = true;
      seriesList.draw();
    }
  });
  addEventListener('afterprint', () => {
    theme.set(before);
    if (seriesList.rows) {
      seriesList.printing = false;
      seriesList.draw();
    }
  });
}

function start() {
  theme.start();
  const page = document.getElementById('page');
  const empty = report.series.length === 0 && report.sessions.length === 0;
  const nav = document.querySelector('.bar nav');
  const sections = empty ? [blankSection(), aboutSection()] :
                           kSections.map(({build}) => build());
  page.replaceChildren(...sections.filter(Boolean));
  for (const {id, title} of kSections) {
    if (document.getElementById(id)) {
      nav.append(el('a', {href: '#/' + id}, title), ' ');
    }
  }
  if (!empty) follow();
  watchSections();
  preparePrint();
  addEventListener('keydown', onKey);
  addEventListener('hashchange', () => {
    const {section, query} = parameters();
    // The bar's links only scroll: what is open stays open.
    if (query.toString() === '') {
      const target = section && document.getElementById(section);
      if (target) target.scrollIntoView();
      remember();
    } else if (!empty) {
      follow();
    }
  });
  // When the page could be read, for reports/open_time.sh.
  document.body.getBoundingClientRect();
  document.documentElement.dataset.opened = Math.round(performance.now());
  document.documentElement.dataset.ready = 'true';
}

start();

#!/usr/bin/env python3
"""Works the pages of energy and carbon by keyboard, and prints them.

  energy_pages_test.py OPTRAIL

The report of `optrail demo`, a plan and a certificate are opened in headless
Chromium. Keys go through the browser as a keyboard's do: Tab has to reach the
slider of the weights, and arrows have to move it. Without Chromium it says so
and tests nothing.
"""

import base64
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

KEYS = {'Tab': 9, 'End': 35, 'Home': 36, 'ArrowLeft': 37, 'ArrowRight': 39}
# The page has a few hundred stops before the session's panels.
MOST_TABS = 2000


class Browser:
    """One page, by the DevTools protocol over a pair of pipes."""

    def __init__(self, program, folder):
        to_browser, self.write = os.pipe()
        self.read, from_browser = os.pipe()
        os.set_inheritable(to_browser, True)
        os.set_inheritable(from_browser, True)

        def as_three_and_four():
            # Copies first: one of the two may be 3 or 4 itself.
            first = os.dup(to_browser)
            second = os.dup(from_browser)
            os.dup2(first, 3)
            os.dup2(second, 4)

        self.process = subprocess.Popen(
            [program, '--headless', '--no-sandbox', '--disable-gpu',
             '--no-first-run', '--disable-background-networking',
             '--disable-component-update', '--disable-sync',
             '--allow-file-access-from-files', '--window-size=1400,1000',
             '--user-data-dir=' + os.path.join(folder, 'profile'),
             '--remote-debugging-pipe', 'about:blank'],
            preexec_fn=as_three_and_four, close_fds=False,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(to_browser)
        os.close(from_browser)
        self.buffer = b''
        self.last = 0
        self.session = None
        targets = self.call('Target.getTargets')['targetInfos']
        page = next(each for each in targets if each['type'] == 'page')
        self.session = self.call('Target.attachToTarget',
                                 targetId=page['targetId'],
                                 flatten=True)['sessionId']
        self.call('Page.enable')

    def message(self):
        while b'\0' not in self.buffer:
            more = os.read(self.read, 1 << 20)
            if not more:
                sys.exit('FAILED: the browser ended')
            self.buffer += more
        text, self.buffer = self.buffer.split(b'\0', 1)
        return json.loads(text)

    def call(self, method, **params):
        self.last += 1
        message = {'id': self.last, 'method': method, 'params': params}
        if self.session:
            message['sessionId'] = self.session
        os.write(self.write, json.dumps(message).encode() + b'\0')
        while True:
            answer = self.message()
            if answer.get('id') == self.last:
                if 'error' in answer:
                    sys.exit('FAILED: %s: %s' % (method, answer['error']))
                return answer['result']

    def value(self, script):
        answer = self.call('Runtime.evaluate', expression=script,
                           returnByValue=True, awaitPromise=True)
        if 'exceptionDetails' in answer:
            sys.exit('FAILED: %s\n%s' % (script, answer['exceptionDetails']))
        return answer['result'].get('value')

    def open(self, path, fragment=''):
        self.call('Page.navigate', url='about:blank')
        self.call('Page.navigate', url='file://' + path + fragment)
        self.value('''new Promise(resolve => {
          const done = () => document.readyState === 'complete' &&
              (!document.querySelector('script') ||
               document.documentElement.dataset.ready);
          const look = () => done() ? resolve(1) : setTimeout(look, 20);
          look();
        })''')

    def press(self, key):
        for kind in 'rawKeyDown', 'keyUp':
            self.call('Input.dispatchKeyEvent', type=kind, key=key, code=key,
                      windowsVirtualKeyCode=KEYS[key])

    def pdf(self):
        data = self.call('Page.printToPDF', printBackground=True)['data']
        return base64.b64decode(data)

    def close(self):
        self.call('Browser.close')
        self.process.wait()


def expect(holds, what):
    if not holds:
        sys.exit('FAILED: ' + what)


def pages_of(pdf):
    return len(re.findall(rb'/Type\s*/Page\b', pdf))


def slider_by_keyboard(browser, report):
    browser.open(report)
    session = browser.value(
        "report.sessions.find(s => s.objectives.length > 1).id")
    browser.open(report, '#/?session=' + session)
    expect(browser.value(
        "document.querySelectorAll('[data-weights] input').length") == 1,
        'no slider of weights')
    on_slider = "document.activeElement.matches('[data-weights] input')"
    tabs = 0
    while not browser.value(on_slider):
        tabs += 1
        expect(tabs <= MOST_TABS, 'Tab does not reach the slider')
        browser.press('Tab')
    chosen = "document.querySelector('[data-chosen]').textContent"
    seen = set()
    browser.press('Home')
    first = browser.value(chosen)
    expect(first.startswith('0 % joules, 100 % time'), 'Home: ' + first)
    for step in range(21):
        seen.add(re.sub('^.*?: ', '', browser.value(chosen)))
        browser.press('ArrowRight')
    last = browser.value(chosen)
    expect(last.startswith('100 % joules, 0 % time'), 'End: ' + last)
    expect(len(seen) > 2, 'the config does not follow the weights: %s' % seen)
    browser.press('ArrowLeft')
    expect(browser.value(chosen).startswith('95 % joules'), 'ArrowLeft')
    expect(browser.value("document.activeElement.ariaValueText") ==
           '95 % joules, 5 % time', 'the value is not said')
    # Both sides of the proof, with p-values of time and joules.
    rows = browser.value('''[...document.querySelectorAll(
        '[data-sides] tbody tr')].map(row => [...row.cells].map(
            cell => cell.textContent))''')
    metrics = {row[0]: row for row in rows}
    for metric in 'time', 'joules':
        expect(metric in metrics, 'no row of ' + metric)
        expect(re.search(r'\d', metrics[metric][5]), 'no p-value of ' + metric)
    expect('error' in metrics, 'no row of error')
    print('slider reached after %d tabs, %d configs chosen' %
          (tabs, len(seen)))


def main():
    optrail = os.path.abspath(sys.argv[1])
    program = next(filter(None, map(shutil.which, (
        'chromium', 'chromium-browser', 'google-chrome'))), None)
    if program is None:
        print('skipped: chromium not installed')
        return
    work = tempfile.mkdtemp(dir=os.environ.get('TEST_TMPDIR'))
    os.chdir(work)

    def run(*arguments):
        done = subprocess.run([optrail, *arguments], stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True)
        expect(done.returncode == 0, '%s: %s' % (arguments, done.stdout))
        return done.stdout

    run('demo', '--out=demo')
    runs = [line for line in json.loads(
        run('log', 'runs', '--history=demo/history', '--limit=0',
            '--format=json'))
        if line['hardware'] == 'nvidia-h200' and line['suite'] == 'smoke']
    day = runs[-1]['started_utc'][:10]
    run('carbon', 'example', '--zone=DE', '--hours=20000', '--out=grid.csv',
        '--start=%sT00:00:00Z' % day)
    run('carbon', 'certify', runs[1]['run_id'], runs[0]['run_id'],
        '--history=demo/history', '--intensity=grid.csv', '--zone=DE',
        '--watts=600', '--filter=^matmul/', '--out=certificate.json')
    run('carbon', 'verify', 'certificate.json', '--history=demo/history')
    with open('jobs.csv', 'w') as file:
        file.write('id,watts,hours,release,deadline,preemptible\n'
                   'nightly,450,3,%sT00:00:00Z,%sT20:00:00Z,yes\n' %
                   (day, day))
    run('carbon', 'plan', '--jobs_file=jobs.csv', '--intensity=grid.csv',
        '--zone=DE', '--out=plan.html')

    browser = Browser(program, work)
    slider_by_keyboard(browser, os.path.join(work, 'demo/report.html'))
    for page, holds in (('demo/report.html', 'What weights choose'),
                        ('plan.html', 'Carbon plan'),
                        ('certificate.html', 'estimated')):
        if page != 'demo/report.html':
            browser.open(os.path.join(work, page))
        expect(holds in browser.value('document.body.innerText'),
               '%s: no "%s"' % (page, holds))
        wide = browser.value('document.documentElement.scrollWidth - '
                             'document.documentElement.clientWidth')
        expect(wide <= 0, '%s is %s px wider than the window' % (page, wide))
        pdf = browser.pdf()
        expect(pdf.startswith(b'%PDF') and pages_of(pdf) > 0,
               '%s prints nothing' % page)
        print('%s: %d printed pages' % (page, pages_of(pdf)))
    browser.close()
    print('passed in ' + program)


if __name__ == '__main__':
    main()

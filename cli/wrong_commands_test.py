#!/usr/bin/env python3
"""Runs the wrong commands of wrong_commands.txt: each error names the mend.

  wrong_commands_test.py OPTRAIL WRONG_COMMANDS

They run in a git repository whose history has two runs of the suite
"benchmarks" on the hardware "first", of BM_Sort and BM_Hash.
"""

import json
import os
import re
import shlex
import subprocess
import sys
import tempfile

LEAST = 60


def read(path):
    """(line, command, text, exit code) of each entry."""
    entries = []
    with open(path) as file:
        lines = [line.rstrip('\n') for line in file]
    for number, line in enumerate(lines, 1):
        if line.startswith('optrail '):
            entries.append([number, line, None, 2])
        elif line.startswith('  '):
            code, text = re.fullmatch(r'  (?:\[(\d)\] )?(.*)', line).groups()
            entries[-1][2] = text
            entries[-1][3] = int(code or 2)
        elif line and not line.startswith('#'):
            sys.exit('%s:%d: expected a command, its error or a comment' %
                     (path, number))
    return entries


def google_benchmark(path):
    rows = [{'name': name, 'run_name': name, 'run_type': 'iteration',
             'repetitions': 1, 'repetition_index': 0, 'threads': 1,
             'iterations': 100, 'real_time': time, 'cpu_time': time,
             'time_unit': 'ns'}
            for name, time in (('BM_Sort', 1000.0), ('BM_Hash', 250.0))]
    context = {'date': '2026-11-20T09:08:07+00:00', 'num_cpus': 2,
               'executable': './bench', 'caches': []}
    with open(path, 'w') as file:
        json.dump({'context': context, 'benchmarks': rows}, file)


def make_folder(optrail, environment):
    git = ['git', '-c', 'user.name=t', '-c', 'user.email=t@localhost']
    subprocess.check_call(['git', 'init', '-q', '-b', 'main', '.'])
    for run in (1, 2):
        google_benchmark('results%d.json' % run)
        subprocess.check_call(['git', 'add', '.'])
        subprocess.check_call(git + ['commit', '-qm', 'run %d' % run])
        subprocess.check_call(
            [optrail, 'import', 'results%d.json' % run, '--hardware=first',
             '--suite=benchmarks', '--again'],
            env=environment, stdout=subprocess.DEVNULL)
    for name in ('bench', 'run'):
        with open(name, 'w') as file:
            file.write('#!/bin/sh\necho "{}"\n')
        os.chmod(name, 0o755)
    with open('policy.textproto', 'w') as file:
        file.write('rule { metric: "cpu_time" }\n')


def main():
    optrail = os.path.abspath(sys.argv[1])
    entries = read(sys.argv[2])
    if len(entries) < LEAST:
        sys.exit('%d wrong commands, expected %d' % (len(entries), LEAST))
    folder = tempfile.mkdtemp(dir=os.environ.get('TEST_TMPDIR'))
    os.chdir(folder)
    environment = dict(os.environ, BUILD_WORKSPACE_DIRECTORY=folder,
                       BUILD_WORKING_DIRECTORY=folder,
                       GIT_CEILING_DIRECTORIES=os.path.dirname(folder))
    make_folder(optrail, environment)
    failed = 0
    for number, command, text, code in entries:
        done = subprocess.run([optrail] + shlex.split(command)[1:],
                              env=environment, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, timeout=60)
        error = (done.stderr + done.stdout).decode(errors='replace')
        if done.returncode == code and text in error:
            continue
        failed += 1
        print('wrong_commands.txt:%d: %s\n  expected exit code %d and: %s\n'
              '  got exit code %d and: %s' %
              (number, command, code, text, done.returncode, error.strip()))
    print('%d wrong commands, %d without the mend' % (len(entries), failed))
    sys.exit(1 if failed else 0)


if __name__ == '__main__':
    main()

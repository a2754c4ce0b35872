#!/usr/bin/env python3
"""Runs every command of README.md, CONTRIBUTING.md and docs/**/*.md as it is typed.

  documented_commands_test.py OPTRAIL WORKSPACE_FILE

Commands are the lines of ```sh blocks. Those of `optrail` run in a scratch git
repository that holds what their examples name; each must end with 0, 1 or 3
(fine, a finding, can't tell), within a limit. A command that several pages show
runs once. Where an example's budget would take minutes, SHORTENED adds flags that
the page does not show. A block is left out by an HTML comment on the line before it, `<!-- not run: REASON -->`, or
`<!-- run by TEST -->`. Commands of bazel are not run inside bazel: that their
targets are declared is checked. Besides, every `optrail COMMAND --flag` within
a sentence must name flags that `optrail help COMMAND` knows, and every `bazel
run` a target and flags that exist.
"""

import glob
import os
import re
import shutil
import struct
import subprocess
import sys
import time

LIMIT_SECONDS = 120

# Prefix of a command -> flags that make it short.
SHORTENED = {
    'optrail tune --op=softmax --shape=rows=64,cols=32..':
        '--trials=2 --total_time=8s --proof_time=50ms',
    'optrail tune --op=softmax': '--trials=3 --proof_time=1s',
    'optrail tune --op': '--shape=m=512,n=512,k=512 --trials=3 --proof_time=1s',
    'optrail tune --workload': '--total_trials=10 --total_time=1s --quiet '
                               '--proof_time=50ms',
    'optrail tune --space': '--trials=4',
    'optrail bench --op': '--processes=1 --benchmark_min_time=0.001 --quiet',
    'optrail doctor': '--probe_time=1s',
    'optrail replay': '--strategies=random --seeds=1 --budgets=20',
    'optrail compare --binaries': '--max_rounds=5',
    'optrail watch': '--processes=1',
    'optrail suite': '--total_trials=3 --total_time=20s --processes=1 '
                     '--proof_time=50ms',
}
# Run before a command, for what it needs: two runs of one suite and machine.
BEFORE = {
    'optrail compare latest~1 latest':
        2 * ['optrail bench --op=matmul --shape=m=512,n=512,k=512 --record '
             '--select=default --processes=1 --benchmark_min_time=0.001 '
             '--quiet'],
}

# Pages that a test of their own follows.
FOLLOWED = {'docs/guide/add_operator.md': '//ci:add_operator_test',
            'docs/guide/add_backend.md': '//ci:add_operator_test'}

PROGRAM = r'''#!/bin/sh
for argument; do
  case $argument in --benchmark_out=*) out=${argument#--benchmark_out=} ;; esac
done
echo '%s' > "${out:-/dev/stdout}"
'''


def google_benchmark(scale):
    rows = ', '.join(
        '{"name": "BM_%s", "run_name": "BM_%s", "run_type": "iteration", '
        '"repetitions": 1, "repetition_index": 0, "threads": 1, '
        '"iterations": 100, "real_time": %r, "cpu_time": %r, '
        '"time_unit": "ns"}' % (name, name, time * scale, time * scale)
        for name, time in [('Sort', 1000.0), ('Hash', 250.0)])
    return ('{"context": {"date": "2026-11-20T09:08:07+00:00", "num_cpus": 2, '
            '"executable": "./bench", "caches": []}, "benchmarks": [%s]}' % rows)


def write(path, text, executable=False):
    os.makedirs(os.path.dirname(path) or '.', exist_ok=True)
    with open(path, 'w') as file:
        file.write(text)
    if executable:
        os.chmod(path, 0o755)


def write_calls(folder):
    """What a process leaves that counts its calls (tuning/observed)."""
    keys = runs = b''
    for op, shape, calls in [('softmax', 'rows=64,cols=64/f32', 90),
                             ('matmul', 'm=64,n=64,k=64/f32', 10)]:
        text = '\t'.join([op, shape, 'cpu', '', 'hot', 'acme-abacus-1c', '1', '3'])
        keys += text.encode().ljust(508, b'\0') + struct.pack('<I', 1)
        runs += struct.pack('<4Q', calls, 0, 0, 0)
    group = keys.ljust((128 + 16) << 10, b'\0') + runs.ljust(64 << 10, b'\0')
    os.makedirs(folder)
    with open(os.path.join(folder, 'host-1-1.observed'), 'wb') as file:
        file.write(struct.pack('<16sQQ', b'optrail calls 2', len(group),
                               2).ljust(4096, b'\0') + group)


def make_workspace(root):
    """What the examples name, in the current folder."""
    def git(*args):
        subprocess.run(('git', '-c', 'user.name=T', '-c',
                        'user.email=t@example.org') + args, check=True)
    git('init', '--quiet', '--initial-branch=main')
    write('bench', PROGRAM % google_benchmark(1.0), executable=True)
    write('Makefile', 'all:\n')
    write('policy.textproto', 'rule { metric: "cpu_time" }\n')
    git('add', 'bench', 'Makefile')
    for i in range(3):
        git('commit', '--quiet', '--allow-empty', '-m', 'commit %d' % i)
    for i in range(1, 6):
        write('run%d.json' % i, google_benchmark(1 + i / 1000))
    for name, scale in [('old_bench', 1.0), ('new_bench', 1.1)]:
        write(name, PROGRAM % google_benchmark(scale), executable=True)
    write_calls('calls')
    write('results.csv', 'name,value,unit\nparse,12.5,us\nparse,12.6,us\n')
    series = ''.join('matmul,%d,%g\n' % (i, 10 + (i % 3) / 10 + 3 * (i > 20))
                     for i in range(40))
    write('buffers.csv', 'id,lower,upper,size\nx,0,3,4\ny,3,9,4\nz,0,9,4\n')
    for end in ('onnx', 'npz'):
        shutil.copy(os.path.join(root, 'graph/testdata/tiny_resnet_bn.' + end),
                    'model.' + end)
    # Samples of model.onnx: an image of 3 x 37 x 41 in each line.
    write('samples.csv', ''.join(','.join(['.5'] * (3 * 37 * 41)) + '\n'
                                 for _ in range(8)))
    write('series.csv', 'id,t,value\n' + series)
    write('jobs.csv', 'id,watts,hours,release,deadline,preemptible\n'
          'nightly,450,3,2026-01-01T00:00:00Z,2026-01-02T00:00:00Z,yes\n'
          'release,700,2,2026-01-01T06:00:00Z,2026-01-01T18:00:00Z,no\n')
    subprocess.run(['gzip', '--keep', 'series.csv'], check=True)
    write('train.space.textproto',
          'knob { name: "batch" ints: [1, 2, 4, 8] }\n'
          'default { set { knob: "batch" int: 1 } }\n')
    write('train', '#!/bin/sh\necho "{\\"throughput\\": ${1#--batch=}}"\n',
          executable=True)
    os.makedirs('tuning/replay/recordings', exist_ok=True)
    data = os.path.join(root, 'tuning/replay/recordings/data')
    # One is enough to see that the command works.
    os.makedirs('tuning/replay/recordings/data')
    for path in sorted(glob.glob(data + '/*'))[:2]:
        os.symlink(path, 'tuning/replay/recordings/data/' +
                   os.path.basename(path))
    for policy in ['ci/policy.textproto']:
        write(policy, open(os.path.join(root, policy)).read())


def commands_of(text):
    """[(line number, command, reason why not)] of the sh blocks."""
    found = []
    reason, pending, start = None, '', 0
    inside, block_reason = False, None
    for number, line in enumerate(text.split('\n'), 1):
        comment = re.fullmatch(r'\s*<!-- ((?:not run: |run by )\S.*) -->\s*',
                               line)
        if not inside and comment:
            reason = comment.group(1)
        elif re.match(r'\s*```', line):
            if inside:
                inside = False
            else:
                inside = re.fullmatch(r'\s*```(sh|bash)\s*', line) is not None
                block_reason, reason = reason, None
        elif inside:
            if not pending:
                start = number
            pending += line.strip()
            if pending.endswith('\\'):
                pending = pending[:-1]
                continue
            command = re.sub(r'(^|\s)#\s.*$', '', pending).strip()
            pending = ''
            if command:
                found.append((start, command, block_reason))
        elif line.strip():
            reason = None
    return found


def check_target(root, label):
    package, _, name = label.lstrip('/').partition(':')
    if '...' in package or not name and package.endswith('...'):
        return True
    name = name or os.path.basename(package)
    build = os.path.join(root, package, 'BUILD')
    if not os.path.exists(build):
        return False
    text = open(build).read()
    if name == 'all' or re.search(r'name = "%s"' % re.escape(name), text):
        return True
    # The macros for operators and suites make these targets.
    base = re.sub(r'_(bench|tune|test|space|tuned|smoke)$', '', name)
    return bool(re.search(r'"%s"' % re.escape(base), text)) or \
        'suite(' in text or 'operator(' in text


def main():
    optrail = os.path.abspath(sys.argv[1])
    root = os.path.dirname(os.path.realpath(sys.argv[2]))
    scratch = os.path.join(os.environ['TEST_TMPDIR'], 'scratch')
    os.makedirs(scratch)
    os.chdir(scratch)
    os.makedirs(os.path.join(os.environ['TEST_TMPDIR'], 'bin'))
    os.symlink(optrail, os.path.join(os.environ['TEST_TMPDIR'], 'bin/optrail'))
    # A stand-in for CMake, which is enough for a project of one script.
    write(os.path.join(os.environ['TEST_TMPDIR'], 'bin/cmake'),
          '#!/bin/sh\nmkdir -p build && cp bench build/\n', executable=True)
    os.environ['PATH'] = (os.path.join(os.environ['TEST_TMPDIR'], 'bin') +
                          os.pathsep + os.environ['PATH'])
    os.environ['HOME'] = os.environ['TEST_TMPDIR']
    for name in ('BUILD_WORKSPACE_DIRECTORY', 'BUILD_WORKING_DIRECTORY'):
        os.environ.pop(name, None)
    make_workspace(root)

    pages = [os.path.join(root, name)
             for name in ('README.md', 'CONTRIBUTING.md')]
    pages += sorted(glob.glob(os.path.join(root, 'docs/**/*.md'),
                              recursive=True))
    failures, ran, again, checked, left_out = [], set(), 0, 0, 0
    helps = {}

    def help_of(command):
        if command not in helps:
            helps[command] = subprocess.run(
                ['optrail', 'help', command], stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT).stdout.decode()
        return helps[command]

    flags_of_programs = set()
    for folder in sorted(os.listdir(root)):
        if folder.startswith(('bazel-', '.')):
            continue
        for path in glob.glob(os.path.join(root, folder, '**/*.cc'),
                              recursive=True):
            flags_of_programs |= set(
                re.findall(r'ABSL_FLAG\(\s*[^,]*?,\s*(\w+),',
                           open(path).read()))

    # A history to read from, before any page asks for it.
    for i in range(1, 6):
        subprocess.run(['optrail', 'import', 'run%d.json' % i, '--again'],
                       check=True, stdout=subprocess.DEVNULL,
                       stderr=subprocess.DEVNULL)
    for page in pages:
        text = open(page).read()
        where = os.path.relpath(page, root)
        for number, command, reason in commands_of(text):
            place = '%s:%d: %s' % (where, number, command)
            target = re.match(r'(?:\./)?bazelw? (?:run|build|test)\b(.*)',
                              command)
            if reason or where in FOLLOWED:
                left_out += 1
            elif target:
                for label in re.findall(r'(?<!\S)//\S*', target.group(1)):
                    checked += 1
                    if not check_target(root, label):
                        failures.append('%s: no target %s' % (place, label))
            elif command in ran:
                again += 1
            elif command.startswith('optrail'):
                short = next((flags for prefix, flags in SHORTENED.items()
                              if command.startswith(prefix)), '')
                typed = command
                if short:
                    # Before what belongs to a program.
                    head, dashes, tail = command.partition(' -- ')
                    known = help_of(command.split()[1])
                    flags = [flag for flag in short.split()
                             if flag.split('=')[0] in known]
                    typed = head + ' ' + ' '.join(flags) + dashes + tail
                ran.add(command)
                began = time.monotonic()
                for needed in BEFORE.get(command, []):
                    # 1, too: a busy machine is CONTENDED, and recorded.
                    code = subprocess.run(needed.split(),
                                          stdout=subprocess.DEVNULL).returncode
                    if code not in (0, 1, 3):
                        failures.append('%s: before it, %s: exit code %d' %
                                        (place, needed, code))
                try:
                    result = subprocess.run(
                        ['/bin/sh', '-c', typed], stdin=subprocess.DEVNULL,
                        stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                        timeout=LIMIT_SECONDS)
                    if result.returncode not in (0, 1, 3):
                        failures.append('%s: exit code %d: %s' % (
                            place, result.returncode,
                            result.stdout.decode(errors='replace')[-600:]))
                except subprocess.TimeoutExpired:
                    failures.append('%s: not done in %d s' % (place,
                                                              LIMIT_SECONDS))
                print('%4.1f s  %s' % (time.monotonic() - began, place),
                      flush=True)
            else:
                left_out += 1
                print('not run, no command of ours: ' + place)
        # Targets, and flags of theirs, that sentences and tables name.
        prose = re.sub(r'```.*?```', '', text, flags=re.S)
        for label, rest in re.findall(
                r'\bbazelw? run (//[\w/]+(?::\w+)?)([^`\n]*)', prose):
            if where in FOLLOWED:
                continue
            checked += 1
            if not check_target(root, label):
                failures.append('%s: `bazel run %s`: no target' %
                                (where, label))
            own = re.sub(r'"[^"]*"', '""', rest)
            for flag in re.findall(r'(?<!\S)--([a-z0-9_]+)', own):
                checked += 1
                if flag not in flags_of_programs and \
                        not flag.startswith(('benchmark_', 'gtest_')):
                    failures.append('%s: `bazel run %s --%s`: no program has '
                                    'such a flag' % (where, label, flag))
        # Flags that sentences name.
        for code in re.findall(r'`optrail ([^`]*)`', prose):
            words = code.split()
            if not words or not re.fullmatch(r'[a-z]+', words[0]):
                continue
            own = re.sub(r"'[^']*'", "''", code.split(' -- ')[0])
            for flag in re.findall(r'(?<!\S)(--[a-z0-9_]+)', own):
                checked += 1
                if flag + '=' not in help_of(words[0]) and \
                        flag + ' ' not in help_of(words[0]) and \
                        flag + '\n' not in help_of(words[0]) and \
                        flag not in ('--version', '--help'):
                    failures.append('%s: `optrail %s`: %s is no flag of it' %
                                    (where, code, flag))
    print('%d commands run, %d of them on several pages, %d targets and flags '
          'checked, %d left out' % (len(ran), again, checked, left_out))
    for failure in failures:
        print('FAILED: ' + failure)
    if len(ran) < 40 or checked < 60:
        failures.append('too few commands found')
        print('FAILED: too few commands were found: is the parser right?')
    sys.exit(1 if failures else 0)


if __name__ == '__main__':
    main()

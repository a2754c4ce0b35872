#!/usr/bin/env python3
"""Holds real output of every `optrail ... --format=json` against its schema.

  json_schemas_test.py OPTRAIL WITH_POSTGRES SCHEMA...

Each schema of docs/json_schemas has an output, and a changed output must not
pass: a field that is required goes, a number becomes a list. An output has no
field that its schema lacks. One that is empty fails, unless it is one of
may_be_empty, which depend on what this machine offers. Every command whose help
names --format has a schema.
"""

import copy
import glob
import json
import os
import re
import struct
import subprocess
import sys

import jsonschema


def google_benchmark(hour, scale):
    rows = [{
        'name': name, 'run_name': name, 'run_type': 'iteration',
        'repetitions': 1, 'repetition_index': 0, 'threads': 1,
        'iterations': 100, 'real_time': time * scale, 'cpu_time': time * scale,
        'time_unit': 'ns'
    } for name, time in [('BM_Sort', 1000.0), ('BM_Hash', 250.0)]]
    return json.dumps({
        'context': {'date': '2026-10-%02dT%02d:00:00+00:00' %
                            (1 + hour // 24, hour % 24),
                    'num_cpus': 2, 'executable': './bench', 'caches': []},
        'benchmarks': rows})


def write(path, text, executable=False):
    with open(path, 'w') as file:
        file.write(text)
    if executable:
        os.chmod(path, 0o755)


def make_workspace(optrail):
    def git(*args):
        subprocess.run(('git', '-c', 'user.name=T', '-c',
                        'user.email=t@example.org') + args, check=True)
    git('init', '--quiet', '--initial-branch=main')
    write('.gitignore', '*\n!version\n!value\n!.gitignore\n')
    for i in range(40):
        slow = 1.3 if i >= 20 else 1.0
        write('version', '%d\n' % i)
        write('value', '%g\n' % slow)
        git('add', '--all')
        git('commit', '--quiet', '-m', 'commit %d' % i)
        names = []
        for process in range(3):
            names.append('run%d_%d.json' % (i, process))
            noise = 1 + ((i * 7 + process * 3) % 11 - 5) / 1000
            write(names[-1], google_benchmark(i, slow * noise))
        subprocess.run([optrail, 'import', '--files_are_processes'] + names,
                       check=True, stdout=subprocess.DEVNULL,
                       stderr=subprocess.DEVNULL)
    write('series.csv', 'id,t,value\n' + ''.join(
        'a,%d,%g\n' % (i, 10 + (i % 3) / 10 + 5 * (i > 20)) for i in range(40)))
    write('new.csv', 'a,1\n')
    # Prints a value with a little noise that is the same in every test.
    write('measure', '''#!/bin/sh
count=$(cat "$HOME/count" 2>/dev/null || echo 0)
echo $((count + 1)) > "$HOME/count"
awk -v s="$(cat value)" -v c="$count" \\
    'BEGIN { print "BM_x," 1000 * s * (1 + (c * 37 % 11 - 5) / 2000) }'
''', executable=True)


def write_calls(hardware):
    """What a process leaves that counts its calls (tuning/observed)."""
    text = '\t'.join(['add', 'n=4096/f32', 'cpu', '', 'hot', hardware, '1', '3'])
    group = (text.encode().ljust(508, b'\0') +
             struct.pack('<I', 1)).ljust((128 + 16) << 10, b'\0')
    group += struct.pack('<4Q', 90, 0, 0, 0).ljust(64 << 10, b'\0')
    with open('host-1-1.observed', 'wb') as file:
        file.write(struct.pack('<16sQQ', b'optrail calls 2', len(group),
                               2).ljust(4096, b'\0') + group)


def calls_with_format(optrail):
    """Commands, and parts of them, whose help names --format."""
    def help_of(*words):
        return subprocess.run((optrail, 'help') + words, check=True,
                              stdout=subprocess.PIPE).stdout.decode()

    calls = []
    for command in re.findall(r'^  (\w+)  ', help_of(), re.M):
        text = help_of(command)
        flag = re.search(r'^  --format=\w+(?:  \((.*)\))?$', text, re.M)
        if not flag:
            continue
        parts = re.search(r'^Commands, .*?:\n(.*?)\n\n', text, re.M | re.S)
        if flag.group(1):
            calls += [(command, part) for part in flag.group(1).split(', ')]
        elif parts:
            calls += [(command, part) for part in
                      re.findall(r'^  (\w+)  ', parts.group(1), re.M)]
        else:
            calls.append((command,))
    return calls


# A command that prints one of several things: its schemas.
SCHEMAS_OF = {('show',): ('show_run', 'show_session', 'show_series')}


def has_schema(optrail, schemas, call):
    names = SCHEMAS_OF.get(call, ('_'.join(call),))
    return all(name in schemas for name in names) or subprocess.run(
        (optrail, 'schema') + call, stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL).returncode == 0


def main():
    optrail = os.path.abspath(sys.argv[1])
    with_postgres = os.path.abspath(sys.argv[2])
    runfiles = os.getcwd()
    schemas = {
        os.path.basename(path).split('.')[0]: json.load(open(path))
        for path in sys.argv[3:]}
    os.environ['HOME'] = os.environ['TEST_TMPDIR']
    os.environ['LD_LIBRARY_PATH'] = os.path.abspath('ops/device/cuda/testing')
    os.environ['XDG_CACHE_HOME'] = os.environ['TEST_TMPDIR'] + '/cache'
    for name in ('BUILD_WORKSPACE_DIRECTORY', 'BUILD_WORKING_DIRECTORY'):
        os.environ.pop(name, None)
    scratch = os.environ['TEST_TMPDIR'] + '/scratch'
    os.mkdir(scratch)
    os.chdir(scratch)
    make_workspace(optrail)
    run = '--run=%s/measure' % scratch

    def output(*command, codes=(0, 1, 3)):
        result = subprocess.run((optrail,) + command + ('--format=json',),
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        if result.returncode not in codes:
            print('FAILED: optrail %s: exit code %d: %s' % (
                ' '.join(command), result.returncode, result.stderr.decode()))
            sys.exit(1)
        return json.loads(result.stdout)

    tune = subprocess.run(
        [optrail, 'tune', '--op=add', '--shape=n=393216/f32', '--total_trials=4',
         '--total_time=20s', '--proof_time=50ms', '--quiet'],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    print(tune.stdout.decode()[-500:])
    series = output('log', 'series', '--limit=1')[0]['series']
    sessions = output('log', 'sessions')
    outputs = {
        'import': output('import', 'new.csv', '--hardware=elsewhere'),
        'log_runs': output('log', 'runs'),
        'log_series': output('log', 'series'),
        'show_run': output('show', 'latest'),
        'show_series': output('show', series),
        'compare': output('compare', 'latest~2', 'latest~1'),
        'gate': output('gate', '--candidate=latest~1'),
        'changes': output('changes'),
        'diagnose': output('diagnose', '--op=add', '--slowest=1', '--quiet',
                           '--shape=n=393216'),
        'detect': output('detect', '--csv=series.csv'),
        'convergence': output('convergence'),
        'history_verify': output('history', 'verify'),
        'history_index': output('history', 'index'),
        'history_thin': output('history', 'thin', '--dry_run'),
        'history_merge': output('history', 'merge', '.optrail/history',
                                '--history=merged'),
        'doctor': output('doctor', '--probe_time=100ms'),
        'watch': output('watch', 'HEAD~2..HEAD', run, '--processes=1',
                        '--quiet'),
        'bisect': output('bisect', 'HEAD~24', 'HEAD~14', run, '--quiet'),
        'store_show': output('store', 'show'),
        'store_diff': output('store', 'diff'),
        # Compiled by an NVRTC without a compiler.
        'export': output('export', '--op=add', '--shape=n=4096/f32',
                         '--hw=nvidia-h200', '--out=exported'),
        'tune': output('tune', '--op=add', '--shape=n=4096/f32', '--trials=2',
                       '--proof_time=50ms', '--quiet'),
        'tune_dry_run': output('tune', '--preset=recommender', '--dry_run'),
        'tune_range': output('tune', '--op=add', '--shape=n=1000..1003/f32',
                             '--trials=1', '--proof_time=50ms', '--quiet'),
    }
    subprocess.run([optrail, 'note', 'BM_.*', 'HEAD', 'a new disk'],
                   check=True, stdout=subprocess.DEVNULL)
    outputs['triage'] = output('triage')
    with open('buffers.csv', 'w') as file:
        file.write('id,lower,upper,size\nx,0,3,4\ny,3,9,4\n')
    outputs['memory_plan'] = output('memory', 'plan', 'buffers.csv',
                                    '--capacity=64', '--out=placed.csv')
    outputs['memory_check'] = output('memory', 'check', 'placed.csv')
    subprocess.run([optrail, 'carbon', 'example', '--zone=DE', '--out=grid.csv',
                    '--start=2026-10-01T00:00:00Z', '--hours=72'], check=True)
    with open('jobs.csv', 'w') as file:
        file.write('id,watts,hours,release,deadline,preemptible\n'
                   'a,400,2,2026-10-01T00:00:00Z,2026-10-02T00:00:00Z,yes\n')
    outputs['carbon_plan'] = output('carbon', 'plan', '--jobs_file=jobs.csv',
                                    '--intensity=grid.csv', '--zone=DE')
    outputs['carbon_indices'] = output('carbon', 'indices')
    oldest = min(run['run_id'] for run in outputs['log_runs'])
    outputs['carbon_footprint'] = output(
        'carbon', 'footprint', oldest, '--intensity=grid.csv', '--zone=DE')
    outputs['carbon_slack'] = output(
        'carbon', 'plan', '--jobs_file=jobs.csv', '--intensity=grid.csv',
        '--zone=DE', '--slack=0h,6h')
    outputs['diagnose_calibration'] = output('diagnose', '--calibration')
    write_calls(sessions[0]['hardware'] if sessions else 'none')
    outputs['observe'] = output('observe', 'host-1-1.observed')
    outputs['coverage'] = output('coverage', 'host-1-1.observed')
    outputs['compile'] = output('compile', '--op=add', '--shape=n=4096/f32',
                                '--device=cuda', '--hw=nvidia-h200',
                                '--trials=1')
    outputs['store_check'] = output('store', 'check', '--all', '--dry_run')
    write('w.workload.textproto', 'name: "w"\nlayer { operator_name: "add" '
          'shape: "n=4096/f32" count: 3 }\n')
    outputs['store_promote'] = output(
        'store', 'promote', '--workload=w.workload.textproto', '--tree=.',
        '--dry_run', '--time_budget=2s')
    write('train.space.textproto',
          'knob { name: "batch" ints: [1, 2] }\n'
          'default { set { knob: "batch" int: 1 } }\n')
    write('train', '#!/bin/sh\necho "{\\"throughput\\": $1}"\n',
          executable=True)
    outputs['tune_command'] = output(
        'tune', '--space=train.space.textproto', '--command=./train {batch}',
        '--metric=throughput:max', '--trials=2')
    outputs['history_export'] = output('history', 'export', '--out=points.csv')
    outputs['history_copy'] = output('history', 'copy', 'merged', 'copied')
    write('copied/runs/2026/broken.pb', 'no record')
    outputs['history_repair'] = output('history', 'repair', '--history=copied')
    model = os.path.join(runfiles, 'graph/testdata/tiny_dlrm.onnx')
    outputs['graph_show'] = output('graph', 'show', model)
    other = os.path.join(runfiles, 'graph/testdata/tiny_resnet_bn.')
    outputs['graph_check'] = output('graph', 'check', other + 'onnx',
                                    '--data=' + other + 'npz')
    write('samples.csv', 4 * (','.join(3 * 37 * 41 * ['.5']) + '\n'))
    outputs['graph_feed'] = output('graph', 'feed', other + 'onnx',
                                   '--input=samples.csv')
    outputs['graph_recompute'] = output('graph', 'recompute', other + 'onnx')
    # A ledger whose first stage fails at once: a trial is too few for the tasks.
    outputs['graph_tune'] = output(
        'graph', 'tune', model, '--total_trials=1', '--trials=1',
        '--objective=requests_per_second,latency_p99<=50ms', codes=(2,))
    fleet = subprocess.run(
        [with_postgres, 'sh', '-ec', 'd=--history=$OPTRAIL_TEST_DATABASE; '
         '"$0" fleet init $d >&2; "$0" fleet submit $d "bench --op=add" >&2; '
         '"$0" fleet status $d --format=json', optrail],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    if fleet.returncode == 77:
        print('fleet_status is not held against its schema: ' +
              fleet.stderr.decode())
        outputs['fleet_status'] = []
    else:
        print(fleet.stderr.decode())
        outputs['fleet_status'] = json.loads(fleet.stdout)
    outputs['graph_run'] = output('graph', 'run', model)
    outputs['graph_serve'] = output('graph', 'serve', model, '--load=1000',
                                    '--duration=200ms')
    # The sessions above may prove nothing; without one that does, the answer
    # is a reason.
    outputs['predict'] = [row for row in output(
        'predict', '--op=add', '--shape=n=65536/f32') if 'reason' not in row]
    spaces = glob.glob(os.path.join(runfiles, 'tuning/replay/recordings/data/*'))
    outputs['replay'] = output('replay', '--spaces=' + spaces[0],
                               '--strategies=random', '--seeds=1',
                               '--budgets=10')
    energy = '--spaces=' + glob.glob(os.path.join(
        runfiles, 'tuning/replay/recordings/energy/*'))[0]
    outputs['replay_energy'] = output('replay', '--energy', energy,
                                      '--strategies=random', '--seeds=1',
                                      '--budgets=10')
    outputs['replay_optima'] = output('replay', '--energy', '--optima', energy)
    subprocess.run([optrail, 'report', '--report_format=json',
                    '--out=report.json'], check=True,
                   stdout=subprocess.DEVNULL)
    outputs['report'] = json.load(open('report.json'))
    if sessions:
        outputs['log_sessions'] = sessions
        outputs['show_session'] = output('show', sessions[0]['session_id'])
    # The same verdict wherever it is printed.
    measured = output('gate', run, '--baseline=commit:HEAD~24', '--quiet')
    # A crash has a row, though nobody can say how much it changed.
    write('crash.json', json.dumps({
        'context': {'date': '2026-10-20T00:00:00+00:00', 'num_cpus': 2,
                    'executable': './bench', 'caches': []},
        'benchmarks': [{'name': 'BM_Hash', 'run_type': 'iteration',
                        'error_occurred': True, 'error_message': 'no key'}]}))
    subprocess.run([optrail, 'import', 'crash.json'], check=True,
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    failed = output('changes')
    may_be_empty = {'convergence', 'predict', 'store_show', 'store_diff',
                    'log_sessions', 'show_session', 'history_verify',
                    'diagnose_calibration', 'store_check', 'store_promote'}
    if not outputs['fleet_status']:
        may_be_empty.add('fleet_status')

    also = {'gate': [measured], 'changes': [failed]}
    failures = []
    if not any(row['state'] == 'failed' for row in failed):
        failures.append('changes: no row of the crash')
    for name, schema in sorted(schemas.items()):
        jsonschema.Draft7Validator.check_schema(schema)
        validator = jsonschema.Draft7Validator(schema)
        shown = [outputs.get(name)] + also.get(name, [])
        if not shown[0]:
            if name not in may_be_empty:
                failures.append('%s: no output to hold it against' % name)
            continue
        for value in shown:
            for error in validator.iter_errors(value):
                failures.append('%s: %s: %s' % (
                    name, '/'.join(map(str, error.path)), error.message))
        item = schema['items'] if schema['type'] == 'array' else schema
        if 'additionalProperties' not in item:
            rows = [row for value in shown for row in
                    (value if schema['type'] == 'array' else [value])]
            for field in sorted(set().union(*rows) - set(item['properties'])):
                failures.append('%s: the schema lacks %s' % (name, field))
        # It can fail.
        probe = shown[0][0] if schema['type'] == 'array' else shown[0]
        for field in item.get('required', []):
            if field not in probe:
                continue  # said above
            changed = copy.deepcopy(shown[0])
            target = changed[0] if schema['type'] == 'array' else changed
            del target[field]
            if validator.is_valid(changed):
                failures.append('%s: passes without %s' % (name, field))
            target[field] = [[]]
            if validator.is_valid(changed):
                failures.append('%s: passes with a wrong %s' % (name, field))
    for name, schema in schemas.items():
        shown = subprocess.run([optrail, 'schema'] + name.split('_', 1),
                               stdout=subprocess.PIPE).stdout
        if not shown or json.loads(shown) != schema:
            failures.append('optrail schema %s prints another one' % name)
    calls = calls_with_format(optrail)
    missing = sorted(set(outputs) - set(schemas)) + [
        ' '.join(call) for call in calls
        if not has_schema(optrail, schemas, call)]
    if missing:
        failures.append('no schema for: ' + ', '.join(missing))
    if len(calls) < 40:
        failures.append('only %d calls take --format: is the parser of help '
                        'right?' % len(calls))
    for failure in failures:
        print('FAILED: ' + failure)
    print('%d schemas, %d outputs, %d calls with --format' % (
        len(schemas), len(outputs), len(calls)))
    sys.exit(1 if failures else 0)


if __name__ == '__main__':
    main()

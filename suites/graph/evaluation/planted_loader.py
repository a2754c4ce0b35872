#!/usr/bin/env python3
"""Plants a slow loader before a model: is it named, and does tuning help?

  planted_loader.py OPTRAIL SPACE MODEL.onnx... --seed=N

Samples are drawn from the seed, and so is the time by which each read of the
loader is slowed down: loading a batch by one worker, sample by sample, then takes
--least to --most times as long as the model computes it. `optrail graph feed` must name the
loader; `optrail tune --command` tunes it; the best config is run --runs times
again, in turns with the planted one. The exit code is 1 unless each loader was
named and at least 90% of the waiting for a sample is gone.
"""

import argparse
import json
import os
import random
import re
import shlex
import statistics
import subprocess
import sys
import tempfile


def run(command):
    """What a command prints; its notes go on to standard error."""
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True)
    if done.returncode != 0:
        sys.exit('%s: exit code %d' % (shlex.join(command), done.returncode))
    return done.stdout


def write_samples(optrail, model, count, draw, path):
    """A line for each sample; indices are 0 or 1, which every table has."""
    shown = json.loads(run([optrail, 'graph', 'show', model, '--format=json']))
    inputs = []
    for value in shown:
        if value['role'] == 'input':
            kind, dims = re.fullmatch(r'(\w+)\[(.*)\]', value['type']).groups()
            size = 1
            for dim in dims.split(',')[1:]:
                size *= int(dim)
            inputs.append((kind, size))
    with open(path, 'w') as file:
        for _ in range(count):
            values = []
            for kind, size in inputs:
                values += ['%.4g' % draw.gauss(0, 1) if kind.startswith('f')
                           else str(draw.randrange(2)) for _ in range(size)]
            file.write(','.join(values) + '\n')


def feed(command):
    return json.loads(run(command + ['--format=json']))[0]


def waited(row):
    """Nanoseconds for a sample."""
    return row['waits'] * row['sample_time_ns']


def try_model(options, model, draw, folder):
    optrail = options.optrail
    path = os.path.join(folder, 'samples.csv')
    write_samples(optrail, model, options.samples, draw, path)
    plain = [optrail, 'graph', 'feed', model, '--input=' + path,
             '--store=' + os.path.join(folder, 'store')] + options.flags.split()
    row = feed(plain)
    model_ns, batch = row['model_time_ns'], row['batch']
    times = draw.uniform(options.least, options.most)
    latency_us = times * model_ns / batch / 1e3
    planted = plain + ['--read_latency=%.0fus' % latency_us]
    verdict = run(planted)
    print(shlex.join(planted))
    print(verdict)
    named = 'The loader holds the model back' in verdict
    with open(options.space) as file:
        names = re.findall(r'^knob { name: "(\w+)"', file.read(), re.M)
    knobs = ['--%s={%s}' % (name, name) for name in names]
    tuned = run([optrail, 'tune', '--space=' + options.space,
                 '--command=' + shlex.join(planted) + ' ' + ' '.join(knobs) +
                 ' --format=json', '--metric=sample_time_ns:min',
                 '--trials=%d' % options.trials, '--seed=%d' % options.seed,
                 '--proof_time=20s', '--quiet',
                 '--history=' + os.path.join(folder, 'history'),
                 '--store=' + os.path.join(folder, 'store')])
    print(tuned)
    best = shlex.split(re.search(r'^best: (.*)$', tuned, re.M).group(1))
    best.remove('--format=json')
    before, after = [], []
    for _ in range(options.runs):
        before.append(feed(planted))
        after.append(feed(best))

    def median(rows, of):
        return statistics.median(of(row) for row in rows)
    return {
        'model': os.path.basename(model),
        'latency_us': latency_us,
        'named': named,
        'waits_before': median(before, lambda row: row['waits']),
        'waits_after': median(after, lambda row: row['waits']),
        'faster': median(before, lambda row: row['sample_time_ns']) /
                  median(after, lambda row: row['sample_time_ns']),
        'removed': 1 - median(after, waited) / median(before, waited),
        'config': ' '.join(best[-len(knobs):]),
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__.split('\n')[0])
    parser.add_argument('optrail')
    parser.add_argument('space')
    parser.add_argument('models', nargs='+')
    parser.add_argument('--seed', type=int, required=True)
    parser.add_argument('--least', type=float, default=2)
    parser.add_argument('--most', type=float, default=10)
    parser.add_argument('--samples', type=int, default=512)
    parser.add_argument('--trials', type=int, default=30)
    parser.add_argument('--runs', type=int, default=3)
    parser.add_argument('--flags', default='',
                        help='of graph feed: "--device=cuda --type=bf16"')
    options = parser.parse_args()
    options.optrail = os.path.abspath(options.optrail)
    draw = random.Random(options.seed)
    fine = True
    rows = []
    for model in options.models:
        with tempfile.TemporaryDirectory() as folder:
            rows.append(try_model(options, os.path.abspath(model), draw, folder))
    print('model  read latency  named  waits before  after  faster  removed')
    for row in rows:
        print('%(model)s  %(latency_us).0f us  %(named)s  %(waits_before).3f  '
              '%(waits_after).3f  %(faster).2fx  %(removed).3f  %(config)s' % row)
        fine = fine and row['named'] and row['removed'] >= .9
    sys.exit(0 if fine else 1)


if __name__ == '__main__':
    main()

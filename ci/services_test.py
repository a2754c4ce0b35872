#!/usr/bin/env python3
"""Runs the steps of ci/github_action and the jobs of ci/gitlab.yml as a runner would.

  services_test.py BUNDLE ACTION_YML GITLAB_YML

The package is built, unpacked instead of installed (a test is not root), and
gates pull requests of a scratch repository: one that changes nothing, one that
is 20% slower, one that nobody can judge. Programs of a runner that a test has
not (sudo, apt-get, gh) are stand-ins that note how they are called.
"""

import json
import os
import re
import stat
import subprocess
import sys

WORK = os.environ['TEST_TMPDIR']
BIN = os.path.join(WORK, 'bin')
# Google Benchmark's JSON of a made-up program: times of `level`, with noise of
# `noise` percent from process to process that a counter seeds.
BENCH = r'''#!/bin/sh
n=$(cat "$HOME/count" 2>/dev/null || echo 0)
echo $((n + 1)) >"$HOME/count"
cat level noise | awk -v seed="$(echo "$n" | sha256sum | tr -dc 1-9 | cut -c 1-8)" 'BEGIN {
    srand(seed); z = -6; for (i = 0; i < 12; ++i) z += rand()
  } NR == 1 { level = $1 } NR == 2 {
    t = level * exp($1 / 100 * z)
    printf "{\"context\": {\"num_cpus\": 2}, \"benchmarks\": ["
    for (i = 0; i < 8; ++i) printf "%s{\"name\": \"BM_hash\", \"run_name\": \"BM_hash\", \"run_type\": " \
      "\"iteration\", \"repetitions\": 8, \"repetition_index\": %d, " \
      "\"iterations\": 100, \"real_time\": %f, \"cpu_time\": %f, " \
      "\"time_unit\": \"ns\"}", (i ? ", " : ""), i, t, t
    print "]}"
  }' >"$1"
'''
failures = []


def expect(condition, what):
    if not condition:
        failures.append(what)
        print('FAILED: ' + what, flush=True)


def script(path, text):
    with open(path, 'w', encoding='utf-8') as file:
        file.write(text)
    os.chmod(path, os.stat(path).st_mode | stat.S_IXUSR)


def read(path):
    if not os.path.exists(path):
        return ''
    with open(path, encoding='utf-8') as file:
        return file.read()


def git(folder, *arguments):
    return subprocess.run(
        ['git', '-C', folder, '-c', 'commit.gpgsign=false', *arguments],
        check=True, stdout=subprocess.PIPE, text=True).stdout.strip()


def prepare(bundle):
    """Builds the package; makes the stand-ins and the repository `origin`."""
    package = os.path.join(WORK, 'optrail.deb')
    subprocess.run([bundle, '--out=' + package], check=True)
    os.makedirs(BIN)
    root = os.path.join(WORK, 'root')
    script(BIN + '/sudo', '#!/bin/sh\nexec "$@"\n')
    script(BIN + '/apt-get', '#!/bin/sh\necho apt-get "$@" >>"$HOME/called"\n')
    script(BIN + '/dpkg', '#!/bin/sh\n[ "$1" = --install ] || exit 9\n'
           'exec dpkg-deb --extract "$2" "%s"\n' % root)
    script(BIN + '/gh', '#!/bin/sh\necho gh "$@" >>"$HOME/called"\n'
           'case "$*" in "api user"*) echo robot ;; esac\n'
           'for a; do case "$a" in body=@*) cat "${a#body=@}" >"$HOME/comment" ;; '
           'esac; done\n')
    os.environ.update({
        'PATH': '%s:%s/usr/bin:%s' % (BIN, root, os.environ['PATH']),
        'HOME': WORK, 'GIT_CONFIG_NOSYSTEM': '1',
        'GIT_AUTHOR_NAME': 'a', 'GIT_AUTHOR_EMAIL': 'a@example.org',
        'GIT_COMMITTER_NAME': 'a', 'GIT_COMMITTER_EMAIL': 'a@example.org',
    })
    for name in ('BUILD_WORKSPACE_DIRECTORY', 'BUILD_WORKING_DIRECTORY'):
        os.environ.pop(name, None)
    origin = os.path.join(WORK, 'origin')
    os.makedirs(origin)
    git(origin, 'init', '--quiet', '--initial-branch=main')
    script(origin + '/bench', BENCH)
    commit(origin, 'first', level=100, noise=1)
    commit(origin, 'second', level=100, noise=1)
    for branch, level, noise in (('green', 100, 1), ('red', 120, 1),
                                 ('unclear', 100, 60)):
        git(origin, 'checkout', '--quiet', '-b', branch, 'main~1')
        commit(origin, branch, level, noise)
    git(origin, 'checkout', '--quiet', 'main')
    return package


def commit(folder, message, level, noise):
    for name, text in (('level', level), ('noise', noise), ('subject', message)):
        script(os.path.join(folder, name), '%s\n' % text)
    git(folder, 'add', '--all')
    git(folder, 'commit', '--quiet', '--message', message)


def checkout(name, branch, merge):
    """A clone without a branch: a pull request is merged, as GitHub does it."""
    folder = os.path.join(WORK, name)
    git(WORK, 'clone', '--quiet', os.path.join(WORK, 'origin'), folder)
    git(folder, 'checkout', '--quiet', '--detach', 'origin/main')
    if merge:
        git(folder, 'merge', '--quiet', '--no-ff', '--strategy-option=theirs',
            '--message', 'Merge', 'origin/' + branch)
    else:
        git(folder, 'checkout', '--quiet', '--detach', 'origin/' + branch)
    return folder


def indented(lines, at):
    """The lines below line `at` that stand deeper, and where they end."""
    depth = len(lines[at]) - len(lines[at].lstrip())
    end = at + 1
    while end < len(lines) and (
            not lines[end].strip() or
            len(lines[end]) - len(lines[end].lstrip()) > depth):
        end += 1
    return lines[at + 1:end], end


def mapping(lines):
    """`name: value` of the outermost lines, without quotes and comments."""
    found, at = {}, 0
    while at < len(lines):
        name, _, value = lines[at].strip().partition(':')
        below, end = indented(lines, at)
        value = re.sub(r'\s#.*', '', value).strip()
        if value == '|':
            depth = len(below[0]) - len(below[0].lstrip())
            value = '\n'.join(line[depth:] for line in below)
        elif value.startswith("'"):
            value = value.strip("'")
        found[name] = value if value or not below else below
        at = end
    return {name: value for name, value in found.items()
            if name and not name.startswith('#')}


def evaluate(text, context):
    """${{ }} of names, ==, &&, || and texts in quotes, as the service does it."""
    def value(match):
        code = match.group(1).replace('&&', ' and ').replace('||', ' or ')
        code = re.sub(r"(?<!')\b(inputs|github)\.([\w.]+)",
                      lambda m: 'context[%r]' % m.group(0), code)
        return str(eval(code, {'context': context}))  # pylint: disable=eval-used
    return re.sub(r'\$\{\{(.*?)\}\}', value, text)


def github(action, name, branch, given):
    """Runs the steps; the last exit code, and what they printed."""
    lines = read(action).split('\n')
    top = mapping(lines)
    context = {'github.base_ref': 'main', 'github.token': 'secret',
               'github.event.number': '7'}
    for one, body in mapping(top['inputs']).items():
        default = mapping(body).get('default', '')
        expect('default' in mapping(body) or one in given or
               mapping(body).get('required') == 'true', 'input %s' % one)
        context['inputs.' + one] = given.get(one) or evaluate(default, context)
    folder = checkout(name, branch, merge=branch != 'main')
    environment = dict(
        os.environ, CI='true', GITHUB_ACTIONS='true', GITHUB_WORKSPACE=folder,
        GITHUB_BASE_REF='main', GITHUB_EVENT_NAME='pull_request',
        GITHUB_EVENT_PATH=os.path.join(WORK, name + '.event.json'),
        GITHUB_OUTPUT=os.path.join(WORK, name + '.output'),
        GITHUB_STEP_SUMMARY=os.path.join(WORK, name + '.summary'))
    script(environment['GITHUB_EVENT_PATH'], json.dumps({'number': 7}))
    printed = ''
    steps = re.split(r'(?m)^    - ', '\n'.join(mapping(top['runs'])['steps']))
    shell = 'shell: bash\n'
    steps = [step[len(shell):] for step in steps if step.startswith(shell)]
    expect(len(steps) == 2, 'action.yml: two steps')
    for number, text in enumerate(steps):
        step = mapping(text.strip('\n').split('\n'))
        of_step = {one: evaluate(body, context)
                   for one, body in mapping(step['env']).items()}
        path = os.path.join(WORK, '%s.step%d' % (name, number))
        script(path, evaluate(step['run'], context))
        ran = subprocess.run(
            ['bash', '--noprofile', '--norc', '-eo', 'pipefail', path],
            cwd=folder, env=dict(environment, **of_step), text=True,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
        printed += ran.stdout
        if ran.returncode:
            return ran.returncode, printed, folder
    return 0, printed, folder


def check_github(action, package):
    given = {'package': package, 'build': 'true', 'run': './bench {out}',
             'comment': 'true'}
    for branch, code, word in (('green', 0, 'green'), ('red', 1, 'red'),
                               ('unclear', 3, "can't tell")):
        name = 'github_' + branch
        ran, printed, folder = github(action, name, branch, given)
        expect(ran == code, '%s: exit code %d, expected %d:\n%s' %
               (name, ran, code, printed))
        summary = read(os.path.join(WORK, name + '.summary'))
        expect(word in summary.lower(), '%s: the summary lacks %s: %s' %
               (name, word, summary))
        expect(summary.strip() in read(os.path.join(WORK, 'comment')),
               name + ': the comment is not the summary')
        expect(('::error' in printed) == (code == 1),
               '%s: annotations: %s' % (name, printed))
        expect(git(folder, 'status', '--porcelain', '--untracked-files=no') == '',
               name + ': the tree is dirty')
    expect('issues/7/comments' in read(os.path.join(WORK, 'called')),
           'the comment is not of the pull request')
    # Without a comment nobody calls gh.
    os.remove(os.path.join(WORK, 'called'))
    ran, printed, folder = github(action, 'github_record', 'main', dict(
        given, mode='record', comment='false', history='kept/history'))
    expect(ran == 0, 'github_record: exit code %d:\n%s' % (ran, printed))
    expect('gh ' not in read(os.path.join(WORK, 'called')), 'gh was called')
    expect(os.path.exists(folder + '/report.html'), 'github_record: no report')
    expect(os.path.isdir(folder + '/kept/history'), 'github_record: no history')
    ran, printed, _ = github(action, 'github_wrong', 'green',
                             dict(given, run='./no_such_bench {out}'))
    expect(ran == 2, 'github_wrong: exit code %d:\n%s' % (ran, printed))


def commands(body):
    return '\n'.join(re.sub(r'^\s*- ', '', line) for line in body if line.strip())


def gitlab(jobs, job, name, branch, variables):
    folder = checkout(name, branch, merge=False)
    environment = dict(os.environ, CI='true', GITLAB_CI='true',
                       CI_PROJECT_DIR=folder, **variables)
    own = mapping(jobs[job])
    for one, value in {**mapping(mapping(jobs['.optrail'])['variables']),
                       **mapping(own.get('variables', []))}.items():
        environment[one] = os.path.expandvars(value) if '$' not in value else \
            environment.get(value.strip('$'), '')
    path = os.path.join(WORK, name + '.job')
    script(path, commands(mapping(jobs['.optrail'])['before_script']) + '\n' +
           commands(own['script']))
    ran = subprocess.run(['bash', '-eo', 'pipefail', path], cwd=folder,
                         env=environment, text=True, check=False,
                         stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    return ran.returncode, ran.stdout, folder


def check_gitlab(file, package):
    jobs = mapping(read(file).split('\n'))
    given = {'OPTRAIL_PACKAGE': 'file://' + package, 'OPTRAIL_BUILD': 'true',
             'OPTRAIL_RUN': './bench {out}', 'CI_COMMIT_BRANCH': 'main',
             'CI_MERGE_REQUEST_TARGET_BRANCH_NAME': 'main'}
    for branch, code in (('green', 0), ('red', 1), ('unclear', 3)):
        name = 'gitlab_' + branch
        ran, printed, folder = gitlab(jobs, 'optrail gate', name, branch, given)
        expect(ran == code, '%s: exit code %d, expected %d:\n%s' %
               (name, ran, code, printed))
        for path in ('.optrail/gate.md', '.optrail/verdict.json'):
            expect(os.path.exists(os.path.join(folder, path)),
                   '%s: no artifact %s' % (name, path))
    ran, printed, folder = gitlab(jobs, 'optrail record', 'gitlab_record', 'main',
                                  given)
    expect(ran == 0, 'gitlab_record: exit code %d:\n%s' % (ran, printed))
    expect(os.path.exists(folder + '/report.html'), 'gitlab_record: no report')
    expect('main' in git(folder, 'log', '-1', '--format=%D') and
           os.path.isdir(folder + '/optrail-history'), 'gitlab_record: no history')


def main():
    for tool in ('git', 'dpkg-deb', 'curl'):
        if subprocess.run(['which', tool], stdout=subprocess.DEVNULL,
                          check=False).returncode:
            print('skipped: no ' + tool)
            return 0
    bundle, action, file = (os.path.abspath(path) for path in sys.argv[1:])
    package = prepare(bundle)
    check_github(action, package)
    check_gitlab(file, package)
    print('%d failures' % len(failures) if failures else 'all as expected')
    return 1 if failures else 0


if __name__ == '__main__':
    sys.exit(main())

"""Makes one C++ source of the examples in headers' banners.

  banner_examples.py CONTEXTS OUT HEADER...

A banner is the comment behind a header's guard; its example is the first run of
lines that are indented by three spaces. CONTEXTS says, for each header whose
example is to be compiled, what stands around it: "== PATH PARAMETERS", and
declarations on the lines below. `...` stands for anything: nothing is done
there.
"""

import re
import sys


def example_of(text):
    banner = re.search(r'#define \w+\n\n((?://[^\n]*\n)+)', text)
    lines = banner.group(1).split('\n') if banner else []
    found = []
    for line in lines:
        if re.match(r'//   +\S', line):
            found.append(line[2:])
        elif found:
            break
    code = '\n'.join(found)
    code = re.sub(r'//[^\n]*', '', code)
    code = re.sub(r'\.\.\. [^;{}\n]+ \.\.\.|\.\.\.;?', '{}', code)
    return code


def main():
    contexts, out, headers = sys.argv[1], sys.argv[2], sys.argv[3:]
    wanted = {}
    current = None
    for line in open(contexts):
        if line.startswith('== '):
            _, path, parameters = (line.strip() + ' ').split(' ', 2)
            current = wanted[path] = [parameters.strip(), '']
        elif current and not line.startswith('#'):
            current[1] += line
    includes, bodies = [], []
    for header in headers:
        if header not in wanted:
            continue
        parameters, before = wanted.pop(header)
        code = example_of(open(header).read())
        if not code:
            sys.exit('%s: its banner has no example' % header)
        includes.append('#include "%s"\n' % header)
        name = re.sub(r'\W', '_', header)
        inner = {'base': '', 'tuning': '::tuning', 'ops': '::ops',
                 'suites': '::suites', 'tracker': '::tracker'}
        bodies.append(
            'namespace optrail%s::%s {\n%s'
            '[[maybe_unused]] absl::Status Example(%s) {\n%s\n'
            'return absl::OkStatus();\n}\n}\n' %
            (inner[header.split('/')[0]], name, before, parameters, code))
    if wanted:
        sys.exit('%s names what is no public header of the deps: %s' %
                 (contexts, ', '.join(sorted(wanted))))
    with open(out, 'w') as file:
        file.write('// Generated from the banners of the headers below.\n')
        file.writelines(includes)
        file.write('#include <iostream>\n'
                   '#include "base/clock.h"\n'
                   '#include "base/file.h"\n'
                   '#include "base/random.h"\n'
                   '#include "base/status_macros.h"\n'
                   '#include "base/subprocess.h"\n'
                   '#define ASSIGN_OR_RETURN OPTRAIL_ASSIGN_OR_RETURN\n'
                   '#define RETURN_IF_ERROR OPTRAIL_RETURN_IF_ERROR\n')
        file.writelines(bodies)
        file.write('int main() { return 0; }\n')


if __name__ == '__main__':
    main()

"""Makes C++ sources of the examples in headers' banners, one a folder.

  banner_examples.py CONTEXTS FOLDER=OUT... HEADER...

A banner is the comment behind a header's guard; its example is the first run of
lines that are indented by three spaces. CONTEXTS says of each header with an
example what stands around it: "== PATH PARAMETERS", and declarations on the
lines below; "== PATH - REASON" where it is no code, or no code of a function.
`...` stands for anything: nothing is done there.
"""

import re
import sys

# The names that the examples use but do not declare.
PREAMBLE = '''
#include <iostream>
#include "base/clock.h"
#include "base/file/file.h"
#include "base/random.h"
#include "base/status_macros.h"
#include "base/process/subprocess.h"
#define ASSIGN_OR_RETURN OPTRAIL_ASSIGN_OR_RETURN
#define RETURN_IF_ERROR OPTRAIL_RETURN_IF_ERROR
namespace optrail {
template <typename... T> void Alert(T&&...);
template <typename... T> void Plot(T&&...);
template <typename... T> void Print(T&&...);
template <typename... T> void Say(T&&...);
template <typename... T> void Use(T&&...);
struct Returned {
  template <typename T> Returned(T&&) {}
};
}
'''


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
    code = re.sub(r'(?<!:)//[^\n]*', '', code)
    code = re.sub(r'= \.\.\.', '= {}', code)
    return re.sub(r'\.\.\. [^;{}\n]+ \.\.\.|\.\.\.;?', '{}', code)


def is_code(text):
    return ';' in text or '{' in text


def read_contexts(path):
    contexts, current = {}, None
    for line in open(path):
        if line.startswith('== '):
            _, header, parameters = (line.strip() + ' ').split(' ', 2)
            current = contexts[header] = [parameters.strip(), '', '']
        elif line.startswith('#include'):
            current[1] += line
        elif current and not line.startswith('#'):
            current[2] += line
    return contexts


def main():
    contexts = read_contexts(sys.argv[1])
    outs = dict(arg.split('=') for arg in sys.argv[2:] if '=' in arg)
    headers = [arg for arg in sys.argv[2:] if '=' not in arg]
    includes = {folder: [] for folder in outs}
    bodies = {folder: [] for folder in outs}
    problems, seen = [], set()
    for header in sorted(set(headers)):
        folder = header.split('/')[0]
        code = example_of(open(header).read())
        if header not in contexts:
            if is_code(code):
                problems.append('%s: its example is in no context' % header)
            continue
        seen.add(header)
        parameters, more, before = contexts[header]
        if parameters == '-' or parameters.startswith('- '):
            continue
        if not code:
            problems.append('%s: its banner has no example' % header)
            continue
        includes[folder].append('#include "%s"\n%s' % (header, more))
        inner = '' if folder == 'base' else '::' + folder
        bodies[folder].append(
            'namespace optrail%s::%s {\n%s'
            '[[maybe_unused]] Returned Example(%s) {\n%s\n'
            'return absl::OkStatus();\n}\n}\n' %
            (inner, re.sub(r'\W', '_', header), before, parameters, code))
    problems += ['%s is in the contexts, but no header of the deps' % header
                 for header in sorted(set(contexts) - seen)]
    if problems:
        sys.exit('%s:\n%s' % (sys.argv[1], '\n'.join(problems)))
    for folder, out in outs.items():
        with open(out, 'w') as file:
            file.write('#include "absl/status/status.h"\n' +
                       ''.join(includes[folder]) + PREAMBLE +
                       ''.join(bodies[folder]))
            if folder == 'base':
                file.write('int main() {}  // that they compile is the test\n')


if __name__ == '__main__':
    main()

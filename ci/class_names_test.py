#!/usr/bin/env python3
"""No two classes have one name in one namespace.

  class_names_test.py WORKSPACE_FILE

The linker takes the functions of either for those of the other where both are
in one binary, and says nothing.
"""

import collections
import glob
import os
import re
import sys

TOKEN = re.compile(
    r'namespace\s*([\w:]*)\s*\{|(\{)|(\})|'
    r'\b(?:class|struct|enum|enum\s+class)\s+(?:\[\[\w+\]\]\s*)?([\w:]+)\s*'
    r'(?:final\s*)?(?::[^;{]*)?\{')


def classes_of(text):
    """Names of the classes that a file defines, but those it keeps to itself."""
    text = re.sub(r'//[^\n]*', '', text)
    text = re.sub(r'R"(\w*)\((?:.|\n)*?\)\1"', '""', text)
    text = re.sub(r'"(?:\\.|[^"\\\n])*"', '""', text)
    text = re.sub(r"'(?:\\.|[^'\\\n])'", "' '", text)
    scopes = []
    for namespace, opening, closing, name in TOKEN.findall(text):
        if closing:
            if scopes:
                scopes.pop()
        elif name:
            if '' not in scopes:
                yield '::'.join(scopes + [name])
            scopes.append('')
        else:
            # A block has no name, and neither has an anonymous namespace.
            scopes.append('' if opening else namespace)


def main():
    root = os.path.dirname(os.path.realpath(sys.argv[1]))
    found = collections.defaultdict(set)
    for folder in ('base', 'tuning', 'ops', 'suites', 'tracker', 'reports',
                   'cli'):
        for path in (glob.glob(os.path.join(root, folder, '**/*.h'),
                               recursive=True) +
                     glob.glob(os.path.join(root, folder, '**/*.cc'),
                               recursive=True)):
            for name in classes_of(open(path, errors='replace').read()):
                found[name].add(os.path.relpath(path, root))
    failures = ['%s: %s' % (name, ', '.join(sorted(paths)))
                for name, paths in sorted(found.items()) if len(paths) > 1]
    print('%d classes' % len(found))
    for failure in failures:
        print('FAILED: one name for two: ' + failure)
    sys.exit(1 if failures or len(found) < 500 else 0)


if __name__ == '__main__':
    main()

#!/usr/bin/env python3
"""Finds long lines, long sentences and broken links in the documentation.

  docs_test.py WORKSPACE_FILE

- No line has more than 100 characters. Excepted are, where Markdown has no way
  to break a line: rows of tables, code blocks and lines that are one code span
  or link, outside docs/guide, docs/reference, README.md and CONTRIBUTING.md.
- Every relative link of README.md, CONTRIBUTING.md and docs/**/*.md names a file
  or folder that exists and, if it has a fragment, a heading of that page.
- Every page that code names (docs/guide/install.md) exists.
- Sentences are short: MOST_WORDS says how many words those of a room have on
  average on each page, and at most. A code span counts as one word.
"""

import glob
import os
import re
import sys

LONGEST_LINE = 100
NO_EXCEPTIONS = ('docs/guide/', 'docs/reference/', 'README.md',
                 'CONTRIBUTING.md')
CODE = ('.h', '.cc', '.cu', '.cuh', '.py', '.sh', '.bzl', '.proto', 'BUILD')
# Room -> words of a page's mean sentence, and of its longest. They only fall.
MOST_WORDS = {'docs/guide/': (16, 32), 'docs/reference/': (20, 50),
              'docs/method/': (22, 80)}
SKIPPED = ('.git', 'node_modules', 'testdata')


def sources(root, endings):
    """The files below `root` whose names end so, as sorted relative paths."""
    for folder, folders, names in os.walk(root):
        folders[:] = sorted(name for name in folders if name not in SKIPPED
                            and not name.startswith('bazel-'))
        for name in sorted(names):
            if name.endswith(endings):
                path = os.path.join(folder, name)
                yield os.path.relpath(path, root).replace(os.sep, '/')


def prose(text):
    """`text` without code blocks and code spans, on the same lines."""
    kept, inside = [], False
    for line in text.split('\n'):
        if re.match(r'\s*```', line):
            inside = not inside
            line = ''
        kept.append('' if inside else re.sub(r'`[^`]*`', '``', line))
    return '\n'.join(kept)


def sentences(text):
    """The sentences of prose and lists; tables and headings have none."""
    blocks, block = [], []
    for line in prose(text).split('\n') + ['']:
        line = line.strip()
        item = re.match(r'(?:[-*]|\d+\.) (.*)', line)
        if item or not line or line.startswith(('#', '|', '<!--', '![')):
            blocks.append(' '.join(block))
            block = [item.group(1)] if item else []
        else:
            block.append(line)
    found = []
    for block in blocks:
        block = re.sub(r'\[([^\]]*)\]\([^)]*\)', r'\1', block)
        found += re.split(r'(?<=[.!?:])["\')*]*\s+(?=[A-Z`*"\'0-9])', block)
    return [one for one in found if len(one.split()) >= 3]


def check_sentences(page, text):
    """What is wrong with the length of a page's sentences."""
    wrong = []
    for room, (mean, most) in MOST_WORDS.items():
        found = sentences(text) if page.startswith(room) else []
        counts = [len(one.split()) for one in found]
        if counts and sum(counts) > mean * len(counts):
            wrong.append('%.1f words a sentence, expected at most %d' %
                         (sum(counts) / len(counts), mean))
        wrong += ['%d words, expected at most %d: "%s ..."' %
                  (count, most, one[:60])
                  for one, count in zip(found, counts) if count > most]
    return wrong


def is_too_long(page, line, in_code):
    """Whether `line` could be broken; `in_code`: it is in a code block."""
    if len(line) <= LONGEST_LINE:
        return False
    unbreakable = in_code or line.startswith('|') or re.fullmatch(
        r'\s*([-*] )?\(?(`[^`]*`|\S*\[[^\]]*\]\(\S*\))\S*', line)
    return page.startswith(NO_EXCEPTIONS) or not unbreakable


def anchors(text):
    """Fragments of a page's headings, as code hosts make them."""
    found, inside = set(), False
    for line in text.split('\n'):
        if re.match(r'\s*```', line):
            inside = not inside
        heading = re.match(r'#+ (.*)', line)
        if not inside and heading:
            name = re.sub(r'\[([^\]]*)\]\([^)]*\)', r'\1', heading.group(1))
            name = re.sub(r'[^\w\- ]', '', name.strip().lower())
            name = name.replace(' ', '-')
            number = sum(1 for other in found
                         if re.fullmatch(re.escape(name) + r'(-\d+)?', other))
            name += '-%d' % number if number else ''
            found.add(name)
    return found


def check_page(page, text):
    """[(line number, what is wrong)]."""
    wrong, in_code = [], False
    for number, line in enumerate(text.split('\n'), 1):
        if re.match(r'\s*```', line):
            in_code = not in_code
        if is_too_long(page, line, in_code):
            wrong.append((number, '%d characters, expected at most %d' %
                          (len(line), LONGEST_LINE)))
    for number, line in enumerate(prose(text).split('\n'), 1):
        for target in re.findall(r'\]\(([^)\s]+)\)', line):
            if re.match(r'[a-z]+:', target):
                continue
            path, _, fragment = target.partition('#')
            path = os.path.normpath(os.path.join(os.path.dirname(page), path)
                                    if path else page)
            if not os.path.exists(path):
                wrong.append((number, 'link to %s: no such file' % target))
            elif fragment and path.endswith('.md') and \
                    fragment not in anchors(open(path, encoding='utf-8').read()):
                wrong.append((number, 'link to %s: %s has no such heading' %
                              (target, path)))
    return wrong


def pages_named(text):
    """[(line number, page)] of the pages of docs/ that code names."""
    return [(number, page) for number, line in enumerate(text.split('\n'), 1)
            for page in re.findall(r'(?<![\w/.])docs/[\w/]+\.md\b', line)]


def test_of_the_test():
    """What must be found in a page, and what must not."""
    page = 'docs/guide/x.md'
    for text, count in [
            ('x ' * 60, 1), ('| x ' * 60, 0), ('  `' + 'x ' * 60 + '`,', 0),
            ('```\n' + 'x ' * 60 + '\n```', 0), ('`x` ' + 'y ' * 60, 1)]:
        if len(check_page('docs/lab/x.md', text)) != count:
            return 'check_page(lab, %r)' % text
    for text, count in [
            ('x' * 100, 0), ('x' * 101, 1), ('\u00b7' * 100, 0),
            ('[a](no_such_page.md)', 1), ('`[a](no_such_page.md)`', 0),
            ('```\n[a](no_such_page.md)\n```', 0),
            ('[a](https://example.org/x)', 0),
            ('[a](../../README.md)', 0), ('[a](../../README.md#no-such)', 1),
            ('# One two?\n[a](#one-two)', 0)]:
        if text.startswith('# '):  # a page that links to itself
            if 'one-two' not in anchors(text):
                return 'anchors() of %r' % text
        elif len(check_page(page, text)) != count:
            return 'check_page(%r): %s' % (text, check_page(page, text))
    for text, count in [
            ('Ten words, ' * 5 + 'end.', 0), ('word ' * 40 + 'end.', 2),
            ('word ' * 20 + 'end.', 1), ('| ' + 'word ' * 40, 0),
            ('- ' + 'word ' * 9 + '\n' + '- ' + 'word ' * 9, 0),
            ('`' + 'word ' * 40 + '` is a word.', 0)]:
        if len(check_sentences(page, text)) != count:
            return 'check_sentences(%r)' % text
    return ''


def main():
    os.chdir(os.path.dirname(os.path.realpath(sys.argv[1])))
    failed = test_of_the_test()
    if failed:
        sys.exit('FAILED: the test itself: ' + failed)
    pages = ['README.md', 'CONTRIBUTING.md']
    pages += sorted(glob.glob('docs/**/*.md', recursive=True))
    failures = 0
    for page in pages:
        text = open(page, encoding='utf-8').read()
        for number, what in sorted(check_page(page, text)):
            failures += 1
            print('FAILED: %s:%d: %s' % (page, number, what))
        for what in check_sentences(page, text):
            failures += 1
            print('FAILED: %s: %s' % (page, what))
    for path in sources('.', CODE):
        if path.startswith('ci/docs_test'):
            continue
        for number, page in pages_named(open(path, encoding='utf-8').read()):
            if not os.path.exists(page):
                failures += 1
                print('FAILED: %s:%d: %s does not exist' % (path, number, page))
    print('%d pages, %d failures' % (len(pages), failures))
    if len(pages) < 20:
        sys.exit('FAILED: too few pages were found')
    sys.exit(1 if failures else 0)


if __name__ == '__main__':
    main()

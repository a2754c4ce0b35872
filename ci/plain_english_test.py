#!/usr/bin/env python3
"""Finds comments that hang, and private words (CONTRIBUTING.md says how we write).

  plain_english_test.py WORKSPACE_FILE [--count]

- A sentence of a comment that begins with Of, That, What, Whose, As, Where,
  Whether, Than or Beside has a main clause. "Of a call." and "As Foo()." hang on
  a line before them; "Where the file says nothing, the id is made." does not.
- Documentation, public headers and messages (the texts in .cc files) do not use
  the words of PRIVATE_WORDS, which have a meaning of their own here and a
  standard word in the field.

CLEAN lists the folders and files in which nothing is found. It only grows; a
folder that is named in it stays clean. --count prints what each folder has.
"""

import collections
import os
import re
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))
import docs_test

CLEAN = (
    'README.md',
    'CONTRIBUTING.md',
    'base/',
    'carbon/',
    'ci/',
    'cli/',
    'diagnosis/',
    'docs/',
    'fleet/',
    'graph/',
    'lib/',
    'ops/',
    'reports/',
    'suites/',
    'tracker/',
    'tuning/',
)

# A verb that a main clause may have. "is" and its like come first, then verbs
# that our comments use.
VERB = re.compile(
    r"\b(is|are|was|were|be|has|have|had|does|do|did|can|can't|cannot|must|may|"
    r"might|will|would|should|isn't|aren't|don't|doesn't|needs?|gets?|gives?|"
    r"goes|go|takes?|makes?|keeps?|stays?|stands?|counts?|comes?|says?|tells?|"
    r"reads?|writes?|returns?|fails?|ends?|begins?|becomes?|holds?|belongs?|"
    r"uses?|follows?|means?|costs?|wins?|runs?|shows?|adds?|leaves?|lies|"
    r"depends?|matters?|decides?|remains?|skips?|falls?|finds?|sets?|calls?|"
    r"starts?|waits?|hides?|passes|moves?|helps?|works?|names?|allows?|"
    r"expects?|happens?|lets?|looks?|measures?|prints?|drops?|asks?|builds?|"
    r"records?|changes?|computes?|stores?|loads?|lacks?|wants?|knows?|sees?|limits?)\b")
OPENERS = re.compile(
    r'(Of|That|What|Whose|As|Where|Whether|Than|Beside)\b(?! of the box)')


def hangs(sentence):
    """Whether a sentence that begins with one of OPENERS lacks a main clause."""
    opener = OPENERS.match(sentence)
    if not opener:
        return False
    word = opener.group(1)
    rest = sentence[opener.end():]
    verbs = len(VERB.findall(rest))
    head, comma, tail = rest.partition(',')
    if word in ('Of', 'As', 'Where', 'Beside', 'Than'):
        # "Where X, Y does Z." and "Of N, one is ...".
        return not (comma and VERB.search(tail))
    if word == 'That':
        return verbs == 0 or rest.startswith(' of ')
    # A clause of its own and the main clause: two verbs.
    return verbs < 2


def comments(path, text):
    """[(line number, text)] of each block of comment lines."""
    marks = r'//+' if path.endswith(('.h', '.cc', '.cu', '.proto')) else r'#'
    blocks, start = [], None
    for number, line in enumerate(text.split('\n') + [''], 1):
        whole = re.match(r'\s*%s(?!!)\s?(.*)' % marks, line)
        if whole and not re.match(r'\s*(\S+ = |NOLINT|%s)' % marks,
                                  whole.group(1)):
            said = whole.group(1)
            if re.match(r'\s{2,}|\s*[-|*] |\s*$', said) and not start:
                continue
            if not start:
                start, lines = number, []
            # Code and lists of a header's example end a block's sentence.
            lines.append('.' if re.match(r'\s{2,}|\s*$', said) else said)
            continue
        if start:
            blocks.append((start, ' '.join(lines)))
            start = None
        trailing = re.search(r'[;{,)]\s*%s (?!NOLINT)(\S.*)$' % marks, line)
        if trailing and marks != '#':
            blocks.append((number, trailing.group(1)))
    return blocks


def sentences(text):
    return [part.strip() for part in
            re.split(r'(?<=[.;:!?])["\')]*\s+(?=[A-Z"\'`])', text)
            if part.strip()]


# In the sense that is ours alone; stored names are in code spans or quotes.
PRIVATE_WORDS = [
    (r'\b(?<!a )few rows\b', 'skinny, small M'),
    (r'\b(right|left) factors?\b', 'B, A (rhs, lhs)'),
    (r'\bpair panels?\b', 'bf16 pairs, VNNI packing'),
    (r'\bpanels kept\b', 'packed panels, cached'),
    (r'\bwidened rows?\b', 'bf16 rows converted to f32'),
    (r'\blines ahead\b', 'software prefetch'),
    (r'\bwhat is (short of a|left of) (tile|rows)', 'remainder, tail'),
    (r'\b(measured|compared|sampled|timed|runs?|run) in turns\b', 'interleaved'),
    (r'\bin turns\b', 'interleaved'),
    (r'\bwitness(es)?\b', 'interference monitors'),
    (r'\bas it lies\b', 'in its stored layout'),
    (r'\b(is|are) said\b', 'reported, logged'),
    (r'\bscreened\b', 'filtered (name the technique)'),
]


def messages(text):
    """[(line number, text)] of the string literals of C++."""
    return [(number, literal) for number, line in enumerate(text.split('\n'), 1)
            if not re.match(r'\s*(//|#include)', line)
            for literal in re.findall(r'"((?:[^"\\]|\\.)*)"', line)
            if literal not in STORED]


# Values of JSON that scripts may read keep their words.
STORED = ('contention witnesses',)


def messages_test():
    found = messages('// "in turns"\n#include "x/witnesses.h"\n'
                     'Print("in \\"turns\\"", "b");\nx = "contention witnesses";')
    assert found == [(3, 'in \\"turns\\"'), (3, 'b')], found


def check(path, text):
    """[(line number, what is wrong)] of a file."""
    wrong = []
    if path.endswith('.md'):
        said = list(enumerate(docs_test.prose(text).split('\n'), 1))
    else:
        blocks = comments(path, text)
        for number, block in blocks:
            for sentence in sentences(block):
                if hangs(sentence):
                    wrong.append((number, 'hangs: "%s"' % sentence[:70]))
        said = blocks if path.endswith('.h') else []
        if path.endswith('.cc') and not re.search(r'_(test|benchmark)\.', path):
            said = messages(text)
    for number, line in said:
        for pattern, standard in PRIVATE_WORDS:
            found = re.search(pattern, line)
            if found:
                wrong.append((number, '"%s": the field says %s' %
                              (found.group(0), standard)))
    return wrong


def self_test():
    for sentence in ('Of a call.', 'As Foo().', 'That of weights: columns.',
                     'What a file says of each benchmark.', 'Whose it is.',
                     'Where the time went.', 'Whether it is on.',
                     'Beside the header.', 'Than before.'):
        assert hangs(sentence), sentence
    for sentence in ('Where the file says nothing, the id is made.',
                     'Of several imports at once, one records them.',
                     'What is left of it is copied.', 'That is an error.',
                     'Whether it is on is stored.', 'The most tiles.',
                     'As the key is unique, the order does not matter.'):
        assert not hangs(sentence), sentence


def main():
    self_test()
    messages_test()
    root = os.path.dirname(os.path.realpath(sys.argv[1]))
    counts, failures, files = collections.Counter(), [], 0
    for path in docs_test.sources(root, docs_test.CODE + ('.md',)):
        with open(os.path.join(root, path), encoding='utf-8') as file:
            wrong = check(path, file.read())
        files += path.startswith(CLEAN)
        counts['/'.join(path.split('/')[:2])] += len(wrong)
        if '--count' in sys.argv or path.startswith(CLEAN):
            failures += ['%s:%d: %s' % ((path,) + one) for one in wrong]
    if '--count' in sys.argv:
        print('\n'.join(failures))
        for folder, count in sorted(counts.items()):
            print('%5d %s' % (count, folder))
        return 0
    if files < 80:
        sys.exit('FAILED: too few files were found: %d' % files)
    print('\n'.join(failures) or '%d files are clean' % files)
    return 1 if failures else 0


if __name__ == '__main__':
    sys.exit(main())

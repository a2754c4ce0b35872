#!/usr/bin/env python3
"""Counts the lines of C++ that ship, per top folder or per file.

    ci/count_lines.py                     # one row per top folder, and the total
    ci/count_lines.py tracker reports cli # these folders alone
    ci/count_lines.py --files tracker     # one row per file, longest first
    ci/count_lines.py --functions=60 tracker  # functions longer than 60 lines

A line counts when it holds code: blank lines and comments do not. Tests, benchmarks' and tests'
fixtures (*_test.cc, *_test_fixture.*, *_benchmark.cc) and folders named evaluation, testing or
testdata are left out, since nothing of them ships: ci/layers_test.sh refuses a dependency of the
command line on them. Only files that git tracks are read.
"""

import argparse
import collections
import re
import subprocess
import sys

NOT_SHIPPED = re.compile(
    r"(^|/)(evaluation|testing|testdata)/|_test\.(cc|h)$|_test_[a-z_]+\.(cc|h)$|_benchmark\.cc$|_fixture\.(cc|h)$"
)
CLASS = re.compile(r"(template\s*<.*?>\s*)?(class|struct|union|enum)\b")
TOKEN = re.compile(
    r'R"(?P<raw>[^(\s]*)\(.*?\)(?P=raw)"'  # raw strings keep their lines
    r'|"(?:\\.|[^"\\\n])*"'
    r"|'(?:\\.|[^'\\\n])+'"
    r"|//[^\n]*|/\*.*?\*/",
    re.DOTALL,
)


def without_comments(text):
    """Returns the text with comments replaced by the newlines they contain."""

    def replace(match):
        token = match.group(0)
        return "\n" * token.count("\n") if token.startswith("/") else token

    return TOKEN.sub(replace, text)


def code_lines(text):
    return sum(1 for line in without_comments(text).split("\n") if line.strip())


def long_functions(text, limit):
    """Yields (line, length, head) of functions; clang-format's layout is assumed.

    A class is no function: its members are looked at, one level deeper.
    """
    lines = without_comments(text).split("\n")
    yield from long_blocks(lines, 0, len(lines), "", limit)


def long_blocks(lines, begin, end, indent, limit):
    start = None  # the first line of what is being read at this level
    opened = False  # it has a body
    for number in range(begin, end):
        line = lines[number]
        if start is not None and not opened:
            opened = line.rstrip().endswith("{")
            if line.rstrip().endswith(";"):  # a declaration over several lines
                start = None
                continue
        here = line.startswith(indent) and line[len(indent) : len(indent) + 1] not in ("", " ", "#")
        if not here or line.startswith(indent + "namespace"):
            continue
        if start is None and not line.startswith(indent + "}"):
            start = number
            opened = line.rstrip().endswith("{")
        if line.startswith(indent + "}") and start is not None:
            head = next((i for i in range(start, number) if lines[i].rstrip().endswith("{")), number)
            if CLASS.match(" ".join(lines[start : head + 1]).strip()):
                yield from long_blocks(lines, head + 1, number, indent + "  ", limit)
            elif number - start + 1 > limit:
                yield start + 1, number - start + 1, lines[start].strip()
        if line.rstrip().endswith((";", "}", ":")):
            start = None


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folders", nargs="*", help="folders or files to count; default: all")
    parser.add_argument("--files", action="store_true", help="one row per file")
    parser.add_argument("--functions", type=int, metavar="LINES", help="list longer functions")
    options = parser.parse_args()
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--", *options.folders], capture_output=True, check=True
    ).stdout.decode()
    counts = collections.Counter()
    for path in listed.split("\0"):
        if not path.endswith((".cc", ".h")) or NOT_SHIPPED.search(path):
            continue
        try:
            with open(path, encoding="utf-8") as file:
                text = file.read()
        except FileNotFoundError:  # deleted in the working tree
            continue
        counts[path if options.files else path.split("/")[0]] += code_lines(text)
        if options.functions:
            for line, length, head in long_functions(text, options.functions):
                print(f"{length:5d}  {path}:{line}  {head}")
    if options.functions:
        return 0
    if not counts:
        print("no shipped C++ under " + " ".join(options.folders or ["."]), file=sys.stderr)
        return 2
    for name, lines in counts.most_common():
        print(f"{lines:7d}  {name}")
    print(f"{sum(counts.values()):7d}  total")
    return 0


if __name__ == "__main__":
    sys.exit(main())

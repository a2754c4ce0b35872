#!/usr/bin/env python3
"""Plants regressions in commits of a small CMake project and asks the gate.

Each commit makes one function slower in a known way and changes other things
that do not matter. The gate builds both commits, measures them, and explains
what changed with the slower benchmark. The first line should name the cause:

  bazel build //cli:optrail
  python3 tracker/explain/evaluation/planted_commits.py \\
      --optrail=bazel-bin/cli/optrail --seed=7
"""

import argparse
import json
import os
import random
import re
import subprocess
import sys
import tempfile

NAMES = ["blur", "scale", "mix", "shade", "warp", "fold", "lift", "bend"]

HEAD = """// Kernels of a small project.
#include <atomic>
#include <cmath>
typedef float V __attribute__((vector_size(64), aligned(4)));
std::atomic<long> calls{0};
float Stretch(float v);
"""

# One function: y is computed from x; what is planted replaces parts.
PLAIN = """
void NAME(const float* __restrict x, float* __restrict y, long n) {
  for (long i = 0; i < n; ++i) {
    y[i] = x[i] * C1f + y[i] * C2f;
  }
}
"""
UNROLLED = """
constexpr int kValues_NAME = 12;
void NAME(const float* __restrict x, float* __restrict y, long n) {
  constexpr int kStep = 16 * kValues_NAME;
  for (long i = 0; i + kStep <= n; i += kStep) {
    V v[kValues_NAME];
#pragma GCC unroll 64
    for (int k = 0; k < kValues_NAME; ++k) v[k] = *(const V*)(x + i + 16 * k);
#pragma GCC unroll 16
    for (int step = 0; step < 16; ++step) {
#pragma GCC unroll 64
      for (int k = 0; k < kValues_NAME; ++k) {
        v[k] = v[k] * v[(k + 1) % kValues_NAME] + v[(k + 5) % kValues_NAME];
      }
    }
#pragma GCC unroll 64
    for (int k = 0; k < kValues_NAME; ++k) *(V*)(y + i + 16 * k) = v[k];
  }
}
"""
BLOCKED = """
void NAME(const float* __restrict x, float* __restrict y, long n) {
  for (long b = 0; b < n; b += BLOCK) {
    const long end = b + BLOCK < n ? b + BLOCK : n;
    for (long i = b; i < end; ++i) y[i] = x[i] * C1f + 1.0f;
    for (long i = b; i < end; ++i) y[i] += x[i] * C2f;
  }
}
"""
MAIN = """
#include <ctime>
#include <cstdio>
#include <cstdlib>
#include <vector>
float Stretch(float v) { return v * 1.5f + .25f; }
long block = 4096;
DECLARATIONS
double Now() {
  timespec t;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return t.tv_sec * 1e9 + t.tv_nsec;
}
int main() {
  if (FILE* file = std::fopen("tune.conf", "r")) {
    if (std::fscanf(file, "block=%ld", &block) != 1) std::exit(1);
    std::fclose(file);
  }
  const long n = 12288;
  std::vector<float> x(n, .5f), y(n, .25f);
  std::printf("{\\"context\\": {}, \\"benchmarks\\": [");
  const char* comma = "";
  const auto bench = [&](const char* name,
                         void (*run)(const float*, float*, long)) {
    double best = 1e30;
    for (int repeat = 0; repeat < 15; ++repeat) {
      const double start = Now();
      for (int k = 0; k < 40; ++k) run(x.data(), y.data(), n);
      const double ns = (Now() - start) / 40;
      if (ns < best) best = ns;
    }
    std::printf("%s{\\"name\\": \\"BM_%s\\", \\"run_name\\": \\"BM_%s\\", "
                "\\"run_type\\": \\"iteration\\", \\"iterations\\": 40, "
                "\\"real_time\\": %f, \\"cpu_time\\": %f, "
                "\\"time_unit\\": \\"ns\\"}", comma, name, name, best, best);
    comma = ", ";
  };
  BENCHES
  std::printf("]}\\n");
}
"""
CMAKE = """cmake_minimum_required(VERSION 3.13)
project(small CXX)
set(FLAGS -O3 -march=native -ffp-contract=fast)
set(TILE 2048)
add_executable(bench kernels.cc main.cc)
target_compile_options(bench PRIVATE ${FLAGS})
target_compile_definitions(bench PRIVATE TILE=${TILE})
"""


def replaced(text, old, new):
    assert old in text, (old, text)
    return text.replace(old, new, 1)


# Name: form of the function, the change of (its text, CMake, tune.conf), and
# what the first line of the explanation must match, NAME being the function.
def plants(rng):
    line = "y[i] = x[i] * C1f + y[i] * C2f;"
    return [
        ("spill", UNROLLED,
         lambda f, c, t: (replaced(f, "= 12;", "= %d;" % rng.choice(
             [40, 44, 48])), c, t), r"^code: NAME\(.*spilled"),
        ("vectors lost to a volatile", PLAIN,
         lambda f, c, t: (replaced(replaced(
             f, "  for (", "  volatile long at = 0;\n  for ("),
             "y[i] =", "at = i; y[i] ="), c, t),
         r"^code: NAME\(.*vectors lost"),
        ("vectors lost to a barrier", PLAIN,
         lambda f, c, t: (replaced(
             f, line, line + ' asm volatile("" ::: "memory");'), c, t),
         r"^code: NAME\(.*vectors lost"),
        ("a chain", PLAIN,
         lambda f, c, t: (replaced(
             f, "x[i] * C1f", "x[i] * C1f + (i ? y[i - 1] : 0)"), c, t),
         r"^code: NAME\(.*vectors lost"),
        ("another tile", BLOCKED.replace("BLOCK", "TILE"),
         lambda f, c, t: (f, replaced(c, "TILE 2048", "TILE %d" % rng.choice(
             [2, 3, 4])), t), r"^build: CMakeLists.txt:4: .*TILE"),
        ("flags", PLAIN,
         lambda f, c, t: (f, replaced(c, "-O3", "-O%d" % rng.choice(
             [0, 1])), t), r"^build: CMakeLists.txt:3: .*-O3"),
        ("a setting read at run time", BLOCKED.replace("BLOCK", "block"),
         lambda f, c, t: (f, c, "block=%d\n" % rng.choice([1, 2, 3])),
         r"^source: tune.conf:1: .*block=4096"),
        ("divisions", PLAIN,
         lambda f, c, t: (replaced(f, line, replaced(
             line, "y[i] * C2f", "std::sqrt(y[i] / (x[i] + C2f))")), c, t),
         r"^code: NAME\(.*(divisions|vectors lost)"),
        ("a call", PLAIN,
         lambda f, c, t: (replaced(f, "x[i] * C1f", "Stretch(x[i]) * C1f"),
                          c, t), r"^code: NAME\(.*(calls|vectors lost)"),
        ("double precision", PLAIN,
         lambda f, c, t: (replaced(f, "x[i] * C1f", "std::fabs(1.0 - x[i]) * "
                                   "double(C1f)"), c, t),
         r"^code: NAME\(.*(conversions|narrower)"),
    ]


def run(command, folder, check=True):
    return subprocess.run(command, cwd=folder, check=check, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def write(folder, files):
    for name, text in files.items():
        with open(os.path.join(folder, name), "w") as file:
            file.write(text)
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@b.c"]
    run(git + ["add", "-A"], folder)
    run(git + ["commit", "-q", "-m", "a change"], folder)


def project(rng, plant):
    """Files before and after, and the name of the slower function."""
    _, form, change, _ = plant
    names = rng.sample(NAMES, 4)
    victim = names[0]
    texts = {}
    for name in names:
        text = form if name == victim else rng.choice([PLAIN, UNROLLED])
        for constant in ["C1", "C2"]:
            text = text.replace(constant, "%.3f" % rng.uniform(.1, .4))
        texts[name] = text.replace("NAME", name)
    rng.shuffle(names)

    def files(texts, cmake, conf, readme, note):
        declare = "extern long block;\n"
        return {
            "kernels.cc": HEAD + declare + note +
                          "".join(texts[name] for name in names),
            "main.cc": MAIN.replace("DECLARATIONS", "\n".join(
                "void %s(const float*, float*, long);" % name
                for name in names)).replace("BENCHES", "\n".join(
                    'bench("%s", %s);' % (name, name) for name in names)),
            "CMakeLists.txt": cmake,
            "tune.conf": conf,
            "README.md": readme,
        }

    before = files(texts, CMAKE, "block=4096\n", "A project.\n", "")
    planted = dict(texts)
    # The constants are drawn already: a change is written with their names.
    values = re.findall(r"\d\.\d{3}(?=f)", texts[victim])
    named = texts[victim]
    for constant, value in zip(["C1", "C2"], dict.fromkeys(values)):
        named = named.replace(value, constant)
    text, cmake, conf = change(named, CMAKE, "block=4096\n")
    for constant, value in zip(["C1", "C2"], dict.fromkeys(values)):
        text = text.replace(constant, value)
    planted[victim] = text
    # What does not matter: comments, text, another function's constant.
    if rng.random() < .7:
        cmake += "# One program.\n"
    other = next(name for name in names if name != victim)
    if rng.random() < .7:
        planted[other] = re.sub(r"\d\.\d{3}f", "%.3ff" % rng.uniform(.1, .4),
                                planted[other], count=1)
    after = files(planted, cmake, conf, "A small project.\n",
                  "// Each function computes y.\n")
    return before, after, victim


def main():
    flags = argparse.ArgumentParser()
    flags.add_argument("--optrail", required=True)
    flags.add_argument("--seed", type=int, default=1)
    flags.add_argument("--only", default="")
    options = flags.parse_args()
    optrail = os.path.abspath(options.optrail)
    rng = random.Random(options.seed)
    right = total = unseen = 0
    for plant in plants(rng):
        before, after, victim = project(rng, plant)
        if options.only not in plant[0]:
            continue
        with tempfile.TemporaryDirectory() as folder:
            run(["git", "init", "-q", "-b", "main"], folder)
            write(folder, before)
            write(folder, after)
            answer = run(
                [optrail, "gate", "--baseline=commit:HEAD~1", "--quiet",
                 "--candidate=HEAD", "--max_rounds=12", "--format=json",
                 "--build=cmake -S . -B build -G 'Unix Makefiles' && "
                 "cmake --build build", "--run=build/bench",
                 "--history=" + folder + "/history"], folder, check=False)
            try:
                gate = json.loads(answer.stdout)
            except ValueError:
                print("%s: the gate failed: %s" % (plant[0], answer.stderr))
                return 2
        rows = [row for row in gate["rows"] if row["changed"]]
        expected = plant[3].replace("NAME", victim)
        total += 1
        if not rows:
            unseen += 1
            print("%-28s not seen by the gate: %s" %
                  (plant[0], gate["summary"]), flush=True)
            continue
        changed = rows[0]["changed"]
        is_right = re.search(expected, changed[0]) is not None
        right += is_right
        print("%-28s %s: %s" % (plant[0], "right" if is_right else "WRONG",
                                changed[0]), flush=True)
        if not is_right:
            for line in changed[1:]:
                print("    " + line)
            print("    expected " + expected, flush=True)
    print("the first line is right: %d of %d; not seen by the gate: %d" %
          (right, total, unseen))
    return 0


if __name__ == "__main__":
    sys.exit(main())

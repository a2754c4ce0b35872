#!/usr/bin/env bash
# Makes a project that knows nothing of Optrail: a Makefile, six Google Benchmark
# programs and COMMITS commits, of which number SLOW makes one benchmark 8%
# slower. Prints that commit's id.
#
#   ci/any_benchmarks_project.sh FOLDER [COMMITS [SLOW [real]]]
#
# By default the programs report the time of a model with 1% noise from process
# to process (Google Benchmark's manual time), so that a test needs no quiet
# machine; "real" makes them loop.
set -euo pipefail

folder=$1
commits=${2:-40}
slow=${3:-23}
kind=${4:-model}

mkdir -p "$folder/src"
cd "$folder"
git init --quiet --initial-branch=main
git config user.name Test
git config user.email test@example.org
git config commit.gpgsign false

cat >Makefile <<'END'
programs := $(patsubst src/%_bench.cc,bin/%_bench,$(wildcard src/*_bench.cc))
all: $(programs)
bin/%_bench: obj/%_bench.o obj/%.o
	@mkdir -p bin
	g++ -o $@ $^ -lbenchmark -lpthread
obj/%.o: src/%.cc src/work.h
	@mkdir -p obj
	g++ -O1 -c -o $@ $<
.SECONDARY:
END
printf "bin/\nobj/\nreport.html\n.optrail/\ncommands\nout\n" >.gitignore
cat >src/work.h <<'END'
double Units();  // of work that a call takes
END

# One program's benchmark; the library that it measures comes below.
for name in parse sort hash encode search merge; do
  cat >"src/${name}_bench.cc" <<END
#include <benchmark/benchmark.h>
#include <chrono>
#include <random>
#include "work.h"
namespace {
#ifdef REAL
void BM_${name}(benchmark::State& state) {
  const long steps = static_cast<long>(40000 * Units());
  for (auto _ : state) {
    double x = 1;
    for (long i = 0; i < steps; ++i) benchmark::DoNotOptimize(x = x * 1.0000001 + .5);
  }
}
BENCHMARK(BM_${name})->MinTime(.05);
#else
// What differs between processes is drawn once.
const double process = [] {
  std::random_device seed;
  return std::normal_distribution<double>(1, .01)(seed);
}();
void BM_${name}(benchmark::State& state) {
  for (auto _ : state) state.SetIterationTime(1e-4 * Units() * process);
}
BENCHMARK(BM_${name})->UseManualTime()->Iterations(20);
#endif
}  // namespace
BENCHMARK_MAIN();
END
done
[ "$kind" != real ] || sed -i 's/g++ -O1/g++ -DREAL -O1/' Makefile

for number in $(seq "$commits"); do
  i=0
  for name in parse sort hash encode search merge; do
    i=$((i + 1))
    units=$((100 + 20 * i))
    # The culprit touches one of the six; everything else is a comment.
    if [ "$name" = hash ] && [ "$number" -ge "$slow" ]; then
      units=$((units * 108 / 100))
    fi
    printf '// as of commit %d\ndouble Units() { return %d / 100.; }\n' \
      "$((number / 4 * 4))" "$units" >"src/$name.cc"
  done
  echo "$number" >version
  git add --all
  GIT_COMMITTER_DATE="2026-10-01T00:00:00Z" GIT_AUTHOR_DATE="2026-10-01T00:00:00Z" \
    git commit --quiet --message "change $number"
  [ "$number" != "$slow" ] || culprit=$(git rev-parse HEAD)
done
echo "$culprit"

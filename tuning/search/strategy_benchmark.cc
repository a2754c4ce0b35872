// Measures the time that a strategy itself takes per trial, over a session of
// 400 trials:
//
//   bazel run -c opt //tuning/search:strategy_benchmark
//
// The spaces are 18,000 listed configs; 10^7 that are not listed and of which
// three quarters are valid; two knobs of 5,000 levels; 40 categorical knobs.

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "benchmark/benchmark.h"
#include "tuning/search/strategies.h"
#include "tuning/search/testing/grid_domain.h"

namespace optrail::tuning {
namespace {

constexpr int kTrials = 400;

const Domain& ListedDomain() {
  static const GridDomain* const domain = new GridDomain(
      {GridDomain::Powers("a", 10), GridDomain::Powers("b", 10),
       GridDomain::Powers("c", 6), GridDomain::Powers("d", 5),
       GridDomain::Variants("e", 3), GridDomain::Variants("f", 2)});
  return *domain;
}

const Domain& UnlistedDomain() {
  static const GridDomain* const domain = [] {
    std::vector<KnobLevels> knobs;
    for (int k = 0; k < 7; ++k) {
      knobs.push_back(GridDomain::Powers(absl::StrCat("k", k), 10));
    }
    return new GridDomain(
        knobs,
        [](absl::Span<const uint16_t> l) { return (l[0] + l[1]) % 4 != 0; },
        /*listed=*/false);
  }();
  return *domain;
}

const Domain& ManyLevelsDomain() {
  static const GridDomain* const domain = new GridDomain(
      {GridDomain::Range("a", 5000), GridDomain::Range("b", 5000),
       GridDomain::Variants("c", 3)},
      [](absl::Span<const uint16_t> l) { return (l[0] + l[1]) % 8 == 0; },
      /*listed=*/false);
  return *domain;
}

const Domain& CategoricalDomain() {
  static const GridDomain* const domain = [] {
    std::vector<KnobLevels> knobs;
    for (int k = 0; k < 40; ++k) {
      knobs.push_back(GridDomain::Variants(absl::StrCat("k", k), 2 + k % 9));
    }
    return new GridDomain(knobs, nullptr, /*listed=*/false);
  }();
  return *domain;
}

// A bowl with ridges.
Trial Measure(const Domain& domain, const Levels& levels) {
  double cost = 1;
  for (size_t k = 0; k < levels.size(); ++k) {
    const double x = levels[k] - 0.6 * domain.knobs()[k].size();
    cost += x * x * (k % 2 == 0 ? 1 : 0.3) + (levels[k] % 3 == 1 ? 2 : 0);
  }
  return {levels, proto::OK, {cost}};
}

void RunSession(benchmark::State& state, const std::string& name,
                const Domain& domain) {
  StrategyOptions options;
  options.budget = kTrials;
  for (auto _ : state) {
    const auto strategy = MakeStrategy(name, domain, options);
    OPTRAIL_CHECK(strategy.ok()) << strategy.status().message();
    for (int i = 0; i < kTrials; ++i) {
      const std::vector<Levels> round = (*strategy)->Ask(1);
      (*strategy)->Tell({Measure(domain, round[0])});
    }
    ++options.seed;
  }
  state.counters["per_trial"] = benchmark::Counter(
      kTrials, benchmark::Counter::kIsIterationInvariantRate |
                   benchmark::Counter::kInvert);
}

void Register() {
  for (const std::string& name : StrategyNames()) {
    if (name == "exhaustive") continue;
    for (const auto& [label, domain] :
         {std::make_pair("18000", &ListedDomain()),
          std::make_pair("1e7_unlisted", &UnlistedDomain()),
          std::make_pair("5000_levels", &ManyLevelsDomain()),
          std::make_pair("40_categorical", &CategoricalDomain())}) {
      benchmark::RegisterBenchmark(
          absl::StrCat(name, "/", label).c_str(),
          [name, domain = domain](benchmark::State& state) {
            RunSession(state, name, *domain);
          })
          ->Unit(benchmark::kMillisecond);
    }
  }
}

}  // namespace
}  // namespace optrail::tuning

int main(int argc, char** argv) {
  optrail::tuning::Register();
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}

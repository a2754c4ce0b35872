#include "tracker/gate/evaluation/changed_suites.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/random.h"
#include "tracker/gate/evaluation/planted.h"
#include "tracker/gate/policy.h"

namespace optrail::tracker {
namespace {

constexpr int kRuns = 15, kProcesses = 5, kRounds = 12;
constexpr double kRunNoise = .004, kProcessNoise = .008;
constexpr double kMissed = 1.08;

// One suite on one machine, and what a commit changes of it.
struct Suite {
  std::vector<double> levels, loadings, changes;  // by benchmark; logarithms
  double drift = 0;
  bool calibrated = false, paired = false;
};

Suite DrawSuite(Rng& rng) {
  Suite suite;
  const int benchmarks = 5 + static_cast<int>(rng.UniformInt(36));
  suite.drift = rng.UniformInt(4) == 0 ? 0 : .03 * rng.UniformReal();
  suite.calibrated = rng.UniformInt(2) == 0;
  suite.paired = rng.UniformInt(2) == 0;
  const bool common = rng.UniformInt(2) == 0;
  // None and all are shares, too, and ends that matter.
  const double draw = 1.3 * rng.UniformReal() - .15;
  const double share = std::clamp(draw, 0., 1.);
  // Small steps are the hard ones.
  const double most = rng.UniformInt(2) == 0 ? .5 : .15;
  const auto effect = [&rng, most] {
    return std::log(1 + most * (2 * rng.UniformReal() - 1));
  };
  const double step = effect();
  for (int j = 0; j < benchmarks; ++j) {
    suite.levels.push_back(std::log(1e3) + 8 * rng.UniformReal());
    const bool by_core = rng.UniformInt(5) > 0;
    suite.loadings.push_back(by_core ? .9 + .2 * rng.UniformReal()
                                     : .2 * rng.UniformReal());
    suite.changes.push_back(j + .5 >= share * benchmarks ? 0
                            : common                     ? step
                                                         : effect());
  }
  return suite;
}

// The core's loops follow its clock, those beyond it hardly.
void AddLoops(double machine, Rng& rng, proto::Measurement* measurement) {
  struct Loop {
    const char* name;
    double loading;
  };
  for (const Loop& one :
       {Loop{"arithmetic", 1}, Loop{"vector", 1}, Loop{"l1", 1}, Loop{"l2", 1},
        Loop{"l3", .2}, Loop{"memory", .1}}) {
    proto::Calibration* loop =
        measurement->mutable_conditions()->add_calibrations();
    loop->set_loop(one.name);
    const double time_ns =
        100 * std::exp(one.loading * machine + .001 * rng.Gaussian());
    loop->set_time_ns(time_ns);
    loop->set_fastest_ns(time_ns);
  }
}

proto::Run MeasureSuite(const Suite& suite, bool changed, double machine,
                        int processes, double run_noise, Rng& rng) {
  proto::Run run;
  for (size_t j = 0; j < suite.levels.size(); ++j) {
    proto::BenchmarkResult* result = run.add_results();
    result->mutable_key()->set_operator_name(absl::StrCat("BM_", j));
    result->set_outcome(proto::OK);
    const double level = suite.levels[j] + suite.loadings[j] * machine +
                         (changed ? suite.changes[j] : 0) +
                         run_noise * rng.Gaussian();
    for (int p = 0; p < processes; ++p) {
      proto::Measurement* measurement = result->add_measurements();
      measurement->set_median_ns(
          std::exp(level + kProcessNoise * rng.Gaussian()));
      if (suite.calibrated) AddLoops(machine, rng, measurement);
    }
  }
  return run;
}

GateReport GateWindow(const Suite& suite, Rng& rng) {
  std::vector<proto::Run> runs;
  for (int r = 0; r <= kRuns; ++r) {
    runs.push_back(MeasureSuite(suite, r == kRuns, suite.drift * rng.Gaussian(),
                                kProcesses, kRunNoise, rng));
  }
  return GateLast(Numbered(runs), 1, 1);
}

GateReport GatePairs(const Suite& suite, Rng& rng) {
  std::vector<proto::Run> sides[2];
  for (int round = 0; round < kRounds; ++round) {
    const double machine = suite.drift * rng.Gaussian();
    for (const int side : {0, 1}) {
      proto::Run run =
          MeasureSuite(suite, side == 1, machine, 1, kRunNoise, rng);
      for (proto::BenchmarkResult& result : *run.mutable_results()) {
        result.mutable_measurements(0)->set_round(round + 1);
      }
      run.set_run_id(absl::StrCat(side, "-", round));
      run.set_pairing_id("pairs");
      sides[side].push_back(std::move(run));
    }
  }
  return GateSides(sides[0], sides[1]);
}

void Count(const Suite& suite, const GateReport& report, SuiteCounts* counts) {
  bool slower = false, changed = false, false_red = false;
  for (size_t j = 0; j < suite.changes.size(); ++j) {
    slower = slower || suite.changes[j] >= std::log(kMissed);
    changed = changed || suite.changes[j] != 0;
    false_red = false_red || (suite.changes[j] == 0 &&
                              RowOf(report, absl::StrCat("BM_", j)).verdict ==
                                  Verdict::kSlower);
  }
  ++counts->gates;
  counts->green += report.exit_code == 0;
  counts->red += report.exit_code == 1;
  counts->inconclusive += report.exit_code == 3;
  counts->missed += report.exit_code == 0 && slower;
  counts->false_red += false_red;
  counts->unchanged += !changed;
  counts->unchanged_green += !changed && report.exit_code == 0;
}

}  // namespace

SuiteFigures GateChangedSuites(int gates, uint64_t seed) {
  SuiteFigures figures;
  figures[0].name = "all";
  figures[1].name = "pairs";
  figures[2].name = "calibrated";
  figures[3].name = "no calibration, no drift";
  figures[4].name = "no calibration, drift";
  Rng rng(seed);
  for (int i = 0; i < gates; ++i) {
    const Suite suite = DrawSuite(rng);
    const GateReport report =
        suite.paired ? GatePairs(suite, rng) : GateWindow(suite, rng);
    const int group = suite.paired       ? 1
                      : suite.calibrated ? 2
                      : suite.drift == 0 ? 3
                                         : 4;
    Count(suite, report, &figures[0]);
    Count(suite, report, &figures[group]);
  }
  return figures;
}

}  // namespace optrail::tracker

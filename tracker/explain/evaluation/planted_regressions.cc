#include "tracker/explain/evaluation/planted_regressions.h"

#include <cmath>
#include <functional>
#include <map>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/random.h"

namespace optrail::tracker {
namespace {

double Jitter(double size, Rng& rng) { return std::exp(size * rng.Gaussian()); }

proto::Run MakeSide(int commit, Rng& rng) {
  proto::Run run;
  run.set_run_id(
      absl::StrCat("2026112", commit, "T000000Z-00000000000", commit));
  run.mutable_commit()->set_id(absl::StrCat(commit, "abcdef0123456789"));
  run.mutable_commit()->set_subject("a subject");
  run.mutable_hardware()->set_id("test-2c");
  run.mutable_toolchain()->set_compiler("g++ 12.2.0");
  run.mutable_toolchain()->set_flags("-O2");
  run.mutable_toolchain()->set_driver("570.1");
  proto::BenchmarkResult& result = *run.add_results();
  result.mutable_key()->set_operator_name("op");
  result.mutable_key()->set_selection(proto::TUNED);
  result.set_outcome(proto::OK);
  result.set_config("tile=64,unroll=2,variant=online");
  result.set_config_source(proto::EXACT_SHAPE);
  result.set_kernel_id("1111aaaa2222bbbb");
  result.set_library("OpenBLAS 0.3.21");
  result.set_resolved_backend("native");
  result.set_flop(1e9);
  result.set_moved_bytes(1e7);
  const double machine = Jitter(.01, rng), clock = Jitter(.008, rng);
  for (int p = 0; p < 5; ++p) {
    proto::Conditions& conditions =
        *result.add_measurements()->mutable_conditions();
    conditions.set_clock_hz(
        static_cast<int64_t>(3e9 * clock * Jitter(.003, rng)));
    conditions.set_run_delay_fraction(.01 * rng.UniformReal());
    conditions.set_steal_fraction(.01 * rng.UniformReal());
    conditions.set_page_bytes(2 << 20);
    conditions.set_governor("performance");
    for (const char* loop : {"arithmetic", "l2", "memory"}) {
      proto::Calibration& calibration = *conditions.add_calibrations();
      calibration.set_loop(loop);
      calibration.set_time_ns(1000 * machine * Jitter(.01, rng));
    }
  }
  return run;
}

using Edit = std::function<void(proto::Conditions&)>;

void EditConditions(PlantedRegression& planted, const Edit& edit) {
  for (auto& measurement :
       *planted.after.mutable_results(0)->mutable_measurements()) {
    edit(*measurement.mutable_conditions());
  }
}

std::vector<proto::Fact> Facts(
    const std::vector<std::pair<const char*, int64_t>>& values) {
  std::vector<proto::Fact> facts;
  for (const auto& [name, value] : values) {
    facts.emplace_back().set_name(name);
    facts.back().set_value(value);
  }
  return facts;
}

struct Cause {
  std::string expected;
  std::function<void(PlantedRegression&)> plant;
};

void ScaleClock(PlantedRegression& planted) {
  EditConditions(planted, [&](proto::Conditions& conditions) {
    conditions.set_clock_hz(
        static_cast<int64_t>(conditions.clock_hz() / planted.time_ratio));
  });
}

const std::map<std::string, Cause>& Causes() {
  const auto result = [](PlantedRegression& planted) {
    return planted.after.mutable_results(0);
  };
  static const auto* const causes = new std::map<std::string, Cause>{
      {"another config",
       {"config: tile 64 -> 32",
        [=](PlantedRegression& planted) {
          result(planted)->set_config("tile=32,unroll=2,variant=online");
        }}},
      {"no tuned config",
       {"config: no tuned config",
        [=](PlantedRegression& planted) {
          result(planted)->set_config_source(proto::FALLBACK_TO_DEFAULT);
          result(planted)->set_config("tile=8,unroll=1,variant=online");
        }}},
      {"another backend",
       {"backend: native -> plain",
        [=](PlantedRegression& planted) {
          result(planted)->set_resolved_backend("plain");
        }}},
      {"another library",
       {"library: ",
        [=](PlantedRegression& planted) {
          result(planted)->set_library("OpenBLAS 0.3.29");
        }}},
      {"more work",
       {"work: FLOP",
        [=](PlantedRegression& planted) {
          result(planted)->set_flop(1e9 * planted.time_ratio);
        }}},
      {"compiler",
       {"compiler: ",
        [](PlantedRegression& planted) {
          planted.after.mutable_toolchain()->set_compiler("g++ 13.2.0");
        }}},
      {"lost flags",
       {"flags: ",
        [](PlantedRegression& planted) {
          planted.after.mutable_toolchain()->set_flags("-O1");
        }}},
      {"driver",
       {"driver: ",
        [](PlantedRegression& planted) {
          planted.after.mutable_toolchain()->set_driver("575.3");
        }}},
      {"a spill",
       {"compiled: ",
        [=](PlantedRegression& planted) {
          planted.facts_before = Facts({{"registers", 96}, {"spill_bytes", 0}});
          planted.facts_after =
              Facts({{"registers", 255}, {"spill_bytes", 176}});
          result(planted)->set_kernel_id("3333cccc4444dddd");
        }}},
      {"lost vectors",
       {"compiled: ",
        [=](PlantedRegression& planted) {
          planted.facts_before = Facts({{"loop_vector", 24}, {"object", 9000}});
          planted.facts_after = Facts({{"loop_vector", 0}, {"object", 8000}});
          result(planted)->set_kernel_id("3333cccc4444dddd");
        }}},
      {"code",
       {"kernel: ",
        [=](PlantedRegression& planted) {
          result(planted)->set_kernel_id("3333cccc4444dddd");
        }}},
      {"slower clock", {"clock: ", ScaleClock}},
      {"waiting",
       {"waiting for a core",
        [](PlantedRegression& planted) {
          EditConditions(planted, [&](proto::Conditions& conditions) {
            conditions.set_run_delay_fraction(1 - 1 / planted.time_ratio);
          });
        }}},
      {"slower memory",
       {"machine: calibration loop memory",
        [](PlantedRegression& planted) {
          EditConditions(planted, [&](proto::Conditions& conditions) {
            proto::Calibration& memory = *conditions.mutable_calibrations(2);
            memory.set_time_ns(memory.time_ns() * planted.time_ratio);
          });
        }}},
      {"small pages",
       {"pages: ",
        [](PlantedRegression& planted) {
          EditConditions(planted, [](proto::Conditions& conditions) {
            conditions.set_page_bytes(4096);
          });
        }}},
      {"nothing", {"nothing on record differs", [](PlantedRegression&) {}}},
  };
  return *causes;
}

// Other differences, which are not the cause.
void AddDistractors(PlantedRegression& planted, Rng& rng) {
  if (planted.cause != "nothing" && rng.UniformReal() < .3) {
    planted.after.mutable_results(0)->set_kernel_id("5555eeee6666ffff");
  }
  if (planted.cause != "nothing" && rng.UniformReal() < .3) {
    EditConditions(planted, [](proto::Conditions& conditions) {
      conditions.set_governor("schedutil");
    });
  }
  if (rng.UniformReal() < .3) {
    const double slower = 1 + .03 * rng.UniformReal();
    EditConditions(planted, [&](proto::Conditions& conditions) {
      conditions.set_clock_hz(
          static_cast<int64_t>(conditions.clock_hz() / slower));
    });
  }
  if (rng.UniformReal() < .2) {
    const double waiting = .04 * rng.UniformReal();
    EditConditions(planted, [&](proto::Conditions& conditions) {
      conditions.set_run_delay_fraction(conditions.run_delay_fraction() +
                                        waiting);
    });
  }
}

}  // namespace

std::vector<std::string> PlantedCauses() {
  std::vector<std::string> names;
  for (const auto& [name, cause] : Causes()) names.push_back(name);
  return names;
}

PlantedRegression PlantRegression(const std::string& cause, uint64_t seed) {
  const auto at = Causes().find(cause);
  OPTRAIL_CHECK(at != Causes().end());
  Rng rng(seed);
  PlantedRegression planted;
  planted.cause = cause;
  planted.expected = at->second.expected;
  planted.time_ratio =
      std::exp(std::log(1.06) + 1.2 * rng.UniformReal() * rng.UniformReal());
  planted.before = MakeSide(1, rng);
  planted.after = MakeSide(2, rng);
  AddDistractors(planted, rng);
  at->second.plant(planted);
  planted.before.mutable_results(0)->set_roofline_fraction(.6);
  planted.after.mutable_results(0)->set_roofline_fraction(.6 /
                                                          planted.time_ratio);
  return planted;
}

std::vector<std::string> ExplanationOf(const PlantedRegression& planted) {
  return WhatChanged(
      {&planted.before, &planted.before.results(0), planted.facts_before},
      {&planted.after, &planted.after.results(0), planted.facts_after},
      planted.time_ratio);
}

bool IsExplained(const PlantedRegression& planted) {
  return absl::StartsWith(ExplanationOf(planted).front(), planted.expected);
}

}  // namespace optrail::tracker

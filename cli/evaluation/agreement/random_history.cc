#include "cli/evaluation/agreement/random_history.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/check.h"
#include "base/random.h"
#include "cli/evaluation/agreement/made_run.h"
#include "cli/evaluation/agreement/made_session.h"

namespace optrail::agreement {
namespace {

// The choices that make a history.
struct Plan {
  int commits = 30;
  int machines = 1;
  int suites = 1;
  int benchmarks = 4;  // of a suite
  int processes = 5;
  double noise = .003;
  double drift = 0;
  bool calibrated = false;
  bool has_rate = false;
  bool only_medians = false;
  bool newest_first = false;
  bool without_positions = false;
  bool paired_end = false;
  double bad_clock = 0;     // share of runs
  double burst = 0;         // share of runs that something slows
  double failing = 0;       // share of results
  double missing = 0;       // share of results
  double dirty = 0;         // share of runs
  double repeated = 0;      // share of runs
  double partial = 0;       // share of runs of a part of the suite
  int compiler_change = 0;  // position; 0: none
  int topic_from = 0;       // position at which a branch begins; 0: none
  std::string creeping;     // a benchmark that becomes slower; "": none
  double creep = 0;         // by this share of its level per commit
  int creep_from = 0;       // after this position
};

class Maker {
 public:
  explicit Maker(uint64_t seed) : rng_(seed) { history_.seed = seed; }

  MadeHistory Make() {
    Draw();
    for (int position = 1; position <= plan_.commits; ++position) {
      AddCommit(position, "main");
      if (plan_.topic_from > 0 && position >= plan_.topic_from) {
        AddCommit(position, "topic");
      }
    }
    if (Chance(.3)) history_.sessions.push_back(MakeSession(&rng_));
    history_.is_merged = Chance(.25);
    history_.is_thinned = !plan_.only_medians && Chance(.1);
    if (!history_.steps.empty() && Chance(.3)) {
      static constexpr const char* kAnswers[] = {"ack", "expect", "mute"};
      history_.answer = kAnswers[rng_.UniformInt(3)];
    }
    Summarize();
    return std::move(history_);
  }

 private:
  bool Chance(double share) { return rng_.UniformReal() < share; }
  double Between(double low, double high) {
    return low + (high - low) * rng_.UniformReal();
  }

  void Draw() {
    history_.is_calm = Chance(.35);
    plan_.commits = Chance(.1) ? 1 + static_cast<int>(rng_.UniformInt(6))
                               : 8 + static_cast<int>(rng_.UniformInt(40));
    plan_.machines = Chance(.25) ? 2 : 1;
    plan_.suites = Chance(.25) ? 2 : 1;
    plan_.benchmarks = 2 + static_cast<int>(rng_.UniformInt(6));
    static constexpr int kProcesses[] = {1, 3, 5, 5};
    plan_.processes = kProcesses[rng_.UniformInt(4)];
    plan_.calibrated = Chance(.4);
    plan_.has_rate = Chance(.3);
    plan_.only_medians = Chance(.15);
    plan_.newest_first = Chance(.15);
    plan_.paired_end = Chance(.2);
    if (Chance(.3))
      plan_.topic_from = 1 + static_cast<int>(rng_.UniformInt(plan_.commits));
    if (Chance(.2)) {
      plan_.compiler_change =
          1 + static_cast<int>(rng_.UniformInt(plan_.commits));
    }
    if (history_.is_calm) {
      plan_.processes = 5;
    } else {
      plan_.noise = Between(.002, .03);
      plan_.drift = Between(0, .03);
      plan_.without_positions = Chance(.15);
      plan_.bad_clock = Chance(.3) ? .1 : 0;
      plan_.burst = Chance(.3) ? .05 : 0;
      plan_.failing = Chance(.3) ? .03 : 0;
      plan_.missing = Chance(.3) ? .03 : 0;
      plan_.dirty = Chance(.3) ? .1 : 0;
      plan_.repeated = Chance(.4) ? .2 : 0;
      plan_.partial = Chance(.15) ? .2 : 0;
    }
    DrawSteps();
    DrawCreep();
  }

  // A benchmark without a step may become slower with every commit. Its draws
  // are its own, so that the rest of a history stays as it was without it.
  void DrawCreep() {
    Rng rng(history_.seed ^ 0xc7ee9);
    const std::string name =
        Name(0, static_cast<int>(rng.UniformInt(plan_.benchmarks)));
    const bool has_step = std::any_of(
        history_.steps.begin(), history_.steps.end(),
        [&](const PlantedStep& step) { return step.benchmark == name; });
    if (has_step || rng.UniformReal() > .3) return;
    plan_.creeping = name;
    plan_.creep = .001 + .007 * rng.UniformReal();
    plan_.creep_from = static_cast<int>(rng.UniformInt(plan_.commits));
  }

  void DrawSteps() {
    const int steps = static_cast<int>(rng_.UniformInt(4));
    for (int i = 0; i < steps; ++i) {
      PlantedStep step;
      step.benchmark =
          Name(static_cast<int>(rng_.UniformInt(plan_.suites)),
               static_cast<int>(rng_.UniformInt(plan_.benchmarks)));
      // Often at the last commit, which the gate is asked about.
      step.at = Chance(.3)
                    ? plan_.commits
                    : 1 + static_cast<int>(rng_.UniformInt(plan_.commits));
      step.factor = std::exp(Between(-.5, .5));
      history_.steps.push_back(step);
    }
  }

  static std::string Name(int suite, int benchmark) {
    return absl::StrCat("BM_", suite == 0 ? "a" : "b", benchmark);
  }

  void AddCommit(int position, const std::string& branch) {
    for (int machine = 0; machine < plan_.machines; ++machine) {
      for (int suite = 0; suite < plan_.suites; ++suite) {
        const int runs = Chance(plan_.repeated) ? 2 : 1;
        for (int i = 0; i < runs; ++i) {
          AddRun(position, branch, machine, suite, i);
        }
      }
    }
  }

  void AddRun(int position, const std::string& branch, int machine, int suite,
              int repetition) {
    RunSpec spec;
    spec.suite = suite == 0 ? "first" : "second";
    spec.hardware = machine == 0 ? "amd-epyc-zen4-2c" : "intel-icelake-8c";
    spec.branch = branch;
    spec.commit = MadeCommit(position, branch);
    if (!plan_.without_positions) spec.position = position;
    const int order = plan_.newest_first ? plan_.commits - position : position;
    spec.started_unix_ns = kStartNs + order * kHourNs +
                           (1200 * machine + 600 * suite + 120 * repetition +
                            (branch == "main" ? 0 : 60)) *
                               kSecondNs;
    if (Chance(plan_.bad_clock)) {
      spec.started_unix_ns +=
          static_cast<int64_t>(Between(-200, 200) * kHourNs);
    }
    spec.dirty = Chance(plan_.dirty);
    if (plan_.compiler_change > 0 && position >= plan_.compiler_change) {
      spec.compiler = "g++ 13.1.0";
    }
    spec.processes = plan_.processes;
    spec.process_noise = plan_.noise;
    spec.machine = plan_.drift * rng_.Gaussian();
    spec.calibrated = plan_.calibrated;
    spec.has_rate = plan_.has_rate;
    const bool paired = plan_.paired_end && plan_.commits > 1 &&
                        position + 1 >= plan_.commits && repetition == 0;
    if (paired) {
      spec.pairing_id = absl::StrCat("pair-", branch, machine, suite);
      spec.dirty = false;
    }
    AddBenchmarks(position, suite, Chance(plan_.burst), &spec);
    proto::Run run = MakeRun(spec, &rng_);
    if (plan_.only_medians) KeepMedians(&run);
    history_.runs.push_back(std::move(run));
  }

  void AddBenchmarks(int position, int suite, bool burst, RunSpec* spec) {
    const bool partial = Chance(plan_.partial);
    for (int i = 0; i < plan_.benchmarks; ++i) {
      if (Chance(plan_.missing) || (partial && i % 2 == 1)) continue;
      MadeBenchmark benchmark;
      benchmark.name = Name(suite, i);
      benchmark.level_ns = 1000. * (1 + i);
      for (const PlantedStep& step : history_.steps) {
        if (step.benchmark == benchmark.name && position >= step.at) {
          benchmark.level_ns *= step.factor;
        }
      }
      if (position > plan_.creep_from && benchmark.name == plan_.creeping) {
        benchmark.level_ns *= 1 + plan_.creep * (position - plan_.creep_from);
      }
      if (burst) benchmark.level_ns *= Between(1, 1.5);
      if (Chance(plan_.failing)) {
        static constexpr proto::Outcome kOutcomes[] = {
            proto::CRASHED, proto::TIMED_OUT, proto::CONTENDED,
            proto::WRONG_RESULT, proto::UNSUPPORTED};
        benchmark.outcome = kOutcomes[rng_.UniformInt(5)];
      }
      spec->benchmarks.push_back(std::move(benchmark));
    }
  }

  // Leaves what an importer makes of a file without samples.
  static void KeepMedians(proto::Run* run) {
    run->set_source("google_benchmark");
    for (proto::BenchmarkResult& result : *run->mutable_results()) {
      for (proto::Measurement& process : *result.mutable_measurements()) {
        if (process.sample_ns_size() == 0) continue;
        std::vector<int64_t> samples(process.sample_ns().begin(),
                                     process.sample_ns().end());
        std::sort(samples.begin(), samples.end());
        process.set_median_ns(static_cast<double>(samples[samples.size() / 2]) /
                              process.calls_per_sample());
        process.clear_sample_ns();
        process.clear_calls_per_sample();
      }
    }
  }

  void Summarize() {
    std::string& text = history_.summary;
    text = absl::StrFormat(
        "%d: %d commits, %d machines, %d suites of %d benchmarks, %d "
        "processes, noise %.3f, drift %.3f",
        history_.seed, plan_.commits, plan_.machines, plan_.suites,
        plan_.benchmarks, plan_.processes, plan_.noise, plan_.drift);
    const auto add = [&](bool is, absl::string_view what) {
      if (is) absl::StrAppend(&text, ", ", what);
    };
    add(plan_.calibrated, "calibrated");
    add(plan_.only_medians, "medians alone");
    add(plan_.newest_first, "newest first");
    add(plan_.without_positions, "no positions");
    add(plan_.paired_end, "last two paired");
    add(plan_.bad_clock > 0, "bad clocks");
    add(plan_.burst > 0, "bursts");
    add(plan_.failing > 0, "failures");
    add(plan_.missing > 0, "missing benchmarks");
    add(plan_.dirty > 0, "uncommitted changes");
    add(plan_.repeated > 0, "repeated runs");
    add(plan_.partial > 0, "partial runs");
    add(plan_.compiler_change > 0,
        absl::StrCat("compiler changes at ", plan_.compiler_change));
    add(plan_.topic_from > 0, absl::StrCat("topic from ", plan_.topic_from));
    for (const PlantedStep& step : history_.steps) {
      absl::StrAppendFormat(&text, ", %s x%.2f at %d", step.benchmark,
                            step.factor, step.at);
    }
    add(!history_.answer.empty(), history_.answer);
    add(!plan_.creeping.empty(),
        absl::StrCat(plan_.creeping, " creeps by ", plan_.creep, " from ",
                     plan_.creep_from, " on"));
    add(history_.is_merged, "merged");
    add(history_.is_thinned, "thinned");
    add(!history_.sessions.empty(), "a session");
  }

  Rng rng_;
  Plan plan_;
  MadeHistory history_;
};

}  // namespace

MadeHistory MakeHistory(uint64_t seed) { return Maker(seed).Make(); }

void RecordHistory(const MadeHistory& history, const Workbench& bench) {
  Rng rng(history.seed + 1'000'000);
  std::vector<proto::Run> runs = history.runs;
  if (history.is_merged) rng.Shuffle(runs);
  const tracker::History here = bench.OpenHistory();
  const auto other = tracker::History::Open(bench.Path("other"));
  OPTRAIL_CHECK(other.ok()) << other.status();
  for (size_t i = 0; i < runs.size(); ++i) {
    const tracker::History& to = history.is_merged && i % 2 ? *other : here;
    const absl::Status status = to.AppendRun(runs[i]);
    OPTRAIL_CHECK(status.ok()) << status;
  }
  for (const proto::Session& session : history.sessions) {
    const absl::Status status = here.AppendSession(session);
    OPTRAIL_CHECK(status.ok()) << status;
  }
  if (history.is_merged && runs.size() > 1) {
    OPTRAIL_CHECK(bench.Ask({"history", "merge", "other"}).exit_code == 0);
  }
  if (history.is_thinned) {
    const Answer thin =
        bench.Ask({"history", "thin", "--keep_runs=3", "--keep_days=0"});
    OPTRAIL_CHECK(thin.exit_code == 0) << thin.err;
  }
  if (history.answer.empty()) return;
  const PlantedStep& step = history.steps.front();
  std::vector<std::string> command = {history.answer, step.benchmark};
  if (history.answer == "mute") {
    command.push_back("--until=2099-12-31");
  } else {
    command.push_back(MadeCommit(step.at));
  }
  command.push_back("--reason=known");
  const Answer answer = bench.Ask(command);
  OPTRAIL_CHECK(answer.exit_code == 0) << answer.err;
}

}  // namespace optrail::agreement

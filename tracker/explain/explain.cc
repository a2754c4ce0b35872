#include "tracker/explain/explain.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/stats/statistics.h"
#include "base/text/prose.h"
#include "base/text/units.h"
#include "tracker/series/series.h"
#include "tracker/series/series_key.h"
#include "tuning/proto/canonical.h"

namespace optrail::tracker {
namespace {

// Smaller differences of a computed effect are noise.
constexpr double kSmallestEffect = .03;
// The share of the logarithm of the ratio that an effect must account for to be
// taken for the cause.
constexpr double kAccountsFor = .5;
constexpr size_t kMostLines = 8;
// A run of 16,670 benchmarks takes 2.4 MB.
constexpr int64_t kMostRunBytes = 64 << 20;

struct Line {
  int rank = 0;  // lower is likelier
  std::string text;
};

// Ranks: what accounts for the change by its size, then what decides which code
// runs, then what it was built with, then its surroundings.
enum Rank {
  kAccounts,
  kOtherWork,
  kOtherConfig,
  kOtherBackend,
  kOtherCompiled,
  kOtherToolchain,
  kOtherKernel,
  kSurroundings,
  kMeasurement,
  kConsequence,
};

std::string OrNone(const std::string& text) {
  return text.empty() ? "-" : text;
}

std::string Arrow(const std::string& before, const std::string& after) {
  return absl::StrCat(OrNone(before), " -> ", OrNone(after));
}

// "memory > strided (40%)": the chain of the first cause, and the share of the
// time that would go with it.
std::string CauseText(const proto::Diagnosis& diagnosis) {
  if (diagnosis.causes().empty()) return "no cause";
  const proto::DiagnosisCause& cause = diagnosis.causes(0);
  std::vector<std::string> names;
  for (const proto::DiagnosisLink& link : cause.chain()) {
    names.push_back(link.class_name());
  }
  return absl::StrFormat("%s (%.0f%%)", absl::StrJoin(names, " > "),
                         100 * cause.recoverable());
}

class Diff {
 public:
  Diff(const Recorded& before, const Recorded& after, double time_ratio,
       const std::vector<std::string>& code)
      : before_(before),
        after_(after),
        code_(code),
        log_ratio_(std::log(time_ratio)) {}

  std::vector<std::string> Lines() {
    Config();
    Code();
    Facts();
    for (const std::string& line : code_) Add(kOtherCompiled, line);
    Work();
    Built();
    Computed();
    Surroundings();
    Roofline();
    Diagnosed();
    if (lines_.empty() || lines_.front().rank == kConsequence) Nothing();
    std::stable_sort(
        lines_.begin(), lines_.end(),
        [](const Line& a, const Line& b) { return a.rank < b.rank; });
    std::vector<std::string> texts;
    for (Line& line : lines_) texts.push_back(std::move(line.text));
    if (texts.size() > kMostLines) texts.resize(kMostLines);
    return texts;
  }

 private:
  void Add(int rank, std::string text) {
    lines_.push_back({rank, std::move(text)});
  }

  void AddIfOther(int rank, absl::string_view name, const std::string& before,
                  const std::string& after) {
    if (before != after) {
      Add(rank, absl::StrCat(name, ": ", Arrow(before, after)));
    }
  }

  // "config: tile 64 -> 32, unroll 1 -> 2".
  void Config() {
    if (before_.result->config_source() != after_.result->config_source()) {
      const auto fell = [](const Recorded& side) {
        return side.result->config_source() == proto::FALLBACK_TO_DEFAULT;
      };
      if (fell(after_) != fell(before_)) {
        Add(kOtherConfig,
            fell(after_) ? "config: no tuned config could be used: the default "
                           "ran"
                         : "config: a tuned config is used again");
      }
    }
    const std::string knobs =
        ConfigDifference(before_.result->config(), after_.result->config());
    if (!knobs.empty()) Add(kOtherConfig, absl::StrCat("config: ", knobs));
  }

  void Code() {
    AddIfOther(kOtherBackend, "backend", before_.result->resolved_backend(),
               after_.result->resolved_backend());
    AddIfOther(kOtherBackend, "library", before_.result->library(),
               after_.result->library());
    const std::string& a = before_.result->kernel_id();
    const std::string& b = after_.result->kernel_id();
    if (a != b && !a.empty() && !b.empty()) {
      Add(kOtherKernel,
          absl::StrCat("kernel: its code or options changed (id ",
                       Arrow(a.substr(0, 12), b.substr(0, 12)), ")"));
    }
  }

  // "compiled: registers 40 -> 255, spill_bytes 0 -> 128".
  void Facts() {
    if (before_.facts.empty() || after_.facts.empty()) return;
    const auto text = [](const Recorded& side) {
      return absl::StrJoin(
          side.facts, ",", [](std::string* out, const proto::Fact& fact) {
            absl::StrAppend(out, fact.name(), "=", fact.value());
          });
    };
    const std::string facts = ConfigDifference(text(before_), text(after_));
    if (!facts.empty()) {
      Add(kOtherCompiled, absl::StrCat("compiled: ", facts));
    }
  }

  // The benchmark computes something else.
  void Work() {
    const auto add = [&](const char* name, bool known, double a, double b) {
      if (!known || a == b) return;
      Add(kOtherWork,
          absl::StrFormat("work: %s a call %.4g -> %.4g", name, a, b));
    };
    const proto::BenchmarkResult& a = *before_.result;
    const proto::BenchmarkResult& b = *after_.result;
    add("FLOP", a.has_flop() && b.has_flop(), a.flop(), b.flop());
    add("bytes", a.has_moved_bytes() && b.has_moved_bytes(), a.moved_bytes(),
        b.moved_bytes());
  }

  void Built() {
    const std::string toolchain = DescribeToolchainChange(
        before_.run->toolchain(), after_.run->toolchain());
    for (absl::string_view part :
         absl::StrSplit(toolchain, "; ", absl::SkipEmpty())) {
      Add(kOtherToolchain, std::string(part));
    }
    const std::string settings =
        MeasuredDifferently(before_.run->settings(), after_.run->settings());
    if (!settings.empty()) Add(kMeasurement, settings);
  }

  // The median over the processes of what `value` tells; nullopt if few tell.
  template <typename Value>
  static absl::optional<double> MedianOf(const Recorded& side,
                                         const Value& value) {
    std::vector<double> values;
    for (const proto::Measurement& each : side.result->measurements()) {
      if (const absl::optional<double> told = value(each)) {
        values.push_back(*told);
      }
    }
    if (values.empty()) return absl::nullopt;
    return Median(values);
  }

  // `effect`: the ratio of times that the difference by itself would bring.
  void AddComputed(double effect, std::string text) {
    const double log_effect = std::log(effect);
    if (!(std::fabs(log_effect) >= std::log1p(kSmallestEffect))) return;
    // A fact that pulls the other way explains nothing.
    if (log_effect * log_ratio_ < 0) return;
    const bool accounts =
        std::fabs(log_effect) >= kAccountsFor * std::fabs(log_ratio_);
    Add(accounts ? kAccounts : kSurroundings, std::move(text));
  }

  // Clocks, throttling, waiting for a core, a slower machine.
  void Computed() {
    const auto clock_of = [](const proto::Measurement& each) {
      return each.conditions().has_clock_hz() &&
                     each.conditions().clock_hz() > 0
                 ? absl::optional<double>(each.conditions().clock_hz())
                 : absl::nullopt;
    };
    const auto a = MedianOf(before_, clock_of), b = MedianOf(after_, clock_of);
    if (a && b) {
      AddComputed(*a / *b, absl::StrFormat("clock: %.2f -> %.2f GHz", *a / 1e9,
                                           *b / 1e9));
    }
    if (const uint64_t reasons = Throttled(after_) & ~Throttled(before_)) {
      Add(kSurroundings,
          absl::StrFormat("throttled: reasons 0x%x of the device, which the "
                          "baseline did not have",
                          reasons));
    }
    AddTaken("waiting for a core", [](const proto::Measurement& each) {
      return each.conditions().has_run_delay_fraction()
                 ? absl::optional<double>(
                       each.conditions().run_delay_fraction())
                 : absl::nullopt;
    });
    AddTaken("taken by the hypervisor", [](const proto::Measurement& each) {
      return each.conditions().has_steal_fraction()
                 ? absl::optional<double>(each.conditions().steal_fraction())
                 : absl::nullopt;
    });
    Calibrations();
  }

  // A share of the time that went elsewhere.
  template <typename Value>
  void AddTaken(const char* name, const Value& value) {
    const auto a = MedianOf(before_, value), b = MedianOf(after_, value);
    if (!a || !b || *a >= 1 || *b >= 1) return;
    AddComputed((1 - *a) / (1 - *b),
                absl::StrCat(name, ": ", FormatShortPercent(*a), " -> ",
                             FormatShortPercent(*b), " of the time"));
  }

  // The loop beside the processes that slowed down most.
  void Calibrations() {
    const std::vector<Observation> baseline = Observe(*before_.result);
    const std::vector<Observation> candidate = Observe(*after_.result);
    std::map<std::string, double> before;
    for (const LoopReading& loop : baseline[0].calibrations) {
      before[loop.loop] = loop.log_ns;
    }
    double most = 0;
    std::string name;
    for (const LoopReading& loop : candidate[0].calibrations) {
      const auto at = before.find(loop.loop);
      if (at == before.end()) continue;
      const double change = loop.log_ns - at->second;
      if (std::fabs(change) > std::fabs(most)) {
        most = change;
        name = loop.loop;
      }
    }
    if (name.empty()) return;
    AddComputed(std::exp(most),
                absl::StrCat("machine: calibration loop ", name, " took ",
                             FormatChange(std::exp(most) - 1)));
  }

  static uint64_t Throttled(const Recorded& side) {
    uint64_t reasons = 0;
    for (const proto::Measurement& each : side.result->measurements()) {
      for (const proto::MeterWindow& window : each.windows()) {
        reasons |= window.throttle_reasons();
      }
    }
    return reasons;
  }

  static std::string Distinct(const Recorded& side,
                              std::string (*text)(const proto::Conditions&)) {
    std::set<std::string> texts;
    for (const proto::Measurement& each : side.result->measurements()) {
      texts.insert(text(each.conditions()));
    }
    texts.erase("");
    return absl::StrJoin(texts, " and ");
  }

  void Surroundings() {
    const auto add = [&](const char* name,
                         std::string (*text)(const proto::Conditions&)) {
      const std::string a = Distinct(before_, text);
      const std::string b = Distinct(after_, text);
      if (!a.empty() && !b.empty()) AddIfOther(kSurroundings, name, a, b);
    };
    add("pages", [](const proto::Conditions& conditions) {
      return conditions.has_page_bytes()
                 ? FormatBytes(static_cast<double>(conditions.page_bytes()))
                 : std::string();
    });
    add("governor", [](const proto::Conditions& conditions) {
      return conditions.governor();
    });
    // Machines of one hardware id need not be equal.
    add("machine",
        [](const proto::Conditions& conditions) { return conditions.host(); });
    add("GPU", [](const proto::Conditions& conditions) {
      return conditions.device_uuid();
    });
    if (before_.run->hardware().id() != after_.run->hardware().id()) {
      Add(kSurroundings,
          absl::StrCat("hardware: ", Arrow(before_.run->hardware().id(),
                                           after_.run->hardware().id())));
    }
  }

  void Roofline() {
    const proto::BenchmarkResult& a = *before_.result;
    const proto::BenchmarkResult& b = *after_.result;
    if (!a.has_roofline_fraction() || !b.has_roofline_fraction()) return;
    Add(kConsequence, absl::StrCat("share of the roofline: ",
                                   RooflineText(a.roofline_fraction()), " -> ",
                                   RooflineText(b.roofline_fraction())));
  }

  void Diagnosed() {
    if (before_.diagnosis == nullptr || after_.diagnosis == nullptr) return;
    AddIfOther(kConsequence, "diagnosis", CauseText(*before_.diagnosis),
               CauseText(*after_.diagnosis));
  }

  void Nothing() {
    const std::string same =
        !after_.result->kernel_id().empty() &&
                before_.result->kernel_id() == after_.result->kernel_id()
            ? "; the kernel's code is the same"
            : "";
    const proto::Commit& commit = after_.run->commit();
    Add(kOtherKernel,
        absl::StrCat(
            "nothing on record differs", same,
            commit.id().empty() || commit.id() == before_.run->commit().id()
                ? ""
                : absl::StrCat("; the newest commit is ",
                               commit.id().substr(0, 12), ": ",
                               commit.subject())));
  }

  const Recorded& before_;
  const Recorded& after_;
  const std::vector<std::string>& code_;
  const double log_ratio_;
  std::vector<Line> lines_;
};

// Values by name, of "tile=64,unroll=2"; what has no "=" is its own name.
std::map<std::string, std::string> ValuesOf(const std::string& text) {
  std::map<std::string, std::string> values;
  for (absl::string_view part : absl::StrSplit(text, ',', absl::SkipEmpty())) {
    const std::pair<std::string, std::string> knob =
        absl::StrSplit(part, absl::MaxSplits('=', 1));
    values.insert(knob);
  }
  return values;
}

// The facts of compiling the result's config, from the session that chose it.
std::vector<proto::Fact> FactsOf(const proto::Session& session,
                                 const proto::BenchmarkResult& result) {
  // Another kernel's code says nothing of this one's.
  if (session.task().kernel_id() != result.kernel_id()) return {};
  for (const proto::Trial& trial : session.trials()) {
    if (trial.facts_size() > 0 &&
        tuning::CanonicalText(trial.config()) == result.config()) {
      return {trial.facts().begin(), trial.facts().end()};
    }
  }
  return {};
}

}  // namespace

const proto::BenchmarkResult* FindResult(const proto::Run& run,
                                         const std::string& benchmark) {
  for (const proto::BenchmarkResult& result : run.results()) {
    if (CanonicalText(result.key()) == benchmark) return &result;
  }
  return nullptr;
}

std::string ConfigDifference(const std::string& before,
                             const std::string& after) {
  constexpr size_t kMostKnobs = 12;
  if (before == after) return "";
  if (before.empty() || after.empty()) return Arrow(before, after);
  const std::map<std::string, std::string> a = ValuesOf(before);
  const std::map<std::string, std::string> b = ValuesOf(after);
  std::set<std::string> names;
  for (const auto& [name, value] : a) names.insert(name);
  for (const auto& [name, value] : b) names.insert(name);
  const auto value_in = [](const std::map<std::string, std::string>& values,
                           const std::string& name) {
    const auto at = values.find(name);
    if (at == values.end()) return std::string("-");
    return at->second.empty() ? std::string("set") : at->second;
  };
  std::vector<std::string> changed;
  for (const std::string& name : names) {
    const std::string from = value_in(a, name), to = value_in(b, name);
    if (from != to) changed.push_back(absl::StrCat(name, " ", Arrow(from, to)));
  }
  return JoinFirst(changed, kMostKnobs);
}

std::vector<std::string> WhatChanged(const Recorded& before,
                                     const Recorded& after, double time_ratio,
                                     const std::vector<std::string>& code) {
  return Diff(before, after, time_ratio, code).Lines();
}

void Explainer::MakeRoom() {
  if (run_bytes_ < kMostRunBytes) return;
  runs_.clear();
  run_bytes_ = 0;
}

RunResults* Explainer::Run(const std::string& id) {
  const auto [at, is_new] = runs_.try_emplace(id);
  if (is_new) {
    auto run = RunResults::Read(history_, id);
    if (run.ok()) {
      at->second = *std::move(run);
      run_bytes_ += at->second->bytes();
    }
  }
  return at->second.get();
}

const proto::Session* Explainer::Session(const std::string& id) {
  if (id.empty()) return nullptr;
  auto at = sessions_.find(id);
  if (at == sessions_.end()) {
    at = sessions_.emplace(id, history_.ReadSession(id)).first;
  }
  return at->second.ok() ? &*at->second : nullptr;
}

const proto::Diagnosis* Explainer::DiagnosisOf(
    const proto::Run& run, const proto::BenchmarkResult& result) {
  if (!diagnoses_.has_value()) {
    diagnoses_.emplace();
    absl::StatusOr<LoadedDiagnoses> loaded = history_.LoadDiagnoses();
    if (loaded.ok()) *diagnoses_ = std::move(loaded->diagnoses);
  }
  const proto::BenchmarkKey& key = result.key();
  for (auto one = diagnoses_->rbegin(); one != diagnoses_->rend(); ++one) {
    const proto::Task& task = one->task();
    if (!result.kernel_id().empty() && task.kernel_id() == result.kernel_id() &&
        task.operator_name() == key.operator_name() &&
        task.hardware_id() == run.hardware().id() &&
        task.threads() == key.threads() &&
        task.cache_mode() == key.cache_mode() &&
        tuning::CanonicalText(task.shape()) ==
            tuning::CanonicalText(key.shape()) &&
        tuning::CanonicalText(one->config()) == result.config()) {
      return &*one;
    }
  }
  return nullptr;
}

std::vector<std::string> Explainer::Lines(const Regression& regression) {
  MakeRoom();
  Recorded sides[2];
  const std::string* ids[2] = {&regression.run_before, &regression.run_after};
  for (int i = 0; i < 2; ++i) {
    RunResults* const run = Run(*ids[i]);
    if (run != nullptr) {
      sides[i].run = &run->run();
      sides[i].result = run->Find(regression.key);
    }
    if (sides[i].result == nullptr) {
      return {absl::StrCat("run ", *ids[i],
                           " can't be read or lacks the benchmark: what "
                           "changed is not known")};
    }
    const proto::Session* const session =
        Session(sides[i].result->tuning_session_id());
    if (session != nullptr) {
      sides[i].facts = FactsOf(*session, *sides[i].result);
    }
    sides[i].diagnosis = DiagnosisOf(*sides[i].run, *sides[i].result);
  }
  return WhatChanged(sides[0], sides[1], regression.time_ratio);
}

}  // namespace optrail::tracker

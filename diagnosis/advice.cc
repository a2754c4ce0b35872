#include "diagnosis/advice.h"

#include <algorithm>
#include <set>
#include <string>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "base/clock.h"
#include "base/random.h"
#include "base/stats/statistics.h"
#include "diagnosis/classes.h"
#include "suites/workload/named_only.h"
#include "suites/workload/tasks.h"
#include "tuning/proto/canonical.h"

namespace optrail::diagnosis {
namespace {

using suites::Contender;
using suites::Evaluation;

// Gains below this are lost in the noise of the next process.
constexpr double kWorthAdvising = .04;
constexpr double kSureOfIt = kWorthAdvising / 2;
constexpr int kNeighbours = 6;
// No other neighbour is tried after so long: each may have to be compiled.
constexpr int64_t kNeighboursNs = 5'000'000'000;

void SetPrediction(const Number& gain, proto::DiagnosisAdvice* advice) {
  advice->set_predicted_gain(gain.value);
  if (gain.low < gain.high) {
    advice->set_predicted_low(gain.low);
    advice->set_predicted_high(gain.high);
  }
}

const ClassRule* FindClass(absl::string_view name) {
  for (const ClassRule& rule : ClassTable()) {
    if (name == rule.name()) return &rule;
  }
  return nullptr;
}

// Only a person can change the code or its surroundings.
std::vector<proto::DiagnosisAdvice> FromCauses(
    const Numbers& numbers, const std::vector<proto::DiagnosisCause>& causes) {
  static const auto* const surroundings = new std::set<std::string>{
      "contention", "throttling", "tlb", "denormals", "device_launch"};
  std::vector<proto::DiagnosisAdvice> all;
  for (const proto::DiagnosisCause& cause : causes) {
    const std::string& name = cause.chain().rbegin()->class_name();
    const ClassRule* const rule = FindClass(name);
    // On a busy machine nothing is promised: the cause says what to do.
    if (rule == nullptr || name == "contention") continue;
    proto::DiagnosisAdvice advice;
    const bool outside = surroundings->count(name) > 0;
    advice.set_kind(outside ? proto::CHANGE_SURROUNDINGS : proto::CHANGE_CODE);
    advice.set_class_name(name);
    advice.set_text(FillIn(rule->advice(), numbers));
    SetPrediction(cause.has_low()
                      ? Number(cause.recoverable(), cause.low(), cause.high())
                      : Number(cause.recoverable()),
                  &advice);
    std::string how;
    for (const proto::DiagnosisNumber& number : numbers.ToProto()) {
      if (number.name() == rule->recoverable()) how = number.how();
    }
    advice.set_confidence(how == "estimated" ? "estimated" : "inferred");
    advice.set_cost(outside ? "a setting" : "a change of the kernel");
    all.push_back(std::move(advice));
  }
  return all;
}

class Alternatives {
 public:
  Alternatives(const Subject& subject, const AdviceTools& tools)
      : subject_(subject), tools_(tools) {
    options_.sampling = PairSampling();
  }

  std::vector<proto::DiagnosisAdvice> Find() {
    AddKnobs();
    AddBackends();
    AddThreads();
    return std::move(found_);
  }

  // The gain of another config or backend beside the kernel.
  absl::StatusOr<Number> GainBy(const std::string& backend,
                                const proto::Config& config,
                                bool fresh_process) {
    suites::EvaluationOptions options = options_;
    options.fresh_process = fresh_process;
    const proto::Task& task = subject_.entry.task;
    auto both = tools_.evaluator_for(task).EvaluatePerturbed(
        {suites::ContenderOf(task.backend(), subject_.config),
         suites::ContenderOf(backend, config)},
        options);
    if (!both.ok()) return both.status();
    return GainOf((*both)[0], (*both)[1]);
  }

  // Threads cannot change within a process, so processes take turns. Ends after
  // the first round with a gain below `least`.
  absl::StatusOr<Number> GainByThreads(int threads, int rounds,
                                       double least = -1e9) {
    const proto::Task& few_task = subject_.entry.task;
    proto::Task many_task = few_task;
    many_task.set_threads(threads);
    std::vector<double> ratios;
    for (int round = 0; round < rounds; ++round) {
      const Evaluation few =
          tools_.evaluator_for(few_task).Evaluate(subject_.config, options_);
      const Evaluation many =
          tools_.evaluator_for(many_task).Evaluate(subject_.config, options_);
      if (!few.trial().has_time_ns() || !many.trial().has_time_ns()) {
        return absl::UnavailableError(absl::StrCat(
            "not tried: ", WhyUntimed(few.trial().has_time_ns() ? many : few)));
      }
      ratios.push_back(many.trial().time_ns() / few.trial().time_ns());
      if (round == 0 && 1 - ratios[0] < least) break;
    }
    // The range of three covers the median in 75%, of five in 94%.
    const auto [low, high] = std::minmax_element(ratios.begin(), ratios.end());
    return Number(1 - Median(ratios), 1 - *high, 1 - *low);
  }

 private:
  // Neighbours in the space: which knob moves the time.
  void AddKnobs() {
    const auto space = suites::BindTask(subject_.entry, tools_.hardware);
    if (!space.ok() || !space->has_choice || space->configs != nullptr) return;
    const auto levels = space->bound->ToLevels(subject_.config);
    if (!levels.ok()) return;
    std::vector<std::pair<Number, proto::Config>> faster;
    std::set<std::string> knobs;
    int tried = 0;
    auto neighbours =
        space->bound->Neighbours(*levels, tuning::Neighbourhood::kAdjacent);
    Rng rng(1);
    rng.Shuffle(neighbours);
    const int64_t start_ns = Clock::Real()->NowNs();
    for (const tuning::Levels& next : neighbours) {
      if (tried == kNeighbours ||
          Clock::Real()->NowNs() - start_ns > kNeighboursNs) {
        break;
      }
      ++tried;
      const proto::Config config = space->bound->ToConfig(next);
      const auto gain = GainBy(subject_.entry.task.backend(), config, false);
      if (!gain.ok() || gain->value < kWorthAdvising) continue;
      for (size_t i = 0; i < next.size(); ++i) {
        if (next[i] == (*levels)[i]) continue;
        knobs.insert(space->bound->knobs()[i].name);
      }
      faster.push_back({*gain, config});
    }
    // The first may owe its place to luck alone, so the next ones have a turn.
    constexpr size_t kMostConfirmed = 3;
    std::stable_sort(faster.begin(), faster.end(),
                     [](const auto& a, const auto& b) {
                       return a.first.value > b.first.value;
                     });
    const auto end = faster.begin() + std::min(faster.size(), kMostConfirmed);
    const auto confirmed = std::find_if(faster.begin(), end, [&](auto& one) {
      return Confirm(subject_.entry.task.backend(), one.second, &one.first);
    });
    if (confirmed == end) return;
    const auto& [best, best_config] = *confirmed;
    proto::DiagnosisAdvice& advice = Add(proto::TUNE_KNOBS, best);
    *advice.mutable_config() = best_config;
    *advice.mutable_knobs() = {knobs.begin(), knobs.end()};
    advice.set_text(absl::StrCat(
        "tune ", absl::StrJoin(knobs, ", "), ": of ", tried, " neighbours, ",
        tuning::CanonicalText(best_config), " is ",
        absl::StrFormat("%.0f%%", 100 * best.value), " faster"));
    advice.set_cost("a search of some seconds");
  }

  void AddBackends() {
    const proto::Task& task = subject_.entry.task;
    for (const ops::Backend* backend :
         subject_.entry.entry->BackendsOf(task.device_kind())) {
      // A backend that searches schedules has no default worth comparing.
      if (backend == subject_.entry.backend ||
          absl::StartsWith(backend->name(), "halide") ||
          suites::IsOnlyByName(*backend) ||
          !ops::Computes(*subject_.entry.entry->op, *backend, task.shape())
               .ok()) {
        continue;
      }
      suites::TaskEntry other = subject_.entry;
      other.backend = backend;
      const std::string name =
          backend->name() == ops::OwnBackendName(task.device_kind())
              ? ""
              : backend->name();
      other.task.set_backend(name);
      const auto space = suites::BindTask(other, tools_.hardware);
      if (!space.ok()) continue;
      const proto::Config config = space->bound->default_config();
      auto gain = GainBy(name, config, false);
      if (!gain.ok() || gain->value < kWorthAdvising ||
          !Confirm(name, config, &*gain)) {
        continue;
      }
      proto::DiagnosisAdvice& advice = Add(proto::USE_BACKEND, *gain);
      advice.set_backend(name);
      *advice.mutable_config() = config;
      advice.set_text(absl::StrCat("use the backend ", backend->name(),
                                   " with its default config"));
      advice.set_cost("a choice of backend");
    }
  }

  void AddThreads() {
    if (subject_.entry.task.threads() != 1 || tools_.cores <= 1) return;
    const auto gain =
        GainByThreads(tools_.cores, /*rounds=*/3, /*least=*/kWorthAdvising);
    if (!gain.ok() || gain->value < kWorthAdvising || gain->low < kSureOfIt) {
      return;
    }
    proto::DiagnosisAdvice& advice = Add(proto::USE_THREADS, *gain);
    advice.set_threads(tools_.cores);
    advice.set_text(absl::StrCat("use ", tools_.cores, " threads"));
    advice.set_cost("cores that nothing else needs");
  }

  // The best of several readings is too good, and memory lies differently in
  // another process: what is promised is measured again in a fresh one, and its
  // interval spans both. Returns false where nothing is left of it.
  bool Confirm(const std::string& backend, const proto::Config& config,
               Number* gain) {
    const auto again = GainBy(backend, config, /*fresh_process=*/true);
    if (!again.ok() || again->value < kWorthAdvising ||
        again->low < kSureOfIt) {
      return false;
    }
    *gain = {again->value, std::min(gain->low, again->low),
             std::max(gain->high, again->high)};
    return true;
  }

  proto::DiagnosisAdvice& Add(proto::AdviceKind kind, const Number& gain) {
    proto::DiagnosisAdvice& advice = found_.emplace_back();
    advice.set_kind(kind);
    SetPrediction(gain, &advice);
    advice.set_confidence("measured");
    return advice;
  }

  const Subject& subject_;
  const AdviceTools& tools_;
  suites::EvaluationOptions options_;
  std::vector<proto::DiagnosisAdvice> found_;
};

absl::StatusOr<proto::Config> SearchKnobs(
    const Subject& subject, const AdviceTools& tools,
    const proto::DiagnosisAdvice& advice) {
  if (!tools.search) return absl::UnimplementedError("nothing searches here");
  return tools.search(
      subject.entry,
      {subject.config, {advice.knobs().begin(), advice.knobs().end()}});
}

// Timed gains arrive. A gain that an experiment bounds, or a rule estimates, is
// the most that a change of the code can bring. More threads take cores and
// leave the cause.
double ExpectedGain(const proto::DiagnosisAdvice& advice) {
  double trust = 1;
  if (advice.confidence() == "inferred") trust = .5;
  if (advice.confidence() == "estimated" ||
      advice.kind() == proto::USE_THREADS) {
    trust = .25;
  }
  return trust * advice.predicted_gain();
}

}  // namespace

std::vector<proto::DiagnosisAdvice> AdviceFor(
    const Subject& subject, const AdviceTools& tools, const Numbers& numbers,
    const std::vector<proto::DiagnosisCause>& causes) {
  std::vector<proto::DiagnosisAdvice> all = FromCauses(numbers, causes);
  if (ReachedShare(numbers) < kHealthyShare) {
    for (proto::DiagnosisAdvice& advice : Alternatives(subject, tools).Find()) {
      all.push_back(std::move(advice));
    }
  }
  std::stable_sort(
      all.begin(), all.end(),
      [](const proto::DiagnosisAdvice& a, const proto::DiagnosisAdvice& b) {
        return ExpectedGain(a) > ExpectedGain(b);
      });
  return all;
}

void TryAdvice(const Subject& subject, const AdviceTools& tools,
               proto::DiagnosisAdvice* advice) {
  constexpr int kThreadRounds = 5;
  Alternatives alternatives(subject, tools);
  const std::string& backend = subject.entry.task.backend();
  absl::StatusOr<Number> gain = absl::UnimplementedError(
      "not tried: it changes code or the machine, which is its owner's");
  switch (advice->kind()) {
    case proto::USE_BACKEND:
      gain = alternatives.GainBy(advice->backend(), advice->config(), true);
      advice->set_outcome("measured beside it, in a fresh process");
      break;
    case proto::USE_CONFIG:
      gain = alternatives.GainBy(backend, advice->config(), true);
      advice->set_outcome("measured beside it, in a fresh process");
      break;
    case proto::TUNE_KNOBS: {
      const auto winner = SearchKnobs(subject, tools, *advice);
      if (winner.ok()) *advice->mutable_config() = *winner;
      advice->set_outcome(
          winner.ok()
              ? absl::StrCat("searched: ", tuning::CanonicalText(*winner))
              : absl::StrCat("the best neighbour alone, since ",
                             winner.status().message()));
      gain = alternatives.GainBy(backend, advice->config(), true);
      break;
    }
    case proto::USE_THREADS:
      gain = alternatives.GainByThreads(advice->threads(), kThreadRounds);
      advice->set_outcome("measured again, processes interleaved");
      break;
    default:
      break;
  }
  if (!gain.ok()) {
    advice->set_outcome(std::string(gain.status().message()));
    return;
  }
  advice->set_realised_gain(gain->value);
  if (gain->low < gain->high) {
    advice->set_realised_low(gain->low);
    advice->set_realised_high(gain->high);
  }
}

}  // namespace optrail::diagnosis

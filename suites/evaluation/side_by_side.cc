#include "suites/evaluation/side_by_side.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/random.h"
#include "base/stats/statistics.h"
#include "base/status_macros.h"
#include "suites/stopwatch/stopwatch.h"
#include "tuning/proto/canonical.h"

namespace optrail::suites {
namespace {

// If a side is sampled alone, a sample is so long that the launch of a graph
// shows neither in ours nor in the peer's. Interleaved samples are compared one
// by one, and shorter ones do.
constexpr int64_t kSampleNs = 2'000'000, kSampleInTurnsNs = 1'000'000;
constexpr int64_t kLeastSampleNs = 500'000;

std::string QuestionOf(const proto::Task& task, const Side& side) {
  return absl::StrCat(
      task.operator_name(), " ", tuning::CanonicalText(task.shape()), " ",
      task.cache_mode() == proto::COLD ? "cold" : "hot", " ", side.name);
}

EvaluationOptions OptionsOf(const SideOptions& options, int64_t sample_ns) {
  EvaluationOptions evaluation;
  evaluation.sampling = DefaultSamplingOptions();
  evaluation.sampling.set_min_sample_ns(sample_ns);
  evaluation.sampling.set_max_time_ns(
      absl::ToInt64Nanoseconds(options.reading));
  return evaluation;
}

// nullopt for what failed or was disturbed.
absl::optional<double> ReadingUs(const Evaluation& one,
                                 const SideOptions& options) {
  const bool is_timed = one.trial().outcome() == proto::OK ||
                        one.trial().outcome() == proto::CONTENDED;
  if (options.least_sample && is_timed && !one.trial().measurements().empty() &&
      one.trial().measurements(0).sample_ns_size() > 0) {
    const auto& samples = one.trial().measurements(0).sample_ns();
    return static_cast<double>(
               *std::min_element(samples.begin(), samples.end())) *
           1e-3 /
           static_cast<double>(one.trial().measurements(0).calls_per_sample());
  }
  if (one.trial().outcome() != proto::OK || !one.trial().has_time_ns())
    return absl::nullopt;
  return one.trial().time_ns() * 1e-3;
}

void Measure(const proto::Task& task, const SideOptions& options,
             LinePeer* peer, Side& side) {
  side.us.emplace_back();
  if (side.ours == nullptr) {
    const absl::StatusOr<double> us = peer->Ask(QuestionOf(task, side));
    if (us.ok()) {
      side.us.back() = *us;
    } else if (side.trouble.empty()) {
      side.trouble = std::string(us.status().message());
    }
    return;
  }
  const auto config = tuning::ParseConfig(side.config);
  const Evaluation one = side.ours->Evaluate(
      *config,
      OptionsOf(options, options.least_sample ? kLeastSampleNs : kSampleNs));
  if (const auto us = ReadingUs(one, options)) {
    side.us.back() = *us;
  } else if (side.trouble.empty() &&
             one.trial().outcome() != proto::CONTENDED) {
    side.trouble = absl::StrCat(tuning::OutcomeName(one.trial().outcome()), " ",
                                one.trial().detail());
  }
}

// One round of those without trouble. False where they cannot be sampled in
// turns.
bool MeasureInTurns(const proto::Task& task, const SideOptions& options,
                    LinePeer* peer, const std::vector<size_t>& order,
                    std::vector<Side>& sides) {
  std::vector<size_t> measured;
  std::vector<Contender> contenders;
  for (const size_t i : order) {
    const Side& side = sides[i];
    if (!side.trouble.empty()) continue;
    measured.push_back(i);
    Contender& contender = contenders.emplace_back();
    if (side.ours != nullptr) {
      contender = ContenderOf(side.backend, *tuning::ParseConfig(side.config));
    } else {
      contender.set_elsewhere(true);
    }
  }
  if (!sides[0].ours->policy().interleaves_rounds || measured.size() < 2) {
    return false;
  }
  EvaluationOptions evaluation = OptionsOf(options, kSampleInTurnsNs);
  evaluation.elsewhere = [&](int contender,
                             int64_t calls) -> absl::StatusOr<int64_t> {
    const Side& side = sides[measured[static_cast<size_t>(contender)]];
    OPTRAIL_ASSIGN_OR_RETURN(
        const double us,
        peer->Ask(absl::StrCat(QuestionOf(task, side), " once")));
    return static_cast<int64_t>(us * 1e3 * static_cast<double>(calls));
  };
  const std::vector<Evaluation> evaluations =
      sides[0].ours->Measure(contenders, evaluation);
  if (evaluations.size() < measured.size()) return false;
  for (Side& side : sides) side.us.emplace_back();
  for (size_t i = 0; i < measured.size(); ++i) {
    const Evaluation& one = evaluations[i];
    if (one.trial().outcome() != proto::OK || !one.trial().has_time_ns())
      continue;
    sides[measured[i]].us.back() = one.trial().time_ns() * 1e-3;
  }
  return true;
}

absl::optional<double> MedianOf(const std::vector<double>& values) {
  if (values.empty()) return absl::nullopt;
  return optrail::Median(values);
}

}  // namespace

absl::optional<double> Side::Median() const {
  std::vector<double> measured;
  for (const auto& one : us) {
    if (one) measured.push_back(*one);
  }
  return MedianOf(measured);
}

absl::optional<double> Side::MedianOver(const Side& other) const {
  std::vector<double> ratios;
  for (size_t round = 0; round < us.size() && round < other.us.size();
       ++round) {
    if (us[round] && other.us[round]) {
      ratios.push_back(*us[round] / *other.us[round]);
    }
  }
  return MedianOf(ratios);
}

Side OurSide(std::string name, const TaskEntry& task, std::string config,
             const RunContext& context) {
  Side side;
  side.name = std::move(name);
  side.backend = task.task.backend();
  side.config = std::move(config);
  WorkerOptions worker;
  worker.shared_folder = context.state;
  worker.configs_per_worker = 1 << 20;
  side.ours = std::make_shared<WorkerEvaluator>(task.task, worker);
  return side;
}

Side SideOfProcess(const Side& side, std::string name, std::string config) {
  Side other;
  other.name = std::move(name);
  other.backend = side.backend;
  other.config = std::move(config);
  other.ours = side.ours;
  return other;
}

Side PeerSide(std::string name) {
  Side side;
  side.name = std::move(name);
  return side;
}

void MeasureSides(const proto::Task& task, const SideOptions& options,
                  LinePeer* peer, std::vector<Side>& sides) {
  std::vector<size_t> order;
  for (size_t i = 0; i < sides.size(); ++i) order.push_back(i);
  Rng rng(1);
  // The first round opens, compiles and captures.
  for (const size_t i : order) Measure(task, options, peer, sides[i]);
  for (Side& side : sides) side.us.clear();
  for (int round = 0; round < options.rounds; ++round) {
    rng.Shuffle(order);
    if (MeasureInTurns(task, options, peer, order, sides)) continue;
    for (const size_t i : order) {
      if (sides[i].trouble.empty()) {
        Measure(task, options, peer, sides[i]);
      } else {
        sides[i].us.emplace_back();
      }
    }
  }
}

}  // namespace optrail::suites

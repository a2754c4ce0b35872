#include "tuning/schedule/evolution.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "tuning/schedule/features.h"

namespace optrail::tuning {
namespace {

// A program is refused now and then (Program::Check).
constexpr int kTries = 200;

// The best measured that are varied.
constexpr size_t kParents = 24;

// Retrained after so many answers.
constexpr size_t kStale = 4;

// Failures are taken for this much slower than the slowest.
constexpr double kFailureFactor = 4;

}  // namespace

Evolution::Evolution(const Algorithm& algorithm, const Machine& machine,
                     const EvolutionOptions& options)
    : algorithm_(algorithm),
      machine_(machine),
      options_(options),
      rng_(options.seed),
      model_(options.model.empty() ? nullptr : MakeCostModel(options.model)) {}

absl::optional<Candidate> Evolution::Derived(Decisions decisions) {
  const auto program = Derive(algorithm_, machine_, decisions);
  if (!program.ok()) return absl::nullopt;
  Candidate candidate;
  candidate.trace = decisions.trace();
  candidate.steps = program->StepsText();
  candidate.features = FeaturesOf(*program);
  return candidate;
}

// The rules' own program, then the seeds.
absl::optional<Candidate> Evolution::Given() {
  while (given_ <= options_.seeds.size()) {
    const size_t i = given_++;
    auto candidate = Derived(i == 0 ? Decisions::Default()
                                    : Decisions::Prefer(options_.seeds[i - 1]));
    if (candidate.has_value() && seen_.count(candidate->steps) == 0) {
      return candidate;
    }
  }
  return absl::nullopt;
}

// A neighbour of the rules' own or of a seed.
absl::optional<Candidate> Evolution::Near() {
  Decisions usual = Decisions::Default();
  (void)Derive(algorithm_, machine_, usual);
  for (int i = 0; i < kTries; ++i) {
    const auto n = static_cast<int64_t>(options_.seeds.size()) + 1;
    const int64_t from = rng_.UniformInt(n);
    const Trace& trace = from == 0
                             ? usual.trace()
                             : options_.seeds[static_cast<size_t>(from) - 1];
    auto candidate = Derived(Decisions::Vary(Mutated(trace, rng_), rng_));
    if (candidate.has_value() && seen_.count(candidate->steps) == 0) {
      return candidate;
    }
  }
  return absl::nullopt;
}

absl::optional<Candidate> Evolution::Fresh() {
  for (int i = 0; i < kTries; ++i) {
    auto candidate = Derived(Decisions::Draw(rng_));
    if (candidate.has_value() && seen_.count(candidate->steps) == 0) {
      return candidate;
    }
  }
  return absl::nullopt;
}

void Evolution::TrainIfStale() {
  if (trained_on_ > 0 && measured_.size() < trained_on_ + kStale) return;
  double slowest = 0;
  for (const Measured& m : measured_) {
    if (m.cost.has_value()) slowest = std::max(slowest, *m.cost);
  }
  if (slowest <= 0) return;
  std::vector<std::vector<float>> rows;
  std::vector<float> targets;
  for (const Measured& m : measured_) {
    rows.push_back(m.features);
    targets.push_back(static_cast<float>(
        std::log(m.cost.value_or(kFailureFactor * slowest))));
  }
  model_->Train(rows, targets);
  trained_on_ = measured_.size();
}

std::vector<float> Evolution::Guess(const std::vector<Candidate>& candidates) {
  if (model_ == nullptr) return {};
  TrainIfStale();
  if (trained_on_ == 0) return {};
  std::vector<std::vector<float>> rows;
  for (const Candidate& candidate : candidates) {
    rows.push_back(candidate.features);
  }
  return model_->Predict(rows);
}

absl::optional<Candidate> Evolution::Evolved() {
  std::vector<const Measured*> parents;
  for (const Measured& m : measured_) {
    if (m.cost.has_value()) parents.push_back(&m);
  }
  std::stable_sort(
      parents.begin(), parents.end(),
      [](const Measured* a, const Measured* b) { return *a->cost < *b->cost; });
  if (parents.size() > kParents) parents.resize(kParents);
  std::vector<Trace> population;
  for (const Measured* parent : parents) population.push_back(parent->trace);
  // The better, the likelier to be varied.
  const auto pick = [&]() -> const Trace& {
    const auto n = static_cast<int64_t>(population.size());
    return population[std::min(rng_.UniformInt(n), rng_.UniformInt(n))];
  };
  std::vector<Candidate> best;
  for (int generation = 0; generation < options_.generations; ++generation) {
    std::vector<Candidate> candidates = std::move(best);
    std::set<std::string> here;
    for (const Candidate& candidate : candidates) here.insert(candidate.steps);
    for (int i = 0; i < options_.population; ++i) {
      Trace from;
      const int64_t kind = rng_.UniformInt(10);
      if (!population.empty() && kind < 6) from = Mutated(pick(), rng_);
      if (!population.empty() && kind >= 6 && kind < 9) {
        from = Crossed(pick(), pick(), rng_);
      }
      auto candidate = Derived(Decisions::Vary(std::move(from), rng_));
      if (candidate.has_value() && seen_.count(candidate->steps) == 0 &&
          here.insert(candidate->steps).second) {
        candidates.push_back(*std::move(candidate));
      }
    }
    const std::vector<float> guesses = Guess(candidates);
    std::vector<size_t> order(candidates.size());
    std::iota(order.begin(), order.end(), 0);
    if (!guesses.empty()) {
      std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
        return guesses[a] < guesses[b];
      });
    }
    if (order.size() > kParents) order.resize(kParents);
    best.clear();
    population.clear();
    for (const size_t i : order) {
      population.push_back(candidates[i].trace);
      best.push_back(std::move(candidates[i]));
    }
  }
  if (best.empty()) return absl::nullopt;
  return std::move(best.front());
}

absl::optional<Candidate> Evolution::Next() {
  absl::optional<Candidate> next;
  if (model_ != nullptr) next = Given();
  if (!next.has_value() && model_ != nullptr) {
    if (returned_ < options_.first_random) {
      next = returned_ % 2 == 0 ? Fresh() : Near();
    } else if (rng_.UniformReal() >= options_.exploring_share) {
      next = Evolved();
    }
  }
  if (!next.has_value()) next = Fresh();
  if (!next.has_value()) return next;
  ++returned_;
  seen_.insert(next->steps);
  return next;
}

void Evolution::Tell(const Trace& trace, absl::optional<double> cost) {
  auto candidate = Derived(Decisions::Replay(trace));
  if (!candidate.has_value()) return;
  seen_.insert(candidate->steps);
  for (Measured& m : measured_) {
    if (m.trace != trace) continue;
    m.cost = cost;  // a later answer amends
    return;
  }
  measured_.push_back(
      {std::move(candidate->trace), std::move(candidate->features), cost});
}

}  // namespace optrail::tuning

#include "tuning/schedule/trace_source.h"

#include <algorithm>
#include <map>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "base/hash/hash.h"
#include "base/status_macros.h"
#include "tuning/proto/canonical.h"
#include "tuning/schedule/evolution.h"
#include "tuning/session/objective.h"

namespace optrail::tuning {
namespace {

// The model's name, "" for random.
absl::StatusOr<std::string> ModelOf(const std::string& strategy) {
  if (strategy == "random") return std::string();
  absl::string_view name = strategy;
  if (name == "default" || name == "evolution") return std::string("trees");
  const std::vector<std::string> models = CostModelNames();
  if (absl::ConsumePrefix(&name, "evolution:") &&
      std::find(models.begin(), models.end(), name) != models.end()) {
    return std::string(name);
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "strategy ", strategy,
      ": schedules are searched by default, random, evolution or evolution:",
      absl::StrJoin(models, ", evolution:")));
}

class TraceProposer : public Proposer {
 public:
  TraceProposer(std::vector<proto::Objective> objectives, Evolution evolution)
      : objectives_(std::move(objectives)), evolution_(std::move(evolution)) {}

  std::vector<proto::Config> Ask(int count) override {
    std::vector<proto::Config> configs;
    while (static_cast<int>(configs.size()) < count) {
      const absl::optional<Candidate> next = evolution_.Next();
      if (!next.has_value()) break;
      configs.push_back(ConfigOf(next->trace));
    }
    return configs;
  }

  absl::Status Tell(const proto::Trial& trial) override {
    const auto values = ValuesOf(objectives_, trial);
    absl::optional<double> cost;
    // A lower bound is near enough: what was raced out is slow.
    if (trial.outcome() == proto::OK || trial.outcome() == proto::CENSORED) {
      cost = Cost(objectives_, values);
    }
    const bool unknown = !cost.has_value() && !IsFailure(trial.outcome());
    if (trial.outcome() == proto::OK && cost.has_value() &&
        WithinLimits(objectives_, values)) {
      costs_[CanonicalText(trial.config())] = {*cost, trial.config()};
    }
    const absl::StatusOr<Trace> trace = TraceOf(trial.config());
    // The default is no trace but a name for one.
    if (trace.ok() && !unknown) evolution_.Tell(*trace, cost);
    return absl::OkStatus();
  }

  std::vector<proto::Config> Finalists(int count) const override {
    std::vector<std::pair<double, const proto::Config*>> sorted;
    for (const auto& [text, told] : costs_) {
      sorted.emplace_back(told.first, &told.second);
    }
    std::stable_sort(
        sorted.begin(), sorted.end(),
        [](const auto& a, const auto& b) { return a.first < b.first; });
    std::vector<proto::Config> finalists;
    for (const auto& [cost, config] : sorted) {
      if (static_cast<int>(finalists.size()) == count) break;
      finalists.push_back(*config);
    }
    return finalists;
  }

  std::vector<proto::Config> Front() const override { return Finalists(1); }
  absl::optional<double> ExpectedImprovement() const override {
    return absl::nullopt;
  }

 private:
  const std::vector<proto::Objective> objectives_;
  Evolution evolution_;
  // By canonical text, those that work.
  std::map<std::string, std::pair<double, proto::Config>> costs_;
};

// The fastest few of each session of another shape, which are tried here, too,
// as far as they fit.
std::vector<Trace> SeedsOf(const std::vector<proto::Session>& sources) {
  constexpr size_t kOfEach = 4, kAltogether = 12;
  std::vector<Trace> seeds;
  for (const proto::Session& session : sources) {
    const std::vector<proto::Objective> objectives = ObjectivesOf(session);
    std::vector<std::pair<double, Trace>> sorted;
    for (const proto::Trial& trial : session.trials()) {
      if (trial.outcome() != proto::OK) continue;
      const auto cost = Cost(objectives, ValuesOf(objectives, trial));
      absl::StatusOr<Trace> trace = TraceOf(trial.config());
      if (!cost.has_value() || !trace.ok()) continue;
      sorted.emplace_back(*cost, *std::move(trace));
    }
    std::stable_sort(
        sorted.begin(), sorted.end(),
        [](const auto& a, const auto& b) { return a.first < b.first; });
    for (size_t i = 0; i < std::min(kOfEach, sorted.size()); ++i) {
      if (seeds.size() < kAltogether) {
        seeds.push_back(std::move(sorted[i].second));
      }
    }
  }
  return seeds;
}

}  // namespace

proto::Config ConfigOf(const Trace& trace) {
  proto::Config config;
  for (const auto& [name, value] : trace) {
    proto::KnobValue* const knob = config.add_set();
    knob->set_knob(name);
    knob->set_int_(value);
  }
  return config;
}

absl::StatusOr<Trace> TraceOf(const proto::Config& config) {
  Trace trace;
  for (const proto::KnobValue& value : config.set()) {
    if (!value.has_int_()) {
      return absl::InvalidArgumentError(
          absl::StrCat("decision ", CanonicalText(value),
                       " of a trace: expected an integer"));
    }
    trace[value.knob()] = value.int_();
  }
  return trace;
}

absl::Status TraceSource::Validate(const proto::Config& config) const {
  OPTRAIL_ASSIGN_OR_RETURN(Trace trace, TraceOf(config));
  Decisions decisions = Decisions::Replay(std::move(trace));
  return Derive(algorithm_, machine_, decisions).status();
}

absl::StatusOr<std::unique_ptr<Proposer>> TraceSource::Propose(
    const proto::Session& begun, const ProposerOptions& sources) const {
  EvolutionOptions options;
  options.seed = begun.seed();
  options.seeds = SeedsOf(sources.source_sessions);
  OPTRAIL_ASSIGN_OR_RETURN(options.model, ModelOf(begun.strategy()));
  auto proposer = std::make_unique<TraceProposer>(
      ObjectivesOf(begun), Evolution(algorithm_, machine_, options));
  for (const proto::Trial& known : begun.trials()) {
    OPTRAIL_RETURN_IF_ERROR(proposer->Tell(known));
  }
  return proposer;
}

std::string TraceSource::Hash() const {
  return Fingerprint(
      absl::StrCat(SketchRulesText(), "\n", algorithm_.ToText()));
}

void TraceSource::Describe(proto::Session* header) const {
  header->mutable_schedule()->set_algorithm(algorithm_.ToText());
  header->mutable_schedule()->set_rules(SketchRulesText());
}

}  // namespace optrail::tuning

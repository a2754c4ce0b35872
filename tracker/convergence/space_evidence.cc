#include "tracker/convergence/space_evidence.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/random.h"
#include "base/stats/rank_correlation.h"

namespace optrail::tracker {
namespace {

using tuning::BoundSpace;
using tuning::KnobLevels;
using tuning::Levels;

// Enough to know a level's share or a percentile to three percent.
constexpr int kDraws = 1000;
constexpr uint64_t kDrawSeed = 1;

// A range that could be extended at this end.
bool CanExtend(const proto::Space::Knob& knob, bool at_maximum, int64_t value) {
  if (!at_maximum && value <= 1) return false;
  if (knob.ints_size() > 0 || knob.has_pow2()) return true;
  if (knob.has_divisors()) {
    return at_maximum ? knob.divisors().has_max() : knob.divisors().has_min();
  }
  return false;
}

// Readings from the fastest on.
std::vector<const TrialPoint*> Fastest(const SessionAnalysis& session) {
  std::vector<const TrialPoint*> readings;
  for (const TrialPoint& trial : session.trials) {
    if (trial.cost) readings.push_back(&trial);
  }
  std::stable_sort(readings.begin(), readings.end(),
                   [](const TrialPoint* a, const TrialPoint* b) {
                     return *a->cost < *b->cost;
                   });
  return readings;
}

}  // namespace

std::unique_ptr<BoundSpace> SpaceOf(const SessionAnalysis& session) {
  if (session.header.space_textproto().empty()) return nullptr;
  const auto space = tuning::Space::Parse(session.header.space_textproto(),
                                          session.id() + ".space");
  if (!space.ok()) return nullptr;
  tuning::BindOptions options;
  options.threads = session.header.task().threads();
  auto bound = space->Bind(session.header.task().shape(),
                           session.header.hardware(), options);
  return bound.ok() ? *std::move(bound) : nullptr;
}

std::vector<KnobEdge> EdgesOf(const SessionAnalysis& session,
                              const BoundSpace& space) {
  std::vector<Levels> best;
  for (const TrialPoint* reading : Fastest(session)) {
    const auto levels = space.ToLevels(reading->config);
    if (levels.ok()) best.push_back(*levels);
    if (best.size() == 5) break;
  }
  std::vector<KnobEdge> edges;
  if (best.size() < 5) return edges;
  for (size_t i = 0; i < space.knobs().size(); ++i) {
    const KnobLevels& knob = space.knobs()[i];
    if (!knob.ordinal || knob.size() < 3) continue;
    const int level = best[0][i];
    const bool at_maximum = level == knob.size() - 1;
    if (!at_maximum && level != 0) continue;
    const auto same =
        std::count_if(best.begin(), best.end(),
                      [&](const Levels& levels) { return levels[i] == level; });
    if (same < 3) continue;
    for (const proto::Space::Knob& declared : space.space().proto().knob()) {
      if (declared.name() == knob.name &&
          CanExtend(declared, at_maximum, knob.ints[level])) {
        edges.push_back(
            {knob.name, knob.ints[level], at_maximum,
             absl::StrCat(knob.ints.front(), "..", knob.ints.back())});
      }
    }
  }
  return edges;
}

absl::optional<double> Coverage(const SessionAnalysis& session,
                                const BoundSpace& space) {
  const size_t knobs = space.knobs().size();
  std::set<std::pair<size_t, int>> visited;
  int trials = 0;
  for (const TrialPoint& trial : session.trials) {
    const auto levels = space.ToLevels(trial.config);
    if (!levels.ok()) continue;
    ++trials;
    for (size_t i = 0; i < knobs; ++i) visited.insert({i, (*levels)[i]});
  }
  if (trials == 0) return absl::nullopt;
  std::vector<std::vector<int>> drawn(knobs);
  for (size_t i = 0; i < knobs; ++i) drawn[i].resize(space.knobs()[i].size());
  Rng rng(kDrawSeed);
  for (int draw = 0; draw < kDraws; ++draw) {
    const Levels levels = space.Sample(rng);
    for (size_t i = 0; i < knobs; ++i) ++drawn[i][levels[i]];
  }
  double expected = 0;
  for (const std::vector<int>& counts : drawn) {
    for (int count : counts) {
      const double share = static_cast<double>(count) / kDraws;
      expected += 1 - std::pow(1 - share, trials);
    }
  }
  if (expected <= 0) return absl::nullopt;
  return static_cast<double>(visited.size()) / expected;
}

absl::optional<PriorEvidence> JudgePrior(const SessionAnalysis& session,
                                         const BoundSpace& space,
                                         int min_readings) {
  std::vector<Levels> configs;
  std::vector<double> priors;
  std::vector<double> speeds;  // by rank only, so minus the time will do
  for (const TrialPoint* reading : Fastest(session)) {
    const auto levels = space.ToLevels(reading->config);
    if (!levels.ok()) continue;
    const absl::optional<double> prior = space.Prior(*levels);
    if (!prior) return absl::nullopt;
    configs.push_back(*levels);
    priors.push_back(*prior);
    speeds.push_back(-*reading->cost);
  }
  if (static_cast<int>(configs.size()) < min_readings) return absl::nullopt;

  PriorEvidence evidence;
  evidence.readings = static_cast<int>(configs.size());
  evidence.correlation = RankCorrelation(priors, speeds);
  Rng rng(kDrawSeed);
  double below = 0;
  for (int draw = 0; draw < kDraws; ++draw) {
    const double prior = *space.Prior(space.Sample(rng));
    below += prior < priors[0] ? 1 : prior == priors[0] ? .5 : 0;
  }
  evidence.best_percentile = below / kDraws;

  std::vector<std::pair<double, std::string>> contradictions;
  for (size_t i = 0; i < space.knobs().size(); ++i) {
    if (!space.knobs()[i].ordinal) continue;
    std::vector<double> values;
    for (const Levels& levels : configs) values.push_back(levels[i]);
    const double wanted = RankCorrelation(values, priors);
    const double found = RankCorrelation(values, speeds);
    // Both beyond what chance gives in 99% of cases.
    const double chance = 2.6 / std::sqrt(static_cast<double>(values.size()));
    if (wanted * found >= 0 || std::abs(wanted) < chance ||
        std::abs(found) < chance) {
      continue;
    }
    contradictions.push_back({wanted * found, space.knobs()[i].name});
  }
  std::sort(contradictions.begin(), contradictions.end());
  for (const auto& contradiction : contradictions) {
    evidence.contradicting_knobs.push_back(contradiction.second);
  }
  return evidence;
}

}  // namespace optrail::tracker

// Faults that sessions of several shapes, or of one space, show together.

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "base/stats/statistics.h"
#include "base/text/units.h"
#include "tracker/convergence/finders.h"
#include "tracker/convergence/space_evidence.h"
#include "tuning/proto/canonical.h"
#include "tuning/space/space_change.h"

namespace optrail::tracker {
namespace {

// What a tuned config may be used for: everything of the task but the sizes.
std::string FamilyOf(const proto::Task& task) {
  proto::Task family = task;
  family.mutable_shape()->clear_dims();
  return tuning::TrialKey(family, proto::Config());
}

// Reading of a config over the default's in the same session; a config that
// fails there counts as infinitely slow. nullopt if it was not tried.
absl::optional<double> LossIn(const SessionAnalysis& session,
                              const std::string& config_text) {
  absl::optional<double> default_ns;
  for (const FinalistPoint& finalist : session.finalists) {
    if (finalist.is_default) default_ns = finalist.verified_cost;
  }
  if (!default_ns) return absl::nullopt;
  for (const FinalistPoint& finalist : session.finalists) {
    if (finalist.config_text == config_text && finalist.verified_cost) {
      return *finalist.verified_cost / *default_ns - 1;
    }
  }
  for (const TrialPoint& trial : session.trials) {
    if (trial.config_text != config_text) continue;
    if (trial.cost) return *trial.cost / *default_ns - 1;
    if (trial.outcome != proto::CONTENDED && trial.outcome != proto::CENSORED) {
      return HUGE_VAL;
    }
  }
  return absl::nullopt;
}

// The first of those that are counted most often; "" without any.
std::string MostFrequent(const std::map<std::string, int>& counts) {
  const auto most = std::max_element(
      counts.begin(), counts.end(),
      [](const auto& a, const auto& b) { return a.second < b.second; });
  return most == counts.end() ? "" : most->first;
}

// The knob in which the winners of other shapes differ most often.
std::string DifferingKnob(const SessionAnalysis& session,
                          const Sessions& others) {
  std::map<std::string, int> differences;
  for (const SessionWithSpace* other : others) {
    std::map<std::string, std::string> there;
    for (const auto& value : other->session->header.winner().set()) {
      there[value.knob()] = tuning::CanonicalText(value);
    }
    for (const auto& value : session.header.winner().set()) {
      const auto found = there.find(value.knob());
      if (found != there.end() &&
          found->second != tuning::CanonicalText(value)) {
        ++differences[value.knob()];
      }
    }
  }
  return MostFrequent(differences);
}

}  // namespace

void FindLosersElsewhere(absl::Span<const SessionWithSpace> sessions,
                         const FindingOptions& options,
                         std::vector<Finding>& findings) {
  std::map<std::string, Sessions> families;
  for (const SessionWithSpace& item : sessions) {
    families[FamilyOf(item.session->header.task())].push_back(&item);
  }
  for (const auto& [unused, family] : families) {
    // The newest session of each task.
    std::map<std::string, const SessionWithSpace*> newest;
    for (const SessionWithSpace* item : family) {
      newest[item->session->task_key] = item;
    }
    for (const auto& [task_key, item] : newest) {
      const SessionAnalysis& session = *item->session;
      if (!session.header.has_winner() || !session.winner_cost ||
          session.speedup_over_default.value_or(0) <= 1) {
        continue;
      }
      const std::string winner = tuning::CanonicalText(session.header.winner());
      std::vector<double> losses;
      Sessions tried;
      std::vector<std::string> shapes;
      for (const auto& [other_key, other] : newest) {
        if (other_key == task_key) continue;
        if (const auto loss = LossIn(*other->session, winner)) {
          losses.push_back(*loss);
          tried.push_back(other);
          shapes.push_back(absl::StrCat(
              tuning::CanonicalText(other->session->header.task().shape()),
              std::isinf(*loss)
                  ? " (fails)"
                  : absl::StrCat(" (", FormatChange(*loss), ")")));
        }
      }
      if (static_cast<int>(losses.size()) < options.min_other_shapes ||
          Median(losses) < options.max_loss_on_other_shapes) {
        continue;
      }
      const std::string knob = DifferingKnob(session, tried);
      Finding finding = {
          FindingKind::kLosesOnOtherShapes,
          session.task_text,
          {session.id()},
          {absl::StrCat("the winner ", winner, " against the default on ",
                        absl::StrJoin(shapes, ", "))},
          {{Lever::kBudget,
            "tune the shapes in use each by itself: the nearest shape's config "
            "is no substitute here"}}};
      if (!knob.empty()) {
        finding.remedies.push_back(
            {Lever::kKnobRange,
             absl::StrCat("knob ", knob,
                          " differs between the winners of "
                          "these shapes: express it by the shape (divisors, or "
                          "a constraint over dim.*)")});
      }
      findings.push_back(std::move(finding));
    }
  }
}

void FindMisleadingPriors(absl::Span<const SessionWithSpace> sessions,
                          const FindingOptions& options,
                          std::vector<Finding>& findings) {
  struct Pool {
    double weighted_z = 0;
    double weight = 0;
    int readings = 0;
    std::vector<double> percentiles;
    std::map<std::string, int> knobs;
    const SessionWithSpace* any = nullptr;
    std::vector<std::string> ids;
    std::set<std::string> tasks;
  };
  std::map<std::string, Pool> pools;
  for (const SessionWithSpace& item : sessions) {
    if (item.space == nullptr) continue;
    const auto evidence =
        JudgePrior(*item.session, *item.space, options.min_prior_readings);
    if (!evidence) continue;
    const proto::Task& task = item.session->header.task();
    Pool& pool = pools[absl::StrCat(task.operator_name(), "/",
                                    item.space->space().hash(), "/",
                                    task.hardware_id())];
    // Fisher's transformation; 1.06 makes it fit ranks (Fieller, Hartley and
    // Pearson, "Tests for rank correlation coefficients", 1957).
    const double weight = (evidence->readings - 3) / 1.06;
    const double rho = std::min(.999, std::max(-.999, evidence->correlation));
    pool.weighted_z += weight * std::atanh(rho);
    pool.weight += weight;
    pool.readings += evidence->readings;
    pool.percentiles.push_back(evidence->best_percentile);
    for (const std::string& knob : evidence->contradicting_knobs) {
      ++pool.knobs[knob];
    }
    pool.any = &item;
    pool.ids.push_back(item.session->id());
    pool.tasks.insert(item.session->task_text);
  }
  for (auto& [unused, pool] : pools) {
    const double z = pool.weighted_z / pool.weight;
    const double upper = std::tanh(z + 1.96 / std::sqrt(pool.weight));
    const double percentile = Median(pool.percentiles);
    if (upper >= options.min_prior_correlation ||
        percentile >= options.min_prior_percentile) {
      continue;
    }
    Finding finding;
    finding.kind = FindingKind::kPriorMisleads;
    if (pool.tasks.size() == 1) finding.task = *pool.tasks.begin();
    finding.session_ids = std::move(pool.ids);
    finding.evidence = {
        absl::StrFormat("rank correlation of prior and speed over %d readings "
                        "is %.2f (at most %.2f, 97.5%% sure)",
                        pool.readings, std::tanh(z), upper),
        absl::StrCat("the prior ranks ", FormatPercent(1 - percentile),
                     " of the space above the best config")};
    std::string text = "remove the prior";
    const int64_t top_k = pool.any->space->top_k();
    if (top_k > 0) {
      absl::StrAppend(&text, " or at least its top_k of ", top_k,
                      ", which keeps better configs from being measured");
    }
    const std::string knob = MostFrequent(pool.knobs);
    if (!knob.empty()) {
      absl::StrAppend(&text, "; or mend it: it pushes knob ", knob,
                      " the wrong way");
    }
    const tuning::BoundSpace& space = *pool.any->space;
    finding.remedies = {
        {Lever::kPrior, std::move(text),
         SearchChange{tuning::WithoutPrior(space.space().proto()), 0, ""},
         ExpectHalfOf(GainOfSecondHalf(*pool.any->session))}};
    findings.push_back(std::move(finding));
  }
}

}  // namespace optrail::tracker

#include "suites/evaluation/prior_judgement.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "ops/core/backend_space.h"
#include "tuning/proto/canonical.h"
#include "tuning/space/space.h"

namespace optrail::suites {
namespace {

using Measured = PriorJudgement::Measured;

std::vector<Measured> MeasuredOf(const proto::Session& session,
                                 const tuning::BoundSpace& space) {
  std::map<std::string, Measured> by_text;
  for (const proto::Trial& trial : session.trials()) {
    if (trial.outcome() != proto::OK || trial.time_ns() <= 0) {
      continue;
    }
    const auto levels = space.ToLevels(trial.config());
    if (!levels.ok() || !space.IsValid(*levels)) continue;
    Measured& measured = by_text[tuning::CanonicalText(trial.config())];
    const double time_ns = trial.time_ns();
    if (measured.time_ns > 0 && measured.time_ns <= time_ns) continue;
    measured = {trial.config(), time_ns, space.Prior(*levels).value_or(0)};
  }
  std::vector<Measured> all;
  for (auto& [text, measured] : by_text) all.push_back(std::move(measured));
  std::sort(all.begin(), all.end(), [](const Measured& a, const Measured& b) {
    return a.time_ns < b.time_ns;
  });
  return all;
}

}  // namespace

bool PriorJudgement::IsPick(size_t i) const {
  return std::find(picks.begin(), picks.end(), i) != picks.end();
}

double PriorJudgement::Share(size_t i) const {
  return measured[0].time_ns / measured[i].time_ns;
}

double PriorJudgement::PickShare() const {
  double logs = 0;
  for (const size_t pick : picks) logs += std::log(Share(pick));
  return std::exp(logs / static_cast<double>(picks.size()));
}

absl::StatusOr<PriorJudgement> JudgePrior(const proto::Session& session,
                                          const std::string& text,
                                          const std::string& path) {
  const proto::Task& task = session.task();
  OPTRAIL_ASSIGN_OR_RETURN(const ops::BackendConfigs space,
                           ops::BindSpace(text, path, task.shape(),
                                          task.threads(), session.hardware()));
  PriorJudgement judged;
  judged.task = absl::StrCat(task.operator_name(), " ",
                             tuning::CanonicalText(task.shape()));
  judged.measured = MeasuredOf(session, *space.bound);
  judged.has_prior = space.space->proto().has_prior();
  const std::string standard =
      tuning::CanonicalText(space.bound->default_config());
  for (size_t i = 0; i < judged.measured.size(); ++i) {
    const Measured& one = judged.measured[i];
    if (tuning::CanonicalText(one.config) == standard) judged.standard = i;
    if (!judged.has_prior) continue;
    if (!judged.picks.empty()) {
      const double highest = judged.measured[judged.picks[0]].prior;
      if (one.prior < highest) continue;
      if (one.prior > highest) judged.picks.clear();
    }
    judged.picks.push_back(i);
  }
  return judged;
}

}  // namespace optrail::suites

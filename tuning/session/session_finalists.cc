// Chooses the finalists of a search: the configs that are measured again.

#include <algorithm>
#include <limits>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "base/status_macros.h"
#include "tuning/proto/canonical.h"
#include "tuning/proto/numerics_text.h"
#include "tuning/session/numerics.h"
#include "tuning/session/objective.h"
#include "tuning/session/session.h"

namespace optrail::tuning {
namespace {

// A metered search has up to so many times the usual finalists.
constexpr int kMostMetered = 2;

}  // namespace

std::vector<proto::Trial> Session::CompletedTrials(double deviations) const {
  return metering_.Completed(
      std::vector<proto::Trial>(session_.trials().begin(),
                                session_.trials().end()),
      deviations);
}

std::vector<proto::Config> Session::BestByLimits(int count) const {
  std::vector<std::pair<double, const proto::Trial*>> within;
  // Where little was metered, what may be the best: finalists are.
  const std::vector<proto::Trial> trials = CompletedTrials(/*deviations=*/-1);
  for (const proto::Trial& trial : trials) {
    const auto values = ValuesOf(objectives_, trial);
    const absl::optional<double> cost = Cost(objectives_, values);
    if (trial.outcome() == proto::OK && cost.has_value() &&
        WithinLimits(objectives_, values)) {
      within.emplace_back(*cost, &trial);
    }
  }
  std::stable_sort(
      within.begin(), within.end(),
      [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<proto::Config> configs;
  for (const auto& [cost, trial] : within) {
    if (static_cast<int>(configs.size()) < count) {
      configs.push_back(trial->config());
    }
  }
  return configs;
}

std::vector<proto::Config> Session::MeteredFinalists() const {
  // The least of several readings is a lucky one, so more than one is read
  // again.
  constexpr int kReadAgain = 2;
  absl::flat_hash_set<std::string> metered, taken;
  for (int i = session_.warm_start_trial_count(); i < session_.trials_size();
       ++i) {
    const proto::Trial& trial = session_.trials(i);
    if (metering_.IsMetered(trial)) {
      metered.insert(CanonicalText(trial.config()));
    }
  }
  int unspent = kMeteredConfigs - static_cast<int>(metered.size());
  for (const proto::Finalist& finalist : session_.finalists()) {
    const std::string text = CanonicalText(finalist.config());
    if (!metered.contains(text)) --unspent;
    taken.insert(text);
  }
  std::vector<proto::Config> again, chosen;
  for (const proto::Config& config : BestByLimits(session_.trials_size())) {
    const std::string text = CanonicalText(config);
    if (!MayWin(config) || !taken.insert(text).second) continue;
    if (metered.contains(text)) {
      if (static_cast<int>(again.size()) < kReadAgain) again.push_back(config);
    } else if (unspent > 0) {
      --unspent;
      chosen.push_back(config);
    }
  }
  // A ranking that is short of time reads the first ones.
  if (!again.empty()) chosen.insert(chosen.begin(), again.front());
  if (again.size() > 1) chosen.push_back(again.back());
  const size_t most = kMostMetered * static_cast<size_t>(setup_.finalists);
  if (chosen.size() > most) chosen.resize(most);
  return chosen;
}

absl::optional<proto::Config> Session::BestIn(size_t objective) const {
  const proto::Trial* best = nullptr;
  double least = std::numeric_limits<double>::infinity();
  for (const proto::Trial& trial : session_.trials()) {
    const auto value = ValueOf(trial, objectives_[objective]);
    if (trial.outcome() != proto::OK || !value || !(*value > 0)) continue;
    const double cost = CostOf(objectives_[objective], *value);
    if (cost >= least) continue;
    least = cost;
    best = &trial;
  }
  return best == nullptr ? absl::nullopt : absl::make_optional(best->config());
}

bool Session::MayWin(const proto::Config& config) const {
  if (!setup_.class_of_default && !setup_.batch_invariant) return true;
  const std::string numerics = NumericsOf(session_, config);
  // A short search may not draw the incumbent, whose class is known from the
  // session that it won.
  if (numerics.empty()) {
    return session_.has_incumbent() &&
           CanonicalText(session_.incumbent()) == CanonicalText(config);
  }
  if (setup_.batch_invariant && !IsBatchInvariant(numerics)) return false;
  return !setup_.class_of_default ||
         SameBits(numerics, NumericsOf(session_, setup_.default_config));
}

absl::flat_hash_map<std::string, double> Session::FirstReadings(
    absl::FunctionRef<absl::optional<double>(const proto::Trial&)> value)
    const {
  absl::flat_hash_map<std::string, double> readings;
  for (const proto::Trial& trial : CompletedTrials(/*deviations=*/0)) {
    if (trial.outcome() != proto::OK) continue;
    if (const auto known = value(trial)) {
      readings[CanonicalText(trial.config())] = *known;
    }
  }
  return readings;
}

void Session::AddFinalists() {
  absl::flat_hash_set<std::string> chosen;
  const auto times_ns = FirstReadings([](const proto::Trial& trial) {
    return trial.has_time_ns() ? absl::make_optional(trial.time_ns())
                               : absl::nullopt;
  });
  const auto add = [&](const proto::Config& config, bool is_default) {
    const std::string text = CanonicalText(config);
    if (!is_default && !MayWin(config)) return;
    if (!chosen.insert(text).second) return;
    proto::Finalist* finalist = session_.add_finalists();
    *finalist->mutable_config() = config;
    finalist->set_is_default(is_default);
    const auto time_ns = times_ns.find(text);
    if (time_ns != times_ns.end()) {
      finalist->set_first_time_ns(time_ns->second);
    }
  };
  add(setup_.default_config, /*is_default=*/true);
  // What a limit depends on is read again beside the others.
  for (size_t i = 0; i < objectives_.size(); ++i) {
    if (!objectives_[i].has_limit_over_best()) continue;
    if (const auto best = BestIn(i)) add(*best, /*is_default=*/false);
  }
  const bool has_winner = NamesWinner(objectives_);
  if (has_winner && session_.has_incumbent()) {
    add(session_.incumbent(), /*is_default=*/false);
  }
  // In some classes, of all that were tried.
  const bool in_classes = setup_.class_of_default || setup_.batch_invariant;
  const int most =
      in_classes ? session_.trials_size() : kMostFinalists * setup_.finalists;
  const bool by_proposer =
      objectives_.size() == 1 || objectives_[0].has_weight();
  for (const proto::Config& config : !has_winner          ? proposer_->Front()
                                     : metering_.active() ? MeteredFinalists()
                                     : by_proposer ? proposer_->Finalists(most)
                                                   : BestByLimits(most)) {
    if (in_classes &&
        session_.finalists_size() > kMostFinalists * setup_.finalists) {
      break;
    }
    add(config, /*is_default=*/false);
  }
}

absl::Status Session::ChooseFinalists() {
  if (journal_->finalists() != nullptr) {
    session_.set_stop_reason(journal_->finalists()->stop_reason());
    *session_.mutable_finalists() = journal_->finalists()->finalists();
  } else {
    AddFinalists();
    OPTRAIL_RETURN_IF_ERROR(journal_->AppendFinalists(session_.finalists(),
                                                      session_.stop_reason()));
  }
  disqualified_.assign(session_.finalists_size(), false);
  read_.assign(session_.finalists_size(), false);
  for (int i = 0; session_.has_incumbent() && i < session_.finalists_size();
       ++i) {
    if (CanonicalText(session_.finalists(i).config()) ==
        CanonicalText(session_.incumbent())) {
      incumbent_ = i;
    }
  }
  return absl::OkStatus();
}

}  // namespace optrail::tuning

#include "diagnosis/try_remedies.h"

#include <algorithm>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/clock.h"
#include "tracker/convergence/convergence.h"
#include "tuning/proto/canonical.h"
#include "tuning/session/objective.h"
#include "tuning/space/space_change.h"

namespace optrail::diagnosis {
namespace {

using tracker::Finding;
using tracker::Remedy;
using tracker::RemedyGain;

// The share of the cost that goes. A proof's gain is that already, but where
// higher is better (tuning::GainOf): there 1 is twice as good.
double ShareOf(const proto::Session& session, double gain) {
  const bool higher =
      tuning::ObjectivesOf(session)[0].direction() == proto::HIGHER_IS_BETTER;
  return higher ? 1 - 1 / (1 + gain) : gain;
}

absl::StatusOr<SearchAgain> SearchOf(const proto::Session& session,
                                     const tracker::SearchChange& change) {
  if (session.space_textproto().empty()) {
    return absl::UnimplementedError(
        "not tried: the session's configs are listed by no space");
  }
  if (tuning::ObjectivesOf(session).size() != 1) {
    return absl::UnimplementedError(
        "not tried: gains of several objectives are not one number");
  }
  SearchAgain search;
  search.session = session;
  search.space_textproto = change.space_textproto.empty()
                               ? session.space_textproto()
                               : change.space_textproto;
  if (session.has_winner()) {
    search.space_textproto =
        tuning::WithDefault(search.space_textproto, session.winner());
  }
  search.trials = change.trials > 0 ? change.trials
                                    : session.trials_size() -
                                          session.warm_start_trial_count();
  search.strategy =
      change.strategy.empty() ? session.strategy() : change.strategy;
  return search;
}

void Try(const proto::Session& session, const SearchAgainFunction& search,
         Remedy* remedy) {
  if (!remedy->change) {
    remedy->outcome = "not tried: it is for a person to apply";
    return;
  }
  const auto again = SearchOf(session, *remedy->change);
  if (!again.ok()) {
    remedy->outcome = std::string(again.status().message());
    return;
  }
  const absl::StatusOr<proto::Session> found = search(*again);
  if (!found.ok()) {
    remedy->outcome = std::string(found.status().message());
    return;
  }
  const absl::StatusOr<RemedyGain> gain = RealisedGain(*found);
  if (!gain.ok()) {
    remedy->outcome = std::string(gain.status().message());
    return;
  }
  const int trials = found->trials_size() - found->warm_start_trial_count();
  // A search that tried nothing says nothing of the remedy.
  if (trials == 0 && !found->proof().claimed()) {
    remedy->outcome =
        "not tried: the session had measured every config of the space";
    return;
  }
  remedy->realised = *gain;
  remedy->outcome =
      found->proof().claimed()
          ? absl::StrCat(trials, " trials found ",
                         tuning::CanonicalText(found->winner()))
          : absl::StrCat(trials, " trials found nothing that is proven better");
}

void AddAdvice(const Finding& finding, const Remedy& remedy,
               proto::Diagnosis* record) {
  proto::DiagnosisAdvice& advice = *record->add_advice();
  advice.set_kind(remedy.change ? proto::TUNE_KNOBS
                                : proto::CHANGE_SURROUNDINGS);
  advice.set_class_name(std::string(tracker::FindingKindName(finding.kind)));
  advice.set_text(
      absl::StrCat(tracker::LeverName(remedy.lever), ": ", remedy.text));
  advice.set_confidence("estimated");
  advice.set_cost(remedy.change ? "one more search" : "a person's time");
  if (remedy.predicted) {
    advice.set_predicted_gain(remedy.predicted->value);
    advice.set_predicted_low(remedy.predicted->low);
    advice.set_predicted_high(remedy.predicted->high);
  }
  if (remedy.realised) {
    advice.set_realised_gain(remedy.realised->value);
    advice.set_realised_low(remedy.realised->low);
    advice.set_realised_high(remedy.realised->high);
  }
  advice.set_outcome(remedy.outcome);
}

void AddFinding(const Finding& finding, proto::Diagnosis* record) {
  proto::DiagnosisCause& cause = *record->add_causes();
  proto::DiagnosisLink& link = *cause.add_chain();
  link.set_class_name(std::string(tracker::FindingKindName(finding.kind)));
  link.set_says(absl::StrJoin(finding.evidence, "; "));
  for (const Remedy& remedy : finding.remedies) {
    AddAdvice(finding, remedy, record);
    if (!remedy.predicted) continue;
    cause.set_recoverable(
        std::max(cause.recoverable(), remedy.predicted->value));
  }
}

proto::Diagnosis RecordOf(const proto::Session& session) {
  proto::Diagnosis record;
  record.set_created_unix_ns(Clock::Real()->WallNs());
  *record.mutable_task() = session.task();
  *record.mutable_config() = session.winner();
  const tracker::SessionAnalysis analysis = tracker::AnalyzeSession(session);
  if (analysis.is_time() && analysis.winner_cost) {
    record.set_time_ns(*analysis.winner_cost);
  }
  return record;
}

}  // namespace

absl::StatusOr<RemedyGain> RealisedGain(const proto::Session& search) {
  if (!search.has_winner()) {
    return absl::NotFoundError("searched: no config worked");
  }
  const proto::Proof& proof = search.proof();
  if (!search.has_proof() || !proof.has_gain()) {
    // The default was the best of the ranking, so there was nothing to prove.
    for (const proto::Finalist& finalist : search.finalists()) {
      if (finalist.is_default() && tuning::CanonicalText(finalist.config()) ==
                                       tuning::CanonicalText(search.winner())) {
        return RemedyGain();
      }
    }
    return absl::NotFoundError("searched: nothing was proven");
  }
  if (!proof.claimed()) return RemedyGain();
  const double value = ShareOf(search, proof.gain());
  RemedyGain gain = {value, value, value};
  if (proof.has_gain_low()) gain.low = ShareOf(search, proof.gain_low());
  if (proof.has_gain_high()) gain.high = ShareOf(search, proof.gain_high());
  return gain;
}

std::vector<proto::Diagnosis> TryRemedies(
    const std::function<absl::StatusOr<proto::Session>(const std::string& id)>&
        read_session,
    const SearchAgainFunction& search, std::vector<Finding>* findings) {
  std::map<std::string, proto::Diagnosis> records;  // by session
  for (Finding& finding : *findings) {
    const int64_t start_ns = Clock::Real()->NowNs();
    const std::string id = *std::max_element(finding.session_ids.begin(),
                                             finding.session_ids.end());
    const absl::StatusOr<proto::Session> session = read_session(id);
    if (!session.ok()) {
      for (Remedy& remedy : finding.remedies) {
        remedy.outcome = std::string(session.status().message());
      }
      continue;
    }
    for (Remedy& remedy : finding.remedies) Try(*session, search, &remedy);
    const auto place = records.insert({id, RecordOf(*session)}).first;
    proto::Diagnosis& record = place->second;
    AddFinding(finding, &record);
    record.set_elapsed_seconds(
        record.elapsed_seconds() +
        static_cast<double>(Clock::Real()->NowNs() - start_ns) * 1e-9);
  }
  std::vector<proto::Diagnosis> all;
  for (auto& [id, record] : records) {
    std::vector<std::string> names;
    for (const proto::DiagnosisCause& cause : record.causes()) {
      names.push_back(cause.chain(0).class_name());
    }
    record.set_verdict(
        absl::StrCat("session ", id, ": ", absl::StrJoin(names, ", ")));
    all.push_back(std::move(record));
  }
  return all;
}

}  // namespace optrail::diagnosis

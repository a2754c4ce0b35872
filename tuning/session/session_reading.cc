// Reads finalists: all of them on one node, each reading journaled.

#include <utility>

#include "absl/strings/str_cat.h"
#include "base/stats/statistics.h"
#include "base/status_macros.h"
#include "tuning/session/objective.h"
#include "tuning/session/session.h"

namespace optrail::tuning {

absl::StatusOr<proto::Conditions> Session::GoOnProving() {
  for (const Reading& reading : journal_->readings()) {
    const proto::Conditions& conditions = reading.measurement().conditions();
    if (conditions.host().empty()) continue;
    const absl::Status here =
        evaluator_.ProveOn(conditions.host(), conditions.device_uuid());
    if (here.ok()) return conditions;
    return NeedsProver(conditions, here.message());
  }
  return proto::Conditions();
}

absl::Status Session::NeedsProver(const proto::Conditions& prover,
                                  absl::string_view why) const {
  return absl::FailedPreconditionError(absl::StrCat(
      "the finalists of this session were read on ", prover.host(),
      ", where the others have to be read, too: ", why,
      "; next: offer that node, or move ",
      SessionJournal::Path(setup_.journal_directory, setup_.header),
      " away to tune anew"));
}

absl::Status Session::CheckProver(const Reading& reading) {
  const proto::Conditions& is = reading.measurement().conditions();
  if (is.host().empty()) return absl::OkStatus();
  if (prover_.host().empty()) prover_ = is;
  if (is.host() == prover_.host() &&
      is.device_uuid() == prover_.device_uuid()) {
    return absl::OkStatus();
  }
  const auto text = [](const proto::Conditions& one) {
    return one.device_uuid().empty()
               ? one.host()
               : absl::StrCat(one.host(), ", device ", one.device_uuid());
  };
  return NeedsProver(prover_, absl::StrCat("a reading is of ", text(is),
                                           ", expected ", text(prover_)));
}

void Session::AddEffort(const proto::Effort& one, proto::Effort* all) {
  all->set_open_ns(all->open_ns() + one.open_ns());
  all->set_check_ns(all->check_ns() + one.check_ns());
  all->set_turn_ns(all->turn_ns() + one.turn_ns());
  if (one.has_busy_ns()) all->set_busy_ns(all->busy_ns() + one.busy_ns());
}

void Session::AccountReading(const Reading& reading) {
  session_.set_elapsed_ns(session_.elapsed_ns() + reading.elapsed_ns());
  proto::SessionTime& time = *session_.mutable_time();
  if (reading.of_proof()) {
    time.set_prove_ns(time.prove_ns() + reading.elapsed_ns());
  } else {
    time.set_rank_ns(time.rank_ns() + reading.elapsed_ns());
  }
  AddEffort(reading.effort(), time.mutable_effort());
}

absl::StatusOr<Session::Reading> Session::Read(bool of_proof, int round,
                                               int finalist) {
  read_[finalist] = true;
  const auto journaled = journaled_readings_.find({of_proof, round, finalist});
  if (journaled != journaled_readings_.end()) {
    Reading reading = std::move(journaled->second);
    journaled_readings_.erase(journaled);
    AccountReading(reading);
    earlier_share_ = Share();
    return reading;
  }
  Reading reading;
  reading.set_round(round);
  reading.set_finalist(finalist);
  reading.set_of_proof(of_proof);
  for (int attempt = 0; attempt < kReadingAttempts;) {
    const auto expected = expected_readings_.find({of_proof, round, finalist});
    int64_t ticket = 0;
    if (expected != expected_readings_.end()) {
      ticket = expected->second;
      expected_readings_.erase(expected);
    } else {
      ticket = SubmitReading(of_proof, round, finalist, /*of_round=*/1);
    }
    while (answers_.count(ticket) == 0) {
      std::vector<Evaluation> answers =
          evaluator_.Poll(absl::InfiniteDuration());
      if (answers.empty()) {
        return absl::InternalError("the evaluator has nothing under way");
      }
      for (Evaluation& one : answers) answers_[one.ticket()] = std::move(one);
    }
    const Evaluation answer = std::move(answers_[ticket]);
    answers_.erase(ticket);
    if (answer.lost()) {
      OPTRAIL_RETURN_IF_ERROR(NoteLost(answer.trial()));
      continue;
    }
    lost_in_a_row_ = 0;
    ++attempt;
    const proto::Trial& trial = answer.trial();
    reading.set_outcome(trial.outcome());
    reading.set_detail(trial.detail());
    reading.set_elapsed_ns(reading.elapsed_ns() + trial.elapsed_ns());
    AddEffort(trial.effort(), reading.mutable_effort());
    if (!trial.measurements().empty()) {
      *reading.mutable_measurement() = trial.measurements(0);
    }
    // A command has no samples: what it printed is the measurement.
    for (const proto::MetricSamples& value : trial.objectives()) {
      *reading.mutable_measurement()->add_metrics() = value;
    }
    reading.mutable_measurement()->set_round(round + 1);
    if (trial.outcome() != proto::CONTENDED) break;
  }
  OPTRAIL_RETURN_IF_ERROR(CheckProver(reading));
  OPTRAIL_RETURN_IF_ERROR(journal_->AppendReading(reading));
  AccountReading(reading);
  return reading;
}

void Session::ExpectReadings(bool of_proof, int round,
                             const std::vector<int>& finalists) {
  if (!begins_ahead_) return;
  std::vector<int> unread;
  for (const int finalist : finalists) {
    if (journaled_readings_.count({of_proof, round, finalist}) == 0) {
      unread.push_back(finalist);
    }
  }
  for (const int finalist : unread) {
    expected_readings_[{of_proof, round, finalist}] = SubmitReading(
        of_proof, round, finalist, static_cast<int>(unread.size()));
  }
}

int64_t Session::SubmitReading(bool of_proof, int round, int finalist,
                               int of_round) {
  Request request;
  request.set_ticket(++last_ticket_);
  *request.mutable_config() = session_.finalists(finalist).config();
  request.set_purpose(of_proof ? Request::PROVE : Request::RANK);
  request.set_round(round);
  request.set_of_round(of_round);
  for (std::string& metric : MetricsOf(objectives_)) {
    request.add_metrics(std::move(metric));
  }
  if (session_.finalists(finalist).has_time_ns()) {
    request.set_expected(session_.finalists(finalist).time_ns());
  } else if (session_.finalists(finalist).first_time_ns() > 0) {
    request.set_expected(session_.finalists(finalist).first_time_ns());
  }
  evaluator_.Submit(std::move(request));
  return last_ticket_;
}

absl::optional<double> Session::CostOfReading(const Reading& reading) {
  if (reading.outcome() == proto::OK) {
    return Cost(objectives_, ValuesOf(objectives_, reading.measurement()));
  }
  // One wrong or crashed reading is enough: such a config never wins.
  if (reading.outcome() != proto::CONTENDED) {
    proto::Finalist& failed = *session_.mutable_finalists(reading.finalist());
    failed.set_outcome(reading.outcome());
    failed.set_detail(reading.detail());
    disqualified_[reading.finalist()] = true;
  }
  return absl::nullopt;
}

bool Session::SetVerified(
    int finalist,
    const google::protobuf::RepeatedPtrField<proto::Measurement>& readings) {
  proto::Finalist& verified = *session_.mutable_finalists(finalist);
  verified.clear_objectives();
  const auto store = [&](const std::string& metric, const std::string& unit,
                         proto::Direction direction) {
    std::vector<double> medians;
    for (const proto::Measurement& reading : readings) {
      const auto value = ValueOf(reading, metric);
      if (value.has_value()) medians.push_back(*value);
    }
    if (medians.empty()) return;
    // What a command calls "time" has the command's unit.
    if (metric == kTimeMetric && unit == TimeObjective().unit()) {
      verified.set_time_ns(Median(medians));
      return;
    }
    proto::MetricSamples* stored = verified.add_objectives();
    stored->set_metric(metric);
    stored->set_unit(unit);
    stored->set_direction(direction);
    stored->add_values(Median(medians));
  };
  // Also where something else is optimised, people ask what it takes.
  std::vector<double> times_ns;
  for (const proto::Measurement& reading : readings) {
    if (reading.has_median_ns()) times_ns.push_back(reading.median_ns());
  }
  if (!times_ns.empty()) verified.set_time_ns(Median(times_ns));
  // Metrics alone; what is computed from them is computed when it is asked for.
  for (const proto::Objective& objective : objectives_) {
    if (objective.terms().empty()) {
      store(objective.metric(), objective.unit(), objective.direction());
    }
  }
  for (const std::string& metric : MetricsOf(objectives_)) {
    if (!ValueOf(verified, metric)) {
      store(metric, metric == kTimeMetric ? TimeObjective().unit() : "",
            proto::LOWER_IS_BETTER);
    }
  }
  verified.set_outcome(proto::OK);
  return WithinLimits(objectives_, ValuesOf(objectives_, verified));
}

}  // namespace optrail::tuning

#include "suites/worker/measure.h"

#include <sys/resource.h>

#include <future>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/types/optional.h"
#include "base/clock.h"
#include "base/process/host_name.h"
#include "base/status_macros.h"
#include "ops/core/neighbours.h"
#include "tuning/session/numerics.h"

namespace optrail::suites {
namespace {

// What takes no longer than this part of what is hopeless may be the best so
// far (a session's race_factor is 1.5, more where joules are read): nothing is
// believed to win that is right in its first call only. The rest costs no
// second check.
constexpr double kNearlyBest = 0.7;

// The niceness of work that is done beside a measurement.
constexpr int kNicenessBeside = 5;

// The error of what a call left; compared by another thread, which gets out of
// the way of the one that launches, or right away.
std::shared_future<absl::StatusOr<double>> Compared(
    const ops::CheckedOperands::Results& results, bool beside) {
  const auto compare = [&results, beside] {
    if (beside) setpriority(PRIO_PROCESS, 0, kNicenessBeside);
    return results.Compare();
  };
  std::shared_future<absl::StatusOr<double>> error =
      std::async(beside ? std::launch::async : std::launch::deferred, compare)
          .share();
  if (!beside) error.wait();
  return error;
}

// The clock of what another program computes: it counts its own calls.
class ElsewhereTimer : public ops::Timer {
 public:
  ElsewhereTimer(int contender, const TimeElsewhere& elsewhere)
      : contender_(contender), elsewhere_(elsewhere) {}

  absl::Status Prepare(int64_t calls) override {
    calls_ = calls;
    return absl::OkStatus();
  }
  absl::StatusOr<int64_t> TimeNs() override {
    return elsewhere_(contender_, calls_);
  }

 private:
  const int contender_;
  const TimeElsewhere& elsewhere_;
  int64_t calls_ = 0;
};

struct Member {
  const proto::Contender* contender = nullptr;
  proto::Evaluation evaluation;
  std::unique_ptr<ops::Runnable> runnable;  // null: elsewhere
  absl::optional<ops::CheckedOperands::Results> results;
  // Valid where its results are checked.
  std::shared_future<absl::StatusOr<double>> error;
  std::unique_ptr<ops::Timer> timer;
  Sampling sampling;
};

// Each step returns what went wrong, if something did.
using Wrong = absl::optional<proto::Evaluation>;

class Measuring {
 public:
  Measuring(const proto::WorkerRequest::Evaluate& request, OpenedTask& task,
            const TimeElsewhere& elsewhere)
      : request_(request), task_(task), elsewhere_(elsewhere) {
    for (const auto& contender : request.contenders()) {
      members_.emplace_back().contender = &contender;
    }
  }

  std::vector<proto::Evaluation> Run() {
    if (Wrong wrong = Load()) return {*wrong};
    started_unix_ns_ = Clock::Real()->WallNs();
    busy_before_ns_ = task_.device().busy_ns();
    if (Wrong wrong = CallFirst()) return {*wrong};
    if (!first_ || first_->outcome != proto::CENSORED) {
      // Right first: nothing counts of what was not checked.
      if (Wrong wrong = Check()) return {*wrong};
      if (Wrong wrong = Sample()) return {*wrong};
    }
    if (Wrong wrong = CheckAgain()) return {*wrong};
    if (Wrong wrong = HashResults()) return {*wrong};
    return Evaluations();
  }

 private:
  Wrong Load() {
    for (Member& member : members_) {
      if (member.contender->elsewhere()) continue;
      member.evaluation = task_.Load(
          member.contender->has_backend() ? member.contender->backend()
                                          : task_.task().backend(),
          member.contender->config(),
          member.contender->perturbation().compile_options(), &member.runnable);
      if (!IsOk(member.evaluation)) return member.evaluation;
    }
    return absl::nullopt;
  }

  // Where calls are long, the first of a hopeless config is its last. Where
  // they are short, checking comes first and costs nothing.
  Wrong CallFirst() {
    const proto::SamplingOptions& sampling = request_.sampling();
    Member& member = members_[0];
    if (members_.size() > 1 || member.runnable == nullptr ||
        member.contender->has_perturbation() ||
        !sampling.has_hopeless_above_ns() ||
        sampling.hopeless_above_ns() < kLongCallNs ||
        task_.operands().has_in_out()) {
      return absl::nullopt;
    }
    const auto timer = task_.MakeTimer(request_.input_seed(), *member.runnable);
    if (!timer.ok()) return TimerFailed(timer.status());
    const std::unique_ptr<ops::Monitor> monitor = task_.device().MakeMonitor();
    absl::StatusOr<Sampling> first =
        TakeFirstSample(sampling, **timer, *monitor);
    if (!first.ok()) return TimerFailed(first.status());
    monitor->Fill(first->measurement.mutable_conditions());
    (*timer)->Fill(&first->measurement);
    member.sampling = *first;
    first_ = *std::move(first);
    return absl::nullopt;
  }

  Wrong Check() {
    const int64_t start_ns = Clock::Real()->NowNs();
    // Where the device is far, it is timed meanwhile.
    const bool beside = task_.operands().far();
    for (Member& member : members_) {
      if (member.runnable == nullptr || member.contender->has_perturbation()) {
        continue;
      }
      auto results = task_.RunChecked(request_.input_seed(), *member.runnable);
      if (!results.ok()) return RunFailed(results.status());
      member.results = *std::move(results);
      member.error = Compared(*member.results, beside);
    }
    check_ns_ += Clock::Real()->NowNs() - start_ns;
    return beside ? absl::nullopt : AwaitErrors();
  }

  Wrong AwaitErrors() {
    const int64_t start_ns = Clock::Real()->NowNs();
    for (const Member& member : members_) {
      if (!member.error.valid() || member.error.get().ok()) continue;
      return EvaluationOf(proto::WRONG_RESULT,
                          member.error.get().status().message());
    }
    check_ns_ += Clock::Real()->NowNs() - start_ns;
    return absl::nullopt;
  }

  absl::Status MakeTimers() {
    for (size_t i = 0; i < members_.size(); ++i) {
      Member& member = members_[i];
      if (member.runnable == nullptr) {
        member.timer =
            std::make_unique<ElsewhereTimer>(static_cast<int>(i), elsewhere_);
        continue;
      }
      OPTRAIL_ASSIGN_OR_RETURN(
          member.timer, task_.MakeTimer(request_.input_seed(), *member.runnable,
                                        request_.zero_inputs(),
                                        member.contender->has_perturbation()
                                            ? &member.contender->perturbation()
                                            : nullptr));
    }
    return absl::OkStatus();
  }

  Wrong Sample() {
    const absl::Status timed = MakeTimers();
    const std::unique_ptr<ops::Monitor> monitor = task_.device().MakeMonitor();
    absl::StatusOr<std::vector<Sampling>> samplings;
    if (timed.ok()) {
      std::vector<ops::Timer*> timers;
      for (const Member& member : members_)
        timers.push_back(member.timer.get());
      samplings = TakeSamples(request_.sampling(), timers, *monitor,
                              first_ ? &*first_ : nullptr);
    }
    if (Wrong wrong = AwaitErrors()) return wrong;
    if (!timed.ok()) return TimerFailed(timed);
    if (!samplings.ok()) {
      return EvaluationOf(proto::LAUNCH_ERROR, samplings.status().message());
    }
    for (size_t i = 0; i < members_.size(); ++i) {
      Member& member = members_[i];
      member.sampling = std::move((*samplings)[i]);
      monitor->Fill(member.sampling.measurement.mutable_conditions());
      member.timer->Fill(&member.sampling.measurement);
      if (Wrong wrong = TooShort(member.sampling)) return wrong;
    }
    return Meter();
  }

  Wrong TooShort(const Sampling& sampling) const {
    if (task_.task().cache_mode() != proto::COLD ||
        sampling.outcome != proto::OK) {
      return absl::nullopt;
    }
    const std::string too_short = TooShortCold(sampling);
    if (too_short.empty()) return absl::nullopt;
    return EvaluationOf(proto::UNSUPPORTED, too_short);
  }

  Wrong Meter() {
    for (Member& member : members_) {
      if (member.runnable == nullptr || member.sampling.outcome != proto::OK) {
        continue;
      }
      const absl::Status metered =
          task_.Meter(request_.metering(), request_.zero_inputs(),
                      *member.timer, &member.sampling.measurement);
      if (!metered.ok()) return MeterFailed(metered);
    }
    return absl::nullopt;
  }

  // The timed calls are watched too: a kernel that is right once and then
  // tramples on its inputs is wrong.
  Wrong CheckAgain() {
    const int64_t start_ns = Clock::Real()->NowNs();
    if (const absl::Status sound = task_.CheckInputsAndGuards(); !sound.ok()) {
      return EvaluationOf(proto::WRONG_RESULT, sound.message());
    }
    for (const Member& member : members_) {
      if (!member.error.valid() || !MayWin(member)) continue;
      const absl::Status later =
          task_.CheckLaterCall(request_.input_seed(), *member.runnable);
      if (!later.ok()) return RunFailed(later);
    }
    check_ns_ += Clock::Real()->NowNs() - start_ns;
    return absl::nullopt;
  }

  // Hashes what was right, and tells whether it is batch-invariant.
  Wrong HashResults() {
    Member& member = members_[0];
    if (!request_.has_numerics_seed() || members_.size() > 1 ||
        member.sampling.outcome != proto::OK || !member.error.valid()) {
      return absl::nullopt;
    }
    const int64_t start_ns = Clock::Real()->NowNs();
    const auto bits =
        task_.BitsOfResults(request_.numerics_seed(), *member.runnable);
    if (!bits.ok()) return RunFailed(bits.status());
    auto& facts = *member.evaluation.mutable_trial()->mutable_facts();
    tuning::AddNumerics(*bits, &facts);
    const auto is_invariant = task_.IsBatchInvariant(
        request_.numerics_seed(),
        member.contender->has_backend() ? member.contender->backend()
                                        : task_.task().backend(),
        member.contender->config(), *member.runnable);
    if (!is_invariant.ok()) return RunFailed(is_invariant.status());
    if (is_invariant->has_value()) {
      tuning::AddBatchInvariance(**is_invariant, &facts);
    }
    check_ns_ += Clock::Real()->NowNs() - start_ns;
    return absl::nullopt;
  }

  // True if a decision may rest on it. On a device that is far, all of them
  // rest on contenders that are sampled together.
  bool MayWin(const Member& member) const {
    if (members_.size() > 1) return true;
    const proto::SamplingOptions& sampling = request_.sampling();
    return !task_.operands().far() &&
           (!sampling.has_hopeless_above_ns() ||
            member.sampling.time_ns <
                kNearlyBest * sampling.hopeless_above_ns());
  }

  std::vector<proto::Evaluation> Evaluations() {
    const auto count = static_cast<int64_t>(members_.size());
    const absl::optional<int64_t> busy_ns = task_.device().busy_ns();
    std::vector<proto::Evaluation> evaluations;
    for (Member& member : members_) {
      proto::Trial& trial = *member.evaluation.mutable_trial();
      if (member.error.valid()) {
        trial.set_error_in_tolerances(*member.error.get());
      }
      proto::Effort& effort = *trial.mutable_effort();
      effort.set_check_ns(check_ns_ / count);
      if (busy_ns && busy_before_ns_) {
        effort.set_busy_ns((*busy_ns - *busy_before_ns_) / count);
      }
      Sampling& sampling = member.sampling;
      trial.set_outcome(sampling.outcome);
      if (sampling.outcome != proto::CONTENDED) {
        trial.set_time_ns(sampling.time_ns);
      } else if (const std::string active =
                     ops::FindNeighbours(task_.device()).active;
                 !active.empty()) {
        trial.set_detail(
            absl::StrCat(active, " computed on this device meanwhile"));
      }
      sampling.measurement.set_started_unix_ns(started_unix_ns_);
      proto::Conditions& conditions =
          *sampling.measurement.mutable_conditions();
      conditions.set_page_bytes(task_.operands().page_bytes());
      conditions.set_host(HostName());
      conditions.set_device_uuid(task_.device().uuid());
      *trial.add_measurements() = std::move(sampling.measurement);
      evaluations.push_back(std::move(member.evaluation));
    }
    return evaluations;
  }

  const proto::WorkerRequest::Evaluate& request_;
  OpenedTask& task_;
  const TimeElsewhere& elsewhere_;
  std::vector<Member> members_;
  absl::optional<Sampling> first_;
  int64_t started_unix_ns_ = 0;
  absl::optional<int64_t> busy_before_ns_;
  int64_t check_ns_ = 0;
};

}  // namespace

std::string TooShortCold(const Sampling& sampling) {
  if (sampling.time_ns * sampling.measurement.calls_per_sample() >=
      kMinColdSampleNs) {
    return "";
  }
  return absl::StrCat("a call takes ", sampling.time_ns,
                      " ns, too short to be timed with cold caches (at least ",
                      kMinColdSampleNs, " ns)");
}

std::vector<proto::Evaluation> Measure(
    const proto::WorkerRequest::Evaluate& request, OpenedTask& task,
    const TimeElsewhere& elsewhere) {
  if (request.contenders().empty()) {
    return {EvaluationOf(proto::INVALID, "nothing was requested")};
  }
  return Measuring(request, task, elsewhere).Run();
}

}  // namespace optrail::suites

#ifndef OPTRAIL_TUNING_SESSION_EVALUATOR_H_
#define OPTRAIL_TUNING_SESSION_EVALUATOR_H_

// Evaluator is where the configs of a session are tried: worker processes, any
// command line, a recording, a table in a test. It is told what to try and
// answers when it can; nobody waits in between.
//
//   OPTRAIL_ASSIGN_OR_RETURN(const Offer offer, evaluator.Open(task));
//   evaluator.Submit(request);
//   for (Answer& answer : evaluator.Poll(absl::InfiniteDuration())) ...
//
// It does not choose, compare or store anything: session.h does.

#include <cstdint>
#include <deque>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "tuning/proto/config.pb.h"
#include "tuning/proto/trial.pb.h"

namespace optrail::tuning {

// The purpose of a reading. The recorded gain comes from kProve alone.
enum class Purpose { kSearch, kRank, kProve };

struct Request {
  int64_t ticket = 0;  // the journal's name for it; rises
  proto::Config config;
  Purpose purpose = Purpose::kSearch;
  // Search: how many trials came before. Else the round: what is read in one
  // round shares its conditions (one fresh process that measures nothing else,
  // one set of inputs), and no two rounds do.
  int64_t round = 0;
  // How many readings of the round are asked for at once, this one included:
  // they may be taken together, once all of them are here.
  int of_round = 1;
  // What is to be read; the first is raced on.
  std::vector<std::string> metrics;
  // The costly ones among them (Offer) are read only of what takes less time
  // than this; absent: of everything.
  absl::optional<double> meter_below_ns;
  // In the first metric, which is to be minimised: what is surely beyond is
  // answered CENSORED, as soon as that is seen.
  absl::optional<double> hopeless_above;
  // What a reading is known to take, if it is: long ones are not repeated
  // beyond what the decision needs.
  absl::optional<double> expected;
  // Search: the config that took that, the best so far, for evaluators that can
  // compare the two more cheaply than by reading the new one.
  absl::optional<proto::Config> best;
};

struct Answer {
  int64_t ticket = 0;
  proto::Trial trial;  // config, outcome, measurements, objectives, elapsed_ns
  // Nobody knows what became of the request (a machine or a connection went
  // away, as the trial's detail says): it says nothing of the config, and is
  // submitted again.
  bool lost = false;
  // The part of the time since the last answer that no budget pays for
  // (references).
  int64_t unpaid_ns = 0;
};

struct Offer {
  // Requests that may wait, compiled, while others are measured.
  int compile_ahead = 0;
  // Requests that are measured at the same time. They belong to the device:
  // more than one only where they do not disturb each other.
  int measure_slots = 1;
  // What waits is begun before the session has thought about the answer before
  // it: readings that belong together are asked for at once.
  bool begins_ahead = false;
  // Metrics that take seconds to read where time takes milliseconds: a search
  // reads them of few configs (metering.h).
  std::vector<std::string> costly_metrics;
  // The nodes that measure, where they say who they are.
  std::vector<proto::MeasuringNode> nodes;
};

class Evaluator {
 public:
  virtual ~Evaluator() = default;
  // Called once, before the first request. Refuses, by name, what does not
  // match the task (another build, another hardware).
  virtual absl::StatusOr<Offer> Open(const proto::Task& task) = 0;
  // Never blocks.
  virtual void Submit(Request request) = 0;
  // What has finished, in any order; waits up to `wait` for the first. Empty
  // only if nothing finished in time or nothing is under way.
  virtual std::vector<Answer> Poll(absl::Duration wait) = 0;
  // Whether Poll() would have something to do, as far as that is known. False:
  // all that was submitted is still being compiled, or what measures it opened.
  virtual bool IsReady() { return true; }
  // A descriptor that becomes readable when Poll() has something to do; -1:
  // nobody knows, poll it.
  virtual int ReadableFd() const { return -1; }
  // The nodes that went away since the last call, with the reason as `detail`.
  virtual std::vector<proto::MeasuringNode> TakeLostNodes() { return {}; }
  // The answer is not wanted any more, and may come all the same.
  virtual void Cancel(int64_t ticket) = 0;
  // After Open(): an earlier sitting read finalists on this node, and the rest
  // is to be read there, too. FailedPrecondition: it is not among the nodes.
  // Evaluators whose samples name no host are never asked.
  virtual absl::Status ProveOn(const std::string& host,
                               const std::string& device_uuid) {
    return absl::OkStatus();
  }
};

// An evaluator that does one thing at a time, when it is polled.
class OneAtATime : public Evaluator {
 public:
  absl::StatusOr<Offer> Open(const proto::Task&) override { return Offer(); }
  void Submit(Request request) override {
    queue_.push_back(std::move(request));
  }
  std::vector<Answer> Poll(absl::Duration) override {
    if (queue_.empty()) return {};
    const Request request = std::move(queue_.front());
    queue_.pop_front();
    Answer answer = Evaluate(request);
    answer.ticket = request.ticket;
    *answer.trial.mutable_config() = request.config;
    return {std::move(answer)};
  }
  void Cancel(int64_t ticket) override {
    for (auto it = queue_.begin(); it != queue_.end(); ++it) {
      if (it->ticket != ticket) continue;
      queue_.erase(it);
      return;
    }
  }

 protected:
  // All of the answer but ticket and config.
  virtual Answer Evaluate(const Request& request) = 0;

 private:
  std::deque<Request> queue_;
};

}  // namespace optrail::tuning

#endif  // OPTRAIL_TUNING_SESSION_EVALUATOR_H_

#ifndef OPTRAIL_TUNING_SESSION_EVALUATOR_H_
#define OPTRAIL_TUNING_SESSION_EVALUATOR_H_

// Evaluator is where the configs of a session are tried: worker processes, any
// command line, a recording, a table in a test. It is told what to try and
// answers when it can; nobody waits in between.
//
//   OPTRAIL_ASSIGN_OR_RETURN(const Offer offer, evaluator.Open(task));
//   evaluator.Submit(request);
//   for (Evaluation& answer : evaluator.Poll(absl::InfiniteDuration())) ...
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
#include "tuning/proto/evaluator.pb.h"
#include "tuning/proto/trial.pb.h"

namespace optrail::tuning {

// Their fields are told in tuning/proto/evaluator.proto: the same messages
// travel where the evaluator is elsewhere.
using proto::Evaluation;
using Request = proto::EvaluationRequest;
using Purpose = Request::Purpose;
using Offer = proto::EvaluatorOffer;

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
  virtual std::vector<Evaluation> Poll(absl::Duration wait) = 0;
  // Whether Poll() would have something to do, as far as that is known. False:
  // all that was submitted is still being compiled, or what measures it opened.
  virtual bool IsReady() { return true; }
  // A descriptor that becomes readable when Poll() has something to do; -1:
  // nobody knows, poll it.
  virtual int ReadableFd() const { return -1; }
  // The nodes that went away since the last call, with their lost_because.
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
  std::vector<Evaluation> Poll(absl::Duration) override {
    if (queue_.empty()) return {};
    const Request request = std::move(queue_.front());
    queue_.pop_front();
    Evaluation answer = Evaluate(request);
    answer.set_ticket(request.ticket());
    *answer.mutable_trial()->mutable_config() = request.config();
    return {std::move(answer)};
  }
  void Cancel(int64_t ticket) override {
    for (auto it = queue_.begin(); it != queue_.end(); ++it) {
      if (it->ticket() != ticket) continue;
      queue_.erase(it);
      return;
    }
  }

 protected:
  // All of the answer but ticket and config.
  virtual Evaluation Evaluate(const Request& request) = 0;

 private:
  std::deque<Request> queue_;
};

}  // namespace optrail::tuning

#endif  // OPTRAIL_TUNING_SESSION_EVALUATOR_H_

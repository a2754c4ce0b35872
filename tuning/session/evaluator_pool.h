#ifndef OPTRAIL_TUNING_SESSION_EVALUATOR_POOL_H_
#define OPTRAIL_TUNING_SESSION_EVALUATOR_POOL_H_

// EvaluatorPool is several nodes as one evaluator: a session searches on all
// that are equal, and ranks and proves its finalists on one of them.
//
//   std::vector<EvaluatorPool::Member> members;
//   for (const std::string& name : {"gpu7:7070", "gpu8:7070"}) {
//     members.push_back({name, std::make_unique<RemoteEvaluator>(
//                                  name, Connect(name), expected)});
//   }
//   EvaluatorPool pool(std::move(members), default_config, *Clock::Real(),
//   say); RunSession(setup, pool, *Clock::Real());
//
// On Open every node reads the default config in fresh processes, all at the
// same time. A node that differs from the others is reported and left out
// (node_calibration.h), and so is one that nobody answers at, or that is silent
// for five minutes; no budget pays for these readings. Nodes open in the order
// of their names, so that two sessions over the same nodes never wait for each
// other in a circle.
//
// A node that goes away during the search is left out from then on, what it had
// in flight goes to another one, and the session keeps that (TakeLostNodes). So
// is one that has been silent for five
// minutes and ten times its longest silence so far. The node that proves is
// never replaced while finalists are read: the session resumes once it is back.
//
// One thread at a time.

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "tuning/proto/config.pb.h"
#include "tuning/proto/trial.pb.h"
#include "tuning/session/evaluator.h"
#include "tuning/session/node_calibration.h"

namespace optrail::tuning {

class EvaluatorPool : public Evaluator {
 public:
  struct Member {
    std::string name;  // unique
    std::unique_ptr<Evaluator> evaluator;
  };

  // At least one member. `calibration` is the config that all nodes read;
  // `clock` must outlive the pool; `say` may be empty.
  EvaluatorPool(std::vector<Member> members, proto::Config calibration,
                Clock& clock, std::function<void(const std::string&)> say);

  // FailedPrecondition: a node refuses the task, or is of another hardware.
  // Unavailable: nobody answers anywhere.
  absl::StatusOr<Offer> Open(const proto::Task& task) override;
  void Submit(Request request) override;
  std::vector<Evaluation> Poll(absl::Duration wait) override;
  bool IsReady() override;
  std::vector<proto::MeasuringNode> TakeLostNodes() override;
  void Cancel(int64_t ticket) override;
  absl::Status ProveOn(const std::string& host,
                       const std::string& device_uuid) override;

 private:
  struct Node {
    Member member;
    Offer offer;
    bool reached = false;
    bool searches = false;
    bool gone = false;
    int in_flight = 0;
    int64_t heard_ns = 0;    // the last answer, or what was submitted after it
    int64_t longest_ns = 0;  // silence that ended with an answer
  };
  struct Held {
    int node = 0;
    Request request;
  };

  absl::Status OpenAll(const proto::Task& task, NodeCalibration* calibration);
  // Readings until the nodes can be compared.
  NodeComparison Calibrate(NodeCalibration* calibration);
  void CalibrateOnce(int round, NodeCalibration* calibration);
  void Say(const std::string& what) const;
  // The node with the least to do; -1: none is left.
  int NodeForSearch() const;
  void SubmitTo(int node, Request request);
  // Leaves out the nodes of `reading` that did not answer in time.
  void LeaveOutSilent(int round, const std::vector<int>& reading,
                      NodeCalibration* calibration);
  // Returns the answers that are there on any node, and waits for none. Looks
  // for silent nodes now and then.
  std::vector<Evaluation> Sweep();
  // Gives what a node had in flight to others if it was silent for far longer
  // than ever before: a connection may stall without an end.
  void LeaveSilentNodes();
  // False: no other node is left.
  bool GiveToAnother(int node, Held held, const std::string& why);
  // Takes one over, or gives what it asked for to another node.
  void Take(int node, Evaluation answer, std::vector<Evaluation>* answers);
  // Waits until one of these nodes may have finished something.
  void Await(const std::vector<int>& nodes, absl::Duration wait) const;

  std::vector<Node> nodes_;
  const proto::Config calibration_;
  Clock& clock_;
  const std::function<void(const std::string&)> say_;
  std::vector<proto::MeasuringNode> identities_;
  std::vector<proto::MeasuringNode> lost_;  // since they were taken
  int prover_ = 0;
  std::map<int64_t, Held> held_;  // by ticket
  int64_t answered_ns_ = 0;       // when the last answer came
  int64_t looked_ns_ = 0;         // when silent nodes were looked for last
};

}  // namespace optrail::tuning

#endif  // OPTRAIL_TUNING_SESSION_EVALUATOR_POOL_H_

#ifndef OPTRAIL_TUNING_COMMAND_COMMAND_SLOTS_H_
#define OPTRAIL_TUNING_COMMAND_COMMAND_SLOTS_H_

// CommandSlots is what a tuning session (tuning/session/session.h) measures
// with when a command is tuned: as many runs at the same time as there are
// slots, each an answer when it ends.
//
//   const CommandEvaluator command(filled, metrics, limits);
//   CommandSlots evaluator(command, /*slots=*/4);

#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>
#include <vector>

#include "tuning/command/command_evaluator.h"
#include "tuning/session/evaluator.h"

namespace optrail::tuning {

class CommandSlots : public Evaluator {
 public:
  // `command` must outlive this.
  CommandSlots(const CommandEvaluator& command, int slots);
  // Waits for the runs under way.
  ~CommandSlots() override;

  absl::StatusOr<Offer> Open(const proto::Task& task) override;
  void Submit(Request request) override;
  std::vector<Answer> Poll(absl::Duration wait) override;
  // A run under way goes on, and its answer is dropped.
  void Cancel(int64_t ticket) override;

 private:
  void Work();

  const CommandEvaluator& command_;
  const int slots_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Request> waiting_;
  std::vector<int64_t> running_;
  std::vector<int64_t> cancelled_;
  std::vector<Answer> answers_;
  bool ending_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace optrail::tuning

#endif  // OPTRAIL_TUNING_COMMAND_COMMAND_SLOTS_H_

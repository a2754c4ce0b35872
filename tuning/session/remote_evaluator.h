#ifndef OPTRAIL_TUNING_SESSION_REMOTE_EVALUATOR_H_
#define OPTRAIL_TUNING_SESSION_REMOTE_EVALUATOR_H_

// An evaluator that is elsewhere: in another process behind a pipe, on another
// machine behind a socket. A session sees no difference, to the byte.
//
//   // Here:
//   RemoteEvaluator evaluator("gpu7:7070", connect, expected);
//   RunSession(setup, evaluator, clock);
//   // There:
//   ServeEvaluator(channel, local_evaluator, who);
//
// On Open the other side says who it is; another build, or other hardware than
// the task's, is refused by name. A connection that breaks loses what was in
// flight: the session submits it again, over a new connection.
//
// It starts nothing and encrypts nothing (base/process/socket.h).

#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/process/subprocess.h"
#include "tuning/proto/evaluator.pb.h"
#include "tuning/session/evaluator.h"

namespace optrail::tuning {

using ConnectFunction =
    std::function<absl::StatusOr<std::unique_ptr<FrameChannel>>()>;

// Tells whether a session waits or loses its worker if a connection broke and
// the worker serves another session by the time there is a new one. A session
// that holds other workers must lose: the one that is served may wait for
// those.
enum class IfOccupied { kWait, kLose };

class RemoteEvaluator : public Evaluator {
 public:
  // `name` is for messages. Of `expected`, what is set must be what the other
  // side says: the fingerprint of the binary, the id of the hardware, each
  // kernel id, and how it measures. `say` is told why a session does not begin
  // yet; may be empty. Open() waits for its turn, and `if_occupied` says
  // whether a connection in place of a broken one does.
  RemoteEvaluator(std::string name, ConnectFunction connect,
                  proto::WorkerIdentity expected,
                  std::function<void(const std::string&)> say = {},
                  IfOccupied if_occupied = IfOccupied::kWait);

  // FailedPrecondition: it is not who it should be, or refuses the task.
  // Unavailable: nobody answers.
  absl::StatusOr<Offer> Open(const proto::Task& task) override;
  void Submit(Request request) override;
  std::vector<Evaluation> Poll(absl::Duration wait) override;
  void Cancel(int64_t ticket) override;
  absl::Status ProveOn(const std::string& host,
                       const std::string& device_uuid) override;
  int ReadableFd() const override {
    return channel_ == nullptr ? -1 : channel_->read_fd();
  }

 private:
  absl::StatusOr<Offer> Connect(IfOccupied if_occupied);
  absl::Status Check(const proto::WorkerIdentity& who) const;
  // Closes the connection, unless all is well.
  void Break(const absl::Status& status);
  std::vector<Evaluation> Lose();

  const std::string name_;
  const ConnectFunction connect_;
  const proto::WorkerIdentity expected_;
  const std::function<void(const std::string&)> say_;
  const IfOccupied if_occupied_;
  proto::Task task_;
  std::string host_;  // "": it did not say
  std::unique_ptr<FrameChannel> channel_;
  absl::Status broken_;  // why there is none any more
  std::set<int64_t> in_flight_;
};

// Tells a driver that has connected how many sessions are served before its
// own. This is the first message on a connection.
absl::Status TellToWait(FrameChannel& channel, int sessions_before);

// Answers one session until it closes the connection: OK. Other errors are
// those of the connection, or a message that is none.
absl::Status ServeEvaluator(FrameChannel& channel, Evaluator& evaluator,
                            const proto::WorkerIdentity& who);

}  // namespace optrail::tuning

#endif  // OPTRAIL_TUNING_SESSION_REMOTE_EVALUATOR_H_

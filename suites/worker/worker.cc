#include "suites/worker/worker.h"

#include <cstring>
#include <iostream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "base/exit_code.h"
#include "base/process/process_guard.h"
#include "base/process/subprocess.h"
#include "base/status_macros.h"
#include "ops/core/neighbours.h"
#include "suites/proto/worker.pb.h"
#include "suites/worker/measure.h"
#include "suites/worker/opened_task.h"
#include "suites/worker/worker_reply.h"

namespace optrail::suites {
namespace {

absl::StatusOr<proto::WorkerRequest> ReadRequest(FrameChannel& channel) {
  OPTRAIL_ASSIGN_OR_RETURN(const std::string frame, channel.Read());
  proto::WorkerRequest request;
  if (request.ParseFromString(frame)) return request;
  return absl::DataLossError("unreadable request");
}

class Worker {
 public:
  explicit Worker(FrameChannel& channel) : channel_(channel) {}

  std::vector<proto::Evaluation> Answer(const proto::WorkerRequest& request) {
    if (request.has_open()) {
      const absl::Status status = task_.Open(request.open());
      return {status.ok() ? EvaluationOf(proto::OK) : PrepareFailed(status)};
    }
    if (request.has_compile()) return {Compile(request.compile())};
    if (!task_.is_open()) {
      return {EvaluationOf(proto::LAUNCH_ERROR, "no task was opened")};
    }
    if (request.has_make_ready()) {
      const absl::Status status =
          task_.MakeReady(request.make_ready().input_seeds());
      return {status.ok()
                  ? EvaluationOf(proto::OK)
                  : EvaluationOf(proto::LAUNCH_ERROR, status.message())};
    }
    return InTurn([&]() -> std::vector<proto::Evaluation> {
      if (request.has_profile()) return {task_.Profile(request.profile())};
      return Measure(request.evaluate(), task_,
                     [this](int contender, int64_t calls) {
                       return AskElsewhere(contender, calls);
                     });
    });
  }

 private:
  // Runs `evaluate` once the device is this process's.
  std::vector<proto::Evaluation> InTurn(
      absl::FunctionRef<std::vector<proto::Evaluation>()> evaluate) {
    const int64_t start_ns = Clock::Real()->NowNs();
    bool waited = false;
    const std::unique_ptr<ops::Turn> turn = task_.device().TakeTurn([&] {
      waited = true;
      const std::string active = ops::FindNeighbours(task_.device()).active;
      TellTurn(proto::WorkerReply::WAITS,
               active.empty()
                   ? "waits for another session, which measures on this device"
                   : absl::StrCat("waits until ", active,
                                  " no longer computes on this device"));
    });
    const int64_t turn_ns = Clock::Real()->NowNs() - start_ns;
    if (waited) TellTurn(proto::WorkerReply::HAS_IT, "");
    if (const std::string idle = ops::FindNeighbours(task_.device()).idle;
        !idle.empty()) {
      TellTurn(proto::WorkerReply::HAS_IT,
               absl::StrCat(idle,
                            ": has this device open, computes nothing, "
                            "and is ignored"));
    }
    std::vector<proto::Evaluation> evaluations = evaluate();
    if (waited) {
      evaluations[0].mutable_trial()->mutable_effort()->set_turn_ns(turn_ns);
    }
    return evaluations;
  }

  void TellTurn(proto::WorkerReply::Turn turn, const std::string& note) {
    proto::WorkerReply reply;
    reply.set_turn(turn);
    reply.set_note(note);
    Tell(reply);
  }

  // If nobody listens any more, the reply is going to fail, too.
  void Tell(const proto::WorkerReply& reply) {
    (void)channel_.Write(reply.SerializeAsString());
  }

  absl::StatusOr<int64_t> AskElsewhere(int contender, int64_t calls) {
    proto::WorkerReply question;
    question.mutable_ask_elsewhere()->set_contender(contender);
    question.mutable_ask_elsewhere()->set_calls(calls);
    Tell(question);
    OPTRAIL_ASSIGN_OR_RETURN(const proto::WorkerRequest answer,
                             ReadRequest(channel_));
    if (!answer.has_timed_elsewhere()) {
      return absl::InvalidArgumentError(
          "another request than the answer of another program");
    }
    const proto::WorkerRequest::TimedElsewhere& timed =
        answer.timed_elsewhere();
    if (!timed.error().empty()) return absl::InternalError(timed.error());
    return timed.elapsed_ns();
  }

  FrameChannel& channel_;
  OpenedTask task_;
};

}  // namespace

bool IsWorker(int argc, char** argv) {
  return (argc == 2 && std::strcmp(argv[1], kWorkerFlag) == 0) ||
         IsProcessGuard(argc, argv);
}

int RunWorker(int argc, char** argv) {
  if (IsProcessGuard(argc, argv)) return RunProcessGuard(argc, argv);
  DieWithParent();
  absl::StatusOr<std::unique_ptr<FrameChannel>> channel =
      FrameChannel::TakeStandardStreams();
  if (!channel.ok()) {
    std::cerr << "worker: " << channel.status().message() << "\n";
    return ToInt(ExitCode::kBadInput);
  }
  Worker worker(**channel);
  while (true) {
    const absl::StatusOr<proto::WorkerRequest> request = ReadRequest(**channel);
    if (absl::IsOutOfRange(request.status())) return 0;
    if (!request.ok()) {
      std::cerr << "worker: unreadable request\n";
      return ToInt(ExitCode::kBadInput);
    }
    proto::WorkerReply reply;
    for (proto::Evaluation& evaluation : worker.Answer(*request)) {
      *reply.add_evaluations() = std::move(evaluation);
    }
    const absl::Status sent = (*channel)->Write(reply.SerializeAsString());
    if (!sent.ok()) return ToInt(ExitCode::kBadInput);
  }
}

}  // namespace optrail::suites

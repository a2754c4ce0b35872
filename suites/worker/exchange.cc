#include "suites/worker/exchange.h"

#include <iostream>
#include <set>

#include "absl/base/const_init.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "absl/synchronization/mutex.h"
#include "suites/worker/worker.h"

namespace optrail::suites {
namespace {

// Between closing its output and the end of a process.
constexpr absl::Duration kEndPatience = absl::Seconds(2);

// A worker beside builds with priority may get a tenth of a core.
constexpr double kDeadlineStretch = 10;

proto::Evaluation Ended(const ExitInfo& exit, absl::string_view stderr_tail,
                        absl::Duration deadline, int64_t memory_cap_bytes) {
  proto::Outcome outcome = exit.max_resident_bytes > memory_cap_bytes * 9 / 10
                               ? proto::OUT_OF_MEMORY
                               : proto::CRASHED;
  switch (exit.kind) {
    case ExitInfo::Kind::kTimedOut:
    case ExitInfo::Kind::kKilled:
      return EvaluationOf(
          proto::TIMED_OUT,
          absl::StrCat("no answer within ", absl::FormatDuration(deadline),
                       " beside waits for a core; the worker was killed"));
    case ExitInfo::Kind::kOutOfMemory:
    case ExitInfo::Kind::kMachineOutOfMemory:
      outcome = proto::OUT_OF_MEMORY;
      break;
    default:
      break;
  }
  const absl::string_view tail = absl::StripSuffix(stderr_tail, "\n");
  return EvaluationOf(outcome, absl::StrCat("the worker ", exit.ToString(),
                                            tail.empty() ? "" : ": ", tail));
}

}  // namespace

absl::StatusOr<std::unique_ptr<Subprocess>> StartWorkerProcess(
    const std::string& binary, const SubprocessOptions& options) {
  SubprocessOptions stretched = options;
  stretched.deadline_stretch = kDeadlineStretch;
  return Subprocess::Start({binary, kWorkerFlag}, stretched);
}

namespace {

Exchanged EndedInstead(const absl::Status& why, absl::Duration deadline,
                       int64_t memory_cap_bytes, Subprocess& process) {
  // A worker that ended by itself is reported as it ended. What it wrote to
  // ends before it does.
  const bool ended =
      !absl::IsDeadlineExceeded(why) && !absl::IsResourceExhausted(why);
  const ExitInfo exit =
      ended ? process.Wait(kEndPatience) : process.KillAndWait();
  Exchanged exchanged;
  exchanged.evaluations = {
      Ended(exit, process.TakeStderr(), deadline, memory_cap_bytes)};
  return exchanged;
}

proto::WorkerRequest TimedElsewhere(const proto::WorkerReply::AskElsewhere& ask,
                                    const TimeElsewhere& elsewhere) {
  proto::WorkerRequest request;
  proto::WorkerRequest::TimedElsewhere& timed =
      *request.mutable_timed_elsewhere();
  const absl::StatusOr<int64_t> elapsed_ns =
      elsewhere ? elsewhere(ask.contender(), ask.calls())
                : absl::InvalidArgumentError("nothing is computed elsewhere");
  if (elapsed_ns.ok()) {
    timed.set_elapsed_ns(*elapsed_ns);
  } else {
    timed.set_error(elapsed_ns.status().ToString());
  }
  return request;
}

// Many processes of a command wait for the same.
void SayOnce(const std::string& note) {
  static absl::Mutex mutex(absl::kConstInit);
  static auto* const said = new std::set<std::string>();
  const absl::MutexLock lock(&mutex);
  if (note.empty() || !said->insert(note).second) return;
  std::cerr << "note: " << note << "\n";
}

// While it waits for its turn, or for what is elsewhere, no deadline runs.
Exchanged Answer(absl::Duration deadline, int64_t memory_cap_bytes,
                 Subprocess& process, const TimeElsewhere& elsewhere) {
  absl::Duration patience = deadline;
  while (true) {
    const absl::StatusOr<std::string> frame = process.ReadFrame(patience);
    proto::WorkerReply reply;
    if (!frame.ok() || !reply.ParseFromString(*frame)) {
      return EndedInstead(frame.status(), deadline, memory_cap_bytes, process);
    }
    if (!reply.evaluations().empty()) {
      return {true, {reply.evaluations().begin(), reply.evaluations().end()}};
    }
    if (reply.has_ask_elsewhere()) {
      const std::string told =
          TimedElsewhere(reply.ask_elsewhere(), elsewhere).SerializeAsString();
      const absl::Status sent = process.WriteFrame(told, deadline);
      if (sent.ok()) continue;
      return EndedInstead(sent, deadline, memory_cap_bytes, process);
    }
    SayOnce(reply.note());
    patience = reply.turn() == proto::WorkerReply::WAITS
                   ? absl::InfiniteDuration()
                   : deadline;
  }
}

}  // namespace

Exchanged Exchange(const proto::WorkerRequest& request, absl::Duration deadline,
                   int64_t memory_cap_bytes, Subprocess& process,
                   const TimeElsewhere& elsewhere) {
  const absl::Status sent =
      process.WriteFrame(request.SerializeAsString(), deadline);
  if (sent.ok()) return Answer(deadline, memory_cap_bytes, process, elsewhere);
  return EndedInstead(sent, deadline, memory_cap_bytes, process);
}

Exchanged Receive(absl::Duration deadline, int64_t memory_cap_bytes,
                  Subprocess& process) {
  return Answer(deadline, memory_cap_bytes, process, {});
}

}  // namespace optrail::suites

#ifndef OPTRAIL_SUITES_WORKER_EXCHANGE_H_
#define OPTRAIL_SUITES_WORKER_EXCHANGE_H_

// One request to a worker process and its reply, or the outcome that stands for
// how the process ended instead.
//
//   OPTRAIL_ASSIGN_OR_RETURN(auto process,
//                            StartWorkerProcess(binary, options));
//   const Exchanged answer =
//       Exchange(request, deadline, max_bytes, *process);
//   if (!answer.answered) process.reset();

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/process/subprocess.h"
#include "suites/proto/worker.pb.h"
#include "suites/worker/worker_reply.h"

namespace optrail::suites {

inline constexpr int64_t kMaxWorkerStderrBytes = 2000;

// `binary`: "/proc/self/exe" for the running one. Its deadlines do not count
// what it waits for a core, to ten times themselves.
absl::StatusOr<std::unique_ptr<Subprocess>> StartWorkerProcess(
    const std::string& binary, const SubprocessOptions& options);

struct Exchanged {
  // False: the process has ended. One evaluation says CRASHED, TIMED_OUT or
  // OUT_OF_MEMORY then.
  bool answered = false;
  std::vector<proto::Evaluation> evaluations;  // at least one
};

// A process that died near `memory_cap_bytes` most likely failed to allocate,
// whatever it then did about that. `elsewhere` is asked what it asks meanwhile.
Exchanged Exchange(const proto::WorkerRequest& request, absl::Duration deadline,
                   int64_t memory_cap_bytes, Subprocess& process,
                   const TimeElsewhere& elsewhere = {});

// The second half of it: the reply to a request that was written before.
Exchanged Receive(absl::Duration deadline, int64_t memory_cap_bytes,
                  Subprocess& process);

}  // namespace optrail::suites

#endif  // OPTRAIL_SUITES_WORKER_EXCHANGE_H_

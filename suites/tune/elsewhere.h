#ifndef OPTRAIL_SUITES_TUNE_ELSEWHERE_H_
#define OPTRAIL_SUITES_TUNE_ELSEWHERE_H_

// Sessions whose configs are measured by another process, on this machine or on
// one like it: `optrail worker` serves, `optrail tune --worker=ADDRESS` asks.
//
//   // There:
//   ServeOptions serve;
//   serve.address = "unix:/run/user/1000/worker";
//   return ServeSessions(serve, std::cerr);            // until it is killed
//   // Here:
//   setup.elsewhere = [&] {
//     return EvaluatorAt({address}, ExpectedOf(task, sampling, options),
//                        space.default_config());
//   };
//
// Both are the same build on the same kind of hardware, with the same settings:
// who is not is refused by name. One session is served at a time, since what is
// measured at the same time disturbs each other; others are told, and wait for
// their turn. If either side is killed, the journal of the session, which is
// the driver's, has everything that was answered.
//
// Several addresses are several nodes: the session searches on all that are
// equal, and ranks and proves on one (tuning/session/evaluator_pool.h).

#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "suites/proto/worker.pb.h"
#include "suites/worker/worker_evaluator.h"
#include "tuning/proto/config.pb.h"
#include "tuning/proto/evaluator.pb.h"
#include "tuning/proto/trial.pb.h"
#include "tuning/session/evaluator.h"

namespace optrail::suites {

struct ServeOptions {
  std::string address;  // base/process/socket.h
  proto::DeviceKind device = proto::CPU;
  proto::SamplingOptions sampling;
  WorkerOptions worker;
};

// Serves one session after another; returns only if it can't listen. Says in
// `log` when it is ready, and who came.
absl::Status ServeSessions(const ServeOptions& options, std::ostream& log);

// Who this process is to a driver: every kernel that can run here.
absl::StatusOr<proto::WorkerIdentity> IdentityHere(const ServeOptions& options);

// Who may measure `task` for this process.
proto::WorkerIdentity ExpectedOf(const proto::Task& task,
                                 const proto::SamplingOptions& sampling,
                                 const WorkerOptions& worker);

// Measures at these addresses, at least one; says on stderr when it has to wait
// for its turn, and how several nodes compare by the default config.
std::unique_ptr<tuning::Evaluator> EvaluatorAt(
    const std::vector<std::string>& addresses, proto::WorkerIdentity expected,
    const proto::Config& default_config);

// The addresses of --worker, parted by commas. InvalidArgument for one that is
// no address, or is there twice.
absl::StatusOr<std::vector<std::string>> ParseWorkerAddresses(
    absl::string_view text);

}  // namespace optrail::suites

#endif  // OPTRAIL_SUITES_TUNE_ELSEWHERE_H_

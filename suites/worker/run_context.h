#ifndef OPTRAIL_SUITES_WORKER_RUN_CONTEXT_H_
#define OPTRAIL_SUITES_WORKER_RUN_CONTEXT_H_

// Where and when this process runs: what every run and session records of its
// surroundings, and where history, store and journals are.

#include <string>

#include "absl/status/statusor.h"
#include "tuning/proto/context.pb.h"

namespace optrail::suites {

struct RunContext {
  std::string workspace;  // where `bazel run` was called, else the current one
  std::string history;    // folders
  std::string store;
  std::string state;  // journals of unfinished sessions, measured ceilings

  proto::Hardware hardware;
  proto::Toolchain toolchain;
  proto::Commit commit;
  // Why there is no commit, or what is wrong with it; for people.
  std::string commit_note;
};

// Empty `history` or `store` stand for .optrail/history and .optrail/store in
// the workspace; a relative path starts where the user is.
absl::StatusOr<RunContext> FindRunContext(proto::DeviceKind device,
                                          const std::string& history,
                                          const std::string& store);

// The same for a call that plans and measures nothing: opens no device, writes
// no file, and leaves out the commit. Where this machine has no device of the
// kind, the hardware is the one that the kind declares, and `note` says so.
absl::StatusOr<RunContext> PlanRunContext(proto::DeviceKind device,
                                          const std::string& history,
                                          const std::string& store,
                                          std::string* note);

// Ceilings of this hardware: measured now (it takes a second or two), and the
// highest readings of the last month, which are kept in the state folder.
proto::Ceilings CeilingsOf(const RunContext& context);

// The same, measured only where nobody did so within the last ten minutes, so
// that commands that follow one another measure once.
proto::Ceilings RecentCeilings(const RunContext& context);

// The same without measuring: what is kept, or an empty message.
proto::Ceilings KeptCeilings(const RunContext& context);

}  // namespace optrail::suites

#endif  // OPTRAIL_SUITES_WORKER_RUN_CONTEXT_H_

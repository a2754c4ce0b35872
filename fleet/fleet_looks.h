#ifndef OPTRAIL_FLEET_FLEET_LOOKS_H_
#define OPTRAIL_FLEET_FLEET_LOOKS_H_

// FleetLooks lets the pilots of a fleet measure the commits of a bisection,
// several at once: each look is a task, `optrail bisect GOOD COMMIT --look`,
// that builds and runs both sides on the machine of the pilot that took it.
//
//   FleetLooksOptions options;
//   options.at_once = 3;
//   options.flags = {"--build=make -s", "--run=./bench"};
//   FleetLooks looks(options, std::move(queue));
//   return tracker::RunBisectBy(command, *trees, looks, std::cout);
//
// A pilot that dies loses its lease, and another one takes the look. All looks
// of a turn are awaited before the search goes on, so that its answer does not
// depend on who is faster. What is still queued when an error or a signal ends
// the search is cancelled.

#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "fleet/queue.h"
#include "tracker/bisect/looks.h"

namespace optrail::fleet {

struct FleetLooksOptions {
  int at_once = 2;
  // The hardware of pilots that may look; "": that of the pilot that compares
  // the ends, since what is slower on one need not be on another.
  std::string hardware_id;
  // Flags of `bisect` that say what is built and measured, and what stands
  // behind "--".
  std::vector<std::string> flags, arguments;
  int priority = 0;
  int most_attempts = 3;
  absl::Duration time_limit = absl::Hours(2);  // of one look
  absl::Duration poll = absl::Seconds(1);
  // Asked at each poll: an error ends the search. May be empty.
  std::function<absl::Status()> may_go_on;
  std::function<void(const std::string&)> say;  // for people; may be empty
};

class FleetLooks : public tracker::Looks {
 public:
  FleetLooks(FleetLooksOptions options, JobQueue queue);

  int at_once() const override { return options_.at_once; }
  // Unavailable: the database is away for long. FailedPrecondition: a look
  // failed, with the end of its log.
  absl::StatusOr<absl::optional<tracker::SlowerBenchmark>> CompareEnds(
      const std::string& good, const std::string& bad) override;
  absl::StatusOr<std::vector<tracker::Look>> LookAt(
      const std::vector<tracker::LookRequest>& requests,
      const tracker::SlowerBenchmark& at) override;
  int builds() const override { return builds_; }

 private:
  // Submits these as one job and waits: the last line that each has said, in
  // their order.
  absl::StatusOr<std::vector<std::string>> RunAll(
      const std::string& name, const std::vector<std::string>& commands);
  absl::StatusOr<std::vector<std::string>> Await(int64_t job);
  absl::StatusOr<int64_t> SubmitPatiently(const JobRequest& request);
  // Says once that nobody takes the tasks, after a while.
  void SayIfNobodyIsThere(const std::vector<TaskResult>& tasks,
                          absl::Duration submitted);
  absl::StatusOr<std::string> CommandOf(
      const std::string& good, const std::string& other, const char* look,
      const std::vector<std::string>& flags) const;
  void Say(const std::string& what) const;

  const FleetLooksOptions options_;
  JobQueue queue_;
  std::string good_;
  std::string hardware_id_;  // of the looks to come; "": any
  int builds_ = 0;
  bool said_nobody_ = false;
};

}  // namespace optrail::fleet

#endif  // OPTRAIL_FLEET_FLEET_LOOKS_H_

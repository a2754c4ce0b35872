#ifndef OPTRAIL_TUNING_COMMAND_COMMAND_EVALUATOR_H_
#define OPTRAIL_TUNING_COMMAND_COMMAND_EVALUATOR_H_

// CommandEvaluator tries a config by running a command with it.
//
//   CommandEvaluator evaluator(command, metrics, limits);
//   const CommandTrial trial = evaluator.Evaluate({{"batch", "64"}});
//
// Whatever the command does is an outcome, never an error: it may run too long,
// crash, take all memory or print nonsense.
//
//   OK             exit code 0 and every metric is a positive, finite number
//   TIMED_OUT      killed at the deadline, with everything it had started
//   OUT_OF_MEMORY  killed for its resident memory
//   CRASHED        killed by a signal, or an exit code other than 0
//   WRONG_RESULT   exit code 0, but a metric is missing or nonsense
//   LAUNCH_ERROR   there is no shell to run it
//
// It measures nothing itself: the command prints its metrics.

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "tuning/command/command_template.h"
#include "tuning/command/metric.h"
#include "tuning/search/strategy.h"

namespace optrail::tuning {

struct CommandLimits {
  absl::Duration timeout = absl::Minutes(10);
  int64_t max_resident_bytes = 0;  // 0: no limit
  // base/process/process_guard.h: everything that the command starts ends with
  // it, and the limit is of all of it. Empty: of the shell's process.
  std::string guard;
  std::string working_directory;  // empty: the current one
};

struct CommandTrial {
  proto::Outcome outcome = proto::OUTCOME_UNSPECIFIED;
  // One per metric, as printed; empty unless OK.
  std::vector<double> values;
  std::string detail;  // why it failed, with the end of standard error
  absl::Duration elapsed;
};

class CommandEvaluator {
 public:
  CommandEvaluator(CommandTemplate command, std::vector<Metric> metrics,
                   CommandLimits limits)
      : command_(std::move(command)),
        metrics_(std::move(metrics)),
        limits_(std::move(limits)) {}

  // One value per knob. Thread-safe.
  CommandTrial Evaluate(const std::map<std::string, std::string>& values) const;

  const CommandTemplate& command() const { return command_; }
  const std::vector<Metric>& metrics() const { return metrics_; }

 private:
  const CommandTemplate command_;
  const std::vector<Metric> metrics_;
  const CommandLimits limits_;
};

}  // namespace optrail::tuning

#endif  // OPTRAIL_TUNING_COMMAND_COMMAND_EVALUATOR_H_

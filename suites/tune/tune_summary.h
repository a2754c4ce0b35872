#ifndef OPTRAIL_SUITES_TUNE_TUNE_SUMMARY_H_
#define OPTRAIL_SUITES_TUNE_TUNE_SUMMARY_H_

// The results of tuning a list of tasks, for people and programs.

#include <string>
#include <vector>

#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "base/text/table.h"
#include "tuning/proto/session.pb.h"
#include "tuning/proto/trial.pb.h"

namespace optrail::suites {

struct TuneSummary {
  proto::Task task;
  int count = 1;         // calls per run of the workload
  bool skipped = false;  // the store has it
  absl::optional<proto::Session> session;
  std::string error;  // this task could not be tuned; others go on
  // The error is no finding about the task: a worker is lost, a disk is full.
  // The trials made so far are kept, and the same command goes on with them.
  bool broke_off = false;
};

// The value of a call: "1.14 J", "20.3 us".
std::string ObjectiveValueText(double value, const proto::Objective& objective);

// The verified reading of the winner, of the default config; nullptr if there
// is none.
const proto::Finalist* WinningFinalist(const proto::Session& session);
const proto::Finalist* DefaultFinalist(const proto::Session& session);

// Whether several objectives name no winner, and configs were found.
bool HasFront(const proto::Session& session);

// Why the task was not tuned: its error, or the reason why no config won. "" if
// it was, or if the store has it.
std::string WhyNotTuned(const TuneSummary& summary);

// Which outcomes the failed trials had, the first of each, and the command that
// shows the others; of a task without a winner, why it has none, and of one
// that could not be tuned, the error. "" if there is nothing to say.
std::string FailuresText(const std::vector<TuneSummary>& summaries);

// Where the time of the sessions went: measuring, waiting, ranking, proving,
// opening processes, waiting for other sessions; how much of it was checking;
// how much of the compiling was done meanwhile; how much of `elapsed`, by the
// clock, the device was busy. "" if none was run.
std::string TimeText(const std::vector<TuneSummary>& summaries,
                     absl::Duration elapsed);

// Time and other objectives of the default and of the winner, speed-up, the
// proven gain, trials, why it stopped.
std::string FormatTuneSummaries(const std::vector<TuneSummary>& summaries,
                                OutputFormat format);

// The configs that no other beats in every objective, of tasks whose objectives
// name no winner; "" if there is none.
std::string FormatFronts(const std::vector<TuneSummary>& summaries,
                         OutputFormat format);

// One line: what a run of the workload takes with default and with tuned
// configs (calls times time, over the tasks that were tuned now), and the
// trials that it took.
std::string WorkloadTotalText(const std::vector<TuneSummary>& summaries);

}  // namespace optrail::suites

#endif  // OPTRAIL_SUITES_TUNE_TUNE_SUMMARY_H_

#ifndef OPTRAIL_TRACKER_COMPARE_PROCESS_LEVELS_H_
#define OPTRAIL_TRACKER_COMPARE_PROCESS_LEVELS_H_

// What the processes of each run say of a benchmark: one level a run, with what
// calibration loops explain taken out.
//
//   const ProcessLevels levels(cells, candidates, calibrated);
//   levels.runs()[r].level, .variance
//
// The level is lower_level.h's: neighbours only ever make a process slower. A
// process beside which loops ran slow is corrected for that and believed less.

#include <limits>
#include <vector>

#include "absl/types/optional.h"
#include "tracker/compare/lower_level.h"
#include "tracker/compare/machine_slope.h"

namespace optrail::tracker {

// How far the samples of a process lie above its fastest one, in logarithms: of
// the median and of the upper quartile.
struct SampleShape {
  double median = 0;
  double upper = 0;
};

struct ProcessLog {
  double value = 0;  // logarithm of what the process took; finite
  absl::optional<MachineState> machine;
  absl::optional<SampleShape> shape;  // where there are enough samples
};

struct RunLevel {
  double level = std::numeric_limits<double>::quiet_NaN();
  double raw = 0;       // the machine left in
  double variance = 0;  // by its processes alone
  int processes = 0;
  MachineState machine;  // of the processes that count
};

class ProcessLevels {
 public:
  using Cells = std::vector<const std::vector<ProcessLog>*>;  // by run

  // The levels of one benchmark; more is worse. `calibrated`: all of what is
  // compared knows the machine's state. The others: see NoiseTerms.
  ProcessLevels(const Cells& runs, const Cells& candidates, bool calibrated,
                bool loneliness = true, bool surprise = true);

  const std::vector<RunLevel>& runs() const { return runs_; }
  const std::vector<RunLevel>& candidates() const { return candidates_; }
  const MachineSlope& slope() const { return slope_; }
  // The variance of an undisturbed process.
  double variance() const { return fit_.variance; }
  double degrees() const { return fit_.degrees; }
  const SlowValues& slow() const { return fit_.slow; }
  // Processes of a run, as it was learned; 1 at least.
  double processes() const { return processes_; }
  // How undisturbed and disturbed processes vary, in history and candidate.
  double spread() const { return spread_; }
  double candidate_spread() const { return candidate_spread_; }

 private:
  ValueGroup GroupOf(const std::vector<ProcessLog>& cell) const;
  RunLevel LevelOf(const std::vector<ProcessLog>& cell, const ValueGroup& group,
                   const LowerLevel& found) const;
  static double Loneliness(const ValueGroup& group, const LowerLevel& found);
  double Surprise(const ValueGroup& group, const LowerLevel& found) const;

  bool loneliness_ = true, surprise_ = true;
  MachineSlope slope_;
  SlowValuesFit fit_;
  double processes_ = 1;
  double spread_ = 0, candidate_spread_ = 0;
  std::vector<RunLevel> runs_, candidates_;
};

}  // namespace optrail::tracker

#endif  // OPTRAIL_TRACKER_COMPARE_PROCESS_LEVELS_H_

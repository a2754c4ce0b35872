#ifndef OPTRAIL_CARBON_ENERGY_OF_H_
#define OPTRAIL_CARBON_ENERGY_OF_H_

// The energy of what a history records: of a call, a run, a tuning session.
//
//   const Energy call = EnergyOfCall(result, run.hardware(), PowerModel());
//   Say(call.joules, call.estimated ? "estimated" : "metered", call.basis);
//
// A call that was metered has the median over processes of what their windows
// read (tuning/proto/meter_window.h), everything else a model's estimate. A
// meter at the wall, as CSV, tells of whole runs and sessions.

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "carbon/power_model.h"
#include "tracker/proto/run.pb.h"
#include "tuning/proto/session.pb.h"

namespace optrail::carbon {

struct Energy {
  bool known = false;
  double joules = 0;
  bool estimated = true;
  std::string basis;  // "metered: NVML energy counter, ..."
  // Half the width of a 95% interval, as a fraction: over processes where it
  // was metered, a stated one where it is estimated.
  double uncertainty = 0;
  // The same of what was measured, joules or else times, over processes: what
  // differs between two readings by one meter or model.
  double scatter = 0;
  double seconds = 0;  // by the clock
  // From PowerModel::device_watts, or unknown without it.
  bool of_device_watts = false;
};

// A model's answer may be off by this much either way, the same way for all
// that it answers.
inline constexpr double kModelUncertainty = .5;
// So may a meter: the accuracy that NVIDIA states for readings of power.
inline constexpr double kMeterUncertainty = .05;

Energy EnergyOfCall(const proto::BenchmarkResult& result,
                    const proto::Hardware& hardware, const PowerModel& model);
// From its start to its end, opening of processes included, all of the machine:
// the power that its windows read or that the model says, times the time it
// took.
Energy EnergyOfRun(const proto::Run& run, const PowerModel& model);
Energy EnergyOfSession(const proto::Session& session, const PowerModel& model);

// Power at the wall over time.
class WallMeter {
 public:
  // CSV with the columns time (RFC 3339, ascending) and watts. InvalidArgument
  // names file and line.
  static absl::StatusOr<WallMeter> Parse(absl::string_view csv,
                                         const std::string& name);
  static absl::StatusOr<WallMeter> Read(const std::string& path);

  // Trapezoids between readings. NotFound where readings do not reach from the
  // one to the other, or are further apart than `kMostGapS` in between;
  // InvalidArgument where all of them are 0, as those of a dead sensor.
  absl::StatusOr<double> Joules(int64_t from_unix_ns, int64_t to_unix_ns) const;
  static constexpr double kMostGapS = 120;

 private:
  struct Reading {
    double unix_s = 0, watts = 0;
  };
  std::string name_;
  std::vector<Reading> readings_;
};

}  // namespace optrail::carbon

#endif  // OPTRAIL_CARBON_ENERGY_OF_H_

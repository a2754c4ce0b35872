#ifndef OPTRAIL_CARBON_POWER_MODEL_H_
#define OPTRAIL_CARBON_POWER_MODEL_H_

// What a machine takes that has no meter: cores times time times a stated
// curve.
//
//   const double watts = ModelWatts(hardware, /*busy_cores=*/2, PowerModel());
//
// The curve is a line per core, from idle to busy. Its default is the mean that
// Cloud Carbon Footprint publishes for processors of one large cloud (0.74 W
// idle, 3.5 W busy a virtual core); a user who knows better gives both figures.
//
// It is an estimate, labelled so wherever it appears, for footprints and plans.
// It never ranks configs: of equal cores it ranks them as their times do.

#include <string>

#include "absl/status/status.h"
#include "tuning/proto/context.pb.h"

namespace optrail::carbon {

struct PowerModel {
  double idle_watts_per_core = 0.74;
  double busy_watts_per_core = 3.5;
  // Of an accelerator under load, whose cores are no such cores; 0: not known.
  double device_watts = 0;
};

// Returns whether the model goes by `device_watts` for such hardware; for
// processors it goes by their cores.
bool TakesDeviceWatts(const proto::Hardware& hardware);

// InvalidArgument for a `device_watts` that was given and that nothing of what
// was asked about takes, by TakesDeviceWatts and for want of a meter; and for
// cores that take more power when they are idle.
absl::Status CheckWattsAreTaken(const PowerModel& model, bool taken);

// The watts of the whole machine while so many of its cores work; 0 if the
// model does not know such hardware.
double ModelWatts(const proto::Hardware& hardware, double busy_cores,
                  const PowerModel& model);

// "estimated: 0.74 to 3.5 W a core", for records and tables.
std::string ModelText(const proto::Hardware& hardware, const PowerModel& model);

}  // namespace optrail::carbon

#endif  // OPTRAIL_CARBON_POWER_MODEL_H_

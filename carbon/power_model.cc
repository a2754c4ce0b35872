#include "carbon/power_model.h"

#include <algorithm>

#include "absl/strings/str_format.h"

namespace optrail::carbon {

double ModelWatts(const proto::Hardware& hardware, double busy_cores,
                  const PowerModel& model) {
  if (hardware.device_kind() != proto::CPU) return model.device_watts;
  const double cores = std::max(hardware.cores(), 1);
  const double busy = std::clamp(busy_cores, 0.0, cores);
  return model.idle_watts_per_core * (cores - busy) +
         model.busy_watts_per_core * busy;
}

std::string ModelText(const proto::Hardware& hardware,
                      const PowerModel& model) {
  if (hardware.device_kind() != proto::CPU && model.device_watts == 0) {
    return "unsupported here: no model of such hardware; --watts gives one";
  }
  if (hardware.device_kind() != proto::CPU) {
    return absl::StrFormat("estimated: %.4g W as given", model.device_watts);
  }
  return absl::StrFormat("estimated: %.4g to %.4g W a core",
                         model.idle_watts_per_core, model.busy_watts_per_core);
}

}  // namespace optrail::carbon

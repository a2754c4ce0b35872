#include "carbon/power_model.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace optrail::carbon {
namespace {

// Imported runs name no kind of device and know the cores of the machine.
bool HasCores(const proto::Hardware& hardware) {
  return hardware.device_kind() == proto::CPU ||
         (hardware.device_kind() == proto::DEVICE_KIND_UNSPECIFIED &&
          hardware.cores() > 0);
}

}  // namespace

bool TakesDeviceWatts(const proto::Hardware& hardware) {
  return !HasCores(hardware);
}

absl::Status CheckWattsAreTaken(const PowerModel& model, bool taken) {
  if (model.idle_watts_per_core > model.busy_watts_per_core) {
    return absl::InvalidArgumentError(absl::StrCat(
        "flag --idle_watts_per_core is ", model.idle_watts_per_core,
        ", expected at most --busy_watts_per_core, ", model.busy_watts_per_core,
        ": a core takes more power at work; next: give both"));
  }
  if (model.device_watts <= 0 || taken) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "flag --watts=", model.device_watts,
      " has no effect: what was measured has a meter, or is of a processor, "
      "whose cores have a model; next: leave it out, or give "
      "--busy_watts_per_core and --idle_watts_per_core"));
}

double ModelWatts(const proto::Hardware& hardware, double busy_cores,
                  const PowerModel& model) {
  if (!HasCores(hardware)) return model.device_watts;
  const double cores = std::max(hardware.cores(), 1);
  const double busy = std::clamp(busy_cores, 0.0, cores);
  return model.idle_watts_per_core * (cores - busy) +
         model.busy_watts_per_core * busy;
}

std::string ModelText(const proto::Hardware& hardware,
                      const PowerModel& model) {
  if (HasCores(hardware)) {
    return absl::StrFormat("estimated: %.4g to %.4g W a core",
                           model.idle_watts_per_core,
                           model.busy_watts_per_core);
  }
  if (model.device_watts == 0) {
    return "unsupported here: no model of such hardware; --watts gives one";
  }
  return absl::StrFormat("estimated: %.4g W as given", model.device_watts);
}

}  // namespace optrail::carbon

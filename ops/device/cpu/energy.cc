#include "ops/device/cpu/energy.h"

#include <dirent.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/types/optional.h"
#include "base/clock.h"
#include "base/status_macros.h"
#include "ops/device/energy/sensor_meter.h"

namespace optrail::ops {
namespace {

absl::StatusOr<int64_t> ReadNumber(const std::string& path) {
  errno = 0;
  std::ifstream file(path);
  int64_t value = 0;
  if (file >> value) return value;
  return absl::UnavailableError(
      absl::StrCat("unsupported here: cannot read ", path, ": ",
                   errno != 0 ? std::strerror(errno) : "not a number"));
}

struct Zone {
  std::string path;
  int64_t range_uj = 0;
  absl::optional<int64_t> last_uj;
};

// All packages as one counter from 0, which never wraps around.
class RaplSensor : public EnergySensor {
 public:
  explicit RaplSensor(std::vector<Zone> zones) : zones_(std::move(zones)) {}

  std::string name() const override { return "RAPL, whole packages"; }

  SensorReading Read() override {
    SensorReading reading;
    reading.now_ns = Clock::Real()->NowNs();
    for (Zone& zone : zones_) {
      const auto now_uj = ReadNumber(zone.path + "/energy_uj");
      if (!now_uj.ok()) return reading;
      const int64_t more_uj = *now_uj - zone.last_uj.value_or(*now_uj);
      total_uj_ += more_uj < 0 ? more_uj + zone.range_uj : more_uj;
      zone.last_uj = *now_uj;
    }
    reading.joules = static_cast<double>(total_uj_) * 1e-6;
    return reading;
  }

 private:
  std::vector<Zone> zones_;
  int64_t total_uj_ = 0;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Meter>> MakeEnergyMeter(
    const std::string& powercap, const std::string& device,
    absl::Duration sample_every) {
  DIR* const dir = opendir(powercap.c_str());
  if (dir == nullptr) {
    return absl::UnavailableError(absl::StrCat("unsupported here: ", powercap,
                                               ": ", std::strerror(errno)));
  }
  std::vector<Zone> zones;
  while (const dirent* entry = readdir(dir)) {
    // "intel-rapl:0" is a package, on AMD too; "intel-rapl:0:1" a part of it,
    // and "intel-rapl-mmio:0" the same counter once more.
    const std::string name = entry->d_name;
    if (!absl::StartsWith(name, "intel-rapl:")) continue;
    if (name.find(':') != name.rfind(':')) continue;
    std::string label;
    std::ifstream(absl::StrCat(powercap, "/", name, "/name")) >> label;
    if (!absl::StartsWith(label, "package")) continue;  // "psys": all of it
    Zone zone;
    zone.path = absl::StrCat(powercap, "/", name);
    zones.push_back(std::move(zone));
  }
  closedir(dir);
  if (zones.empty()) {
    return absl::UnavailableError(absl::StrCat(
        "unsupported here: no intel-rapl package under ", powercap));
  }
  for (Zone& zone : zones) {
    OPTRAIL_RETURN_IF_ERROR(ReadNumber(zone.path + "/energy_uj").status());
    OPTRAIL_ASSIGN_OR_RETURN(zone.range_uj,
                             ReadNumber(zone.path + "/max_energy_range_uj"));
  }
  SensorMeterOptions options;
  options.device = device;
  options.sample_every = sample_every;
  options.min_window = absl::Milliseconds(200);
  options.calibration.load = absl::Seconds(4);
  return std::make_unique<SensorMeter>(
      std::make_unique<RaplSensor>(std::move(zones)), std::move(options));
}

}  // namespace optrail::ops

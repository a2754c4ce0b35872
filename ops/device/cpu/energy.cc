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
#include "base/status_macros.h"

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
  int64_t before_uj = 0;
};

class EnergyMeter : public Meter {
 public:
  explicit EnergyMeter(std::vector<Zone> zones) : zones_(std::move(zones)) {
    info_.metric = "joules";
    info_.unit = "J";
    info_.direction = proto::LOWER_IS_BETTER;
    info_.min_window = absl::Milliseconds(200);
    info_.whole_device = true;
  }

  const MeterInfo& info() const override { return info_; }

  absl::Status Begin() override {
    for (Zone& zone : zones_) {
      OPTRAIL_ASSIGN_OR_RETURN(zone.before_uj,
                               ReadNumber(zone.path + "/energy_uj"));
    }
    return absl::OkStatus();
  }

  absl::StatusOr<proto::MeterWindow> End(int64_t calls) override {
    int64_t total_uj = 0;
    for (const Zone& zone : zones_) {
      OPTRAIL_ASSIGN_OR_RETURN(const int64_t after_uj,
                               ReadNumber(zone.path + "/energy_uj"));
      const int64_t spent_uj = after_uj - zone.before_uj;
      total_uj += spent_uj < 0 ? spent_uj + zone.range_uj : spent_uj;
    }
    proto::MeterWindow window;
    window.set_metric(info_.metric);
    window.set_unit(info_.unit);
    window.set_direction(info_.direction);
    window.set_value(static_cast<double>(total_uj) * 1e-6);
    window.set_calls(calls);
    window.set_whole_device(true);
    return window;
  }

 private:
  MeterInfo info_;
  std::vector<Zone> zones_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Meter>> MakeEnergyMeter(
    const std::string& powercap) {
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
  return std::make_unique<EnergyMeter>(std::move(zones));
}

}  // namespace optrail::ops

#include "carbon/command_parts.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/status_macros.h"

namespace optrail::carbon {

std::string Grams(double grams) {
  if (grams >= 1e6) return absl::StrFormat("%.4g t", grams / 1e6);
  if (grams >= 1e3) return absl::StrFormat("%.4g kg", grams / 1e3);
  if (grams >= .1 || grams == 0) return absl::StrFormat("%.4g g", grams);
  if (grams >= 1e-3) return absl::StrFormat("%.4g mg", grams * 1e3);
  return absl::StrFormat("%.4g ug", grams * 1e6);
}

std::string Joules(double joules) {
  if (joules >= kJoulesPerKwh) {
    return absl::StrFormat("%.4g kWh", joules / kJoulesPerKwh);
  }
  return absl::StrFormat("%.4g J", joules);
}

absl::Status RequireFlag(const std::string& value, absl::string_view flag,
                         absl::string_view expected) {
  if (!value.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("flag --", flag, " is missing: expected ", expected));
}

absl::Status CheckGrid(const GridOptions& grid) {
  OPTRAIL_RETURN_IF_ERROR(
      RequireFlag(grid.intensity, "intensity",
                  "a CSV of zone,start,end,gco2e_per_kwh,kind; next: optrail "
                  "carbon example"));
  return RequireFlag(grid.zone, "zone", "a zone of that file");
}

std::string FileName(const std::string& path) {
  return path.substr(path.rfind('/') + 1);
}

}  // namespace optrail::carbon

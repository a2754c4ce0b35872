#ifndef OPTRAIL_CARBON_COMMAND_PARTS_H_
#define OPTRAIL_CARBON_COMMAND_PARTS_H_

// The commands of `optrail carbon` share how they print grams and joules, and
// how they check the files of a grid. Part of carbon_command.h.
//
//   OPTRAIL_RETURN_IF_ERROR(CheckGrid(command.grid));
//   out << Grams(joules / kJoulesPerKwh * intensity);  // "12.3 kg"

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "carbon/carbon_command.h"

namespace optrail::carbon {

inline constexpr double kJoulesPerKwh = 3.6e6;
inline constexpr int64_t kNsPerS = 1'000'000'000;

// "12.3 kg" and "4.5 kWh" for people.
std::string Grams(double grams);
std::string Joules(double joules);

// InvalidArgument that names the flag if it has no value.
absl::Status RequireFlag(const std::string& value, absl::string_view flag,
                         absl::string_view expected);

// The same for the flags of a grid, but for its tariff.
absl::Status CheckGrid(const GridOptions& grid);

// The last part of a path.
std::string FileName(const std::string& path);

}  // namespace optrail::carbon

#endif  // OPTRAIL_CARBON_COMMAND_PARTS_H_

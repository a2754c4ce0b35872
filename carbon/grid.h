#ifndef OPTRAIL_CARBON_GRID_H_
#define OPTRAIL_CARBON_GRID_H_

// Grid is what electricity emits and costs, by zone and time, from CSV files:
//
//   OPTRAIL_ASSIGN_OR_RETURN(const Grid grid, ReadIntensity(path));
//   OPTRAIL_ASSIGN_OR_RETURN(const double grams,
//                            grid.Mean("DE", from_unix_s, to_unix_s));
//
// An intensity file has the columns zone, start, end, gco2e_per_kwh and kind
// (average or marginal; made-up where they are no grid's); a tariff has zone,
// start, end, price_per_kwh and currency. Times are RFC 3339
// ("2026-01-01T00:00:00Z"), intervals half open; those of a zone must not
// overlap, and may leave gaps. Errors name file and line.

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace optrail::carbon {

inline constexpr int64_t kHourS = 3600;

// The kind of intensities that ExampleIntensity writes.
inline constexpr char kMadeUpKind[] = "made-up";

// A value that holds for [start, end).
struct GridInterval {
  int64_t start_unix_s = 0;
  int64_t end_unix_s = 0;
  double value = 0;  // gCO2e/kWh, or a price per kWh
};

class Grid {
 public:
  std::string path;
  std::string kind;  // "average" or "marginal"; of a tariff its currency
  std::map<std::string, std::vector<GridInterval>> zones;  // by start

  // The mean over [from, to), weighted by time. NotFound, with the zones that
  // there are or the first moment that is missing, where the file does not
  // cover it.
  absl::StatusOr<double> Mean(const std::string& zone, int64_t from_unix_s,
                              int64_t to_unix_s) const;
  // The intervals that Mean() would use, cut to [from, to).
  absl::StatusOr<std::vector<GridInterval>> Between(const std::string& zone,
                                                    int64_t from_unix_s,
                                                    int64_t to_unix_s) const;
  // Seconds into a UTC hour at which the zone's hours begin: 1800 for a file
  // with clock hours of India, where all intervals of whole hours begin so. 0
  // if they differ or there are none, as in a file of half hours, and for an
  // unknown zone.
  int64_t HourPhaseS(const std::string& zone) const;
  // The end of the zone's last interval; 0 for an unknown zone.
  int64_t EndOf(const std::string& zone) const;
  // One mean an hour.
  absl::StatusOr<std::vector<double>> Hourly(const std::string& zone,
                                             int64_t from_unix_s,
                                             int hours) const;
};

// `name` stands for the file in errors.
absl::StatusOr<Grid> ParseIntensity(absl::string_view csv,
                                    const std::string& name);
absl::StatusOr<Grid> ParseTariff(absl::string_view csv,
                                 const std::string& name);
absl::StatusOr<Grid> ReadIntensity(const std::string& path);
absl::StatusOr<Grid> ReadTariff(const std::string& path);

// "2026-01-01T00:00:00Z", and back: InvalidArgument says what was expected.
std::string TimeText(int64_t unix_s);
absl::StatusOr<int64_t> ParseTime(absl::string_view text);

// A year of hourly intensities that look like a grid's, for tests and examples:
// a daily curve with a dip at noon that is deeper in summer, windy and calm
// spells of some days, and noise, all drawn from `seed`; 40 to 800 gCO2e/kWh.
// docs/method/carbon.md has the formula. It is no grid's data.
std::string ExampleIntensity(const std::string& zone, int64_t from_unix_s,
                             int hours, uint64_t seed);

}  // namespace optrail::carbon

#endif  // OPTRAIL_CARBON_GRID_H_

#ifndef OPTRAIL_BASE_TEXT_UNITS_H_
#define OPTRAIL_BASE_TEXT_UNITS_H_

// Numbers with units for people: three significant digits and the prefix that
// keeps them before the point. Files and JSON get plain numbers instead.

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"

namespace optrail {

// "0.800 ns", "12.3 us", "999 ms", "1.50 s", "2 min 5 s", "3 h 20 min".
std::string FormatDurationNs(double ns);

// Powers of 1024: "512 B", "1.50 KiB", "2.00 GiB".
std::string FormatBytes(double bytes);

// Powers of 1000: FormatRate(2.5e9, "FLOP/s") -> "2.50 GFLOP/s".
std::string FormatRate(double per_second, absl::string_view unit);

// "999", "1,234", "12,345,678".
std::string FormatCount(int64_t count);

// A fraction for a column: "12.3%" for 0.123.
std::string FormatPercent(double fraction, int decimals = 1);

// How much something changed, with its sign: "+12.3%" for 0.123.
std::string FormatChange(double fraction, int decimals = 1);

// A fraction for a sentence, to so many significant digits and never with an
// exponent: "0.35%", "12%", "350%".
std::string FormatShortPercent(double fraction, int digits = 2);

}  // namespace optrail

#endif  // OPTRAIL_BASE_TEXT_UNITS_H_

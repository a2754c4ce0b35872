#ifndef OPTRAIL_REPORTS_PAGE_SERIES_H_
#define OPTRAIL_REPORTS_PAGE_SERIES_H_

// The series of a page's data (page_data.h), which are nearly all of it: there
// may be fifty thousand.
//
//   SharedTexts families, texts;
//   const std::vector<std::string> list =
//       PageSeriesTexts(data, limits, &families, &texts);
//   // "series": list, "families": families.texts(), "texts": texts.texts()
//
// Each series becomes text on its own, on all cores: no tree of all of them is
// ever built.

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "reports/report_data.h"
#include "reports/report_json.h"

namespace optrail::reports {

// How much of the series the page may carry.
struct SeriesLimits {
  int points_per_series = 0;
  int processes_per_point = 0;
};

// If points must be few, the newest keep their fastest and slowest process.
inline constexpr int kFewestPoints = 16;
inline constexpr int kFewestProcesses = 2;
inline constexpr size_t kPointsWithProcesses = 4;

// Texts that many series share, told by their place in a list.
class SharedTexts {
 public:
  int PlaceOf(const std::string& text) {
    const auto [at, is_new] =
        places_.emplace(text, static_cast<int>(texts_.size()));
    if (is_new) texts_.push_back(text);
    return at->second;
  }
  const std::vector<std::string>& texts() const { return texts_; }

 private:
  std::unordered_map<std::string, int> places_;
  std::vector<std::string> texts_;
};

// Members that most series lack; core.js adds them where they are left out.
const Json& UsualMembers();

// How many points the series has, be they there or not.
int64_t PointCount(const SeriesView& series);

// The points of a whole series that are drawn of it, ascending.
std::vector<int> DrawnPoints(const SeriesView& series, int limit);

// Each series as inert JSON (DumpInert). Places in `families` and `texts` are
// told in the order in which series ask for them, so that the same data gives
// the same bytes.
std::vector<std::string> PageSeriesTexts(const ReportData& data,
                                         const SeriesLimits& limits,
                                         SharedTexts* families,
                                         SharedTexts* texts);

}  // namespace optrail::reports

#endif  // OPTRAIL_REPORTS_PAGE_SERIES_H_

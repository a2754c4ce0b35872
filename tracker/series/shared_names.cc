#include "tracker/series/shared_names.h"

#include <algorithm>
#include <map>
#include <set>
#include <unordered_map>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/stats/statistics.h"
#include "base/text/prose.h"
#include "base/text/quote.h"

namespace optrail::tracker {
namespace {

// One suite's time over another's: less is the noise of processes.
constexpr double kApart = 1.05;
constexpr size_t kMostNamed = 3;

// By suite, the times of the processes that measured the point.
std::map<std::string, std::vector<double>> TimesOf(
    const Point& point,
    const std::unordered_map<std::string, std::string>& suite_of) {
  std::map<std::string, std::vector<double>> times;
  for (const ProcessReading& process : point.processes) {
    const auto found = suite_of.find(point.runs->ids[process.run]);
    if (found != suite_of.end()) times[found->second].push_back(process.value);
  }
  return times;
}

bool AreApart(const std::map<std::string, std::vector<double>>& times) {
  std::vector<double> medians;
  for (const auto& [suite, of_suite] : times) {
    medians.push_back(Median(of_suite));
  }
  const auto [least, most] =
      std::minmax_element(medians.begin(), medians.end());
  return *most > kApart * *least;
}

}  // namespace

std::vector<SharedName> FindSharedNames(const std::vector<proto::Run>& runs,
                                        const std::vector<Series>& series) {
  std::unordered_map<std::string, std::string> suite_of;  // by run
  std::set<std::string> all;
  for (const proto::Run& run : runs) {
    suite_of[run.run_id()] = run.suite();
    all.insert(run.suite());
  }
  std::vector<SharedName> names;
  for (const Series& one : series) {
    if (all.size() < 2 || one.key.metric != "time" ||
        one.key.benchmark.has_shape()) {
      continue;
    }
    for (auto point = one.points.rbegin(); point != one.points.rend();
         ++point) {
      if (point->runs->ids.size() < 2 || !point->value) continue;
      const auto times = TimesOf(*point, suite_of);
      if (times.size() < 2) continue;
      if (AreApart(times)) {
        names.push_back(
            {DisplayName(one.key.benchmark), one.key.hardware_id, {}});
        for (const auto& [suite, of_suite] : times) {
          names.back().suites.push_back(suite);
        }
      }
      break;
    }
  }
  return names;
}

std::string SharedNamesText(const std::vector<SharedName>& names,
                            absl::string_view history_flag) {
  if (names.empty()) return "";
  std::vector<std::string> texts;
  for (const SharedName& name : names) {
    texts.push_back(absl::StrCat(name.benchmark, " on ", name.hardware_id,
                                 " (suites ", absl::StrJoin(name.suites, ", "),
                                 ")"));
  }
  return absl::StrCat(
      "one series of several suites, whose times differ: ",
      JoinFirst(texts, kMostNamed, "; "),
      "; `changes` and the report have a level of all of them, the gate one of "
      "each; next: optrail changes --suite=",
      QuoteForShell(names.front().suites.front()), history_flag);
}

}  // namespace optrail::tracker

#include "tracker/series/shared_names.h"

#include <set>
#include <unordered_map>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/text/prose.h"
#include "tracker/series/series_key.h"

namespace optrail::tracker {
namespace {

// The largest reading of a point over its smallest: less is the noise of
// processes.
constexpr double kApart = 1.05;
constexpr size_t kMostNamed = 3;

}  // namespace

std::string SharedNamesText(const std::vector<proto::Run>& runs,
                            const std::vector<Series>& series) {
  std::unordered_map<std::string, std::string> suite_of;  // by run
  std::set<std::string> all;
  for (const proto::Run& run : runs) {
    suite_of[run.run_id()] = run.suite();
    all.insert(run.suite());
  }
  std::vector<std::string> names;
  std::string suite;
  for (const Series& one : series) {
    if (all.size() < 2 || one.key.metric != "time" ||
        one.key.benchmark.has_shape()) {
      continue;
    }
    for (auto point = one.points.rbegin(); point != one.points.rend();
         ++point) {
      if (point->runs->ids.size() < 2 || !point->value) continue;
      std::set<std::string> suites;
      for (const std::string& id : point->runs->ids) {
        const auto found = suite_of.find(id);
        if (found != suite_of.end()) suites.insert(found->second);
      }
      if (suites.size() < 2) continue;
      if (point->high > kApart * point->low) {
        suite = *suites.begin();
        names.push_back(absl::StrCat(DisplayName(one.key.benchmark), " on ",
                                     one.key.hardware_id, " (suites ",
                                     absl::StrJoin(suites, ", "), ")"));
      }
      break;
    }
  }
  if (names.empty()) return "";
  return absl::StrCat(
      "one series of several suites, whose times differ: ",
      JoinFirst(names, kMostNamed, "; "),
      "; `changes` and the report have a level of all of them, the gate one of "
      "each; next: optrail changes --suite=",
      suite);
}

}  // namespace optrail::tracker

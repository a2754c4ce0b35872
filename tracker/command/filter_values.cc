#include "tracker/command/filter_values.h"

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "base/text/closest.h"
#include "base/text/prose.h"
#include "base/text/utf8.h"
#include "tracker/command/command_support.h"
#include "tracker/history/index/history_index.h"
#include "tracker/series/series.h"

namespace optrail::tracker {

std::string UnknownValueText(absl::string_view flag, const std::string& value,
                             const std::set<std::string>& known) {
  if (value.empty() || known.count(value) > 0) return "";
  constexpr size_t kMostListed = 10;
  const std::vector<std::string> names(known.begin(), known.end());
  return EscapeForTerminal(
      absl::StrCat("; --", flag, "=", value, ": there are ",
                   JoinFirst(names, kMostListed), DidYouMean(value, names)));
}

std::string UnknownFilterText(const std::vector<RunInfo>& runs,
                              const RunFilter& filter) {
  std::set<std::string> suites, hardware, branches;
  for (const RunInfo& run : runs) {
    suites.insert(run.header.suite());
    hardware.insert(run.header.hardware().id());
    if (!run.header.commit().branch().empty()) {
      branches.insert(run.header.commit().branch());
    }
  }
  return absl::StrCat(
      UnknownValueText("suite", filter.suite, suites),
      UnknownValueText("hardware", filter.hardware_id, hardware),
      UnknownValueText("branch", filter.branch, branches));
}

absl::StatusOr<std::string> UnknownMetricText(const History& history,
                                              const RE2& metric) {
  OPTRAIL_ASSIGN_OR_RETURN(const LoadedSeries all, LoadSeries(history));
  std::set<std::string> names;
  for (const Series& series : all.series) {
    if (MatchesWhole(metric, series.key.metric)) return "";
    names.insert(series.key.metric);
  }
  if (names.empty()) return "";
  return UnknownValueText("metric", metric.pattern(), names);
}

}  // namespace optrail::tracker

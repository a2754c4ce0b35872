// Which runs a person means: History::Resolve and FindRun.

#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "base/status_macros.h"
#include "tracker/history/history.h"

namespace optrail::tracker {
namespace {

// "latest" is 0, "latest~2" is 2, anything else nullopt.
absl::optional<int> StepsBeforeLatest(absl::string_view selector) {
  if (!absl::ConsumePrefix(&selector, "latest")) return absl::nullopt;
  if (selector.empty()) return 0;
  int steps = 0;
  if (!absl::ConsumePrefix(&selector, "~") ||
      !absl::SimpleAtoi(selector, &steps) || steps < 0) {
    return absl::nullopt;
  }
  return steps;
}

bool IdMatches(absl::string_view id, absl::string_view selector) {
  const size_t dash = id.find('-');
  return absl::StartsWith(id, selector) ||
         (dash != absl::string_view::npos &&
          absl::StartsWith(id.substr(dash + 1), selector));
}

std::string DescribeRun(const RunInfo& run) {
  return absl::StrCat(run.id(), " (", run.header.suite(), " at ",
                      run.header.commit().id().empty()
                          ? "no commit"
                          : run.header.commit().id().substr(0, 12),
                      ")");
}

absl::Status Ambiguous(absl::string_view selector,
                       const std::set<std::string>& meanings) {
  constexpr size_t kShown = 5;
  std::vector<std::string> shown(meanings.begin(), meanings.end());
  const size_t all = shown.size();
  if (all > kShown) {
    shown.resize(kShown);
    shown.push_back(absl::StrCat("and ", all - kShown, " more"));
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "'", selector, "' could be any of: ", absl::StrJoin(shown, ", ")));
}

// The run that `selector` ("latest~N") names among `runs`, which are in series
// order, without those dated in the future: one of 2199 would be the latest for
// good.
absl::StatusOr<std::vector<RunInfo>> BeforeLatest(
    int steps, absl::string_view selector, const std::string& where,
    int64_t now_unix_ns, std::vector<RunInfo> runs,
    std::vector<std::string>* notes) {
  const auto ahead =
      std::stable_partition(runs.begin(), runs.end(), [&](const RunInfo& run) {
        return !IsInTheFuture(run.header.started_unix_ns(), now_unix_ns);
      });
  std::string left_out;
  if (ahead != runs.end()) {
    const int64_t count = runs.end() - ahead;
    left_out = absl::StrCat(
        count, count == 1 ? " run is" : " runs are",
        " dated in the future and not taken for the latest, such as ",
        ahead->id(), " (",
        absl::FormatTime("%Y-%m-%d",
                         absl::FromUnixNanos(ahead->header.started_unix_ns()),
                         absl::UTCTimeZone()),
        "); `optrail history verify` names them");
    if (notes != nullptr) notes->push_back(left_out);
  }
  runs.erase(ahead, runs.end());
  if (static_cast<size_t>(steps) >= runs.size()) {
    return absl::NotFoundError(
        absl::StrCat("'", selector, "': not that many runs in ", where,
                     left_out.empty() ? "" : "; ", left_out));
  }
  // Dates of files that are imported may tie: the order of the series decides.
  std::stable_sort(
      runs.begin(), runs.end(), [](const RunInfo& a, const RunInfo& b) {
        return a.header.started_unix_ns() < b.header.started_unix_ns();
      });
  return std::vector<RunInfo>{
      std::move(runs[runs.size() - 1 - static_cast<size_t>(steps)])};
}

}  // namespace

bool IsInTheFuture(int64_t started_unix_ns, int64_t now_unix_ns) {
  // A clock that runs in another time zone is odd, and no reason to leave out
  // all that its machine measures.
  constexpr int64_t kToleranceNs = 24LL * 3600 * 1'000'000'000;
  return started_unix_ns > 0 && started_unix_ns - kToleranceNs > now_unix_ns;
}

absl::StatusOr<std::vector<RunInfo>> History::Resolve(
    absl::string_view selector, const RunFilter& filter,
    std::vector<std::string>* notes) const {
  OPTRAIL_ASSIGN_OR_RETURN(RunList list, ListRuns(filter));
  if (list.runs.empty() && list.bad_files.empty()) {
    OPTRAIL_ASSIGN_OR_RETURN(const RunList all, ListRuns());
    if (all.runs.empty()) {
      return absl::NotFoundError(
          absl::StrCat("'", selector, "': ", EmptyHistoryText(dir_)));
    }
  }
  const std::string where = absl::StrCat(
      "history ", dir_, " (", list.runs.size(),
      list.runs.size() == 1 ? " run" : " runs",
      list.bad_files.empty()
          ? ""
          : absl::StrCat(", ", list.bad_files.size(), " damaged files skipped"),
      ")");
  if (const absl::optional<int> steps = StepsBeforeLatest(selector)) {
    return BeforeLatest(
        *steps, selector, where,
        now_unix_ns_ != 0 ? now_unix_ns_ : Clock::Real()->WallNs(),
        std::move(list.runs), notes);
  }
  std::vector<RunInfo> by_id, by_commit;
  std::set<std::string> meanings, commits;
  for (RunInfo& run : list.runs) {
    if (selector.empty()) break;
    const std::string& commit = run.header.commit().id();
    if (IdMatches(run.id(), selector)) {
      meanings.insert(DescribeRun(run));
      by_id.push_back(std::move(run));
    } else if (absl::StartsWith(commit, selector)) {
      commits.insert(absl::StrCat("commit ", commit));
      by_commit.push_back(std::move(run));
    }
  }
  meanings.insert(commits.begin(), commits.end());
  if (meanings.empty()) {
    return absl::NotFoundError(absl::StrCat("'", selector,
                                            "' is no run and no commit in ",
                                            where, "; `optrail log` lists it"));
  }
  if (meanings.size() > 1) return Ambiguous(selector, meanings);
  return by_id.empty() ? by_commit : by_id;
}

absl::StatusOr<RunInfo> History::FindRun(
    absl::string_view selector, const RunFilter& filter,
    std::vector<std::string>* notes) const {
  OPTRAIL_ASSIGN_OR_RETURN(std::vector<RunInfo> runs,
                           Resolve(selector, filter, notes));
  if (runs.size() == 1) return std::move(runs[0]);
  std::set<std::string> meanings;
  for (const RunInfo& run : runs) meanings.insert(DescribeRun(run));
  return Ambiguous(selector, meanings);
}

}  // namespace optrail::tracker

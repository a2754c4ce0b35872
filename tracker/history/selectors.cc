#include "tracker/history/selectors.h"

#include <map>
#include <set>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "base/process/git.h"
#include "base/status_macros.h"
#include "base/text/prose.h"

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

bool IsFullHash(absl::string_view text) {
  return (text.size() == 40 || text.size() == 64) &&
         text.find_first_not_of("0123456789abcdef") == text.npos;
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

// " with --suite=x --hardware=y".
std::string FilterText(const RunFilter& filter) {
  std::string text;
  for (const auto& [flag, value] : {std::make_pair("suite", filter.suite),
                                    {"hardware", filter.hardware_id}}) {
    if (value.empty()) continue;
    absl::StrAppend(&text, text.empty() ? " with --" : " --", flag, "=", value);
  }
  return text;
}

absl::Status Ambiguous(absl::string_view selector,
                       const std::set<std::string>& meanings) {
  constexpr size_t kShown = 5;
  return absl::InvalidArgumentError(
      absl::StrCat("'", selector, "' could be any of: ",
                   JoinFirst({meanings.begin(), meanings.end()}, kShown)));
}

// Series order, in which a date of the future decides nothing: a run without a
// position that has one is left out, and one of a commit comes before its
// others. `notes` says so.
std::vector<RunInfo> InOrderOfCommits(std::vector<RunInfo> runs,
                                      int64_t now_unix_ns,
                                      std::vector<std::string>* notes) {
  std::vector<proto::Run> headers;
  std::map<std::string, RunInfo> by_id;
  std::string left_out, misdated;
  int left_out_count = 0;
  for (RunInfo& run : runs) {
    proto::Run header = run.header;
    if (IsInTheFuture(header.started_unix_ns(), now_unix_ns)) {
      const std::string named = absl::StrCat(
          run.id(), " (",
          absl::FormatTime("%Y-%m-%d",
                           absl::FromUnixNanos(header.started_unix_ns()),
                           absl::UTCTimeZone()),
          ")");
      if (!header.commit().has_first_parent_position()) {
        if (++left_out_count == 1) left_out = named;
        continue;
      }
      if (misdated.empty()) misdated = named;
      header.set_started_unix_ns(0);
    }
    headers.push_back(std::move(header));
    by_id[run.id()] = std::move(run);
  }
  if (left_out_count > 0) {
    notes->push_back(absl::StrCat(
        left_out_count, left_out_count == 1 ? " run is" : " runs are",
        " dated in the future and not taken for the latest, such as ", left_out,
        "; `optrail history verify` names them"));
  }
  if (!misdated.empty()) {
    notes->push_back(absl::StrCat("run ", misdated,
                                  " is dated in the future: its commit's "
                                  "position places it"));
  }
  std::vector<const proto::Run*> order;
  for (const proto::Run& header : headers) order.push_back(&header);
  SortInSeriesOrder(order);
  std::vector<RunInfo> sorted;
  for (const proto::Run* header : order) {
    sorted.push_back(std::move(by_id[header->run_id()]));
  }
  return sorted;
}

// The id that a damaged file's name says it has; "" for other names.
absl::string_view IdOf(const BadFile& bad) {
  absl::string_view name = bad.path;
  name.remove_prefix(name.rfind('/') + 1);
  name = name.substr(0, name.find('.'));
  return IsRecordId(name) ? name : absl::string_view();
}

// "20261120T090807Z-1a2b" -> "20261120T090807Z".
absl::string_view TimeOf(absl::string_view id) {
  return id.substr(0, id.find('-'));
}

absl::Status DamagedRecord(absl::string_view selector, absl::string_view what,
                           const BadFile& bad, absl::string_view instead) {
  return absl::DataLossError(
      absl::StrCat("'", selector, "': ", what, " is damaged (", bad.path, ": ",
                   bad.reason, "); next: optrail history repair", instead));
}

// DataLoss where a damaged record may be newer than `found`, the run that
// "latest" or "latest~N" names among those that can be read: it may be the one
// that is meant. The commit of a damaged record is not known; it is taken for
// later where it is dated after the first run of found's commit, `first_id`.
// One dated in the future is never meant.
absl::Status CheckNoneIsDamaged(absl::string_view selector,
                                const std::vector<BadFile>& bad_files,
                                const RunInfo* found,
                                absl::string_view first_id,
                                int64_t now_unix_ns) {
  constexpr int64_t kToleranceNs = 24LL * 3600 * 1'000'000'000;
  const std::string end = NewRecordId(now_unix_ns + kToleranceNs);
  for (const BadFile& bad : bad_files) {
    const absl::string_view id = IdOf(bad);
    if (id.empty() || TimeOf(id) > TimeOf(end) ||
        (found != nullptr && TimeOf(id) < TimeOf(first_id))) {
      continue;
    }
    return DamagedRecord(
        selector,
        selector == "latest" ? "the newest record"
                             : "a record that it may mean or count",
        bad,
        found == nullptr ? ""
                         : absl::StrCat(", or name ", found->id(),
                                        ", which it is without that record"));
  }
  return absl::OkStatus();
}

// The run that `selector` ("latest~N") names in `list`.
absl::StatusOr<std::vector<RunInfo>> BeforeLatest(
    int steps, absl::string_view selector, const std::string& where,
    int64_t now_unix_ns, RunList list, std::vector<std::string>* notes) {
  std::vector<std::string> said;
  std::vector<RunInfo> runs =
      InOrderOfCommits(std::move(list.runs), now_unix_ns, &said);
  if (notes != nullptr) {
    notes->insert(notes->end(), said.begin(), said.end());
  }
  const bool is_found = static_cast<size_t>(steps) < runs.size();
  RunInfo* const found =
      is_found ? &runs[runs.size() - 1 - static_cast<size_t>(steps)] : nullptr;
  std::string first_id = is_found ? found->id() : "";
  for (const RunInfo& run : runs) {
    const std::string& commit = run.header.commit().id();
    if (is_found && !commit.empty() && commit == found->header.commit().id()) {
      first_id = std::min(first_id, run.id());
    }
  }
  OPTRAIL_RETURN_IF_ERROR(CheckNoneIsDamaged(selector, list.bad_files, found,
                                             first_id, now_unix_ns));
  if (!is_found) {
    return absl::NotFoundError(
        absl::StrCat("'", selector, "': not that many runs in ", where,
                     said.empty() ? "" : "; ", absl::StrJoin(said, "; ")));
  }
  return std::vector<RunInfo>{std::move(*found)};
}

}  // namespace

bool IsLatest(absl::string_view selector) {
  return StepsBeforeLatest(selector).has_value();
}

std::string ShortHash(absl::string_view commit) {
  return commit.empty() ? "no commit" : std::string(commit.substr(0, 12));
}

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
          absl::StrCat("'", selector, "': ", EmptyHistoryText(dir())));
    }
  }
  const std::string where = absl::StrCat(
      "history ", dir(), FilterText(filter), " (", list.runs.size(),
      list.runs.size() == 1 ? " run" : " runs",
      list.bad_files.empty()
          ? ""
          : absl::StrCat(", ", list.bad_files.size(), " damaged files skipped"),
      ")");
  if (const absl::optional<int> steps = StepsBeforeLatest(selector)) {
    return BeforeLatest(
        *steps, selector, where,
        now_unix_ns_ != 0 ? now_unix_ns_ : Clock::Real()->WallNs(),
        std::move(list), notes);
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
  for (const BadFile& bad : list.bad_files) {
    if (selector.empty() || !IdMatches(IdOf(bad), selector)) continue;
    if (meanings.empty()) {
      return DamagedRecord(selector, "that record", bad, "");
    }
    meanings.insert(absl::StrCat("damaged record ", IdOf(bad)));
  }
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

CommitResolver GitIn(const std::string& workspace) {
  return [workspace](absl::string_view name) {
    return ResolveCommit(workspace, std::string(name));
  };
}

absl::StatusOr<Selection> Select(const History& history,
                                 const std::string& what,
                                 const CommitResolver& git,
                                 const RunFilter& filter) {
  Selection selection;
  absl::StatusOr<std::vector<RunInfo>> found =
      history.Resolve(what, filter, &selection.notes);
  if (found.ok()) {
    selection.runs = *std::move(found);
    const proto::Run& last = selection.runs.back().header;
    const bool by_commit = !IsLatest(what) && !IdMatches(last.run_id(), what);
    if (by_commit) selection.commit = last.commit().id();
    selection.name =
        by_commit ? absl::StrCat("commit ", ShortHash(selection.commit)) : what;
    return selection;
  }
  if (!absl::IsNotFound(found.status()) || IsLatest(what)) {
    return found.status();
  }
  absl::StatusOr<std::string> commit = absl::NotFoundError("no git");
  if (git != nullptr) commit = git(what);
  if (!commit.ok() && IsFullHash(what)) commit = what;
  if (!commit.ok()) {
    return absl::NotFoundError(absl::StrCat(found.status().message(), "; ",
                                            commit.status().message()));
  }
  selection.commit = *commit;
  selection.name = absl::StrCat(
      "commit ", ShortHash(*commit),
      absl::StartsWith(*commit, what) ? "" : absl::StrCat(" (", what, ")"));
  found = history.Resolve(*commit, filter);
  if (found.ok()) {
    selection.runs = *std::move(found);
  } else if (!absl::IsNotFound(found.status())) {
    return found.status();
  }
  return selection;
}

absl::StatusOr<Selection> SelectRuns(const History& history,
                                     const std::string& what,
                                     const CommitResolver& git,
                                     const RunFilter& filter) {
  OPTRAIL_ASSIGN_OR_RETURN(Selection selection,
                           Select(history, what, git, filter));
  if (!selection.runs.empty()) return selection;
  return absl::NotFoundError(
      absl::StrCat(selection.name, " has no run in history ", history.dir(),
                   FilterText(filter), "; next: optrail log runs"));
}

}  // namespace optrail::tracker

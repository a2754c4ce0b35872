#include "tracker/command/log_command.h"

#include <iostream>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "base/text/units.h"
#include "tracker/command/filter_values.h"
#include "tracker/history/index/history_index.h"
#include "tracker/history/selectors.h"
#include "tracker/series/series.h"
#include "tracker/series/series_key.h"
#include "tracker/series/value_text.h"
#include "tuning/proto/canonical.h"
#include "tuning/proto/session_text.h"
#include "tuning/proto/stop_reason.h"

namespace optrail::tracker {
namespace {

RunFilter FilterOf(const LogCommand& options) {
  RunFilter filter;
  filter.suite = options.suite;
  filter.hardware_id = options.hardware_id;
  filter.branch = options.branch;
  filter.commit_prefix = options.commit;
  return filter;
}

// The newest first, at most `limit` (0: all).
template <typename T>
std::vector<const T*> Newest(const std::vector<T>& items, int limit) {
  std::vector<const T*> newest;
  for (auto item = items.rbegin(); item != items.rend(); ++item) {
    if (limit > 0 && static_cast<int>(newest.size()) == limit) break;
    newest.push_back(&*item);
  }
  return newest;
}

// A list that --limit cuts says so.
void SayWhatIsLeftOut(size_t shown, size_t all, absl::string_view what) {
  if (shown >= all) return;
  std::cerr << shown << " of " << all << " " << what
            << "; --limit=0 lists all\n";
}

// Why a list is empty: nothing is there, or nothing matches.
absl::Status SayWhyNone(const History& history, const LogCommand& options,
                        absl::string_view what) {
  OPTRAIL_ASSIGN_OR_RETURN(const RunList all, history.ListRuns());
  if (all.runs.empty()) {
    std::cerr << EmptyHistoryText(history.dir(), what) << "\n";
  } else {
    std::cerr << "no " << what << " match the flags; there are "
              << all.runs.size() << " runs in " << history.dir()
              << UnknownFilterText(all.runs, FilterOf(options)) << "\n";
  }
  return absl::OkStatus();
}

absl::Status LogRuns(const History& history, const LogCommand& options,
                     std::ostream& out) {
  OPTRAIL_ASSIGN_OR_RETURN(const RunList list,
                           history.ListRuns(FilterOf(options)));
  WarnOfBadFiles(list.bad_files);
  Table table({{"run", Align::kLeft, "run_id", Clip::kNever},
               {"started (UTC)", Align::kLeft, "started_utc"},
               {"suite", Align::kLeft, "", Clip::kNever},
               {"commit", Align::kLeft, "", Clip::kNever},
               {"branch", Align::kLeft, "", Clip::kNever},
               {"hardware", Align::kLeft, "", Clip::kNever},
               {"results", Align::kRight},
               {"subject"}});
  for (const RunInfo* run : Newest(list.runs, options.limit)) {
    const proto::Run& header = run->header;
    table.AddRow({run->id(), TimeText(header.started_unix_ns()), header.suite(),
                  CommitText(header.commit()), header.commit().branch(),
                  header.hardware().id(), Cell::Integer(run->result_count),
                  header.commit().subject()});
  }
  PrintTable(table, options.common.format, out);
  SayWhatIsLeftOut(table.num_rows(), list.runs.size(), "runs");
  if (table.num_rows() == 0) {
    OPTRAIL_RETURN_IF_ERROR(SayWhyNone(history, options, "runs"));
  }
  return absl::OkStatus();
}

absl::Status LogSessions(const History& history, const LogCommand& options,
                         const RE2& filter, std::ostream& out) {
  OPTRAIL_ASSIGN_OR_RETURN(SessionList list, history.ListSessions());
  WarnOfBadFiles(list.bad_files);
  Table table({{"session", Align::kLeft, "session_id", Clip::kNever},
               {"started (UTC)", Align::kLeft, "started_utc"},
               {"task", Align::kLeft, "", Clip::kNever},
               {"hardware", Align::kLeft, "", Clip::kNever},
               {"commit", Align::kLeft, "", Clip::kNever},
               {"strategy"},
               {"trials", Align::kRight},
               {"elapsed", Align::kRight, "elapsed_ns"},
               {"stopped by", Align::kLeft, "stop_reason"}});
  std::vector<SessionInfo> matching;
  for (SessionInfo& session : list.sessions) {
    const proto::Session& header = session.header;
    if ((options.hardware_id.empty() ||
         header.hardware().id() == options.hardware_id) &&
        (options.branch.empty() ||
         header.commit().branch() == options.branch) &&
        absl::StartsWith(header.commit().id(), options.commit) &&
        MatchesPart(filter, tuning::SessionTaskText(header))) {
      matching.push_back(std::move(session));
    }
  }
  for (const SessionInfo* session : Newest(matching, options.limit)) {
    const proto::Session& header = session->header;
    table.AddRow(
        {session->id(), TimeText(header.started_unix_ns()),
         tuning::SessionTaskText(header), header.hardware().id(),
         CommitText(header.commit()), header.strategy(),
         // Those of earlier sessions are in their own rows.
         Cell::Integer(session->trial_count - header.warm_start_trial_count()),
         Cell::Number(static_cast<double>(header.elapsed_ns()),
                      FormatDurationNs(header.elapsed_ns())),
         tuning::StopReasonName(header.stop_reason())});
  }
  PrintTable(table, options.common.format, out);
  SayWhatIsLeftOut(table.num_rows(), matching.size(), "sessions");
  if (table.num_rows() == 0) {
    if (list.sessions.empty()) {
      std::cerr << "there are no tuning sessions in " << history.dir()
                << " yet; next: optrail tune --op=softmax\n";
    } else {
      std::cerr << "no sessions match the flags; there are "
                << list.sessions.size() << " in " << history.dir() << "\n";
    }
  }
  return absl::OkStatus();
}

absl::Status LogSeries(const History& history, const LogCommand& options,
                       const RE2& filter, std::ostream& out) {
  // By their keys first: those that no one asked for are not read.
  const SeriesQuery query = {FilterOf(options), [&](const SeriesKey& key) {
                               return MatchesPart(filter, CanonicalText(key));
                             }};
  OPTRAIL_ASSIGN_OR_RETURN(const LoadedSeries loaded,
                           LoadSeries(history, query));
  WarnOfBadFiles(loaded.bad_files);
  PrintNotices(loaded.notices);
  // The key last: it is longer than a terminal is wide, which wraps it.
  Table table({{"points", Align::kRight},
               {"newest", Align::kRight},
               {"outcome"},
               {"commit", Align::kLeft, "", Clip::kNever},
               {"series", Align::kLeft, "", Clip::kNever}});
  int listed = 0;
  for (const Series& series : loaded.series) {
    if (options.limit > 0 && listed++ == options.limit) break;
    const Point& newest = series.points.back();
    table.AddRow({Cell::Integer(series.points.size()),
                  newest.value
                      ? Cell::Number(*newest.value,
                                     FormatValue(newest.value, series.key.unit))
                      : Cell::None(),
                  tuning::OutcomeName(newest.outcome),
                  CommitText(newest.runs->commit), series.text});
  }
  PrintTable(table, options.common.format, out);
  SayWhatIsLeftOut(table.num_rows(), loaded.series.size(), "series");
  if (table.num_rows() == 0) {
    OPTRAIL_RETURN_IF_ERROR(SayWhyNone(history, options, "series"));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<int> RunLog(const LogCommand& given, std::ostream& out) {
  LogCommand options = given;
  if (!options.commit.empty()) {
    // A tag or HEAD~1; else a prefix of hashes that git need not know.
    const auto commit = GitIn(options.common.workspace)(options.commit);
    if (commit.ok()) options.commit = *commit;
  }
  OPTRAIL_ASSIGN_OR_RETURN(const auto filter,
                           CompilePattern("filter", options.filter));
  OPTRAIL_RETURN_IF_ERROR(CheckFlag(options.limit >= 0, "limit", options.limit,
                                    "at least 0, which lists all"));
  OPTRAIL_RETURN_IF_ERROR(CheckHistoryIsThere(options.common));
  OPTRAIL_ASSIGN_OR_RETURN(const History history,
                           OpenIndexedHistory(options.common.history));
  if (options.what == "runs") {
    OPTRAIL_RETURN_IF_ERROR(CheckFlag(
        options.filter.empty(), "filter", options.filter,
        "`log sessions` or `log series`, since a run has many benchmarks"));
    OPTRAIL_RETURN_IF_ERROR(LogRuns(history, options, out));
  } else if (options.what == "sessions") {
    OPTRAIL_RETURN_IF_ERROR(LogSessions(history, options, *filter, out));
  } else if (options.what == "series") {
    OPTRAIL_RETURN_IF_ERROR(LogSeries(history, options, *filter, out));
  } else {
    return absl::InvalidArgumentError(absl::StrCat(
        "log '", options.what, "': expected runs, sessions or series"));
  }
  return 0;
}

}  // namespace optrail::tracker

#include "reports/attention.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/text/quote.h"
#include "tracker/judge/evidence.h"
#include "tracker/series/series_key.h"

namespace optrail::reports {
namespace {

// A series that wants attention, and the commits that may be behind it.
struct Suspicion {
  int series = 0;
  int good = -1, bad = -1;     // as in AttentionRow
  tracker::Evidence evidence;  // of a change; else `bad` alone
};

int FindCommit(const ReportData& data, const std::string& id) {
  for (int i = static_cast<int>(data.commits.size()) - 1; i >= 0; --i) {
    if (!id.empty() && data.commits[i].id == id) return i;
  }
  return -1;
}

// The last point before `end` that was measured; -1: none.
int LastMeasured(const SeriesView& series, int end) {
  int i = end - 1;
  while (i >= 0 && !series.points()[i].value) --i;
  return i;
}

Suspicion SuspicionOf(const ReportData& data, int index) {
  const SeriesView& series = data.series[index];
  const int points = static_cast<int>(series.points().size());
  Suspicion result;
  result.series = index;
  int good = -1, bad = -1;  // points
  if (series.decided_by) {
    const tracker::Change& change = *series.decided_by;
    result.evidence = tracker::EvidenceOf(change);
    bad = std::max(change.change.latest, change.change.index);
    good = LastMeasured(series, change.change.earliest);
    if (good < 0 && result.evidence.good != nullptr) {  // a former name's
      result.good = FindCommit(data, result.evidence.good->id());
    }
  } else {
    good = LastMeasured(series, points);
    if (good + 1 < points) bad = good + 1;
    if (good >= 0) result.evidence.good = &series.points()[good].runs->commit;
    if (bad >= 0) result.evidence.bad = &series.points()[bad].runs->commit;
  }
  if (good >= 0) result.good = series.commits[good];
  result.bad = bad >= 0 ? series.commits[bad]
                        : static_cast<int>(data.commits.size()) - 1;
  return result;
}

double SizeOf(const SeriesView& series) {
  return series.ratio && *series.ratio > 0 ? std::abs(std::log(*series.ratio))
                                           : 0;
}

// Of all the names together: the shell of the reader, not a file, is the limit.
constexpr int kMostNames = 300;

std::string AckScope(const ReportData& data, const AttentionRow& row) {
  if (row.series.size() == 1) return data.series[row.series[0]].of->text;
  std::set<std::string> names;
  for (const int i : row.series) {
    names.insert(tracker::PatternOf(
        tracker::DisplayName(data.series[i].of->key.benchmark)));
    if (static_cast<int>(names.size()) > kMostNames) return ".*";
  }
  return absl::StrJoin(names, "|");
}

void AddCommands(const ReportData& data, const tracker::Evidence& evidence,
                 AttentionRow& row) {
  const SeriesView& first = data.series[row.series[0]];
  const auto id = [](const proto::Commit* commit) {
    return commit == nullptr ? std::string() : commit->id().substr(0, 12);
  };
  const std::string good = id(evidence.good), bad = id(evidence.bad);
  const auto with_history = [&](std::string command) {
    absl::StrAppend(&command, data.history_flag);
    return command;
  };
  // A change has commands of its own.
  if (!tracker::InfoOf(first.verdict).is_change && !first.of->points.empty() &&
      !first.of->points.back().runs->ids.empty()) {
    row.commands.push_back(
        {"show", with_history(tracker::ShowCommand(
                     first.of->points.back().runs->ids.back(),
                     tracker::DisplayName(first.of->key.benchmark)))});
  }
  if (bad.empty()) return;
  const bool worse = first.decided_by && first.decided_by->worse_by > 0;
  const bool is_creep =
      first.decided_by && first.decided_by->kind == tracker::ChangeKind::kCreep;
  if (worse) {
    std::string next = tracker::NarrowingCommand(*first.decided_by, evidence,
                                                 data.history_flag);
    if (!next.empty()) {
      row.commands.push_back({is_creep                 ? "show"
                              : evidence.suspects == 1 ? "read"
                                                       : "bisect",
                              std::move(next)});
    }
    row.commands.push_back(
        {"acknowledge", with_history(absl::StrCat(
                            "optrail ack ", QuoteForShell(AckScope(data, row)),
                            " ", bad, " --reason='...'"))});
  }
  // One run of each end of a creep is too little to compare.
  if (first.decided_by && !is_creep && !good.empty()) {
    row.commands.push_back(
        {"compare",
         with_history(absl::StrCat(
             "optrail compare ", good, " ", bad,
             " --hardware=", QuoteForShell(data.hardware[first.hardware].id),
             tracker::FilterFlags(tracker::DisplayName(first.of->key.benchmark),
                                  first.of->key.metric)))});
  }
  if (!good.empty() && good != bad) {
    row.commands.push_back(
        {"authors",
         absl::StrCat("git log --first-parent --format='%h %an: %s' ", good,
                      "..", bad)});
  }
}

AttentionRow MakeRow(const ReportData& data, std::vector<Suspicion> all) {
  std::stable_sort(all.begin(), all.end(),
                   [&](const Suspicion& a, const Suspicion& b) {
                     const SeriesView& x = data.series[a.series];
                     const SeriesView& y = data.series[b.series];
                     const int rank_x = tracker::VerdictRank(x.verdict);
                     const int rank_y = tracker::VerdictRank(y.verdict);
                     if (rank_x != rank_y) return rank_x < rank_y;
                     return SizeOf(x) > SizeOf(y);
                   });
  AttentionRow row;
  const SeriesView& first = data.series[all[0].series];
  row.verdict = first.verdict;
  tracker::Evidence evidence = all[0].evidence;
  row.good = all[0].good;
  row.bad = all[0].bad;
  for (const Suspicion& each : all) {
    const SeriesView& series = data.series[each.series];
    row.series.push_back(each.series);
    row.hardware.push_back(series.hardware);
    if (series.ratio) {
      const double change = *series.ratio - 1;
      row.change_low = std::min(row.change_low.value_or(change), change);
      row.change_high = std::max(row.change_high.value_or(change), change);
    }
    // Keeps the commits that all of them suspect.
    if (each.good > row.good) {
      row.good = each.good;
      evidence.good = each.evidence.good;
    }
    if (each.bad < row.bad) {
      row.bad = each.bad;
      evidence.bad = each.evidence.bad;
    }
  }
  std::sort(row.hardware.begin(), row.hardware.end());
  row.hardware.erase(std::unique(row.hardware.begin(), row.hardware.end()),
                     row.hardware.end());
  const std::string& branch = first.of->key.branch;
  for (int i = row.good + 1; row.good >= 0 && i <= row.bad; ++i) {
    if (data.commits[i].branch == branch) row.suspects.push_back(i);
  }
  if (row.good < 0 && row.bad >= 0) row.suspects = {row.bad};
  if (evidence.bad != nullptr) {
    tracker::CountSuspects(evidence);
    row.suspect_count = evidence.suspects;
    row.range = tracker::SuspectsText(evidence);
  }
  row.text = first.decided_by
                 ? tracker::EvidenceText(*first.decided_by,
                                         tracker::EvidenceOf(*first.decided_by))
                 : first.verdict_detail;
  if (row.series.size() > 1 && !row.text.empty()) {
    // The evidence of a change begins with the benchmark's name.
    row.text = absl::StrCat(
        first.decided_by ? ""
                         : tracker::DisplayName(first.of->key.benchmark) + " ",
        "on ", data.hardware[first.hardware].id, ": ", row.text);
  }
  AddCommands(data, evidence, row);
  return row;
}

// The fewest rows such that the series of each share a suspect: of those that
// are left the one whose suspects end first, and all that overlap its end.
void AddRows(const ReportData& data, std::vector<Suspicion> all,
             std::vector<AttentionRow>& rows) {
  std::stable_sort(
      all.begin(), all.end(),
      [](const Suspicion& a, const Suspicion& b) { return a.bad < b.bad; });
  while (!all.empty()) {
    const int end = all[0].bad;
    const auto rest = std::stable_partition(
        all.begin(), all.end(),
        [end](const Suspicion& each) { return each.good < end; });
    // The first one is of its own row, whatever order of commits it has.
    const auto begin_of_rest = std::max(rest, all.begin() + 1);
    rows.push_back(MakeRow(data, {all.begin(), begin_of_rest}));
    all.erase(all.begin(), begin_of_rest);
  }
}

}  // namespace

std::vector<AttentionRow> AttentionRows(const ReportData& data) {
  // What may be one piece of news: a branch, a verdict and, of what failed,
  // how.
  using Kind = std::tuple<std::string, int, std::string>;
  std::map<Kind, std::vector<Suspicion>> kinds;
  for (int i = 0; i < static_cast<int>(data.series.size()); ++i) {
    const SeriesView& series = data.series[i];
    const tracker::VerdictInfo& info = tracker::InfoOf(series.verdict);
    if (!series.main || !info.wants_attention) continue;
    kinds[{series.of->key.branch, tracker::VerdictRank(series.verdict),
           info.is_change ? "" : series.verdict_detail}]
        .push_back(SuspicionOf(data, i));
  }
  std::vector<AttentionRow> rows;
  for (auto& [kind, suspicions] : kinds) {
    AddRows(data, std::move(suspicions), rows);
  }
  const auto place = [](const AttentionRow& row) {
    return std::make_tuple(row.verdict != Verdict::kSlower,
                           tracker::VerdictRank(row.verdict), -row.bad);
  };
  std::stable_sort(rows.begin(), rows.end(),
                   [&](const AttentionRow& a, const AttentionRow& b) {
                     return place(a) < place(b);
                   });
  return rows;
}

}  // namespace optrail::reports

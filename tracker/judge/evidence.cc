#include "tracker/judge/evidence.h"

#include <algorithm>
#include <cmath>
#include <tuple>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/process/parallel_for.h"
#include "base/text/quote.h"
#include "base/text/units.h"
#include "tracker/judge/beside.h"
#include "tracker/series/series_key.h"
#include "tracker/series/value_text.h"

namespace optrail::tracker {
namespace {

LevelEvidence LevelOf(const Series& series, int begin, int end) {
  LevelEvidence level;
  level.begin = begin;
  level.end = end;
  for (int i = begin; i < end; ++i) {
    const Point& point = series.points[i];
    if (!point.value) continue;
    ++level.points;
    level.run_ids.insert(level.run_ids.end(), point.runs->ids.begin(),
                         point.runs->ids.end());
  }
  level.behind = static_cast<int>(std::count_if(
      series.points.begin() + end, series.points.end(),
      [](const Point& point) { return point.value.has_value(); }));
  std::sort(level.run_ids.begin(), level.run_ids.end());
  level.run_ids.erase(std::unique(level.run_ids.begin(), level.run_ids.end()),
                      level.run_ids.end());
  level.runs = static_cast<int>(level.run_ids.size());
  return level;
}

// "2.1 ms over 4 points (5 runs)", "2.1 ms over the first 4 of 8 points (5
// runs)" where `behind` more were measured since: a level is taken from what
// had been measured when the change was confirmed.
std::string LevelText(double value, const Series& series,
                      const LevelEvidence& level, int behind) {
  return absl::StrCat(
      FormatValue(value, series.key.unit),
      behind > 0 ? " over the first " : " over ", level.points,
      behind > 0 ? absl::StrCat(" of ", level.points + behind) : "",
      level.points + behind == 1 ? " point (" : " points (", level.runs,
      level.runs == 1 ? " run)" : " runs)");
}

// The change between the levels if the points before are too few to tell the
// noise: it may be off by the effect that matters.
absl::optional<ChangePoint> ChangeOfFew(const Series& series, int begin,
                                        int place, int end) {
  auto change = DifferenceAt(series, begin, place, end, /*of_few=*/true);
  if (change) {
    change->relative_change_low =
        (1 + change->relative_change_low) / (1 + kLeastEffect) - 1;
    change->relative_change_high =
        (1 + change->relative_change_high) * (1 + kLeastEffect) - 1;
  }
  return change;
}

constexpr size_t kShort = 12;

std::string ShortId(const proto::Commit& commit) {
  return commit.id().empty() ? "-" : commit.id().substr(0, kShort);
}

}  // namespace

std::string ChangeText(const Change& change) {
  const std::string state(change.IsUndone() &&
                                  change.opinion.state == ChangeState::kNew
                              ? "undone"
                              : ChangeStateName(change.opinion.state));
  switch (change.kind) {
    case ChangeKind::kConfirmed:
      return state;
    case ChangeKind::kProvisional:
      return absl::StrCat("provisional, ", state);
    case ChangeKind::kReturn:
      return "return";
    case ChangeKind::kEpoch:
      return "new epoch";
    case ChangeKind::kMachine:
      return change.provisional ? "provisional, the machine" : "the machine";
    case ChangeKind::kCreep:
      return absl::StrCat("creep, ", state);
    case ChangeKind::kRenamed:
      return absl::StrCat("renamed, ", state);
  }
  return "unknown";
}

Evidence EvidenceOf(const Change& change) {
  if (change.evidence != nullptr) return *change.evidence;
  Evidence evidence;
  const Series& series = *change.series;
  const ChangePoint& point = change.change;
  if (change.kind == ChangeKind::kRenamed) {
    // The level before is another series'.
    if (change.before != nullptr) evidence.good = &change.before->runs->commit;
  } else {
    evidence.before = LevelOf(series, point.begin, point.index - point.between);
    for (int i = point.earliest - 1; i >= 0 && evidence.good == nullptr; --i) {
      if (series.points[i].value)
        evidence.good = &series.points[i].runs->commit;
    }
  }
  evidence.after = LevelOf(series, point.index, point.end);
  evidence.bad =
      &series.points[std::max(point.latest, point.index)].runs->commit;
  CountSuspects(evidence);
  return evidence;
}

void CountSuspects(Evidence& evidence) {
  evidence.suspects.reset();
  if (evidence.good != nullptr && evidence.good->has_first_parent_position() &&
      evidence.bad->has_first_parent_position()) {
    evidence.suspects = evidence.bad->first_parent_position() -
                        evidence.good->first_parent_position();
  }
}

std::string SuspectsText(const Evidence& evidence) {
  if (evidence.good == nullptr || evidence.suspects == 1) {
    return ShortId(*evidence.bad);
  }
  return absl::StrCat(ShortId(*evidence.good), "..", ShortId(*evidence.bad));
}

std::string PatternOf(absl::string_view name) {
  std::string pattern;
  for (const char c : name) {
    if (c == '\0') {
      pattern += "\\x00";
    } else if (c == '\n') {  // a pattern is one line of what scripts read
      pattern += "\\n";
    } else {
      if (absl::StrContains("\\.+*?()|[]{}^$", c)) pattern += '\\';
      pattern += c;
    }
  }
  return pattern;
}

std::string FilterFlags(absl::string_view name, absl::string_view metric) {
  return absl::StrCat(
      " --filter=", QuoteForShell(absl::StrCat("^", PatternOf(name), "$")),
      metric == "time" ? ""
                       : absl::StrCat(" --metric=", QuoteForShell(metric)));
}

std::string BisectCommand(absl::string_view good_id, absl::string_view bad_id,
                          absl::string_view name, absl::string_view metric,
                          absl::string_view how) {
  return absl::StrCat("optrail bisect ", good_id.substr(0, kShort), " ",
                      bad_id.substr(0, kShort), FilterFlags(name, metric), " ",
                      how);
}

std::string ShowCommand(absl::string_view run_id, absl::string_view name) {
  return absl::StrCat("optrail show ", run_id, " --filter=",
                      QuoteForShell(absl::StrCat("^", PatternOf(name), "$")));
}

std::string NextCommand(const Evidence& evidence, absl::string_view name,
                        absl::string_view metric, absl::string_view how) {
  if (evidence.good == nullptr || evidence.good->id().empty() ||
      evidence.bad->id().empty() || evidence.good->id() == evidence.bad->id()) {
    return "";
  }
  return evidence.suspects == 1
             ? absl::StrCat("git show ", ShortId(*evidence.bad))
             : BisectCommand(evidence.good->id(), evidence.bad->id(), name,
                             metric, how);
}

std::string NarrowingCommand(const Change& change, const Evidence& evidence,
                             absl::string_view history_flag) {
  if (change.kind == ChangeKind::kCreep) {
    return absl::StrCat("optrail show ",
                        QuoteForShell(CanonicalText(change.series->key)),
                        history_flag);
  }
  const SeriesKey& key = change.series->key;
  return NextCommand(evidence, DisplayName(key.benchmark), key.metric);
}

std::string EvidenceText(const Change& change, const Evidence& evidence) {
  const Series& series = *change.series;
  const ChangePoint& point = change.change;
  const double by = point.relative_change;
  // An interval with zero in it needs its signs.
  const bool is_signed =
      point.relative_change_low * point.relative_change_high <= 0;
  double least = point.relative_change_low, most = point.relative_change_high;
  if (!is_signed && by < 0) std::swap(least, most);
  const auto percent = [&](double change) {
    return is_signed ? FormatChange(change) : FormatPercent(std::abs(change));
  };
  std::string text = absl::StrCat(
      DisplayName(series.key.benchmark), " ", series.key.metric, ": ",
      FormatPercent(std::abs(by)), " ", ChangeWord(by, series.key.metric), " (",
      percent(least), " to ", percent(most), "); ");
  if (evidence.before.points > 0) {
    absl::StrAppend(&text,
                    LevelText(point.level_before, series, evidence.before,
                              /*behind=*/0));
  } else {
    absl::StrAppend(&text, FormatValue(point.level_before, series.key.unit));
  }
  if (change.before != nullptr) {
    absl::StrAppend(&text, " up to ", ShortId(change.before->runs->commit));
  }
  absl::StrAppend(&text, ", ",
                  LevelText(point.level_after, series, evidence.after,
                            evidence.after.behind),
                  " since ", ShortId(change.after().runs->commit),
                  change.kind == ChangeKind::kCreep ? "; little by little over "
                                                    : "; suspected: ",
                  SuspectsText(evidence));
  if (evidence.suspects && *evidence.suspects > 1) {
    absl::StrAppend(&text, " (", *evidence.suspects, " commits)");
  }
  return text;
}

std::vector<std::string> ChangedWith(const Evidence& evidence,
                                     const Change& change,
                                     Explainer& explainer) {
  if (evidence.before.run_ids.empty() || evidence.after.run_ids.empty()) {
    return {};
  }
  return explainer.Lines({change.series->key.benchmark,
                          evidence.before.run_ids.back(),
                          evidence.after.run_ids.front(), 1 + change.worse_by});
}

absl::optional<ChangePoint> ChangeSince(const std::vector<Point>& past,
                                        const Series& series, int place) {
  Series whole;
  whole.points = past;
  whole.points.insert(whole.points.end(), series.points.begin() + place,
                      series.points.end());
  const int begin = static_cast<int>(past.size());
  auto change =
      ChangeOfFew(whole, 0, begin, static_cast<int>(whole.points.size()));
  if (!change) return change;
  change->index = change->earliest = change->latest = place;
  change->begin = place;
  change->end += place - begin;
  return change;
}

absl::optional<ChangePoint> ChangeAsMeasured(const Judgement& judgement,
                                             const Series& series, int place) {
  int begin = 0, end = static_cast<int>(series.points.size());
  const auto bound = [&](int at) {
    if (at <= place) begin = std::max(begin, at);
    if (at > place) end = std::min(end, at);
  };
  for (const int epoch : judgement.epoch_begins) bound(epoch);
  for (const Change& change : judgement.changes) bound(change.change.index);
  const auto change = DifferenceAt(series, begin, place, end);
  if (change) return change;
  // A few points, or those of another epoch, say about how much it is.
  const auto about = ChangeOfFew(series, begin, place, end);
  return about ? about : ChangeOfFew(series, 0, place, end);
}

std::vector<bool> MainSeries(const std::vector<Series>& series) {
  using Benchmark = std::tuple<std::string, std::string, std::string>;
  std::vector<Benchmark> benchmarks(series.size());
  ParallelFor(
      static_cast<int64_t>(series.size()), /*threads=*/0,
      [&](int64_t i) {
        const SeriesKey& key = series[i].key;
        benchmarks[i] = {DisplayName(key.benchmark), key.hardware_id,
                         key.branch};
      },
      /*piece=*/16);
  // Every result has a time, measured or not.
  absl::flat_hash_set<Benchmark> timed, otherwise;
  for (size_t i = 0; i < series.size(); ++i) {
    const bool has_value =
        std::any_of(series[i].points.begin(), series[i].points.end(),
                    [](const Point& point) { return point.value.has_value(); });
    if (!has_value) continue;
    (series[i].key.metric == "time" ? timed : otherwise).insert(benchmarks[i]);
  }
  std::vector<bool> main;
  for (size_t i = 0; i < series.size(); ++i) {
    const bool by_time =
        timed.contains(benchmarks[i]) || !otherwise.contains(benchmarks[i]);
    main.push_back((series[i].key.metric == "time") == by_time);
  }
  return main;
}

}  // namespace optrail::tracker

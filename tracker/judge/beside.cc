#include "tracker/judge/beside.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <map>
#include <set>
#include <tuple>
#include <unordered_map>

#include "absl/strings/str_format.h"
#include "base/stats/statistics.h"
#include "base/text/units.h"
#include "tracker/judge/levels.h"
#include "tracker/series/similar.h"

namespace optrail::tracker {
namespace {

// A shift is one beyond so many standard errors of a difference of medians.
constexpr double kSureErrors = 4;
// The least of what a loop does that its benchmark does.
constexpr double kLeastShare = .5;

// More of the newest points than this are for the detector.
constexpr int kMostNewest = 10;
// Their level's noise is that of as many points before them, if that is less.
constexpr int kNoisePoints = 60;

// Levels are the same if they differ by this share of the shift between them.
constexpr double kSameLevel = .3;

// Points that others may have between the last one of the old name and the
// first one of the new: suites take turns.
constexpr int kMostBetween = 5;
// Noise is not known from fewer.
constexpr int kFewestBefore = 10;

// The first point of the last epoch, or of the one after the first.
int BeginOfLastEpoch(const Series& series) {
  int begin = static_cast<int>(series.points.size()) - 1;
  while (begin > 0 &&
         series.points[begin - 1].epoch == series.points.back().epoch) {
    --begin;
  }
  return begin;
}
int EndOfFirstEpoch(const Series& series) {
  int end = 1;
  while (end < static_cast<int>(series.points.size()) &&
         series.points[end].epoch == series.points[0].epoch) {
    ++end;
  }
  return end;
}

// The first of the points up to the change's place, all of which are nearer to
// `level` than to `other`.
int FirstNearTo(double level, double other, const Series& series, int begin,
                const ChangePoint& change) {
  const double between = (std::log(level) + std::log(other)) / 2;
  int first = change.index;
  for (int i = change.index - 1; i >= begin; --i) {
    const absl::optional<double> log = LogOfValue(series.points[i]);
    if (!log) continue;
    if ((*log > between) != (level > other)) break;
    first = i;
  }
  return first;
}

// The first of the points up to the change's place, none of which is nearer to
// the level before.
int EarliestPlace(const Series& series, int begin, const ChangePoint& change) {
  return FirstNearTo(change.level_after, change.level_before, series, begin,
                     change);
}

// The difference between the levels of [begin, before_end) and [place, end);
// nullopt where the former has fewer points than `fewest`, or the latter none.
absl::optional<ChangePoint> Difference(const Series& series, int begin,
                                       int before_end, int place, int end,
                                       int fewest) {
  const std::vector<double> before =
      Logs(series, before_end - 1, begin - 1, -1, kLevelPoints, LogOfValue);
  const std::vector<double> after =
      Logs(series, place, end, 1, kLevelPoints, LogOfValue);
  if (static_cast<int>(before.size()) < fewest || after.empty()) {
    return absl::nullopt;
  }
  ChangePoint change = ChangeOfLogs(LevelsOf(before, after), place);
  change.between = place - before_end;
  // Exactly the points that the levels are of.
  change.begin = before_end;
  for (size_t found = 0; found < before.size();) {
    found += LogOfValue(series.points[--change.begin]).has_value();
  }
  change.end = place;
  for (size_t found = 0; found < after.size();) {
    found += LogOfValue(series.points[change.end++]).has_value();
  }
  return change;
}

// When each of the series' points began.
std::vector<int64_t> TimesOf(const Series& series) {
  if (series.times != nullptr) return *series.times;
  std::vector<int64_t> times;
  times.reserve(series.points.size());
  for (const Point& point : series.points) {
    times.push_back(point.runs->first_started_unix_ns);
  }
  return times;
}

absl::optional<ChangePoint> ChangeAcrossNames(const Series& from,
                                              const Series& to) {
  if (!DescribeToolchainChange(from.epochs.back().toolchain,
                               to.epochs.front().toolchain)
           .empty()) {
    return absl::nullopt;
  }
  const std::vector<double> before =
      Logs(from, static_cast<int>(from.points.size()) - 1,
           BeginOfLastEpoch(from) - 1, -1, kLevelPoints, LogOfValue);
  const std::vector<double> after =
      Logs(to, 0, EndOfFirstEpoch(to), 1, kLevelPoints, LogOfValue);
  if (static_cast<int>(before.size()) < kFewestBefore ||
      static_cast<int>(after.size()) < kFewestBeside) {
    return absl::nullopt;
  }
  const Levels levels = LevelsOf(before, after);
  const double shift = levels.after - levels.before;
  // What takes another time altogether is another benchmark.
  if (std::abs(shift) > std::log(2) ||
      std::abs(shift) <= kSureErrors * levels.error) {
    return absl::nullopt;
  }
  int first = 0;
  while (!to.points[first].value) ++first;
  ChangePoint change = ChangeOfLogs(levels, first);
  change.begin = first;
  change.end = std::min(first + kLevelPoints, EndOfFirstEpoch(to));
  if (std::abs(WorseBy(to, change.relative_change)) < kLeastEffect) {
    return absl::nullopt;
  }
  return change;
}

}  // namespace

double WorseBy(const Series& series, double relative_change) {
  if (series.direction != proto::HIGHER_IS_BETTER) return relative_change;
  return relative_change > -1 ? 1 / (1 + relative_change) - 1
                              : std::numeric_limits<double>::infinity();
}

absl::optional<std::string> LoopBehind(const Series& series, int begin,
                                       const ChangePoint& change, int end,
                                       double tolerance) {
  if (!(change.level_before > 0) || !(change.level_after > 0)) {
    return absl::nullopt;
  }
  const double shift = std::log(change.level_after / change.level_before);
  absl::optional<std::string> behind;
  double nearest = tolerance;
  for (const LoopReading& loop : series.points[change.index].calibrations) {
    const auto read = [&](const Point& point) -> absl::optional<double> {
      for (const LoopReading& reading : point.calibrations) {
        if (reading.loop == loop.loop) return reading.log_ns;
      }
      return absl::nullopt;
    };
    const std::vector<double> before =
        Logs(series, change.index - 1, begin - 1, -1, kLevelPoints, read);
    const std::vector<double> after =
        Logs(series, change.index, end, 1, kLevelPoints, read);
    if (static_cast<int>(before.size()) < kFewestBeside || after.empty() ||
        static_cast<int>(after.size()) <
            std::min(kFewestBeside, end - change.index)) {
      continue;
    }
    const Levels levels = LevelsOf(before, after);
    const double moved = levels.after - levels.before;
    // Memory that became slower slows what is half bound by it by half.
    const double share = moved != 0 ? shift / moved : 0;
    const double beyond = std::max(0.0, std::abs(shift) - std::abs(moved));
    if (share < kLeastShare || std::abs(moved) <= kSureErrors * levels.error ||
        beyond >= nearest) {
      continue;
    }
    nearest = beyond;
    behind = absl::StrFormat("%s took %s %s time", loop.loop,
                             FormatPercent(std::abs(std::expm1(moved))),
                             moved > 0 ? "more" : "less");
    if (beyond == 0) break;
  }
  return behind;
}

absl::optional<ChangePoint> FindNewest(const Series& series, int begin,
                                       bool for_the_worse) {
  std::vector<int> places;  // of the values, the newest first
  for (int i = static_cast<int>(series.points.size()) - 1;
       i >= begin && static_cast<int>(places.size()) < 2 * kLevelPoints; --i) {
    if (LogOfValue(series.points[i])) places.push_back(i);
  }
  if (places.empty() ||
      places[0] + 1 < static_cast<int>(series.points.size())) {
    return absl::nullopt;
  }
  const int most =
      std::min(kMostNewest, static_cast<int>(places.size()) - kFewestEnd);
  for (int k = most; k > 0; --k) {
    const std::vector<double> level =
        Logs(series, places[k], begin - 1, -1, kLevelPoints, LogOfValue);
    const double middle = Median(level);
    // On a slope the neighbours spread more than the level's noise.
    const double noise =
        kFarOff *
        std::min(MedianAbsoluteDeviation(level),
                 MedianAbsoluteDeviation(Logs(series, places[k], begin - 1, -1,
                                              kNoisePoints, LogOfValue)));
    const auto is_off = [&](int place) {
      const double shift = *LogOfValue(series.points[place]) - middle;
      const double worse_by = WorseBy(series, std::expm1(shift));
      return (for_the_worse ? worse_by : -worse_by) >= kLeastEffect &&
             std::abs(shift) > noise;
    };
    if (std::all_of(places.begin(), places.begin() + k, is_off)) {
      absl::optional<ChangePoint> change = DifferenceAt(
          series, begin, places[k - 1], static_cast<int>(series.points.size()));
      // The level needs so many points that some may be of the new one.
      if (change) change->earliest = EarliestPlace(series, begin, *change);
      return change;
    }
  }
  return absl::nullopt;
}

absl::optional<ChangePoint> FindNewestBehind(const Series& series, int before,
                                             int begin) {
  const int end = static_cast<int>(series.points.size());
  const std::vector<double> past =
      Logs(series, begin - 1, before - 1, -1, kNoisePoints, LogOfValue);
  std::vector<int> places;
  for (int i = begin; i < end; ++i) {
    if (LogOfValue(series.points[i])) places.push_back(i);
  }
  const int points = static_cast<int>(places.size());
  if (static_cast<int>(past.size()) < kFewestBefore || points < 2 ||
      points > kMostNewest || places.back() + 1 < end) {
    return absl::nullopt;
  }
  const double level = Median(past);
  double farthest = 0;
  for (const double log : past) {
    farthest = std::max(farthest, std::abs(log - level));
  }
  for (int few = 1; few < std::min(points, kFewestEnd); ++few) {
    const double middle =
        Median(Logs(series, begin, places[few], 1, few, LogOfValue));
    // A level of few points is as uncertain as they are, and they may be as far
    // off as any before.
    const double noise = std::max(
        kFarOff * MedianAbsoluteDeviation(past) * std::sqrt(1 + 1. / few),
        farthest);
    const bool all_off =
        std::all_of(places.begin() + few, places.end(), [&](int place) {
          const double shift = *LogOfValue(series.points[place]) - middle;
          return WorseBy(series, std::expm1(shift)) >= kLeastEffect &&
                 std::abs(shift) > noise;
        });
    if (!all_off) continue;
    auto change =
        DifferenceAt(series, begin, places[few], end, /*of_few=*/true);
    if (change) {
      change->relative_change_low =
          (1 + change->relative_change_low) * std::exp(-noise) - 1;
      change->relative_change_high =
          (1 + change->relative_change_high) * std::exp(noise) - 1;
    }
    return change;
  }
  return absl::nullopt;
}

absl::optional<ChangePoint> FindNewestBeyond(const Series& series, int begin,
                                             int mark) {
  const std::vector<double> level =
      Logs(series, mark - 1, begin - 1, -1, kLevelPoints, LogOfValue);
  if (static_cast<int>(level.size()) < kFewestEnd) return absl::nullopt;
  const double middle = Median(level);
  double noise = kFarOff * MedianAbsoluteDeviation(level);
  for (const double log : level) {
    noise = std::max(noise, std::abs(log - middle));
  }
  const auto is_off = [&](double log) {
    return WorseBy(series, std::expm1(log - middle)) >= kLeastEffect &&
           std::abs(log - middle) > noise;
  };
  const int end = static_cast<int>(series.points.size());
  int place = end;
  for (int i = end - 1, points = 0; i >= mark && points < kMostNewest; --i) {
    if (!series.points[i].value) continue;
    const absl::optional<double> log = LogOfValue(series.points[i]);
    if (!log || !is_off(*log)) break;
    place = i;
    ++points;
  }
  if (place == end) return absl::nullopt;
  auto change = Difference(series, begin, mark, place, end, kFewestEnd);
  if (change) change->earliest = mark;
  return change;
}

absl::optional<ChangePoint> DifferenceAt(const Series& series, int begin,
                                         int place, int end, bool of_few) {
  return Difference(series, begin, place, place, end, of_few ? 1 : kFewestEnd);
}

absl::optional<ChangePoint> MovedBack(const Series& series, int begin,
                                      const ChangePoint& change) {
  const int place = EarliestPlace(series, begin, change);
  if (place == change.index) return absl::nullopt;
  return DifferenceAt(series, begin, place,
                      static_cast<int>(series.points.size()));
}

absl::optional<ChangePoint> FindBeginOfStretch(const Series& series, int begin,
                                               const ChangePoint& change) {
  if (!(change.level_before > 0) || !(change.level_after > 0)) {
    return absl::nullopt;
  }
  const int first = FirstNearTo(change.level_before, change.level_after, series,
                                begin, change);
  const std::vector<double> before =
      Logs(series, first - 1, begin - 1, -1, kLevelPoints, LogOfValue);
  const std::vector<double> stretch =
      Logs(series, first, change.index, 1, kLevelPoints, LogOfValue);
  if (static_cast<int>(before.size()) < kFewestEnd ||
      static_cast<int>(stretch.size()) < kFewestBeside) {
    return absl::nullopt;
  }
  const absl::optional<ChangePoint> step =
      DifferenceAt(series, begin, first, change.index);
  const double shift = std::log(step->level_after / step->level_before);
  const double remains = std::log(change.level_after / step->level_before);
  if (std::abs(remains) > kSameLevel * std::abs(shift) ||
      std::abs(shift) <= kFarOff * MedianAbsoluteDeviation(before) ||
      std::abs(WorseBy(series, step->relative_change)) < kLeastEffect) {
    return absl::nullopt;
  }
  return step;
}

std::vector<Renaming> FindRenamings(const std::vector<Series>& series) {
  using Group = std::tuple<std::string, std::string, std::string, std::string>;
  std::map<Group, std::vector<int>> groups;
  for (int i = 0; i < static_cast<int>(series.size()); ++i) {
    const SeriesKey& key = series[i].key;
    if (series[i].points.empty()) continue;
    groups[{key.hardware_id, key.branch, key.metric, key.unit}].push_back(i);
  }
  std::vector<Renaming> renamings;
  for (const auto& [key, group] : groups) {
    struct Life {
      int64_t first = std::numeric_limits<int64_t>::max();
      int64_t last = std::numeric_limits<int64_t>::min();
    };
    std::vector<Life> lives;
    Life all;
    bool equal = true;
    for (const int i : group) {
      Life life;
      for (const int64_t time : TimesOf(series[i])) {
        life.first = std::min(life.first, time);
        life.last = std::max(life.last, time);
      }
      all.first = std::min(all.first, life.first);
      all.last = std::max(all.last, life.last);
      equal &= lives.empty() || (life.first == lives.back().first &&
                                 life.last == lives.back().last);
      lives.push_back(life);
    }
    if (equal) continue;
    std::vector<int64_t> times;
    // Series that are always measured together share theirs.
    std::set<const std::vector<int64_t>*> shared;
    for (const int i : group) {
      const auto* const known = series[i].times.get();
      if (known != nullptr && !shared.insert(known).second) continue;
      const std::vector<int64_t> more = TimesOf(series[i]);
      times.insert(times.end(), more.begin(), more.end());
    }
    std::sort(times.begin(), times.end());
    times.erase(std::unique(times.begin(), times.end()), times.end());
    const auto turn = [&](int64_t time) {
      return static_cast<int>(
          std::lower_bound(times.begin(), times.end(), time) - times.begin());
    };
    // By the turn at which they begin, and at which they end.
    std::map<int, std::vector<int>> added, vanished;
    for (size_t k = 0; k < group.size(); ++k) {
      if (lives[k].first > all.first) {
        added[turn(lives[k].first)].push_back(group[k]);
      }
      if (lives[k].last < all.last) {
        vanished[turn(lives[k].last)].push_back(group[k]);
      }
    }
    for (const auto& [begin, news] : added) {
      std::vector<int> olds;
      for (auto it = vanished.lower_bound(begin - 1 - kMostBetween);
           it != vanished.end() && it->first < begin; ++it) {
        olds.insert(olds.end(), it->second.begin(), it->second.end());
      }
      const auto names = [&](const std::vector<int>& of) {
        std::vector<std::string> all_names;
        for (const int i : of) {
          all_names.push_back(DisplayName(series[i].key.benchmark));
        }
        return all_names;
      };
      if (olds.empty()) continue;
      for (const auto& [from, to] : MatchRenamed(names(olds), names(news))) {
        renamings.push_back(
            {olds[from], news[to],
             ChangeAcrossNames(series[olds[from]], series[news[to]])});
      }
    }
  }
  return renamings;
}

std::vector<bool> FindMissing(const std::vector<Series>& series,
                              const std::vector<proto::Run>& runs) {
  using Suite = std::tuple<std::string, std::string, std::string>;
  const auto suite_of = [](const proto::Run& run) {
    return Suite(run.suite(), run.hardware().id(), run.commit().branch());
  };
  // By commit, and by time where positions are not known: a run of an old
  // commit that is measured today is not the newest.
  const auto is_newer = [](const proto::Run& a, const proto::Run& b) {
    const proto::Commit& x = a.commit();
    const proto::Commit& y = b.commit();
    if (x.has_first_parent_position() && y.has_first_parent_position() &&
        x.first_parent_position() != y.first_parent_position()) {
      return x.first_parent_position() > y.first_parent_position();
    }
    return a.started_unix_ns() > b.started_unix_ns();
  };
  std::map<Suite, const proto::Run*> newest;
  std::unordered_map<std::string, const proto::Run*> by_id;
  for (const proto::Run& run : runs) {
    by_id[run.run_id()] = &run;
    const proto::Run*& known = newest[suite_of(run)];
    if (known == nullptr || is_newer(run, *known)) known = &run;
  }
  std::vector<bool> missing(series.size(), false);
  for (size_t i = 0; i < series.size(); ++i) {
    if (series[i].points.empty()) continue;
    const Point& last = series[i].points.back();
    bool lacked = false, found = false;
    for (const std::string& id : last.runs->ids) {
      const auto run = by_id.find(id);
      if (run == by_id.end()) continue;
      const proto::Run& suite = *newest.at(suite_of(*run->second));
      // Another run of the same commit is the same point.
      const bool same_commit = !last.runs->commit.id().empty() &&
                               suite.commit().id() == last.runs->commit.id();
      (suite.run_id() == id || same_commit ? found : lacked) = true;
    }
    missing[i] = lacked && !found;
  }
  return missing;
}

}  // namespace optrail::tracker

#include "tracker/triage/changes.h"

#include <algorithm>
#include <atomic>
#include <limits>
#include <thread>
#include <tuple>
#include <utility>

#include "tracker/detect/online.h"

namespace optrail::tracker {
namespace {

double WorseBy(const Series& series, const ChangePoint& change) {
  const double relative = change.relative_change;
  if (series.direction != proto::HIGHER_IS_BETTER) return relative;
  return relative > -1 ? 1 / (1 + relative) - 1
                       : std::numeric_limits<double>::infinity();
}

std::vector<Change> ChangesOf(const Series& series, const TriageBook& book) {
  std::vector<double> values;
  values.reserve(series.points.size());
  for (const Point& point : series.points) {
    values.push_back(
        point.value.value_or(std::numeric_limits<double>::quiet_NaN()));
  }
  const OnlineResult result = DetectOnline(values);
  std::vector<Change> changes;
  const auto add = [&](const ChangePoint& point, bool confirmed) {
    Change change;
    change.series = &series;
    change.change = point;
    change.confirmed = confirmed;
    change.worse_by = WorseBy(series, point);
    change.opinion = book.OpinionOf(series, point);
    for (int i = point.index - 1; i >= 0 && change.before == nullptr; --i) {
      if (series.points[i].value.has_value()) change.before = &series.points[i];
    }
    changes.push_back(std::move(change));
  };
  for (const ChangePoint& point : result.confirmed) add(point, true);
  if (result.provisional.has_value()) add(*result.provisional, false);
  return changes;
}

}  // namespace

std::vector<Change> FindChanges(const std::vector<Series>& series,
                                const TriageBook& book, int threads) {
  std::vector<std::vector<Change>> found(series.size());
  std::atomic<size_t> next{0};
  const auto work = [&] {
    for (size_t i = next++; i < series.size(); i = next++) {
      found[i] = ChangesOf(series[i], book);
    }
  };
  if (threads <= 0) {
    threads = static_cast<int>(std::thread::hardware_concurrency());
  }
  std::vector<std::thread> others;
  for (int i = 1; i < threads; ++i) others.emplace_back(work);
  work();
  for (std::thread& thread : others) thread.join();

  std::vector<Change> changes;
  for (std::vector<Change>& some : found) {
    std::move(some.begin(), some.end(), std::back_inserter(changes));
  }
  std::stable_sort(
      changes.begin(), changes.end(), [](const Change& a, const Change& b) {
        return std::make_tuple(a.opinion.state, !a.confirmed, -a.worse_by) <
               std::make_tuple(b.opinion.state, !b.confirmed, -b.worse_by);
      });
  return changes;
}

}  // namespace optrail::tracker

#include "tracker/detect/trends.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>

#include "base/stats/statistics.h"
#include "tracker/detect/slopes.h"

namespace optrail::tracker {
namespace {

constexpr int kShortestPeriod = 4;
constexpr int kLongestPeriod = 60;
constexpr int kFewestPeriods = 5;
// A period is worth a closer look if differences of neighbours correlate so
// much with those one period before; and is one if its shape explains this
// share of the squares.
constexpr double kPeriodCorrelation = 0.4;
constexpr double kSeasonShare = 0.6;

constexpr int kFewestTrendPoints = 20;
constexpr int kShortestLine = 5;
constexpr int kMostLines = 6;
// A line has at least this share of the points; breaks lie on a grid that cuts
// the series into so many pieces.
constexpr int kLinesPerSeries = 12;
constexpr int kPlaces = 60;
// Values that correlate less with their neighbours have no slope.
constexpr double kSlopeCorrelation = 0.5;
// A break leaves no more than this share unexplained of what there was.
constexpr double kElbow = 0.55;
// What is left of the whole variance by then is explained well enough.
constexpr double kExplained = 0.02;
// Lines leave no more than this share of what one level leaves.
constexpr double kLinesOverLevel = 0.5;
// Rise over a line, in deviations from it, that makes it a slope; and the share
// of points that have to be on one.
constexpr double kRise = 4;
constexpr double kSlopedShare = 0.8;

// The shape of one period, and how much of the squares it explains.
struct Season {
  std::vector<double> shape;
  double share = 0;
};

Season SeasonOfPeriod(absl::Span<const double> values, int period) {
  const int n = static_cast<int>(values.size());
  // A moving mean over one period, half a point at either end if it is even.
  const int half = period / 2;
  std::vector<double> sums(n + 1, 0);
  for (int i = 0; i < n; ++i) sums[i + 1] = sums[i] + values[i];
  std::vector<std::vector<double>> by_phase(period);
  std::vector<double> rest(n, 0);
  for (int i = half; i + half < n; ++i) {
    double sum = sums[i + half + 1] - sums[i - half];
    if (period % 2 == 0) sum -= (values[i - half] + values[i + half]) / 2;
    rest[i] = values[i] - sum / period;
    by_phase[i % period].push_back(rest[i]);
  }
  Season season;
  double mean = 0;
  for (std::vector<double>& phase : by_phase) {
    season.shape.push_back(phase.empty() ? 0 : Median(phase));
    mean += season.shape.back() / period;
  }
  for (double& s : season.shape) s -= mean;
  double before = 0, after = 0;
  for (int i = half; i + half < n; ++i) {
    const double left = rest[i] - season.shape[i % period];
    before += rest[i] * rest[i];
    after += left * left;
  }
  season.share = before > 0 ? 1 - after / before : 0;
  return season;
}

// The best partitions of a series into 1, 2, ... lines, one more at a time, by
// dynamic programming over a grid of places.
class Partitions {
 public:
  Partitions(const RangeFits& lines, int n) : lines_(lines) {
    const int step = std::max(1, n / kPlaces);
    for (int p = 0; p < n; p += step) places_.push_back(p);
    places_.push_back(n);
    shortest_ = std::max(kShortestLine, n / kLinesPerSeries);
    best_.push_back(Row(places_.size()));
    for (size_t j = 1; j < places_.size(); ++j) {
      if (places_[j] >= shortest_) {
        best_[0][j] = {lines_.Slope(0, places_[j]).residual, -1};
      }
    }
  }

  double Squares() const { return best_.back().back().squares; }

  void AddLine() {
    const Row& fewer = best_.back();
    Row row(places_.size());
    for (size_t j = 1; j < places_.size(); ++j) {
      for (size_t i = 1; i < j; ++i) {
        if (places_[j] - places_[i] < shortest_) break;
        if (fewer[i].squares >= row[j].squares) continue;
        const double squares =
            fewer[i].squares + lines_.Slope(places_[i], places_[j]).residual;
        if (squares < row[j].squares) {
          row[j] = {squares, static_cast<int>(i)};
        }
      }
    }
    best_.push_back(std::move(row));
  }
  void DropLine() { best_.pop_back(); }

  std::vector<int> Breaks() const {
    std::vector<int> breaks;
    int at = static_cast<int>(places_.size()) - 1;
    for (size_t k = best_.size() - 1; k > 0; --k) {
      at = best_[k][at].before;
      breaks.push_back(places_[at]);
    }
    std::reverse(breaks.begin(), breaks.end());
    return breaks;
  }

 private:
  struct Best {
    double squares = std::numeric_limits<double>::infinity();
    int before = -1;
  };
  using Row = std::vector<Best>;

  const RangeFits& lines_;
  std::vector<int> places_;
  int shortest_;
  std::vector<Row> best_;  // [breaks][place]
};

// Breaks moved off the grid, one after the other, to where they fit best.
void Refine(const RangeFits& lines, int n, int step, std::vector<int>& breaks) {
  for (size_t k = 0; k < breaks.size(); ++k) {
    const int begin = k > 0 ? breaks[k - 1] : 0;
    const int end = k + 1 < breaks.size() ? breaks[k + 1] : n;
    int best = breaks[k];
    double least = std::numeric_limits<double>::infinity();
    for (int p = std::max(begin + kShortestLine, breaks[k] - step);
         p <= std::min(end - kShortestLine, breaks[k] + step); ++p) {
      const double squares =
          lines.Slope(begin, p).residual + lines.Slope(p, end).residual;
      if (squares < least) {
        least = squares;
        best = p;
      }
    }
    breaks[k] = best;
  }
}

}  // namespace

std::vector<double> SeasonOf(absl::Span<const double> values) {
  const int n = static_cast<int>(values.size());
  const int longest = std::min(kLongestPeriod, n / kFewestPeriods);
  if (longest < kShortestPeriod) return {};
  std::vector<double> differences(n - 1);
  double squares = 0;
  for (int i = 0; i + 1 < n; ++i) {
    differences[i] = values[i + 1] - values[i];
    squares += differences[i] * differences[i];
  }
  if (!(squares > 0)) return {};
  Season best;
  for (int period = kShortestPeriod; period <= longest; ++period) {
    double lagged = 0;
    for (int i = period; i + 1 < n; ++i) {
      lagged += differences[i] * differences[i - period];
    }
    if (lagged < kPeriodCorrelation * squares * (n - 1 - period) / (n - 1)) {
      continue;
    }
    Season season = SeasonOfPeriod(values, period);
    // A multiple of the period explains a little more.
    const double least =
        best.shape.empty() ? kSeasonShare : 1 - 0.7 * (1 - best.share);
    if (season.share > least) best = std::move(season);
  }
  if (best.shape.empty()) return {};
  std::vector<double> season(n);
  for (int i = 0; i < n; ++i) season[i] = best.shape[i % best.shape.size()];
  return season;
}

absl::optional<std::vector<int>> BreaksOfTrend(
    absl::Span<const double> values) {
  const int n = static_cast<int>(values.size());
  if (n < kFewestTrendPoints) return absl::nullopt;
  double mean = 0, whole = 0, lagged = 0;
  for (const double v : values) mean += v / n;
  for (int i = 0; i < n; ++i) {
    whole += (values[i] - mean) * (values[i] - mean);
    if (i > 0) lagged += (values[i] - mean) * (values[i - 1] - mean);
  }
  if (!(lagged > kSlopeCorrelation * whole)) return absl::nullopt;

  const RangeFits lines(values);
  Partitions partitions(lines, n);
  for (int k = 1; k < kMostLines; ++k) {
    const double squares = partitions.Squares();
    if (squares <= kExplained * whole) break;
    partitions.AddLine();
    if (partitions.Squares() > kElbow * squares) {
      partitions.DropLine();
      break;
    }
  }
  if (!(partitions.Squares() <= kLinesOverLevel * whole)) {
    return absl::nullopt;
  }
  std::vector<int> breaks = partitions.Breaks();
  Refine(lines, n, std::max(1, n / kPlaces), breaks);
  const double deviation = std::sqrt(partitions.Squares() / n);
  int sloped = 0, begin = 0;
  for (size_t k = 0; k <= breaks.size(); ++k) {
    const int end = k < breaks.size() ? breaks[k] : n;
    if (std::abs(lines.Slope(begin, end).slope) * (end - begin - 1) >
        kRise * deviation) {
      sloped += end - begin;
    }
    begin = end;
  }
  if (sloped < kSlopedShare * n) return absl::nullopt;
  return breaks;
}

}  // namespace optrail::tracker

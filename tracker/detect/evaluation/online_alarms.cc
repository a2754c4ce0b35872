// What the online fold says of series in which nothing changes, and how soon it
// confirms a step where the series was steady: the figures of
// docs/method/detection.md.
//
//   bazel run //tracker/detect/evaluation:online_alarms -- --points=500000

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <iostream>
#include <string>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/flags/parse.h"
#include "absl/flags/usage.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/random.h"
#include "base/stats/statistics.h"
#include "tracker/detect/online.h"
#include "tracker/detect/sudden.h"

ABSL_FLAG(int, points, 500'000, "points per kind of series");
ABSL_FLAG(int, series_points, 300, "points of one series");
ABSL_FLAG(std::string, kinds, "", "only kinds whose name has this in it");
ABSL_FLAG(bool, show, false, "print every alert: series, place, how soon");
ABSL_FLAG(int, steps, 1000, "series with a step per row of the delays");
ABSL_FLAG(double, alert_effect, .03, "an alert is a rise of more than this");
ABSL_FLAG(uint64_t, seed, 1, "of the first series");

namespace optrail::tracker {
namespace {

// The relative deviation of point t; `state` is the series' own, 0 at first.
using Noise = std::function<double(Rng& rng, int t, double& state)>;

struct Kind {
  std::string name;
  Noise noise;
};

Noise Normal(double sd) {
  return [sd](Rng& rng, int, double&) { return sd * rng.Gaussian(); };
}

Noise Autocorrelated(double phi, double sd) {
  return [=](Rng& rng, int t, double& state) {
    state = t == 0 ? rng.Gaussian()
                   : phi * state + std::sqrt(1 - phi * phi) * rng.Gaussian();
    return sd * state;
  };
}

Noise StudentT3(double sd) {
  return [sd](Rng& rng, int, double&) {
    double power = 0;
    for (int i = 0; i < 3; ++i) {
      const double z = rng.Gaussian();
      power += z * z / 3;
    }
    return sd * rng.Gaussian() / std::sqrt(power);
  };
}

// On a level of its own for each t, in normal noise of 1%.
Noise Level(std::function<double(Rng& rng, int t, double& state)> level) {
  return [level = std::move(level)](Rng& rng, int t, double& state) {
    return level(rng, t, state) + .01 * rng.Gaussian();
  };
}

// The upper level with this probability, independently at each point.
Noise Bimodal(double share, double apart) {
  return Level([=](Rng& rng, int, double&) {
    return rng.UniformReal() < share ? apart : 0;
  });
}

// From one level to the other with this probability.
Noise Switching(double probability, double apart) {
  return Level([=](Rng& rng, int t, double& state) {
    if (t == 0) state = rng.UniformReal() < .5;
    if (rng.UniformReal() < probability) state = 1 - state;
    return apart * state;
  });
}

// Now and then, with this probability, 10 to 60% more for `length` points.
Noise Bursts(double probability, int length) {
  return Level([=](Rng& rng, int, double& state) {
    // The whole part is the points that are left, the rest the size.
    if (state < 1) {
      if (rng.UniformReal() >= probability) return 0.;
      state = length + .1 + .5 * rng.UniformReal();
    }
    const double size = state - std::floor(state);
    state -= 1;
    return size;
  });
}

// Two levels in turns of `length`.
Noise Teeth(int length) {
  return Level([=](Rng&, int t, double&) { return .1 * (t / length % 2); });
}

// 20% up over `length` points, then down at once; or the other way round.
Noise Sawtooth(int length, bool rises) {
  return Level([=](Rng&, int t, double&) {
    const int at = t % length;
    return .2 * (rises ? at : length - 1 - at) / length;
  });
}

std::vector<Kind> Kinds() {
  std::vector<Kind> kinds = {
      {"normal 1%", Normal(.01)},
      {"normal 5%", Normal(.05)},
      {"Student's t 1%", StudentT3(.01)},
      {"Student's t 3%", StudentT3(.03)},
      {"autocorrelated .9, 1%", Autocorrelated(.9, .01)},
      {"autocorrelated .9, 2%", Autocorrelated(.9, .02)},
      {"autocorrelated .9, 5%", Autocorrelated(.9, .05)},
      {"autocorrelated .97, 3%", Autocorrelated(.97, .03)},
      {"drift, 1% in 50 points",
       Level([](Rng&, int t, double&) { return .01 * t / 50; })},
      {"sine of 5% in 150 points", Level([](Rng&, int t, double&) {
         return .05 * std::sin(2 * M_PI * t / 150);
       })},
  };
  for (const double share : {.5, .35, .1}) {
    for (const double apart : {.05, .2}) {
      kinds.push_back(
          {absl::StrFormat("bimodal, %g%% by %g%%", 100 * share, 100 * apart),
           Bimodal(share, apart)});
    }
  }
  for (const double probability : {.05, .1, .2, .3}) {
    kinds.push_back(
        {absl::StrFormat("switches at %g%%, by 20%%", 100 * probability),
         Switching(probability, .2)});
  }
  for (const int length : {1, 2, 3}) {
    kinds.push_back({absl::StrCat("bursts of ", length), Bursts(.01, length)});
  }
  for (const int length : {5, 10, 20, 40}) {
    kinds.push_back({absl::StrCat("teeth of ", length), Teeth(length)});
  }
  for (const int length : {10, 20, 40}) {
    kinds.push_back(
        {absl::StrCat("rising saw of ", length), Sawtooth(length, true)});
    kinds.push_back(
        {absl::StrCat("falling saw of ", length), Sawtooth(length, false)});
  }
  return kinds;
}

// Returns whether the judge alerts before a confirmation: points since the
// provisional mark, or the newest ones, stand apart from the level before.
bool StandsApart(const OnlineDetector& detector,
                 const std::vector<double>& values) {
  int begin = 0;
  for (const auto* shifts : {&detector.confirmed(), &detector.returns()}) {
    if (!shifts->empty()) begin = std::max(begin, shifts->back().index);
  }
  const int size = static_cast<int>(values.size());
  std::vector<int> places;
  if (detector.provisional()) places.push_back(detector.provisional()->index);
  constexpr int kMostNewest = 10;  // of the judge (judge/beside.cc)
  for (int newest = 1; newest <= kMostNewest; ++newest) {
    places.push_back(size - newest);
  }
  return std::any_of(places.begin(), places.end(), [&](int place) {
    if (place <= begin) return false;
    const auto middle = values.begin() + place;
    const std::vector<double> before(values.begin() + begin, middle);
    const std::vector<double> since(middle, values.end());
    return Median(since) >
               Median(before) * (1 + absl::GetFlag(FLAGS_alert_effect)) &&
           StandApart(before, since);
  });
}

// How soon somebody is told of a step in normal noise of 1% where few points
// were before: the share of series with an alert at its point 10, when the
// window of a gate of ten runs holds the new level alone.
void PrintEarlySteps() {
  const int count = std::max(1, absl::GetFlag(FLAGS_steps));
  std::cout << "\na step after few points, noise of 1%: share with an alert at "
               "its point 10, confirmed or standing apart, and confirmed\n";
  for (const int history : {8, 12, 16}) {
    std::cout << absl::StrFormat("after %2d points:", history);
    for (const double effect : {.05, .08, .1, .15, .4}) {
      int told = 0, confirmed = 0;
      for (int i = 0; i < count; ++i) {
        Rng rng(absl::GetFlag(FLAGS_seed) + i);
        OnlineDetector detector;
        std::vector<double> values;
        for (int t = 0; t < history + 10; ++t) {
          const double level = t < history ? 100 : 100 * (1 + effect);
          values.push_back(level * (1 + .01 * rng.Gaussian()));
          detector.Append(values.back());
        }
        confirmed += !detector.confirmed().empty();
        told += !detector.confirmed().empty() || StandsApart(detector, values);
      }
      std::cout << absl::StrFormat("  %+g%% %.2f %.2f", 100 * effect,
                                   1. * told / count, 1. * confirmed / count);
    }
    std::cout << "\n";
  }
}

void PrintAlarms() {
  const int series_points = std::max(1, absl::GetFlag(FLAGS_series_points));
  const int count = std::max(1, absl::GetFlag(FLAGS_points) / series_points);
  std::cout << absl::StrFormat(
      "nothing changes: %d series of %d points a kind; per 1000 points: alerts "
      "beyond %g%%, of these after the first of their series, confirmed "
      "changes, returns, alerts before a confirmation\n",
      count, series_points, 100 * absl::GetFlag(FLAGS_alert_effect));
  for (const Kind& kind : Kinds()) {
    if (!absl::StrContains(kind.name, absl::GetFlag(FLAGS_kinds))) continue;
    int alerts = 0, later_alerts = 0;
    int64_t confirmed = 0, returns = 0, early = 0;
    for (int i = 0; i < count; ++i) {
      Rng rng(absl::GetFlag(FLAGS_seed) + i);
      OnlineDetector detector;
      double state = 0;
      bool stands_apart = false;
      std::vector<double> values;
      for (int t = 0; t < series_points; ++t) {
        values.push_back(100 * (1 + kind.noise(rng, t, state)));
        const OnlineUpdate update = detector.Append(values.back());
        const bool stood_apart = stands_apart;
        stands_apart = StandsApart(detector, values);
        early += stands_apart && !stood_apart;
        if (!absl::GetFlag(FLAGS_show)) continue;
        for (const ChangePoint& change : update.confirmed) {
          std::cout << absl::StrFormat(
              "  series %d: %+.1f%% at %d, confirmed by its point %d\n", i,
              100 * change.relative_change, change.index, t - change.index + 1);
        }
      }
      int own = 0;
      for (const ChangePoint& change : detector.confirmed()) {
        own += change.relative_change > absl::GetFlag(FLAGS_alert_effect);
      }
      alerts += own;
      later_alerts += std::max(0, own - 1);
      confirmed += detector.confirmed().size();
      returns += detector.returns().size();
    }
    const double thousands = 1e-3 * count * series_points;
    std::cout << absl::StrFormat("%-26s %8.4f %8.4f %8.3f %8.3f %8.4f\n",
                                 kind.name, alerts / thousands,
                                 later_alerts / thousands,
                                 confirmed / thousands, returns / thousands,
                                 early / thousands)
              << std::flush;
  }
}

void PrintDelays() {
  const int count = std::max(1, absl::GetFlag(FLAGS_steps));
  std::cout << "\na step in steady noise: share confirmed by its fourth and by "
               "its sixth point\n";
  for (const double noise : {.01, .02}) {
    for (const int history : {25, 50, 100}) {
      std::cout << absl::StrFormat("noise %g%%, after %3d points:", 100 * noise,
                                   history);
      for (const double effect : {.5, .2, .1, .05, -.1}) {
        int by_four = 0, by_six = 0;
        for (int i = 0; i < count; ++i) {
          Rng rng(absl::GetFlag(FLAGS_seed) + i);
          OnlineDetector detector;
          for (int t = 0; t < history + 6; ++t) {
            const double level = t < history ? 100 : 100 * (1 + effect);
            detector.Append(level * (1 + noise * rng.Gaussian()));
            const bool found =
                !detector.confirmed().empty() &&
                std::abs(detector.confirmed().back().index - history) <= 1;
            by_four += found && t == history + 3;
            by_six += found && t == history + 5;
          }
        }
        std::cout << absl::StrFormat("  %+g%% %.2f %.2f", 100 * effect,
                                     1. * by_four / count, 1. * by_six / count);
      }
      std::cout << "\n";
    }
  }
}

}  // namespace
}  // namespace optrail::tracker

int main(int argc, char** argv) {
  absl::SetProgramUsageMessage(
      "Measures false alarms and delays of online change-point detection.");
  absl::ParseCommandLine(argc, argv);
  optrail::tracker::PrintAlarms();
  optrail::tracker::PrintDelays();
  optrail::tracker::PrintEarlySteps();
  return 0;
}

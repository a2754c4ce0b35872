#include "suites/graph/open_loop.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <numeric>

#include "base/random.h"
#include "base/stats/statistics.h"

namespace optrail::suites {
namespace {

constexpr int64_t kMs = 1'000'000;

// Serves what arrives as ServeOpenLoop does, on a clock of its own: each batch
// takes `service_ns`, and the worker that is free first forms the next.
std::vector<double> Simulate(const std::vector<int64_t>& arrivals_ns,
                             int64_t batch, int64_t max_wait_ns, int workers,
                             int64_t service_ns,
                             std::vector<int64_t>* sizes = nullptr) {
  ArrivalQueue queue(arrivals_ns, batch, max_wait_ns);
  std::vector<int64_t> free_ns(workers, 0);
  std::vector<double> latencies_ns;
  int64_t now_ns = 0;
  while (!queue.done()) {
    auto worker = std::min_element(free_ns.begin(), free_ns.end());
    now_ns = std::max(now_ns, *worker);
    const ArrivalQueue::Step step = queue.Next(now_ns);
    if (step.count == 0) {
      EXPECT_GT(step.ask_again_ns, now_ns);
      now_ns = step.ask_again_ns;
      continue;
    }
    *worker = now_ns + service_ns;
    if (sizes != nullptr) sizes->push_back(step.count);
    for (int64_t i = step.first; i < step.first + step.count; ++i) {
      latencies_ns.push_back(static_cast<double>(*worker - arrivals_ns[i]));
    }
  }
  return latencies_ns;
}

TEST(OpenLoopTest, ArrivalsAreAPoissonProcessOfTheirSeed) {
  const auto arrivals = PoissonArrivals(1000, absl::Seconds(100), 7);
  EXPECT_EQ(arrivals.size(), 100'000);
  EXPECT_TRUE(std::is_sorted(arrivals.begin(), arrivals.end()));
  std::vector<double> gaps;
  for (size_t i = 1; i < arrivals.size(); ++i) {
    gaps.push_back(static_cast<double>(arrivals[i] - arrivals[i - 1]));
  }
  EXPECT_NEAR(Mean(gaps), 1e6, 2e4);
  EXPECT_NEAR(StandardDeviation(gaps), 1e6, 2e4);
  EXPECT_EQ(arrivals, PoissonArrivals(1000, absl::Seconds(100), 7));
  EXPECT_NE(arrivals, PoissonArrivals(1000, absl::Seconds(100), 8));
}

// The mean wait of M/D/1 is rho D / (2 (1 - rho)) (Pollaczek and Khinchine).
TEST(OpenLoopTest, WaitsOfOneServerAreThoseOfTheory) {
  for (const double rho : {.3, .6, .8}) {
    const auto arrivals = PoissonArrivals(rho * 1000, absl::Seconds(2000), 11);
    const auto latencies = Simulate(arrivals, 1, 0, 1, kMs);
    const double expected_ns = kMs * (1 + rho / (2 * (1 - rho)));
    EXPECT_NEAR(Mean(latencies), expected_ns, .02 * expected_ns) << rho;
  }
}

TEST(OpenLoopTest, SeveralServersShareOneQueue) {
  // M/D/2 at rho = .8: the wait is about half that of M/M/2, whose mean is
  // D rho^2 / (1 - rho^2) = 1.778 (Cosmetatos: 2% off).
  const auto arrivals = PoissonArrivals(1600, absl::Seconds(1000), 3);
  const auto latencies = Simulate(arrivals, 1, 0, 2, kMs);
  EXPECT_NEAR(Mean(latencies) / kMs, 1 + 1.778 / 2, .05);
}

TEST(OpenLoopTest, ABatchWaitsForMoreUntilItsFirstHasWaitedLongEnough) {
  // Four fill a batch at once; the fifth waits 2 ms alone.
  std::vector<int64_t> sizes;
  const std::vector<int64_t> arrivals = {0, 1, 2, 3, 10 * kMs};
  const auto latencies = Simulate(arrivals, 4, 2 * kMs, 1, kMs, &sizes);
  EXPECT_EQ(sizes, (std::vector<int64_t>{4, 1}));
  EXPECT_EQ(latencies[0], kMs + 3);
  EXPECT_EQ(latencies[3], kMs);
  EXPECT_EQ(latencies[4], 3 * kMs);
}

TEST(OpenLoopTest, WithoutAWaitABatchIsWhatHasArrived) {
  std::vector<int64_t> sizes;
  const std::vector<int64_t> arrivals = {0, 1, 2, 3, 4, 5};
  Simulate(arrivals, 4, 0, 1, kMs, &sizes);
  EXPECT_EQ(sizes, (std::vector<int64_t>{1, 4, 1}));
}

// A closed loop would send its next request 100 ms late and report one slow
// request of 1000; here those that were due meanwhile are slow as well.
TEST(OpenLoopTest, RequestsThatAreDueDuringAPauseCountFromThen) {
  std::vector<int64_t> arrivals(1000);
  for (size_t i = 0; i < arrivals.size(); ++i) {
    arrivals[i] = static_cast<int64_t>(i) * kMs;
  }
  ArrivalQueue queue(arrivals, 1000, 0);
  EXPECT_EQ(queue.Next(0).count, 1);
  const ArrivalQueue::Step step = queue.Next(100 * kMs);  // after the pause
  EXPECT_EQ(step.first, 1);
  EXPECT_EQ(step.count, 100);
}

TEST(OpenLoopTest, QuantilesOfAKnownSeries) {
  std::vector<double> series(1001);
  std::iota(series.begin(), series.end(), 0);
  Rng rng(5);
  for (size_t i = series.size() - 1; i > 0; --i) {
    std::swap(series[i], series[rng.UniformInt(static_cast<int64_t>(i) + 1)]);
  }
  const LatencyInterval p99 = LatencyQuantile(series, .99);
  EXPECT_EQ(p99.value_ns, 990);
  // 10 +- 2 * 3.15 of 1001 values are beyond.
  EXPECT_NEAR(p99.low_ns, 983, 2);
  EXPECT_NEAR(p99.high_ns, 996, 2);
  EXPECT_EQ(LatencyQuantile({}, .99).value_ns, 0);
  // The quantile is above one value of a hundred.
  EXPECT_EQ(LatencyQuantile({3}, .99).low_ns, 3);
  EXPECT_EQ(LatencyQuantile({3}, .01).low_ns, 0);
}

// .99^368 is the first power of .99 that is below 2.5%.
TEST(OpenLoopTest, FewLatenciesDoNotBoundTheirPercentile) {
  for (const int size : {1, 100, 367, 2000}) {
    std::vector<double> series(size);
    std::iota(series.begin(), series.end(), 1);
    Rng rng(3);
    for (int64_t i = size - 1; i > 0; --i) {
      std::swap(series[i], series[rng.UniformInt(i + 1)]);
    }
    const LatencyInterval p99 = LatencyQuantile(series, .99);
    EXPECT_EQ(p99.has_high(), size > 370) << size;
    EXPECT_LE(p99.low_ns, p99.value_ns);
    EXPECT_LE(p99.value_ns, p99.high_ns);
  }
}

// 95% of such intervals hold the quantile, of waits in a queue, too, which
// depend on each other.
TEST(OpenLoopTest, IntervalsCoverTheQuantile) {
  const double truth = Quantile(
      Simulate(PoissonArrivals(700, absl::Seconds(5000), 99), 1, 0, 1, kMs),
      .99);
  int covered_of_queue = 0, covered = 0;
  constexpr int kSeries = 200;
  for (int s = 0; s < kSeries; ++s) {
    const LatencyInterval queue = LatencyQuantile(
        Simulate(PoissonArrivals(700, absl::Seconds(30), 1000 + s), 1, 0, 1,
                 kMs),
        .99);
    covered_of_queue += queue.low_ns <= truth && truth <= queue.high_ns;
    Rng rng(s);
    std::vector<double> independent;
    for (int i = 0; i < 3000; ++i) {
      independent.push_back(static_cast<double>(rng() >> 11));
    }
    const LatencyInterval interval = LatencyQuantile(independent, .99);
    const double expected = .99 * 9007199254740992.0;
    covered += interval.low_ns <= expected && expected <= interval.high_ns;
  }
  EXPECT_GE(covered, 180);
  EXPECT_GE(covered_of_queue, 170);
}

ServedLoad Answer(const OpenLoopOptions& options, int64_t service_ns) {
  const auto arrivals =
      PoissonArrivals(options.load, options.duration, options.seed);
  const auto latencies = Simulate(arrivals, options.batch, 0, 1, service_ns);
  std::vector<int64_t> answered;
  for (size_t i = 0; i < arrivals.size(); ++i) {
    answered.push_back(arrivals[i] + static_cast<int64_t>(latencies[i]));
  }
  return LoadOfTimes(options, arrivals, answered, 0);
}

TEST(OpenLoopTest, ALoadBeyondWhatTheServerCanIsOverload) {
  OpenLoopOptions options;
  options.duration = absl::Seconds(20);
  options.load = 1100;
  const ServedLoad served = Answer(options, kMs);
  EXPECT_TRUE(served.overloaded);
  EXPECT_NEAR(served.achieved, 1000, 2);
  EXPECT_GT(served.queue_final, 1500);
  EXPECT_NEAR(static_cast<double>(served.queue_half),
              static_cast<double>(served.queue_final) / 2, 150);
}

// A verdict does not depend on how long the load lasts: that of a search is
// half a second.
TEST(OpenLoopTest, StableQueuesAreNotOverloadedAtAnyDuration) {
  constexpr int kSeeds = 300;
  for (const absl::Duration duration :
       {absl::Milliseconds(500), absl::Seconds(5)}) {
    for (const double load : {500, 800, 900, 1200}) {
      int overloaded = 0;
      double achieved = 0;
      for (int seed = 1; seed <= kSeeds; ++seed) {
        OpenLoopOptions options;
        options.duration = duration;
        options.load = load;
        options.seed = seed;
        const ServedLoad served = Answer(options, kMs);
        overloaded += served.overloaded ? 1 : 0;
        achieved += served.achieved / kSeeds;
      }
      if (load < 1000) {
        EXPECT_LE(overloaded, kSeeds / 50) << load << " for " << duration;
        EXPECT_NEAR(achieved, load, .02 * load) << duration;
      } else {
        EXPECT_GE(overloaded, kSeeds * 9 / 10) << duration;
        EXPECT_NEAR(achieved, 1000, 10) << duration;
      }
    }
  }
}

TEST(OpenLoopTest, RequestsWithoutAnAnswerAreInTheQueueAtTheEnd) {
  OpenLoopOptions options;
  options.duration = absl::Milliseconds(10);
  const std::vector<int64_t> arrivals = {kMs, 2 * kMs, 7 * kMs, 9 * kMs};
  const ServedLoad served =
      LoadOfTimes(options, arrivals, {6 * kMs, 12 * kMs, 0, 0}, 20 * kMs);
  EXPECT_EQ(served.unanswered, 2);
  EXPECT_EQ(served.queue_half, 2);
  EXPECT_EQ(served.queue_final, 3);
  EXPECT_TRUE(served.overloaded);
  EXPECT_NEAR(served.offered, 400, 1e-9);
  EXPECT_NEAR(served.achieved, 2 / .012, 1e-9);
  EXPECT_EQ(served.latencies_ns, (std::vector<double>{5e6, 10e6, 13e6, 11e6}));
}

TEST(OpenLoopTest, AProbeIsLongEnoughForItsLimitAndItsPercentile) {
  std::vector<absl::Duration> durations;
  const auto serve =
      [&](const OpenLoopOptions& options) -> absl::StatusOr<ServedLoad> {
    durations.push_back(options.duration);
    return Answer(options, kMs);
  };
  OpenLoopOptions options;
  options.duration = absl::Milliseconds(500);
  // Half a second of 100 requests/s are 50.
  const auto few = ProbeLoad(options, 100, 10 * kMs, serve);
  ASSERT_TRUE(few.ok());
  EXPECT_EQ(durations[0], absl::Milliseconds(500));
  EXPECT_GE(durations.back(), absl::Seconds(4));
  EXPECT_TRUE(LatencyQuantile(few->latencies_ns, .99).has_high());
  durations.clear();
  ASSERT_TRUE(ProbeLoad(options, 500, 100 * kMs, serve).ok());
  EXPECT_EQ(durations[0], absl::Seconds(2));
  durations.clear();
  // At 90% neighbours depend on each other, so that more are needed.
  const auto busy = ProbeLoad(options, 900, 100 * kMs, serve);
  ASSERT_TRUE(busy.ok());
  EXPECT_TRUE(LatencyQuantile(busy->latencies_ns, .99).has_high());
  durations.clear();
  ASSERT_TRUE(ProbeLoad(options, .5, 10 * kMs, serve).ok());
  EXPECT_EQ(durations.back(), absl::Minutes(1));
  durations.clear();
  // A limit that is missed needs no interval.
  ASSERT_TRUE(ProbeLoad(options, .5, kMs / 2, serve).ok());
  EXPECT_EQ(durations.size(), 1);
}

TEST(OpenLoopTest, TheHighestLoadIsWhereThePercentileMeetsTheLimit) {
  OpenLoopOptions options;
  options.duration = absl::Seconds(200);
  const auto probe = [&](double load) -> absl::StatusOr<ServedLoad> {
    options.load = load;
    return Answer(options, kMs);
  };
  for (const double guess : {50.0, 700.0, 30'000.0}) {
    const auto capacity = FindCapacity(guess, 5 * kMs, probe);
    ASSERT_TRUE(capacity.ok());
    // M/D/1 has P(wait <= 4 D) = .99 at rho = .5608 (Erlang, 1909).
    EXPECT_NEAR(capacity->load, 555, 15) << guess;
    EXPECT_LE(LatencyQuantile(capacity->served.latencies_ns, .99).value_ns,
              5 * kMs);
    EXPECT_LE(capacity->probes, 20);
  }
  // The limit is shorter than a call.
  const auto none = FindCapacity(700, .5 * kMs, probe);
  ASSERT_TRUE(none.ok());
  EXPECT_EQ(none->load, 0);
}

TEST(OpenLoopTest, EachRequestIsServedOnce) {
  OpenLoopOptions options;
  options.load = 20'000;
  options.duration = absl::Milliseconds(100);
  options.batch = 8;
  options.workers = 3;
  std::vector<std::atomic<int>> times(10'000);
  const auto served =
      ServeOpenLoop(options, [&](int, int64_t first, int64_t count) {
        for (int64_t i = first; i < first + count; ++i) ++times[i];
        return absl::OkStatus();
      });
  ASSERT_TRUE(served.ok()) << served.status();
  EXPECT_GT(served->latencies_ns.size(), 1500);
  for (size_t i = 0; i < times.size(); ++i) {
    EXPECT_EQ(times[i], i < served->latencies_ns.size() ? 1 : 0) << i;
  }
  EXPECT_EQ(served->unanswered, 0);
  for (const double latency : served->latencies_ns) EXPECT_GE(latency, 0);
}

TEST(OpenLoopTest, AnErrorOfTheServerEndsTheLoad) {
  OpenLoopOptions options;
  options.load = 1000;
  options.duration = absl::Seconds(60);
  const auto served = ServeOpenLoop(options, [](int, int64_t, int64_t) {
    return absl::InternalError("no kernel");
  });
  EXPECT_EQ(served.status().message(), "no kernel");
}

}  // namespace
}  // namespace optrail::suites

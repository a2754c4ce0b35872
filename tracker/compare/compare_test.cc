#include "tracker/compare/compare.h"

#include <cmath>

#include "absl/strings/str_cat.h"
#include "base/random.h"
#include "base/stats/statistics.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tracker/compare/compare_test_fixture.h"

namespace optrail::tracker {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST(Compare, TellsSlowerFasterAndUnchanged) {
  proto::Run a, b;
  AddProcesses(a, "slow", {100, 101, 99, 100, 101});
  AddProcesses(b, "slow", {120, 121, 119, 120, 121});
  AddProcesses(a, "fast", {100, 101, 99, 100, 101});
  AddProcesses(b, "fast", {80, 81, 79, 80, 81});
  AddProcesses(a, "same", {100, 100.1, 99.9, 100, 100.1});
  AddProcesses(b, "same", {100, 100.1, 99.9, 100, 99.9});
  const Comparison comparison = CompareRuns(a, b);
  ASSERT_EQ(comparison.rows.size(), 3);
  const Row& slow = RowOf(comparison, "slow");
  EXPECT_EQ(slow.verdict, Verdict::kSlower) << slow.reason;
  EXPECT_NEAR(slow.ratio->ratio, 1.2, .001);
  EXPECT_LT(slow.ratio->low, 1.2);
  EXPECT_GT(slow.ratio->high, 1.2);
  EXPECT_NEAR(slow.worse_by, .2, .001);
  EXPECT_EQ(RowOf(comparison, "fast").verdict, Verdict::kFaster);
  const Row& same = RowOf(comparison, "same");
  EXPECT_EQ(same.verdict, Verdict::kUnchanged) << same.reason;
  EXPECT_LT(*same.minimum_detectable_effect, .05);
  EXPECT_EQ(comparison.Count(Verdict::kSlower), 1);
}

// A benchmark that one run of a history shows slow, among others that drift.
TEST(Compare, SidesThatChangePlacesHaveTheInverseRatio) {
  Rng rng(5);
  std::vector<proto::Run> runs(8);
  std::vector<const proto::Run*> history;
  for (size_t r = 0; r < runs.size(); ++r) {
    runs[r].set_run_id(absl::StrCat("run-", r));
    runs[r].set_started_unix_ns(static_cast<int64_t>(r));
    const double drift = std::exp(.03 * rng.Gaussian());
    for (int j = 0; j < 6; ++j) {
      const double own = r == 2 && j == 4 ? 1.3 : 1;
      AddProcesses(runs[r], absl::StrCat("b", j),
                   Lognormal(5, 100 * drift * own, .02, rng));
    }
    history.push_back(&runs[r]);
  }
  CompareOptions options;
  options.history = history;
  const Comparison there = CompareRuns(runs[2], runs[5], options);
  const Comparison back = CompareRuns(runs[5], runs[2], options);
  for (const Row& row : there.rows) {
    const Row& other = RowOf(back, row.name);
    ASSERT_TRUE(row.ratio.has_value() && other.ratio.has_value());
    EXPECT_NEAR(row.ratio->ratio * other.ratio->ratio, 1, 1e-9) << row.name;
    EXPECT_NEAR(row.ratio->standard_error, other.ratio->standard_error, 1e-9);
  }
}

TEST(Compare, SmallChangesDoNotCountHoweverSure) {
  proto::Run a, b;
  AddProcesses(a, "x", {100, 100.01, 99.99, 100, 100.01});
  AddProcesses(b, "x", {102, 102.01, 101.99, 102, 102.01});
  EXPECT_EQ(CompareRuns(a, b).rows[0].verdict, Verdict::kUnchanged);
  CompareOptions strict;
  strict.threshold = [](absl::string_view, absl::string_view) {
    Threshold threshold;
    threshold.min_effect = .01;
    threshold.detect_effect = .02;
    return threshold;
  };
  EXPECT_EQ(CompareRuns(a, b, strict).rows[0].verdict, Verdict::kSlower);
}

TEST(Compare, SaysHowManyProcessesWouldTell) {
  proto::Run a, b;
  AddProcesses(a, "x", {100, 103, 97, 101});
  AddProcesses(b, "x", {102, 98, 104, 100});
  const Comparison comparison = CompareRuns(a, b);
  const Row& row = comparison.rows[0];
  EXPECT_EQ(row.verdict, Verdict::kCannotTell);
  ASSERT_TRUE(row.processes_needed.has_value());
  EXPECT_GT(*row.processes_needed, 4);
  EXPECT_THAT(row.reason, HasSubstr("would tell"));
}

// The verdict on a count that `before` and `after` have per process.
Verdict VerdictOfCounts(const std::vector<double>& before,
                        const std::vector<double>& after,
                        proto::Direction direction) {
  std::vector<proto::Run> runs(2);
  for (const bool is_after : {false, true}) {
    proto::BenchmarkResult* result = AddResult(runs[is_after], "x");
    for (const double count : is_after ? after : before) {
      proto::MetricSamples* metric = result->add_measurements()->add_metrics();
      metric->set_metric("allocs");
      metric->set_direction(direction);
      metric->add_values(count);
    }
  }
  CompareOptions options;
  options.threshold = [](absl::string_view, absl::string_view metric) {
    return metric == "allocs" ? absl::make_optional(Threshold())
                              : absl::nullopt;
  };
  return CompareRuns(runs[0], runs[1], options).rows.at(0).verdict;
}

TEST(Compare, ACountThatLeavesZeroIsWorseAndOneThatReachesItIsBetter) {
  const std::vector<double> zeros(5, 0), fours(5, 4);
  const auto lower = proto::LOWER_IS_BETTER, higher = proto::HIGHER_IS_BETTER;
  EXPECT_EQ(VerdictOfCounts(zeros, zeros, lower), Verdict::kUnchanged);
  EXPECT_EQ(VerdictOfCounts(zeros, fours, lower), Verdict::kSlower);
  EXPECT_EQ(VerdictOfCounts(fours, zeros, lower), Verdict::kFaster);
  EXPECT_EQ(VerdictOfCounts(zeros, fours, higher), Verdict::kFaster);
  EXPECT_EQ(VerdictOfCounts(zeros, {4, 5, 3, 4, 4}, lower), Verdict::kSlower);
  // Two of six orders would part them by chance.
  EXPECT_EQ(VerdictOfCounts({0, 0}, {3, 4}, lower), Verdict::kCannotTell);
  EXPECT_EQ(VerdictOfCounts(zeros, {0, 4, 4, 4, 4}, lower),
            Verdict::kCannotTell);
}

TEST(Compare, HalfOfTheCandidatesRunsBeingSlowIsSaid) {
  Rng rng(5);
  std::vector<proto::Run> runs(14);
  for (size_t i = 0; i < runs.size(); ++i) {
    runs[i].set_run_id(absl::StrCat(100 + i));
    runs[i].set_started_unix_ns(static_cast<int64_t>(i));
    const double slow = i + 1 == runs.size() ? 1.3 : 1;
    AddProcesses(runs[i], "x", Lognormal(5, 100 * slow, .002, rng));
    AddProcesses(runs[i], "y", Lognormal(5, 100, .002, rng));
    AddProcesses(runs[i], "z", Lognormal(5, 100, .002, rng));
  }
  std::vector<const proto::Run*> baseline, candidate;
  for (size_t i = 0; i < 9; ++i) baseline.push_back(&runs[i]);
  for (size_t i = 9; i < runs.size(); ++i) candidate.push_back(&runs[i]);
  // One of five is a disturbed run, one of two may be the code.
  auto comparison = Compare(baseline, candidate, {});
  ASSERT_TRUE(comparison.ok()) << comparison.status();
  EXPECT_EQ(RowOf(*comparison, "x").verdict, Verdict::kUnchanged);
  EXPECT_THAT(RowOf(*comparison, "x").reason,
              HasSubstr("1 of the candidate's 5 runs, 113, is 30"));
  comparison = Compare(baseline, {candidate.end() - 2, candidate.end()}, {});
  ASSERT_TRUE(comparison.ok()) << comparison.status();
  EXPECT_EQ(RowOf(*comparison, "x").verdict, Verdict::kSlowerInMostSamples);
  EXPECT_EQ(RowOf(*comparison, "y").verdict, Verdict::kUnchanged);
}

TEST(Compare, OneProcessOrAggregatesTellNothing) {
  proto::Run a, b;
  AddProcesses(a, "one", {100});
  AddProcesses(b, "one", {200});
  AddProcesses(a, "aggregate", {100, 101, 102});
  AddProcesses(b, "aggregate", {200, 201, 202});
  for (proto::Run* run : {&a, &b}) {
    for (auto& m : *run->mutable_results(1)->mutable_measurements()) {
      m.set_aggregate_only(true);
    }
  }
  const Comparison comparison = CompareRuns(a, b);
  EXPECT_EQ(comparison.Count(Verdict::kCannotTell), 2);
  EXPECT_THAT(RowOf(comparison, "one").reason, HasSubstr("1 process"));
  EXPECT_THAT(RowOf(comparison, "aggregate").reason, HasSubstr("aggregate"));
  EXPECT_EQ(RowOf(comparison, "aggregate").candidate.value, 200);
}

TEST(Compare, HigherIsBetterForThroughput) {
  proto::Run a, b;
  for (proto::Run* run : {&a, &b}) {
    AddProcesses(*run, "x", {100, 101, 99, 100});
    for (auto& m : *run->mutable_results(0)->mutable_measurements()) {
      proto::MetricSamples* metric = m.add_metrics();
      metric->set_metric("items_per_second");
      metric->set_direction(proto::HIGHER_IS_BETTER);
      metric->add_values((run == &a ? 1000 : 500) + m.median_ns() / 100);
    }
  }
  CompareOptions options;
  options.threshold = [](absl::string_view, absl::string_view) {
    return Threshold();
  };
  const Comparison comparison = CompareRuns(a, b, options);
  ASSERT_EQ(comparison.rows.size(), 2);
  EXPECT_EQ(comparison.rows[0].metric, "items_per_second");
  EXPECT_EQ(comparison.rows[0].verdict, Verdict::kSlower);
  EXPECT_NEAR(comparison.rows[0].worse_by, 1, .01);
  // A policy may know better than the metric.
  options.threshold = [](absl::string_view, absl::string_view) {
    Threshold threshold;
    threshold.direction = proto::LOWER_IS_BETTER;
    return threshold;
  };
  EXPECT_EQ(CompareRuns(a, b, options).rows[0].verdict, Verdict::kFaster);
}

// Noise of a process around its level.
enum class Noise { kNormal, kHeavyTailed, kSkewed };

double Draw(Noise noise, Rng& rng) {
  const double z = rng.Gaussian();
  switch (noise) {
    case Noise::kNormal:
      return z;
    case Noise::kHeavyTailed:
      return rng.UniformReal() < .05 ? 10 * z : z;
    case Noise::kSkewed:
      return std::exp(z) - std::exp(.5);
  }
  return 0;
}

// The promise of the gate: identical code is red at most 1% of the time,
// however many benchmarks there are and whatever the noise looks like.
TEST(Compare, IdenticalCodeIsRarelyCalledSlower) {
  constexpr int kResamples = 2000, kBenchmarks = 20, kProcesses = 5;
  for (const Noise noise :
       {Noise::kNormal, Noise::kHeavyTailed, Noise::kSkewed}) {
    Rng rng(42);
    int red = 0;
    for (int i = 0; i < kResamples; ++i) {
      proto::Run runs[2];
      for (int b = 0; b < kBenchmarks; ++b) {
        const double spread = .003 * (1 + b % 10);
        for (proto::Run& run : runs) {
          std::vector<double> times;
          for (int p = 0; p < kProcesses; ++p) {
            times.push_back(1000 * std::exp(spread * Draw(noise, rng)));
          }
          AddProcesses(run, "BM_" + std::to_string(b), times);
        }
      }
      CompareOptions options;
      options.threshold = [](absl::string_view, absl::string_view) {
        Threshold threshold;
        threshold.min_effect = 0;  // nothing but statistics holds it back
        threshold.detect_effect = .05;
        return threshold;
      };
      red += CompareRuns(runs[0], runs[1], options).Count(Verdict::kSlower) > 0;
    }
    EXPECT_LE(ClopperPearsonLower(red, kResamples, .99), .01)
        << static_cast<int>(noise) << ": " << red;
    RecordProperty("red_" + std::to_string(static_cast<int>(noise)), red);
  }
}

// And it is not bought with blindness: what became 5% slower is rarely called
// unchanged, whatever one run a side can tell.
TEST(Compare, ASlowdownOfFivePercentIsRarelyCalledUnchanged) {
  constexpr int kResamples = 400, kBenchmarks = 20, kProcesses = 10;
  Rng rng(43);
  int found = 0, missed = 0;
  for (int i = 0; i < kResamples; ++i) {
    proto::Run a, b;
    for (int k = 0; k < kBenchmarks; ++k) {
      const std::string name = "BM_" + std::to_string(k);
      AddProcesses(a, name, Lognormal(kProcesses, 1000, .01, rng));
      AddProcesses(b, name,
                   Lognormal(kProcesses, k == 7 ? 1050 : 1000, .01, rng));
    }
    const Comparison comparison = CompareRuns(a, b);
    const Row& row = RowOf(comparison, "BM_7");
    found += row.verdict == Verdict::kSlower;
    missed += row.verdict == Verdict::kUnchanged;
  }
  EXPECT_LE(ClopperPearsonLower(missed, kResamples, .99), .05);
  EXPECT_GT(found, kResamples / 4);
}

TEST(Compare, TheRatioIsOfTheNumbersShown) {
  Rng rng(44);
  std::vector<proto::Run> runs(12);
  std::vector<const proto::Run*> baseline;
  for (size_t i = 0; i < runs.size(); ++i) {
    runs[i].set_run_id(std::to_string(i));
    runs[i].set_started_unix_ns(static_cast<int64_t>(i));
    // All of them follow the machine.
    const double machine = std::exp(.05 * rng.Gaussian());
    for (int k = 0; k < 6; ++k) {
      AddProcesses(runs[i], "BM_" + std::to_string(k),
                   Lognormal(5, 1000 * machine, .01, rng));
    }
    if (i + 1 < runs.size()) baseline.push_back(&runs[i]);
  }
  CompareOptions options;
  options.window = true;
  const auto comparison = Compare(baseline, {&runs.back()}, options);
  ASSERT_TRUE(comparison.ok());
  for (const Row& row : comparison->rows) {
    ASSERT_TRUE(row.ratio.has_value()) << row.reason;
    EXPECT_NEAR(row.ratio->candidate / row.ratio->baseline, row.ratio->ratio,
                1e-9);
  }
}

TEST(Compare, ARenamedBenchmarkThatBecameSlowerIsSlower) {
  proto::Run a, b;
  AddProcesses(a, "BM_SortInts/64", {100, 101, 99, 100, 101});
  AddProcesses(b, "BM_SortIntegers/64", {130, 131, 129, 130, 131});
  const Comparison comparison = CompareRuns(a, b);
  ASSERT_EQ(comparison.rows.size(), 1);
  EXPECT_EQ(comparison.rows[0].verdict, Verdict::kSlower);
  EXPECT_EQ(comparison.rows[0].renamed_from, "BM_SortInts/64");
  EXPECT_THAT(comparison.rows[0].reason, HasSubstr("looks like"));
}

// Sides measured in turn drift together: pairs tell what runs apart cannot.
TEST(Compare, ARenamedBenchmarkIsJudgedInPairsToo) {
  const auto verdict = [](double factor, int rounds) {
    proto::Run sides[2];
    for (const bool is_candidate : {false, true}) {
      proto::Run& run = sides[is_candidate];
      run.set_run_id(is_candidate ? "b" : "a");
      run.set_pairing_id("p");
      run.set_started_unix_ns(is_candidate);
      proto::BenchmarkResult* result = AddResult(
          run, is_candidate ? "BM_SortIntegers/64" : "BM_SortInts/64");
      for (int round = 1; round <= rounds; ++round) {
        proto::Measurement* m = result->add_measurements();
        m->set_round(round);
        m->set_median_ns((is_candidate ? factor : 1) * (100 + .1 * round));
      }
    }
    const Comparison comparison = CompareRuns(sides[0], sides[1]);
    EXPECT_EQ(comparison.rows.size(), 1);
    EXPECT_EQ(comparison.rows[0].renamed_from, "BM_SortInts/64");
    return comparison.rows[0].verdict;
  };
  EXPECT_EQ(verdict(1.2, 12), Verdict::kSlower);
  EXPECT_EQ(verdict(1, 12), Verdict::kRenamed);
}

TEST(Compare, RunsMeasuredInTurnAreJudgedAsPairs) {
  Rng rng(45);
  std::vector<proto::Run> runs(40);
  std::vector<const proto::Run*> sides[2];
  for (int i = 0; i < 40; ++i) {
    proto::Run& run = runs[i];
    run.set_run_id(std::to_string(i));
    run.set_pairing_id("job 1");
    static double machine = 1;
    if (i % 2 == 0) machine = std::exp(.1 * rng.Gaussian());
    for (const char* name : {"same", "slow"}) {
      const double factor = i % 2 == 1 && name[1] == 'l' ? 1.05 : 1;
      AddProcesses(run, name, Lognormal(2, 1000 * machine * factor, .005, rng));
    }
    for (auto& result : *run.mutable_results()) {
      for (auto& m : *result.mutable_measurements()) m.set_round(i / 2 + 1);
    }
    sides[i % 2].push_back(&run);
  }
  const auto paired = Compare(sides[0], sides[1], {});
  ASSERT_TRUE(paired.ok());
  EXPECT_EQ(RowOf(*paired, "slow").verdict, Verdict::kSlower);
  EXPECT_EQ(RowOf(*paired, "same").verdict, Verdict::kUnchanged);
  EXPECT_THAT(RowOf(*paired, "slow").reason, HasSubstr("20 rounds"));
  for (proto::Run& run : runs) run.clear_pairing_id();
  EXPECT_EQ(RowOf(*Compare(sides[0], sides[1], {}), "slow").verdict,
            Verdict::kCannotTell);
}

// Processes of ten samples each, of which so many take `factor` times as long.
void AddSampled(proto::Run& run, const std::string& name, int processes,
                int slow_samples, double factor, Rng& rng, bool thinned) {
  proto::BenchmarkResult* result = AddResult(run, name);
  for (int p = 0; p < processes; ++p) {
    proto::Measurement* measurement = result->add_measurements();
    const double level = 1e5 * std::exp(.003 * rng.Gaussian());
    std::vector<double> samples;
    for (int i = 0; i < 10; ++i) {
      samples.push_back(level * (1 + .004 * i) *
                        (i >= 10 - slow_samples ? factor : 1));
    }
    measurement->set_median_ns(Median(samples));
    measurement->set_clean_sample_count(10);
    for (const double ns : samples) {
      if (!thinned) measurement->add_sample_ns(static_cast<int64_t>(ns));
    }
  }
}

Verdict VerdictOfSampled(int slow_samples, double factor, bool in_pairs,
                         bool thinned = false) {
  Rng rng(17);
  std::vector<proto::Run> runs(12);
  for (size_t i = 0; i < runs.size(); ++i) {
    const bool candidate = i + 1 == runs.size();
    runs[i].set_run_id(absl::StrCat(100 + i));
    runs[i].set_started_unix_ns(static_cast<int64_t>(i));
    AddSampled(runs[i], "x", in_pairs ? 12 : 5, candidate ? slow_samples : 0,
               candidate ? factor : 1, rng, thinned && !candidate);
    if (!in_pairs) continue;
    runs[i].set_pairing_id("p");
    int round = 0;
    for (auto& m : *runs[i].mutable_results(0)->mutable_measurements()) {
      m.set_round(++round);
    }
  }
  std::vector<const proto::Run*> baseline;
  for (size_t i = in_pairs ? 10 : 0; i + 1 < runs.size(); ++i) {
    baseline.push_back(&runs[i]);
  }
  const auto comparison = Compare(baseline, {&runs.back()}, {});
  EXPECT_TRUE(comparison.ok()) << comparison.status();
  // A verdict about some samples has their figure.
  const Row& row = comparison->rows[0];
  EXPECT_EQ(row.slower.has_value(),
            row.verdict == Verdict::kSlowerInMostSamples);
  if (row.slower) {
    EXPECT_GT(row.slower->ratio, 1.03) << row.reason;
    EXPECT_LT(row.slower->ratio, factor * 1.03) << row.reason;
  }
  return row.verdict;
}

TEST(Compare, SamplesThatBecameSlowerWithoutTheFastestHaveTheirVerdict) {
  for (const bool in_pairs : {false, true}) {
    EXPECT_EQ(VerdictOfSampled(0, 1, in_pairs), Verdict::kUnchanged);
    EXPECT_EQ(VerdictOfSampled(9, 2, in_pairs), Verdict::kSlowerInMostSamples);
    EXPECT_EQ(VerdictOfSampled(8, 1.1, in_pairs),
              Verdict::kSlowerInMostSamples);
    EXPECT_EQ(VerdictOfSampled(4, 1.5, in_pairs),
              Verdict::kSlowerInMostSamples);
    EXPECT_EQ(VerdictOfSampled(10, 1.1, in_pairs), Verdict::kSlower);
  }
}

TEST(Compare, AThinnedSideIsComparedByMedians) {
  for (const bool in_pairs : {false, true}) {
    EXPECT_EQ(VerdictOfSampled(0, 1, in_pairs, /*thinned=*/true),
              Verdict::kUnchanged);
    EXPECT_EQ(VerdictOfSampled(10, 1.08, in_pairs, /*thinned=*/true),
              Verdict::kSlower);
  }
}

// Two processes that are far apart do not exclude anything.
TEST(Compare, AWideIntervalIsInconclusiveWhereverItsMiddleIs) {
  proto::Run a, b;
  AddProcesses(a, "x", {130, 95, 150});
  AddProcesses(b, "x", {90, 120, 92});
  EXPECT_EQ(CompareRuns(a, b).rows[0].verdict, Verdict::kCannotTell);
}

TEST(Compare, PairsOfOneTimeHaveNoOrder) {
  proto::Run a, b;
  for (proto::Run* run : {&a, &b}) {
    AddProcesses(*run, "x", {100, 101, 99});
    run->set_pairing_id("p");
    run->set_started_unix_ns(5);
    run->set_run_id(run == &a ? "a" : "b");
  }
  EXPECT_THAT(CompareRuns(a, b).notes,
              ::testing::Contains(HasSubstr("order of the sides was not")));
  b.set_started_unix_ns(6);
  EXPECT_THAT(CompareRuns(a, b).notes, IsEmpty());
}

TEST(Verdicts, AreByRankAndAllThere) {
  int rank = 0;
  for (const VerdictInfo& info : Verdicts()) {
    EXPECT_EQ(VerdictRank(info.verdict), rank++);
    EXPECT_EQ(VerdictName(info.verdict), info.name);
    EXPECT_FALSE(info.meaning.empty());
  }
  EXPECT_EQ(rank, static_cast<int>(Verdict::kWrongResult) + 1);
}

}  // namespace
}  // namespace optrail::tracker

#include "tracker/ab/rounds.h"

#include <cmath>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/random.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace optrail::tracker {
namespace {

using ::testing::HasSubstr;

struct Reading {
  std::string name;
  double time_ns;
};

std::string Json(const std::vector<Reading>& readings) {
  std::string text =
      R"({"context": {"date": "2026-11-20T09:08:07+00:00", "num_cpus": 2,
          "mhz_per_cpu": 2000, "caches": []}, "benchmarks": [)";
  for (size_t i = 0; i < readings.size(); ++i) {
    absl::StrAppend(&text, i > 0 ? "," : "", R"({"name": ")", readings[i].name,
                    R"(", "run_name": ")", readings[i].name,
                    R"(", "run_type": "iteration", "repetitions": 1,
                    "repetition_index": 0, "threads": 1, "iterations": 100,
                    "real_time": )",
                    readings[i].time_ns, R"(, "cpu_time": )",
                    readings[i].time_ns, R"(, "time_unit": "ns"})");
  }
  return text + "]}";
}

// Programs whose benchmark x takes 1000 ns, in B times `ratio`; the machine
// drifts, by the same for both.
class FakePrograms {
 public:
  FakePrograms(double ratio, double spread) : ratio_(ratio), spread_(spread) {}

  ProcessResult operator()(Program program, int round) {
    order += program == Program::kA ? 'a' : 'b';
    const double drift = 1 + .3 * std::sin(round);
    const double noise = std::exp(spread_ * rng_.Gaussian());
    ProcessResult result;
    result.files = {
        {"x", Json({{"x", 1000 * drift * noise *
                              (program == Program::kB ? ratio_ : 1)}})}};
    return result;
  }

  std::string order;

 private:
  double ratio_, spread_;
  Rng rng_{7};
};

AbResult RunOrDie(const AbOptions& options, const MeasureFunction& measure) {
  const absl::StatusOr<AbResult> result = RunRounds(options, measure);
  EXPECT_TRUE(result.ok()) << result.status();
  return result.value_or(AbResult());
}

TEST(RunRoundsTest, FindsASlowDownThatDriftWouldHide) {
  FakePrograms programs(1.1, .01);
  const AbResult result = RunOrDie({}, std::ref(programs));
  ASSERT_EQ(result.comparison.rows.size(), 1);
  const Row& row = result.comparison.rows[0];
  EXPECT_EQ(row.verdict, Verdict::kSlower) << row.reason;
  EXPECT_NEAR(row.ratio->ratio, 1.1, .02);
  EXPECT_LT(row.ratio->low, 1.1);
  EXPECT_GT(row.ratio->high, 1.1);
  EXPECT_EQ(result.worse, 1);
  EXPECT_LT(result.rounds, 10);
}

TEST(RunRoundsTest, BenchmarksThatAreClearNeedNotBeMeasuredAgain) {
  std::set<std::string> wanted = {"calm", "noisy"};
  AbOptions options;
  options.max_rounds = 30;
  options.narrow = [&wanted](const std::set<std::string>& names) {
    wanted = names;
  };
  Rng rng(11);
  int calm = 0, noisy = 0;
  const AbResult result =
      RunOrDie(options, [&](Program program, int) -> ProcessResult {
        std::vector<Reading> readings;
        if (wanted.count("calm") > 0) {
          calm += program == Program::kA;
          readings.push_back({"calm", 1000 * std::exp(.002 * rng.Gaussian())});
        }
        if (wanted.count("noisy") > 0) {
          noisy += program == Program::kA;
          readings.push_back({"noisy", 1000 * std::exp(.04 * rng.Gaussian())});
        }
        ProcessResult one;
        one.files = {{"x", Json(readings)}};
        return one;
      });
  EXPECT_LT(calm, noisy);
  EXPECT_EQ(noisy, result.rounds);
  ASSERT_EQ(result.comparison.rows.size(), 2);
  EXPECT_EQ(result.comparison.rows[0].name, "calm");
  EXPECT_EQ(result.comparison.rows[0].verdict, Verdict::kUnchanged);
  EXPECT_EQ(result.comparison.rows[0].rounds, calm);
}

TEST(RunRoundsTest, AnImprovementIsNotWorse) {
  FakePrograms programs(.8, .01);
  const AbResult result = RunOrDie({}, std::ref(programs));
  EXPECT_EQ(result.comparison.rows[0].verdict, Verdict::kFaster);
  EXPECT_EQ(result.worse, 0);
  EXPECT_EQ(result.undecided, 0);
}

// The words are the same for a time, joules and a rate.
TEST(RunRoundsTest, SaysWhichWorseningItWouldMiss) {
  FakePrograms programs(.85, .06);
  AbOptions options;
  options.compare.false_alarm_rate = 1e-12;
  const AbResult result = RunOrDie(options, std::ref(programs));
  const Row& row = result.comparison.rows[0];
  ASSERT_EQ(row.verdict, Verdict::kUnchanged) << row.reason;
  ASSERT_TRUE(row.DetectsLittle()) << row.reason;
  EXPECT_THAT(row.reason, HasSubstr("; a worsening below "));
  EXPECT_THAT(row.reason, HasSubstr(" may be called can't tell"));
}

TEST(RunRoundsTest, EqualProgramsAreUnchangedAfterFewRounds) {
  FakePrograms programs(1, .01);
  const AbResult result = RunOrDie({}, std::ref(programs));
  EXPECT_EQ(result.comparison.rows[0].verdict, Verdict::kUnchanged);
  EXPECT_LT(result.rounds, 12);
}

TEST(RunRoundsTest, SaysThatItCannotTellAfterTheLastRound) {
  FakePrograms programs(1.02, .2);
  AbOptions options;
  options.max_rounds = 8;
  const AbResult result = RunOrDie(options, std::ref(programs));
  EXPECT_EQ(result.rounds, 8);
  EXPECT_EQ(result.undecided, 1);
  EXPECT_EQ(result.comparison.rows[0].verdict, Verdict::kCannotTell);
  EXPECT_THAT(result.comparison.rows[0].reason, HasSubstr("after 8 rounds"));
}

// Whoever compares what was recorded says what the rounds said.
TEST(RunRoundsTest, TheRunsOfTheRoundsHaveTheirVerdict) {
  for (const double ratio : {.8, 1., 1.03, 1.1}) {
    FakePrograms programs(ratio, .02);
    AbOptions options;
    options.max_rounds = 12;
    const AbResult result = RunOrDie(options, std::ref(programs));
    const absl::StatusOr<Comparison> again =
        Compare({&result.base}, {&result.candidate}, {});
    ASSERT_TRUE(again.ok()) << again.status();
    ASSERT_EQ(again->rows.size(), result.comparison.rows.size());
    for (size_t i = 0; i < again->rows.size(); ++i) {
      EXPECT_EQ(again->rows[i].verdict, result.comparison.rows[i].verdict);
      EXPECT_EQ(again->rows[i].reason, result.comparison.rows[i].reason);
      EXPECT_EQ(again->rows[i].ratio->ratio,
                result.comparison.rows[i].ratio->ratio);
    }
    EXPECT_LT(result.base.started_unix_ns(),
              result.candidate.started_unix_ns());
  }
}

TEST(RunRoundsTest, OrderIsBalancedRandomAndFixedByTheSeed) {
  AbOptions options;
  options.max_rounds = 40;
  const auto order = [&](uint64_t seed) {
    options.seed = seed;
    FakePrograms programs(1.02, .3);
    RunOrDie(options, std::ref(programs));
    return programs.order;
  };
  const std::string first = order(1);
  ASSERT_EQ(first.size(), 80);
  EXPECT_EQ(first, order(1));
  EXPECT_NE(first, order(2));
  for (size_t i = 0; i < first.size(); i += 4) {
    const std::string block = first.substr(i, 4);
    EXPECT_TRUE(block == "abba" || block == "baab") << block;
  }
}

TEST(RunRoundsTest, ACrashOfTheCandidateIsAVerdictAtOnce) {
  FakePrograms programs(1, .01);
  const AbResult result =
      RunOrDie({}, [&](Program program, int round) -> ProcessResult {
        if (program == Program::kA || round < 2) {
          return programs(program, round);
        }
        ProcessResult failed;
        failed.failure = "killed by signal 11";
        failed.outcome = proto::CRASHED;
        return failed;
      });
  EXPECT_EQ(result.rounds, 3);
  EXPECT_EQ(result.worse, 1);
  EXPECT_EQ(result.comparison.rows[0].verdict, Verdict::kCrashed);
  EXPECT_THAT(result.candidate_failure, HasSubstr("signal 11 in round 3"));
}

TEST(RunRoundsTest, ACrashOfTheCandidateInTheFirstRoundIsAVerdictToo) {
  FakePrograms programs(1, .01);
  const AbResult result =
      RunOrDie({}, [&](Program program, int round) -> ProcessResult {
        if (program == Program::kA) return programs(program, round);
        ProcessResult failed;
        failed.failure = "timed out";
        failed.outcome = proto::TIMED_OUT;
        return failed;
      });
  ASSERT_EQ(result.comparison.rows.size(), 1);
  EXPECT_EQ(result.comparison.rows[0].verdict, Verdict::kCrashed);
}

TEST(RunRoundsTest, ACrashOfTheBaseIsAnErrorWithItsLastWords) {
  const absl::StatusOr<AbResult> result =
      RunRounds({}, [](Program, int) -> ProcessResult {
        ProcessResult failed;
        failed.failure = "exited with code 1";
        failed.stderr_tail = "  unrecognized flag";
        return failed;
      });
  ASSERT_FALSE(result.ok());
  EXPECT_THAT(std::string(result.status().message()),
              HasSubstr("exited with code 1 in round 1 (so did B)"));
  EXPECT_THAT(std::string(result.status().message()),
              HasSubstr("unrecognized flag"));
}

TEST(RunRoundsTest, MissingAndNewBenchmarksHaveVerdictsAndDoNotKeepItOpen) {
  Rng rng(3);
  const AbResult result =
      RunOrDie({}, [&](Program program, int) -> ProcessResult {
        ProcessResult process;
        const double time = 1000 * std::exp(.005 * rng.Gaussian());
        process.files = {
            {"x", program == Program::kA
                      ? Json({{"both", time}, {"old_one", 10}})
                      : Json({{"both", time}, {"completely", 9000}})}};
        return process;
      });
  EXPECT_EQ(result.comparison.Count(Verdict::kUnchanged), 1);
  EXPECT_EQ(result.comparison.Count(Verdict::kMissing), 1);
  EXPECT_EQ(result.comparison.Count(Verdict::kNew), 1);
  EXPECT_EQ(result.worse, 1);  // the missing one
  EXPECT_LT(result.rounds, 12);
}

TEST(RunRoundsTest, ABenchmarkThatOnlySomeRoundsHaveIsNotJudged) {
  Rng rng(3);
  const AbResult result =
      RunOrDie({}, [&](Program program, int round) -> ProcessResult {
        ProcessResult process;
        const double time = 1000 * std::exp(.005 * rng.Gaussian());
        process.files = {{"x", round == 0 || program == Program::kA
                                   ? Json({{"steady", time}, {"flaky", time}})
                                   : Json({{"steady", time}})}};
        return process;
      });
  for (const Row& row : result.comparison.rows) {
    if (row.name != "flaky") continue;
    EXPECT_EQ(row.verdict, Verdict::kCannotTell);
    EXPECT_THAT(row.reason, HasSubstr("1 process"));
  }
  EXPECT_EQ(result.undecided, 1);
  EXPECT_LT(result.rounds, 12);
}

TEST(RunRoundsTest, MoreBenchmarksNeedMoreEvidenceEach) {
  const auto rounds = [](int benchmarks) {
    Rng rng(5);
    return RunOrDie(
               {},
               [&](Program program, int) -> ProcessResult {
                 std::vector<Reading> readings;
                 for (int i = 0; i < benchmarks; ++i) {
                   readings.push_back({absl::StrCat("x", i),
                                       (program == Program::kB ? 1100 : 1000) *
                                           std::exp(.02 * rng.Gaussian())});
                 }
                 ProcessResult process;
                 process.files = {{"x", Json(readings)}};
                 return process;
               })
        .rounds;
  };
  EXPECT_LT(rounds(1), rounds(50));
}

TEST(RunRoundsTest, ForecastsTheRounds) {
  FakePrograms programs(1.04, .04);
  AbOptions options;
  options.max_rounds = 100;
  std::vector<int> forecasts;
  options.progress = [&](int done, int forecast, int, int compared) {
    EXPECT_GE(forecast, done);
    EXPECT_LE(forecast, 100);
    EXPECT_EQ(compared, 1);
    forecasts.push_back(forecast);
  };
  const AbResult result = RunOrDie(options, std::ref(programs));
  ASSERT_EQ(static_cast<int>(forecasts.size()), result.rounds);
  EXPECT_EQ(forecasts.back(), result.rounds);
}

TEST(RunRoundsTest, RefusesOptionsOutOfRangeAndOutputThatIsNoJson) {
  FakePrograms programs(1, .01);
  AbOptions options;
  options.max_rounds = 2;
  EXPECT_THAT(
      std::string(RunRounds(options, std::ref(programs)).status().message()),
      HasSubstr("max_rounds is 2"));
  options = AbOptions();
  options.compare.false_alarm_rate = 0;
  EXPECT_THAT(
      std::string(RunRounds(options, std::ref(programs)).status().message()),
      HasSubstr("false_alarm_rate is 0"));
  options = AbOptions();
  options.compare.effects.min_effect = .2;
  EXPECT_FALSE(RunRounds(options, std::ref(programs)).ok());
  const auto garbage = RunRounds({}, [](Program, int) -> ProcessResult {
    ProcessResult process;
    process.files = {{"the output", "{]"}};
    return process;
  });
  EXPECT_THAT(std::string(garbage.status().message()),
              HasSubstr("the output of A: the format is not recognised"));
}

}  // namespace
}  // namespace optrail::tracker

#include "carbon/energy_of.h"

#include <cmath>

#include "absl/strings/str_cat.h"
#include "carbon/grid.h"
#include "carbon/indices.h"
#include "carbon/jobs_csv.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tuning/proto/canonical.h"

namespace optrail::carbon {
namespace {

using testing::HasSubstr;

proto::Hardware Cpu(int cores) {
  proto::Hardware hardware;
  hardware.set_id("amd-epyc-zen5-2c");
  hardware.set_device_kind(proto::CPU);
  hardware.set_cores(cores);
  return hardware;
}

void AddWindow(double joules, int64_t calls, proto::Measurement* measurement) {
  proto::MeterWindow* window = measurement->add_windows();
  window->set_metric("joules");
  window->set_unit("J");
  window->set_value(joules);
  window->set_calls(calls);
  window->set_duration_ns(1'000'000'000);
  window->set_source("RAPL");
}

TEST(EnergyOfTest, ACallThatWasMeteredHasItsReadingsMedian) {
  proto::BenchmarkResult result;
  for (const double joules : {20., 22., 21.}) {
    proto::Measurement* process = result.add_measurements();
    process->set_median_ns(1e6);
    AddWindow(joules, 10, process);
  }
  const Energy energy = EnergyOfCall(result, Cpu(2), PowerModel());
  EXPECT_TRUE(energy.known);
  EXPECT_FALSE(energy.estimated);
  EXPECT_DOUBLE_EQ(energy.joules, 2.1);
  EXPECT_NEAR(energy.uncertainty, .118, .001);  // t(2) s / sqrt(3)
  EXPECT_EQ(energy.basis, "metered: RAPL");
}

TEST(EnergyOfTest, WithoutAMeterItIsAModelsAndSaysSo) {
  proto::BenchmarkResult result;
  result.mutable_key()->set_threads(1);
  result.add_measurements()->set_median_ns(1e9);
  const Energy energy = EnergyOfCall(result, Cpu(2), PowerModel());
  EXPECT_TRUE(energy.known && energy.estimated);
  EXPECT_DOUBLE_EQ(energy.joules, 3.5 + .74);
  EXPECT_EQ(energy.uncertainty, kModelUncertainty);
  EXPECT_EQ(energy.basis, "estimated: 0.74 to 3.5 W a core");
  proto::Hardware gpu;
  gpu.set_device_kind(proto::CUDA);
  EXPECT_FALSE(EnergyOfCall(result, gpu, PowerModel()).known);
  EXPECT_FALSE(
      EnergyOfCall(proto::BenchmarkResult(), Cpu(2), PowerModel()).known);
}

TEST(EnergyOfTest, ARunTakesThePowerOfItsWindowsForItsTime) {
  proto::Run run;
  *run.mutable_hardware() = Cpu(2);
  run.set_elapsed_ns(10'000'000'000);
  EXPECT_DOUBLE_EQ(EnergyOfRun(run, PowerModel()).joules, 10 * (3.5 + .74));
  AddWindow(30, 1, run.add_results()->add_measurements());
  const Energy energy = EnergyOfRun(run, PowerModel());
  EXPECT_DOUBLE_EQ(energy.joules, 300);
  EXPECT_TRUE(energy.estimated);
  EXPECT_THAT(energy.basis, HasSubstr("30 W as windows of it were metered"));
}

TEST(WallMeterTest, IntegratesBetweenItsReadings) {
  const auto meter = WallMeter::Parse(
      "time,watts\n2026-01-01T00:00:00Z,100\n2026-01-01T00:01:00Z,200\n"
      "2026-01-01T00:02:00.5Z,200\n2026-01-01T01:00:00Z,200\n",
      "wall.csv");
  ASSERT_TRUE(meter.ok()) << meter.status();
  const int64_t start = *ParseTime("2026-01-01T00:00:00Z") * 1'000'000'000;
  EXPECT_DOUBLE_EQ(*meter->Joules(start, start + 60'000'000'000), 9000);
  EXPECT_DOUBLE_EQ(
      *meter->Joules(start + 30'000'000'000, start + 90'000'000'000),
      30 * 175 + 30 * 200);
  EXPECT_THAT(
      std::string(
          meter->Joules(start, start + 1'800'000'000'000).status().message()),
      HasSubstr("has no reading for"));
  EXPECT_THAT(
      std::string(
          meter->Joules(start - 1'000'000'000, start + 1).status().message()),
      HasSubstr("does not reach from"));
}

TEST(WallMeterTest, ADeadSensorIsNoZero) {
  const auto meter = WallMeter::Parse(
      "time,watts\n2026-01-01T00:00:00Z,0\n2026-01-01T00:01:00Z,0\n", "w.csv");
  ASSERT_TRUE(meter.ok()) << meter.status();
  const int64_t start = 1'767'225'600'000'000'000;
  const auto joules = meter->Joules(start, start + 10'000'000'000);
  EXPECT_THAT(std::string(joules.status().message()),
              HasSubstr("w.csv reads 0 W"));
}

TEST(PowerModelTest, AnIdleCoreTakesNoMoreThanABusyOne) {
  PowerModel model;
  EXPECT_TRUE(CheckWattsAreTaken(model, false).ok());
  model.busy_watts_per_core = .1;
  EXPECT_THAT(std::string(CheckWattsAreTaken(model, false).message()),
              HasSubstr("--idle_watts_per_core is 0.74"));
}

TEST(WallMeterTest, ErrorsNameFileAndLine) {
  const auto error = [](const std::string& csv) {
    return std::string(WallMeter::Parse(csv, "wall.csv").status().message());
  };
  EXPECT_THAT(error(""), HasSubstr("wall.csv:1"));
  EXPECT_THAT(error("time,watts\nnoon,1\n"), HasSubstr("wall.csv:2: time is"));
  EXPECT_THAT(error("time,watts\n2026-01-01T00:00:00Z,-1\n"),
              HasSubstr("watts is \"-1\""));
  EXPECT_THAT(error("time,watts\n2026-01-01T00:00:01Z,1\n"
                    "2026-01-01T00:00:00Z,1\n"),
              HasSubstr("wall.csv:3"));
  EXPECT_THAT(error("time,watts\n2026-01-01T00:00:00Z,1\n"),
              HasSubstr("fewer than two readings"));
}

proto::Session Session(uint64_t seed, double default_ns, double tuned_ns,
                       double default_joules, double tuned_joules) {
  proto::Session session;
  session.set_session_id("20260101T000000Z-" + std::to_string(seed));
  session.set_seed(seed);
  *session.mutable_hardware() = Cpu(2);
  session.set_elapsed_ns(100'000'000'000);
  for (int i = 0; i < 2; ++i) {
    proto::Finalist* finalist = session.add_finalists();
    *finalist->mutable_config() = *tuning::ParseConfig(i == 0 ? "x=1" : "x=2");
    finalist->set_is_default(i == 0);
    finalist->set_time_ns(i == 0 ? default_ns : tuned_ns);
    const double joules = i == 0 ? default_joules : tuned_joules;
    if (joules > 0) {
      proto::MetricSamples* value = finalist->add_objectives();
      value->set_metric("joules");
      value->add_values(joules);
    }
  }
  *session.mutable_winner() = session.finalists(1).config();
  for (int i = 0; i < 4; ++i) {
    proto::Trial* trial = session.add_trials();
    trial->set_outcome(i == 3 ? proto::CRASHED : proto::OK);
    trial->set_elapsed_ns(20'000'000'000);
  }
  return session;
}

TEST(EnergyOfTest, ASessionAlsoPaysForOpeningProcesses) {
  proto::Session session = Session(1, 2e6, 1e6, 0, 0);
  const double before = EnergyOfSession(session, PowerModel()).joules;
  session.mutable_time()->mutable_effort()->set_open_ns(100'000'000'000);
  const Energy energy = EnergyOfSession(session, PowerModel());
  EXPECT_DOUBLE_EQ(energy.seconds, 200);
  EXPECT_DOUBLE_EQ(energy.joules, 2 * before);
  const SessionGain gain = GainOf(session, PowerModel());
  EXPECT_DOUBLE_EQ(*gain.efficiency, .3);
}

TEST(IndicesTest, ASessionIsPaidBackAfterItsEnergyOverWhatACallSaves) {
  const SessionGain gain = GainOf(Session(1, 2e6, 1e6, 3, 2.5), PowerModel());
  EXPECT_DOUBLE_EQ(*gain.time_ratio, 2);
  EXPECT_DOUBLE_EQ(*gain.energy_ratio, 1.2);
  EXPECT_DOUBLE_EQ(*gain.efficiency, .6);
  EXPECT_DOUBLE_EQ(gain.spent.joules, 100 * (3.5 + .74));
  EXPECT_DOUBLE_EQ(*gain.break_even_calls, 424 / .5);
  EXPECT_TRUE(gain.estimated) << "what was spent is a model's";
  // A winner that takes more joules is never paid back.
  EXPECT_FALSE(GainOf(Session(1, 2e6, 1e6, 2, 2.5), PowerModel())
                   .break_even_calls.has_value());
}

TEST(IndicesTest, TheIndexIsTheMeanOfThreeAndKnowsWhatItLacks) {
  const std::vector<proto::Session> sessions = {Session(1, 2e6, 1e6, 4, 2),
                                                Session(2, 8e6, 1e6, 4, .5)};
  const TuningIndex index = IndexOf({&sessions[0], &sessions[1]}, PowerModel());
  EXPECT_EQ(index.sessions, 2);
  EXPECT_EQ(index.seeds, 2);
  EXPECT_DOUBLE_EQ(index.performance, 4);
  EXPECT_DOUBLE_EQ(index.energy, 4);
  EXPECT_DOUBLE_EQ(index.efficiency, .6);
  EXPECT_DOUBLE_EQ(*index.index, std::cbrt(4 * 4 * .6));
  const proto::Session unmetered = Session(3, 2e6, 1e6, 0, 0);
  EXPECT_FALSE(IndexOf({&unmetered}, PowerModel()).index.has_value());
  EXPECT_EQ(IndexOf({}, PowerModel()).sessions, 0);
}

TEST(IndicesTest, MaturityIsWhatIsProvenAndNamesWhatIsMissing) {
  MaturityEvidence evidence;
  EXPECT_EQ(MaturityOf(evidence).level, 0);
  evidence.runs = 3;
  EXPECT_EQ(MaturityOf(evidence).level, 1);
  EXPECT_THAT(MaturityOf(evidence).missing, HasSubstr("there are 3 of 0"));
  evidence.runs = 5;
  evidence.commits = 2;
  EXPECT_EQ(MaturityOf(evidence).name, "follows");
  // No level without those below.
  evidence.verified_certificates = 1;
  EXPECT_EQ(MaturityOf(evidence).level, 2);
  evidence.proven_sessions = 1;
  evidence.checked_windows = 1;
  EXPECT_EQ(MaturityOf(evidence).level, 5);
  EXPECT_EQ(MaturityOf(evidence).missing, "");
}

constexpr char kJobs[] = "id,watts,hours,release,deadline,preemptible";

class JobsTest : public testing::Test {
 protected:
  absl::StatusOr<JobsFile> Parse(const std::string& rows,
                                 const std::string& more = "",
                                 int64_t hour_phase_s = 0) {
    return ParseJobs(absl::StrCat(kJobs, more, "\n", rows), "jobs.csv",
                     *tracker::History::Open(testing::TempDir() + "/none"),
                     PowerModel(), hour_phase_s);
  }
};

TEST_F(JobsTest, HoursAreWholeAndEnergyStaysTheSame) {
  const auto jobs = Parse(
      "a,500,2.5,2026-01-01T00:10:00Z,2026-01-01T05:50:00Z,yes\n"
      "b,100,1,2026-01-01T03:00:00Z,2026-01-01T04:00:00Z,no\n");
  ASSERT_TRUE(jobs.ok()) << jobs.status();
  EXPECT_EQ(TimeText(jobs->start_unix_s), "2026-01-01T01:00:00Z");
  EXPECT_EQ(jobs->hours, 4);
  EXPECT_EQ(jobs->jobs[0].hours, 3);
  EXPECT_DOUBLE_EQ(jobs->jobs[0].watts * 3, 500 * 2.5);
  EXPECT_EQ(jobs->jobs[0].deadline, 4);
  EXPECT_EQ(jobs->jobs[1].release, 2);
  EXPECT_FALSE(jobs->jobs[1].preemptible);
}

TEST_F(JobsTest, HoursBeginWhereThoseOfTheIntensityDo) {
  const std::string job =
      "a,500,1,2026-01-01T01:00:00+05:30,2026-01-01T02:00:00+05:30,yes\n";
  const auto jobs = Parse(job, "", /*hour_phase_s=*/1800);
  ASSERT_TRUE(jobs.ok()) << jobs.status();
  EXPECT_EQ(TimeText(jobs->start_unix_s), "2025-12-31T19:30:00Z");
  EXPECT_EQ(jobs->hours, 1);
  EXPECT_EQ(jobs->jobs[0].release, 0);
  EXPECT_EQ(jobs->jobs[0].deadline, 1);
  EXPECT_THAT(std::string(Parse(job).status().message()),
              HasSubstr("hours begin at minute 0 (UTC)"));
}

TEST_F(JobsTest, ErrorsNameFileLineAndWhatWasExpected) {
  const auto error = [&](const std::string& rows,
                         const std::string& more = "") {
    return std::string(Parse(rows, more).status().message());
  };
  EXPECT_THAT(error(""), HasSubstr("there are no jobs"));
  EXPECT_THAT(error("a,1,1,x,y,yes\n"), HasSubstr("jobs.csv:2"));
  EXPECT_THAT(error("a,1,3,2026-01-01T00:00:00Z,2026-01-01T02:00:00Z,yes\n"),
              HasSubstr("has 2 whole hours between release and deadline"));
  EXPECT_THAT(error("a,1,2,2026-01-01T00:00:00Z,2026-01-01T01:00:00Z,yes\n"),
              HasSubstr("has 1 whole hour between release and deadline"));
  EXPECT_THAT(error("a,1,3,2026-01-01T02:00:00Z,2026-01-01T00:00:00Z,yes\n"),
              HasSubstr("deadline is 2026-01-01T00:00:00Z, expected it after"));
  EXPECT_THAT(error("a,nan,1,2026-01-01T00:00:00Z,2026-01-01T02:00:00Z,yes\n"),
              HasSubstr("watts is"));
  EXPECT_THAT(error("a,,1,2026-01-01T00:00:00Z,2026-01-01T02:00:00Z,yes\n"),
              HasSubstr("expected both, or a session"));
  EXPECT_THAT(error("a,,,2026-01-01T00:00:00Z,2026-01-01T02:00:00Z,yes,"
                    "20260101T000000Z-aa\n",
                    ",session"),
              HasSubstr("expected a session or run of"));
  EXPECT_THAT(error("a,1,1,2026-01-01T00:00:00Z,2026-01-01T02:00:00Z,maybe\n"),
              HasSubstr("expected yes or no"));
  const std::string hour = ",1,1,2026-01-01T00:00:00Z,2026-01-01T02:00:00Z,yes";
  EXPECT_THAT(error(hour + "\n"), HasSubstr("jobs.csv:2: id is empty"));
  EXPECT_THAT(error("a" + hour + "\nb" + hour + "\na" + hour + "\n"),
              HasSubstr("jobs.csv:4: id is \"a\", the id of line 2"));
  EXPECT_THAT(error("a,1,0,2026-01-01T00:00:00Z,2026-01-01T02:00:00Z,yes\n"),
              HasSubstr("hours is 0"));
}

}  // namespace
}  // namespace optrail::carbon

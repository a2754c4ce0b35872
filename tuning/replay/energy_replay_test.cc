#include "tuning/replay/energy_replay.h"

#include <cmath>
#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tuning/proto/canonical.h"
#include "tuning/replay/session_recording.h"

namespace optrail::tuning {
namespace {

using testing::HasSubstr;

// 128 configs whose time and power have different best tiles.
proto::Session Recorded() {
  proto::Session session;
  for (const char* kind : {"wide", "narrow"}) {
    for (int tile = 1; tile <= 8; ++tile) {
      for (int unroll = 1; unroll <= 8; ++unroll) {
        proto::Trial* trial = session.add_trials();
        *trial->mutable_config() = *ParseConfig(absl::StrCat(
            "kind=", kind, ",tile=", 16 * tile, ",unroll=", unroll));
        trial->set_outcome(proto::OK);
        const double time_ns =
            1e4 * (1 + .1 * std::abs(tile - 5) + .02 * std::abs(unroll - 4));
        trial->set_time_ns(time_ns);
        proto::MetricSamples* joules = trial->add_objectives();
        joules->set_metric("joules");
        joules->add_values(
            (1e-3 + 3e-7 * time_ns) *
            (1 - .03 * tile + (kind == std::string("wide") ? .1 : 0)));
        proto::Fact* fact = trial->add_facts();
        fact->set_name("registers");
        fact->set_value(32 + 8 * tile);
      }
    }
  }
  return session;
}

Recording Space() {
  const auto text = RecordingOf(Recorded());
  EXPECT_TRUE(text.ok()) << text.status();
  const auto recording = ParseRecording(*text, "recorded.json");
  EXPECT_TRUE(recording.ok()) << recording.status();
  return *recording;
}

TEST(EnergyReplayTest, ASessionBecomesARecording) {
  const Recording recording = Space();
  EXPECT_EQ(recording.configs.size(), 128);
  EXPECT_EQ(recording.knobs.size(), 3);
  for (const RecordedConfig& config : recording.configs) {
    EXPECT_GT(config.joules, 0);
    ASSERT_EQ(config.facts.size(), 1);
    EXPECT_EQ(config.facts[0].first, "registers");
  }
  EXPECT_THAT(RecordingOf(proto::Session()).status().message(),
              HasSubstr("no trial has a time"));
}

TEST(EnergyReplayTest, MetersFewAndFindsWhatTakesLittle) {
  const Recording recording = Space();
  for (const double limit : {0., 1.05}) {
    for (uint64_t seed = 1; seed <= 5; ++seed) {
      EnergyReplay run;
      run.seed = seed;
      run.time_limit = limit;
      const auto result = RunEnergyReplay(recording, run);
      ASSERT_TRUE(result.ok()) << result.status();
      EXPECT_EQ(result->trials, 40);
      EXPECT_LE(result->metered, 12);
      EXPECT_LE(result->loss, .08) << limit << " " << seed;
      if (limit > 0) {
        EXPECT_LE(result->time_over_best, limit + 1e-9);
      }
    }
  }
}

// The recorded values are the truth where each config is read once more.
TEST(EnergyReplayTest, ARecordingThatScattersIsJudgedByTheTruthAsWell) {
  const Recording recording = Space();
  double loss = 0, true_loss = 0;
  for (uint64_t seed = 1; seed <= 5; ++seed) {
    EnergyReplay run;
    run.seed = seed;
    run.meter_all = true;
    auto result = RunEnergyReplay(recording, run);
    ASSERT_TRUE(result.ok()) << result.status();
    EXPECT_EQ(result->true_loss, result->loss);
    run.recorded_noise = .02;
    result = RunEnergyReplay(recording, run);
    ASSERT_TRUE(result.ok()) << result.status();
    EXPECT_GE(result->true_loss, 0);
    loss += result->loss;
    true_loss += result->true_loss;
  }
  EXPECT_NE(loss, true_loss);
  EnergyReplays replays;
  replays.recordings = {recording};
  replays.seeds = 2;
  auto text = RunEnergyReplays(replays, OutputFormat::kCsv);
  ASSERT_TRUE(text.ok()) << text.status();
  EXPECT_THAT(*text, testing::Not(HasSubstr("truly")));
  replays.run.recorded_noise = .02;
  text = RunEnergyReplays(replays, OutputFormat::kCsv);
  ASSERT_TRUE(text.ok()) << text.status();
  EXPECT_THAT(*text, HasSubstr("mean_true_loss,truly_within_2_percent"));
}

TEST(EnergyReplayTest, SaysWhatARecordingLacks) {
  Recording recording = Space();
  recording.configs[3].joules = 0;
  EXPECT_THAT(RunEnergyReplay(recording, {}).status().message(),
              HasSubstr("configs without joules"));
}

}  // namespace
}  // namespace optrail::tuning

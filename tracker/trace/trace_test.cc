#include "tracker/trace/trace.h"

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"

namespace optrail::tracker {
namespace {

using nlohmann::json;
using ::testing::ElementsAre;

constexpr int64_t kStart = 1'800'000'000'000'000'000;
constexpr int64_t kMs = 1'000'000;

std::vector<json> Spans(const Trace& trace) {
  std::vector<json> spans;
  const json parsed = json::parse(trace.json);
  for (const json& event : parsed["traceEvents"]) {
    if (event["ph"] == "X") spans.push_back(event);
  }
  return spans;
}

std::vector<std::string> TrackNames(const Trace& trace) {
  std::vector<std::string> names;
  const json parsed = json::parse(trace.json);
  for (const json& event : parsed["traceEvents"]) {
    if (event["name"] == "thread_name") names.push_back(event["args"]["name"]);
  }
  return names;
}

std::map<std::string, int> CountByName(const std::vector<json>& spans) {
  std::map<std::string, int> counts;
  for (const json& span : spans) ++counts[span["name"]];
  return counts;
}

// Viewers expect that two spans of a track are apart, or one holds the other.
void ExpectNested(const std::vector<json>& spans) {
  for (size_t i = 0; i < spans.size(); ++i) {
    for (size_t k = i + 1; k < spans.size(); ++k) {
      if (spans[i]["tid"] != spans[k]["tid"]) continue;
      const double a = spans[i]["ts"], a_end = a + double(spans[i]["dur"]);
      const double b = spans[k]["ts"], b_end = b + double(spans[k]["dur"]);
      constexpr double kRounding = 1e-2;
      const bool apart = a_end <= b + kRounding || b_end <= a + kRounding;
      const bool holds = a <= b + kRounding && b_end <= a_end + kRounding;
      EXPECT_TRUE(apart || holds) << spans[i] << "\n" << spans[k];
    }
  }
}

proto::Measurement Samples(int64_t start_ms, int count, int round = 0) {
  proto::Measurement measurement;
  measurement.set_started_unix_ns(kStart + start_ms * kMs);
  measurement.set_calls_per_sample(3);
  measurement.set_round(round);
  for (int i = 0; i < count; ++i) measurement.add_sample_ns(kMs);
  return measurement;
}

void SetUnroll(int64_t value, proto::Config* config) {
  proto::KnobValue& knob = *config->add_set();
  knob.set_knob("unroll");
  knob.set_int_(value);
}

// Three trials that are submitted at once; each compiles for 20 ms, is loaded
// in 1, checked in 2 and sampled in 4 ms.
proto::Session ThreeTrials() {
  proto::Session session;
  session.set_session_id("20270115T080000Z-1");
  session.set_started_unix_ns(kStart);
  session.mutable_task()->set_operator_name("add");
  for (int i = 0; i < 3; ++i) {
    proto::Trial& trial = *session.add_trials();
    SetUnroll(1 << i, trial.mutable_config());
    trial.set_outcome(proto::OK);
    trial.set_started_unix_ns(kStart + 5 * kMs);
    trial.set_compile_ns(20 * kMs);
    trial.set_load_ns(kMs);
    trial.mutable_effort()->set_check_ns(2 * kMs);
    *trial.add_measurements() = Samples(30 + 20 * i, 4);
    trial.mutable_measurements(0)->add_contended_samples(1);
  }
  return session;
}

TEST(TraceOfTest, ASessionShowsWhatCompilesBesideWhatIsMeasured) {
  const Trace trace = TraceOf(ThreeTrials());
  const std::vector<json> spans = Spans(trace);
  EXPECT_THAT(TrackNames(trace), ElementsAre("compile", "search"));
  EXPECT_EQ(trace.tracks, 2);
  EXPECT_EQ(trace.events, static_cast<int>(spans.size()));
  const auto counts = CountByName(spans);
  EXPECT_EQ(counts.at("load"), 3);
  EXPECT_EQ(counts.at("check"), 3);
  EXPECT_EQ(counts.at("sample"), 9);
  EXPECT_EQ(counts.at("disturbed sample"), 3);
  EXPECT_EQ(counts.at("unroll=2"), 1);
  ExpectNested(spans);
  std::map<std::string, json> by_name;
  for (const json& span : spans) by_name[span["name"]] = span;
  // One compiler is enough, so the second begins where the first ends, and is
  // at work while the first config is measured.
  EXPECT_EQ(by_name["compile unroll=1"]["ts"], 5'000);
  EXPECT_EQ(by_name["compile unroll=2"]["ts"], 25'000);
  EXPECT_EQ(by_name["compile unroll=2"]["dur"], 20'000);
  EXPECT_EQ(by_name["unroll=1"]["ts"], 29'000);
  EXPECT_EQ(by_name["unroll=1"]["dur"], 1'000 + 2'000 + 4'000);
  EXPECT_EQ(by_name["unroll=1"]["args"]["disturbed"], 1);
}

TEST(TraceOfTest, MoreCompilersAreShownWhereOneWouldBeTooLate) {
  proto::Session session = ThreeTrials();
  for (proto::Trial& trial : *session.mutable_trials()) {
    trial.set_compile_ns(24 * kMs);
  }
  EXPECT_THAT(TrackNames(TraceOf(session)),
              ElementsAre("compile", "compile 2", "search"));
}

TEST(TraceOfTest, FailedTrialsFollowTheOnesBeforeThem) {
  proto::Session session = ThreeTrials();
  proto::Trial& crashed = *session.mutable_trials(1);
  crashed.clear_measurements();
  crashed.set_outcome(proto::CRASHED);
  crashed.set_detail("signal 11");
  crashed.set_elapsed_ns(3 * kMs);
  const std::vector<json> spans = Spans(TraceOf(session));
  ExpectNested(spans);
  const auto found =
      std::find_if(spans.begin(), spans.end(),
                   [](const json& span) { return span["name"] == "unroll=2"; });
  ASSERT_NE(found, spans.end());
  EXPECT_EQ((*found)["args"]["outcome"], "CRASHED");
  EXPECT_EQ((*found)["args"]["detail"], "signal 11");
  EXPECT_EQ((*found)["ts"], 36'000);
}

TEST(TraceOfTest, ConfigsThatAreMeasuredTogetherAlternate) {
  proto::Session session = ThreeTrials();
  session.clear_trials();
  for (int i = 0; i < 2; ++i) {
    proto::Finalist& finalist = *session.add_finalists();
    SetUnroll(1 << i, finalist.mutable_config());
    *finalist.add_measurements() = Samples(100, 2, /*round=*/1);
  }
  const std::vector<json> spans = Spans(TraceOf(session));
  ExpectNested(spans);
  ASSERT_EQ(spans.size(), 5u);
  EXPECT_EQ(spans[0]["name"], "ranking, round 1");
  EXPECT_EQ(spans[1]["args"]["of"], "unroll=1");
  EXPECT_EQ(spans[2]["args"]["of"], "unroll=2");
  EXPECT_EQ(spans[3]["args"]["of"], "unroll=1");
}

TEST(TraceOfTest, TrialsOfEarlierSessionsAreNotShown) {
  proto::Session session = ThreeTrials();
  session.set_warm_start_trial_count(2);
  EXPECT_EQ(CountByName(Spans(TraceOf(session))).at("load"), 1);
}

TEST(TraceOfTest, ARunShowsItsBenchmarksByName) {
  proto::Run run;
  run.set_run_id("20270115T080000Z-2");
  run.set_started_unix_ns(kStart);
  for (const char* name : {"BM_a", "BM_b"}) {
    proto::BenchmarkResult& result = *run.add_results();
    result.mutable_key()->set_operator_name(name);
    *result.add_measurements() = Samples(name[3] == 'a' ? 10 : 50, 3);
  }
  const Trace trace = TraceOf(run);
  const std::vector<json> spans = Spans(trace);
  EXPECT_THAT(TrackNames(trace), ElementsAre("benchmarks"));
  EXPECT_EQ(CountByName(spans).at("BM_a"), 1);
  EXPECT_EQ(CountByName(spans).at("sample"), 6);
  ExpectNested(spans);
}

TEST(TraceOfTest, AnyRecordMakesATrace) {
  proto::Session session = ThreeTrials();
  for (const int64_t ns : {INT64_MIN, int64_t{-1}, INT64_MAX}) {
    proto::Trial& trial = *session.add_trials();
    trial.set_started_unix_ns(ns);
    trial.set_compile_ns(ns);
    trial.set_load_ns(ns);
    trial.set_elapsed_ns(ns);
    trial.set_detail("\xff\x1b[31m");
    *trial.add_measurements() = Samples(0, 2);
    trial.mutable_measurements(0)->set_started_unix_ns(ns);
    trial.mutable_measurements(0)->set_sample_ns(0, ns);
    trial.mutable_measurements(0)->add_contended_samples(-7);
    *session.add_finalists()->add_measurements() = trial.measurements(0);
  }
  for (const json& span : Spans(TraceOf(session))) {
    EXPECT_GE(span["dur"], 0) << span;
  }
  EXPECT_EQ(TraceOf(proto::Session()).events, 0);
  EXPECT_EQ(TraceOf(proto::Run()).events, 0);
}

}  // namespace
}  // namespace optrail::tracker

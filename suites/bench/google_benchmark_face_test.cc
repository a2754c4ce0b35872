#include "suites/bench/google_benchmark_face.h"

#include <sstream>
#include <string>
#include <vector>

#include "absl/flags/reflection.h"
#include "absl/strings/str_split.h"
#include "base/file/file.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"

namespace optrail::suites {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using Json = nlohmann::json;

class GoogleBenchmarkFaceTest : public ::testing::Test {
 protected:
  GoogleBenchmarkFaceTest() {
    run_.mutable_hardware()->set_id("amd-epyc-zen4-2c");
    proto::BenchmarkResult* add = run_.add_results();
    add->mutable_key()->set_operator_name("BM_Add");
    add->set_outcome(proto::OK);
    add->set_flop(3000);
    add->set_moved_bytes(12000);
    for (const double ns : {1000., 1100., 1300.}) {
      proto::Measurement* process = add->add_measurements();
      process->set_median_ns(ns);
      process->set_calls_per_sample(10);
      process->add_sample_ns(static_cast<int64_t>(10 * ns));
      process->add_sample_ns(static_cast<int64_t>(10 * ns));
      proto::MetricSamples* cpu = process->add_metrics();
      cpu->set_metric("cpu_time");
      cpu->add_values(ns - 100);
      proto::MeterWindow* window = process->add_windows();
      window->set_metric("joules");
      window->set_value(ns);
      window->set_calls(1000);
    }
    proto::BenchmarkResult* crash = run_.add_results();
    crash->mutable_key()->set_operator_name("BM_Crash");
    crash->set_outcome(proto::CRASHED);
    crash->set_detail("killed by SIGSEGV");
  }

  void Set(const std::string& flag, const std::string& value) {
    std::string error;
    ASSERT_TRUE(absl::FindCommandLineFlag(flag)->ParseFrom(value, &error))
        << error;
  }

  std::string Print() {
    std::ostringstream out;
    const absl::Status printed = ReportToGoogleBenchmark(run_, out);
    EXPECT_TRUE(printed.ok()) << printed;
    return out.str();
  }

  std::string LineWith(const std::string& text, const std::string& what) {
    for (const absl::string_view line : absl::StrSplit(text, '\n')) {
      if (absl::StrContains(line, what)) return std::string(line);
    }
    ADD_FAILURE() << "no line has " << what << ":\n" << text;
    return "";
  }

  std::string ErrorOf(const std::string& flag, const std::string& value) {
    Set(flag, value);
    return std::string(CheckGoogleBenchmarkFlags().message());
  }

  absl::FlagSaver saver_;
  proto::Run run_;
};

TEST_F(GoogleBenchmarkFaceTest, TheConsoleShowsTheMedianOverProcesses) {
  const std::string line = LineWith(Print(), "BM_Add");
  // Name, time, CPU, iterations, counters.
  EXPECT_THAT(line, HasSubstr(" 1100 ns"));
  EXPECT_THAT(line, HasSubstr(" 1000 ns"));
  EXPECT_THAT(line, HasSubstr(" 60 ")) << "calls of all processes";
  EXPECT_THAT(line, HasSubstr("2.72727G")) << "3000 FLOP in 1.1 us";
}

TEST_F(GoogleBenchmarkFaceTest, WhatAMeterReadOfACallIsACounter) {
  EXPECT_THAT(Print(), HasSubstr("joules"));
  EXPECT_THAT(LineWith(Print(), "BM_Add"), HasSubstr(" 1.1"));
  Set("benchmark_format", "json");
  Set("benchmark_repetitions", "3");
  const Json json = Json::parse(Print());
  EXPECT_EQ(json["benchmarks"][1]["joules"], 1.1) << "of the second process";
  for (auto& process : *run_.mutable_results(0)->mutable_measurements()) {
    process.mutable_windows(0)->set_estimated(true);
  }
  EXPECT_THAT(Print(), AllOf(HasSubstr("joules_estimated"),
                             Not(HasSubstr("\"joules\""))));
}

TEST_F(GoogleBenchmarkFaceTest, ATunedConfigThatIsTheDefaultIsNoRowOfItsOwn) {
  run_.mutable_results()->DeleteSubrange(1, 1);
  run_.mutable_results(0)->mutable_key()->set_selection(proto::DEFAULT);
  run_.mutable_results(0)->set_config("x=1");
  *run_.add_results() = run_.results(0);
  proto::BenchmarkResult* tuned = run_.mutable_results(1);
  tuned->mutable_key()->set_selection(proto::TUNED);
  tuned->set_config_source(proto::EXACT_SHAPE);
  const auto rows = [&] {
    const std::vector<std::string> lines = absl::StrSplit(Print(), "BM_Add");
    return lines.size() - 1;
  };
  EXPECT_EQ(rows(), 1);
  EXPECT_THAT(Print(), HasSubstr("the tuned config is the default"));
  tuned->set_config_source(proto::FALLBACK_TO_DEFAULT);
  EXPECT_EQ(rows(), 1);
  EXPECT_THAT(LineWith(Print(), "BM_Add"), HasSubstr("not tuned"));
  tuned->set_config("x=2");
  EXPECT_EQ(rows(), 2);
  tuned->set_config("x=1");
  Set("benchmark_format", "json");
  EXPECT_EQ(Json::parse(Print())["benchmarks"][0]["run_name"],
            BenchmarkNameOf(run_.results(0)));
  EXPECT_THAT(Print(), HasSubstr(BenchmarkNameOf(run_.results(1))))
      << "programs get both";
}

TEST_F(GoogleBenchmarkFaceTest, ABackendThatIsNotHereIsNoRowBesideOneThatIs) {
  proto::BenchmarkResult* lacks = run_.mutable_results(1);
  *lacks->mutable_key() = run_.results(0).key();
  lacks->mutable_key()->set_backend("cudnn");
  lacks->set_outcome(proto::UNSUPPORTED);
  lacks->set_detail("unsupported here: no GPU");
  EXPECT_THAT(Print(), Not(HasSubstr("UNSUPPORTED")));
  lacks->mutable_key()->set_operator_name("BM_Other");
  EXPECT_THAT(Print(), HasSubstr("UNSUPPORTED")) << "it is all there is";
}

TEST_F(GoogleBenchmarkFaceTest, TheBestBackendIsNamed) {
  EXPECT_THAT(LineWith(Print(), "BM_Add"), Not(HasSubstr("by ")));
  run_.mutable_results(0)->set_resolved_backend("onednn");
  EXPECT_THAT(LineWith(Print(), "BM_Add"), HasSubstr("by onednn"));
  Set("benchmark_format", "json");
  EXPECT_THAT(Print(), HasSubstr("\"label\": \"by onednn\""));
}

TEST_F(GoogleBenchmarkFaceTest, AFailureSaysWhy) {
  EXPECT_THAT(LineWith(Print(), "BM_Crash"),
              AllOf(HasSubstr("ERROR OCCURRED"),
                    HasSubstr("CRASHED: killed by SIGSEGV")));
}

TEST_F(GoogleBenchmarkFaceTest, TheConsoleShowsFailuresBelowWhatHasATime) {
  std::swap(*run_.mutable_results(0), *run_.mutable_results(1));
  const std::string text = Print();
  EXPECT_LT(text.find("BM_Add"), text.find("BM_Crash"));
  Set("benchmark_format", "json");
  const std::string json = Print();
  EXPECT_LT(json.find("BM_Crash"), json.find("BM_Add")) << "as in the run";
}

TEST_F(GoogleBenchmarkFaceTest, WithRepetitionsEachProcessAndTheirAggregates) {
  Set("benchmark_repetitions", "3");
  const std::string text = Print();
  EXPECT_THAT(text, AllOf(HasSubstr("1000 ns"), HasSubstr("1300 ns")));
  EXPECT_THAT(LineWith(text, "BM_Add_mean"), HasSubstr("1133 ns"));
  EXPECT_THAT(LineWith(text, "BM_Add_median"), HasSubstr("1100 ns"));
  EXPECT_THAT(LineWith(text, "BM_Add_stddev"), HasSubstr("153 ns"));
  EXPECT_THAT(LineWith(text, "BM_Add_cv"), HasSubstr("13.48 %"));
}

TEST_F(GoogleBenchmarkFaceTest, DisplayAggregatesOnlyKeepsTheFileWhole) {
  const std::string path = ::testing::TempDir() + "/out.json";
  Set("benchmark_display_aggregates_only", "true");
  Set("benchmark_out", path);
  EXPECT_THAT(Print(), Not(HasSubstr("1300 ns")));
  const Json json = Json::parse(*ReadFile(path));
  int iterations = 0;
  for (const Json& entry : json["benchmarks"]) {
    iterations += entry["run_type"] == "iteration";
  }
  EXPECT_EQ(iterations, 4) << "three processes and the failure";
}

TEST_F(GoogleBenchmarkFaceTest, ReportAggregatesOnlyHoldsForTheFileToo) {
  const std::string path = ::testing::TempDir() + "/aggregates.json";
  Set("benchmark_report_aggregates_only", "true");
  Set("benchmark_out", path);
  Print();
  const Json json = Json::parse(*ReadFile(path));
  for (const Json& entry : json["benchmarks"]) {
    if (entry["name"] == "BM_Crash") continue;
    EXPECT_EQ(entry["run_type"], "aggregate") << entry;
  }
}

TEST_F(GoogleBenchmarkFaceTest, JsonIsWhatGoogleBenchmarkWrites) {
  Set("benchmark_format", "json");
  const Json json = Json::parse(Print());
  EXPECT_EQ(json["context"]["optrail_hardware"], "amd-epyc-zen4-2c");
  const Json& first = json["benchmarks"][0];
  EXPECT_EQ(first["name"], "BM_Add");
  EXPECT_EQ(first["run_type"], "iteration");
  EXPECT_EQ(first["repetitions"], 3);
  EXPECT_EQ(first["repetition_index"], 0);
  EXPECT_EQ(first["time_unit"], "ns");
  EXPECT_DOUBLE_EQ(first["real_time"].get<double>(), 1000);
  EXPECT_DOUBLE_EQ(first["cpu_time"].get<double>(), 900);
  EXPECT_EQ(first["iterations"], 20);
  EXPECT_DOUBLE_EQ(first["FLOP/s"].get<double>(), 3e9);
  EXPECT_EQ(json["benchmarks"].back()["error_occurred"], true);
}

TEST_F(GoogleBenchmarkFaceTest, CsvHasOneHeaderAndALinePerProcess) {
  Set("benchmark_format", "csv");
  const std::string text = Print();
  EXPECT_THAT(text, HasSubstr("name,iterations,real_time,cpu_time,time_unit"));
  EXPECT_THAT(LineWith(text, "\"BM_Add\",20,"), HasSubstr("1000,900,ns"));
}

TEST_F(GoogleBenchmarkFaceTest, TheTimeUnitCanBeForced) {
  Set("benchmark_time_unit", "us");
  EXPECT_THAT(LineWith(Print(), "BM_Add"), HasSubstr(" 1.10 us"));
}

TEST_F(GoogleBenchmarkFaceTest, AFilterMatchesSomewhereAndAMinusInvertsIt) {
  EXPECT_TRUE(MatchesBenchmarkFilter("BM_Add"));
  Set("benchmark_filter", "Ad+");
  EXPECT_TRUE(MatchesBenchmarkFilter("BM_Add"));
  EXPECT_FALSE(MatchesBenchmarkFilter("BM_Crash"));
  Set("benchmark_filter", "-Ad+");
  EXPECT_FALSE(MatchesBenchmarkFilter("BM_Add"));
  EXPECT_TRUE(MatchesBenchmarkFilter("BM_Crash"));
  Set("benchmark_filter", "all");
  EXPECT_TRUE(MatchesBenchmarkFilter("BM_Crash"));
}

TEST_F(GoogleBenchmarkFaceTest, AWrongFlagIsNamedWithItsValue) {
  ASSERT_TRUE(CheckGoogleBenchmarkFlags().ok());
  EXPECT_THAT(ErrorOf("benchmark_format", "xml"),
              AllOf(HasSubstr("--benchmark_format=xml"), HasSubstr("json")));
  Set("benchmark_format", "console");
  EXPECT_THAT(ErrorOf("benchmark_filter", "a("), HasSubstr("missing )"));
  Set("benchmark_filter", "");
  EXPECT_THAT(ErrorOf("benchmark_repetitions", "-1"), HasSubstr("=-1"));
  Set("benchmark_repetitions", "0");
  EXPECT_THAT(ErrorOf("benchmark_min_time", "nan"), HasSubstr("seconds"));
  Set("benchmark_min_time", "0");
  EXPECT_THAT(ErrorOf("benchmark_context", "novalue"), HasSubstr("key=value"));
  Set("benchmark_context", "");
  EXPECT_THAT(ErrorOf("benchmark_perf_counters", "CYCLES"),
              HasSubstr("unsupported here"));
}

TEST_F(GoogleBenchmarkFaceTest, AFileWithoutAFolderIsRefusedBeforeMeasuring) {
  EXPECT_THAT(ErrorOf("benchmark_out", "/no/such/folder/x.json"),
              AllOf(HasSubstr("--benchmark_out=/no/such/folder/x.json"),
                    HasSubstr("there is no folder /no/such/folder")));
  EXPECT_THAT(ErrorOf("benchmark_out", ::testing::TempDir()),
              HasSubstr("it is a folder"));
  Set("benchmark_out", ::testing::TempDir() + "/out.json");
  EXPECT_TRUE(CheckGoogleBenchmarkFlags().ok());
}

TEST_F(GoogleBenchmarkFaceTest, AFileThatCannotBeWrittenIsAnError) {
  Set("benchmark_out", ::testing::TempDir() + "/no/such/folder/out.json");
  std::ostringstream out;
  EXPECT_THAT(std::string(ReportToGoogleBenchmark(run_, out).message()),
              HasSubstr("no/such/folder"));
}

}  // namespace
}  // namespace optrail::suites

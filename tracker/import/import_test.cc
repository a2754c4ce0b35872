#include "tracker/import/import.h"

#include <utility>

#include "base/file/file.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tracker/history/record.h"

namespace optrail::tracker {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string File(const std::string& benchmarks) {
  return R"({
  "context": {
    "date": "2026-11-20T10:08:07+01:00",
    "host_name": "runner-4711",
    "executable": "./bench",
    "num_cpus": 8,
    "mhz_per_cpu": 3200,
    "cpu_scaling_enabled": false,
    "caches": [
      {"type": "Data", "level": 1, "size": 32768, "num_sharing": 2},
      {"type": "Instruction", "level": 1, "size": 65536, "num_sharing": 2},
      {"type": "Unified", "level": 2, "size": 524288, "num_sharing": 2},
      {"type": "Unified", "level": 3, "size": 33554432, "num_sharing": 8}
    ],
    "load_avg": [0.52, 0.4, 0.3],
    "library_build_type": "release"
  },
  "benchmarks": [)" +
         benchmarks + "]\n}\n";
}

constexpr char kSort[] = R"(
    {"name": "BM_Sort/1024", "run_name": "BM_Sort/1024",
     "run_type": "iteration", "repetitions": 3, "repetition_index": 0,
     "threads": 1, "iterations": 1000, "real_time": 2.5, "cpu_time": 2.25,
     "time_unit": "us", "items_per_second": 4e8, "label": "int32"},
    {"name": "BM_Sort/1024", "run_name": "BM_Sort/1024",
     "run_type": "iteration", "repetitions": 3, "repetition_index": 1,
     "threads": 1, "iterations": 1000, "real_time": 2.7, "cpu_time": 2.6,
     "time_unit": "us", "items_per_second": 3.9e8, "label": "int32"},
    {"name": "BM_Sort/1024", "run_name": "BM_Sort/1024",
     "run_type": "iteration", "repetitions": 3, "repetition_index": 2,
     "threads": 1, "iterations": 1000, "real_time": 2.6, "cpu_time": 2.5,
     "time_unit": "us", "items_per_second": 3.8e8, "label": "int32"})";

// Another process of the same program.
std::string Other() { return File(kSort) + "\n"; }

absl::StatusOr<proto::Run> ImportOne(const std::string& content,
                                     const ImportOptions& options = {}) {
  auto runs = ImportContents({{"dir/bench.json", content}}, options);
  if (!runs.ok()) return runs.status();
  EXPECT_EQ(runs->size(), 1);
  EXPECT_TRUE(ValidateRun((*runs)[0]).ok());
  return (*runs)[0];
}

std::string ErrorOf(const std::string& content) {
  const auto run = ImportOne(content);
  EXPECT_FALSE(run.ok()) << content;
  return std::string(run.status().message());
}

TEST(GoogleBenchmark, RepetitionsAreSamplesOfOneProcess) {
  const auto run = ImportOne(File(kSort));
  ASSERT_TRUE(run.ok()) << run.status();
  EXPECT_EQ(run->suite(), "bench");
  EXPECT_EQ(run->source(), "google_benchmark");
  EXPECT_EQ(run->run_id().substr(0, 17), "20261120T090807Z-");
  ASSERT_EQ(run->results_size(), 1);
  const proto::BenchmarkResult& result = run->results(0);
  EXPECT_EQ(result.key().operator_name(), "BM_Sort/1024");
  EXPECT_EQ(result.outcome(), proto::OK);
  EXPECT_THAT(result.labels(), ElementsAre("int32"));
  ASSERT_EQ(result.measurements_size(), 1);
  const proto::Measurement& measurement = result.measurements(0);
  EXPECT_EQ(measurement.calls_per_sample(), 1000);
  EXPECT_THAT(measurement.sample_ns(), ElementsAre(2500000, 2700000, 2600000));
  EXPECT_DOUBLE_EQ(measurement.median_ns(), 2600);
  EXPECT_FALSE(measurement.aggregate_only());
  EXPECT_DOUBLE_EQ(measurement.conditions().load_average(), .52);
  ASSERT_EQ(measurement.metrics_size(), 2);
  EXPECT_EQ(measurement.metrics(0).metric(), "cpu_time");
  EXPECT_THAT(measurement.metrics(0).values(), ElementsAre(2250, 2600, 2500));
  EXPECT_EQ(measurement.metrics(1).metric(), "items_per_second");
  EXPECT_EQ(measurement.metrics(1).direction(), proto::HIGHER_IS_BETTER);
}

TEST(GoogleBenchmark, TheMachineIsNotItsHostName) {
  const auto run = ImportOne(File(kSort));
  EXPECT_EQ(run->hardware().id(), "imported-8c-32m");
  EXPECT_EQ(run->hardware().l1d_bytes(), 32768);
  EXPECT_EQ(run->hardware().l2_bytes(), 524288);
  EXPECT_EQ(run->toolchain().compilation_mode(), "release");
  ImportOptions options;
  options.hardware_id = "ci-large";
  EXPECT_EQ(ImportOne(File(kSort), options)->hardware().id(), "ci-large");
  options.hardware_id = "CI large";
  EXPECT_THAT(std::string(ImportOne(File(kSort), options).status().message()),
              HasSubstr("'CI large'"));
}

TEST(GoogleBenchmark, AggregatesAloneAreMarked) {
  const auto run = ImportOne(File(R"(
    {"name": "BM_A_mean", "run_name": "BM_A", "run_type": "aggregate",
     "aggregate_name": "mean", "iterations": 3, "real_time": 12,
     "cpu_time": 11, "time_unit": "ms"},
    {"name": "BM_A_median", "run_name": "BM_A", "run_type": "aggregate",
     "aggregate_name": "median", "iterations": 3, "real_time": 10,
     "cpu_time": 9, "time_unit": "ms"},
    {"name": "BM_A_stddev", "run_name": "BM_A", "run_type": "aggregate",
     "aggregate_name": "stddev", "iterations": 3, "real_time": 1,
     "cpu_time": 1, "time_unit": "ms"})"));
  ASSERT_TRUE(run.ok()) << run.status();
  ASSERT_EQ(run->results_size(), 1);
  ASSERT_EQ(run->results(0).measurements_size(), 1);
  EXPECT_TRUE(run->results(0).measurements(0).aggregate_only());
  EXPECT_EQ(run->results(0).measurements(0).median_ns(), 1e7);
}

TEST(GoogleBenchmark, AggregatesBesideRepetitionsAreIgnored) {
  const auto run = ImportOne(File(std::string(kSort) + R"(,
    {"name": "BM_Sort/1024_mean", "run_name": "BM_Sort/1024",
     "run_type": "aggregate", "aggregate_name": "mean", "iterations": 3,
     "real_time": 99, "cpu_time": 99, "time_unit": "us"})"));
  ASSERT_EQ(run->results_size(), 1);
  EXPECT_DOUBLE_EQ(run->results(0).measurements(0).median_ns(), 2600);
}

TEST(GoogleBenchmark, OldFilesHaveNamesOnly) {
  const auto run = ImportOne(File(R"(
    {"name": "BM_A", "iterations": 10, "real_time": 5, "cpu_time": 5,
     "time_unit": "ns"},
    {"name": "BM_B_mean", "iterations": 10, "real_time": 7, "cpu_time": 5,
     "time_unit": "ns"})"));
  ASSERT_EQ(run->results_size(), 2);
  EXPECT_FALSE(run->results(0).measurements(0).aggregate_only());
  EXPECT_EQ(run->results(1).key().operator_name(), "BM_B");
  EXPECT_TRUE(run->results(1).measurements(0).aggregate_only());
}

TEST(GoogleBenchmark, ErrorsAreOutcomes) {
  const auto run = ImportOne(File(R"(
    {"name": "BM_A", "run_name": "BM_A", "run_type": "iteration",
     "error_occurred": true, "error_message": "no device"},
    {"name": "BM_B", "run_name": "BM_B", "run_type": "iteration",
     "skipped": true, "skip_message": "needs AVX-512"})"));
  ASSERT_TRUE(run.ok()) << run.status();
  EXPECT_EQ(run->results(0).outcome(), proto::CRASHED);
  EXPECT_EQ(run->results(0).detail(), "no device");
  EXPECT_EQ(run->results(1).outcome(), proto::UNSUPPORTED);
  EXPECT_EQ(run->results(0).measurements_size(), 0);
}

TEST(GoogleBenchmark, FilesMayBeProcessesOfOneRun) {
  ImportOptions options;
  options.files_are_processes = true;
  options.suite = "nightly";
  options.commit.set_id("abc");
  const auto runs =
      ImportContents({{"1.json", File(kSort)}, {"2.json", Other()}}, options);
  ASSERT_TRUE(runs.ok()) << runs.status();
  ASSERT_EQ(runs->size(), 1);
  EXPECT_EQ((*runs)[0].results(0).measurements_size(), 2);
  EXPECT_EQ((*runs)[0].suite(), "nightly");
  EXPECT_EQ((*runs)[0].commit().id(), "abc");
  options.files_are_processes = false;
  EXPECT_EQ(
      ImportContents({{"1.json", File(kSort)}, {"2.json", Other()}}, options)
          ->size(),
      2);
}

TEST(GoogleBenchmark, APrefixTellsProgramsApart) {
  ImportOptions options;
  options.prefix = "strings/";
  EXPECT_EQ(ImportOne(File(kSort), options)->results(0).key().operator_name(),
            "strings/BM_Sort/1024");
}

TEST(GoogleBenchmark, BadNumbersNameFileBenchmarkAndField) {
  const auto with = [](const std::string& fields) {
    return File(R"({"name": "BM_A", "run_type": "iteration", )" + fields + "}");
  };
  const struct {
    const char* fields;
    const char* field;
  } cases[] = {
      {R"("iterations": 10, "real_time": NaN, "cpu_time": 1)",
       "real_time is \"NaN\""},
      {R"("iterations": 10, "real_time": -Infinity, "cpu_time": 1)",
       "real_time is \"-Infinity\""},
      {R"("iterations": 10, "real_time": -1, "cpu_time": 1)",
       "real_time is -1"},
      {R"("iterations": 10, "real_time": 1, "cpu_time": -1)", "cpu_time is -1"},
      {R"("iterations": 10, "cpu_time": 1)", "real_time is absent"},
      {R"("real_time": 1, "cpu_time": 1)", "iterations is absent"},
      {R"("iterations": 0, "real_time": 1, "cpu_time": 1)", "iterations is 0"},
      {R"("iterations": "ten", "real_time": 1, "cpu_time": 1)",
       "iterations is \"ten\""},
      {R"("iterations": 1, "real_time": 1, "time_unit": "fortnights")",
       "time_unit is 'fortnights'"},
      {R"("iterations": 1e18, "real_time": 1e18)", "280 years"},
  };
  for (const auto& c : cases) {
    const std::string error = ErrorOf(with(c.fields));
    EXPECT_THAT(error, HasSubstr("dir/bench.json"));
    EXPECT_THAT(error, HasSubstr("'BM_A'"));
    EXPECT_THAT(error, HasSubstr(c.field));
  }
}

TEST(GoogleBenchmark, CountersThatAreNoNumbersAreDroppedAndSaid) {
  const auto run = ImportOne(File(
      R"({"name": "BM_A", "iterations": 1, "real_time": 1, "rate": NaN,
          "good": 7})"));
  ASSERT_TRUE(run.ok()) << run.status();
  ASSERT_EQ(run->results(0).measurements(0).metrics_size(), 1);
  EXPECT_EQ(run->results(0).measurements(0).metrics(0).metric(), "good");
  EXPECT_THAT(run->results(0).labels(),
              ElementsAre("counter rate was \"NaN\""));
}

TEST(GoogleBenchmark, WhatIsNoSuchFileIsRefused) {
  EXPECT_THAT(ErrorOf(""), HasSubstr("dir/bench.json: the file is empty"));
  EXPECT_THAT(ErrorOf("name,iterations\n"), HasSubstr("not recognised"));
  const std::string whole = File(kSort);
  EXPECT_THAT(ErrorOf(whole.substr(0, whole.size() / 2)),
              HasSubstr("interrupted"));
  EXPECT_THAT(ErrorOf(R"({"benchmarks": 5})"), HasSubstr("an array"));
  EXPECT_THAT(ErrorOf(R"({"benchmarks": [5]})"), HasSubstr("an object"));
  EXPECT_THAT(ErrorOf(R"({"benchmarks": [{}]})"),
              HasSubstr("benchmark number 1: name is absent"));
  EXPECT_THAT(ErrorOf("{\"benchmarks\": [\n  oops]}"),
              HasSubstr("dir/bench.json:2:"));
}

// Whatever is cut off or changed, the importer says so and does not crash.
TEST(GoogleBenchmark, SurvivesDamage) {
  const std::string whole = File(kSort);
  for (size_t i = 0; i < whole.size(); ++i) {
    (void)ImportContents({{"f", whole.substr(0, i)}}, {});
    for (const char c : {'\0', '"', '{', '9', '\xff'}) {
      std::string changed = whole;
      changed[i] = c;
      (void)ImportContents({{"f", changed}}, {});
    }
  }
}

TEST(Import, TheSuiteOfPerCommitFilesIsTheSame) {
  const auto without = [](const std::string& text) {
    std::string changed = text;
    const size_t at = changed.find("\"executable\"");
    return changed.replace(
        at, std::string("\"executable\": \"./bench\",").size(), "");
  };
  for (const char* path : {"sort-1a2b3c4d.json", "sort-99aa00bb.json"}) {
    EXPECT_EQ((*ImportContents({{path, File(kSort)}}, {}))[0].suite(), "bench");
    EXPECT_EQ((*ImportContents({{path, without(File(kSort))}}, {}))[0].suite(),
              "sort");
  }
  ImportOptions options;
  options.suite = "nightly";
  EXPECT_EQ((*ImportContents({{"x.json", File(kSort)}}, options))[0].suite(),
            "nightly");
}

TEST(Import, ATimeOfZeroWasNotMeasured) {
  const auto message = [](const std::string& path, const std::string& text) {
    return std::string(ImportContents({{path, text}}, {}).status().message());
  };
  EXPECT_THAT(message("a.csv", "fast,0\n"),
              AllOf(HasSubstr("a.csv: benchmark 'fast': its time is 0"),
                    HasSubstr("expected more than 0")));
  EXPECT_THAT(message("b.json", File(R"({"name": "BM_Empty", "iterations": 9,
      "real_time": 0.0, "cpu_time": 0.0, "time_unit": "ns"})")),
              HasSubstr("b.json: benchmark 'BM_Empty': its time is 0"));
  EXPECT_EQ(message("c.csv", "fast,0\nfast,2\nfast,2\n"), "")
      << "a coarse clock";
  EXPECT_EQ(message("d.csv", "allocations,0,1\n"), "") << "no time";
}

TEST(Import, DatesThatTieKeepTheOrderOfTheFiles) {
  const auto runs = ImportContents(
      {{"1.json", File(kSort)}, {"2.json", Other()}, {"3.json", Other() + " "}},
      {});
  ASSERT_TRUE(runs.ok()) << runs.status();
  EXPECT_LT((*runs)[0].started_unix_ns(), (*runs)[1].started_unix_ns());
  EXPECT_LT((*runs)[1].started_unix_ns(), (*runs)[2].started_unix_ns());
}

TEST(Import, TheSameContentTwiceIsNoSecondRunButMayBeASecondProcess) {
  ImportOptions options;
  const std::vector<ImportedFile> files = {{"1.json", File(kSort)},
                                           {"copy.json", File(kSort)}};
  EXPECT_THAT(std::string(ImportContents(files, options).status().message()),
              HasSubstr("copy.json: holds the same as 1.json"));
  options.files_are_processes = true;
  const auto runs = ImportContents(files, options);
  ASSERT_TRUE(runs.ok()) << runs.status();
  EXPECT_EQ((*runs)[0].results(0).measurements_size(), 2);
  EXPECT_EQ((*runs)[0].source_digests_size(), 2);
}

TEST(Import, TwoProgramsMayNotNameABenchmarkAlike) {
  ImportOptions options;
  options.files_are_processes = true;
  std::string other = Other();
  other.replace(other.find("./bench"), 7, "./merge");
  const auto runs =
      ImportContents({{"1.json", File(kSort)}, {"2.json", other}}, options);
  EXPECT_THAT(std::string(runs.status().message()),
              HasSubstr("'BM_Sort/1024' of program 'merge' has the name of one "
                        "of 'bench'"));
  // A prefix of their own tells them apart.
  EXPECT_TRUE(ImportContents({{"1.json", File(kSort), "bench/"},
                              {"2.json", other, "merge/"}},
                             options)
                  .ok());
}

TEST(Import, AFileWithoutBenchmarksIsAnError) {
  const auto run = ImportOne(File(""));
  EXPECT_EQ(run.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(run.status().message()),
              HasSubstr("dir/bench.json: holds no benchmark"));
  // A process whose filter left nothing adds nothing to the others.
  ImportOptions options;
  options.files_are_processes = true;
  EXPECT_TRUE(
      ImportContents({{"a", File(kSort)}, {"b", File("")}}, options).ok());
}

TEST(Import, FilesAreUtf8WithOrWithoutAMark) {
  const std::string path = JoinPath(testing::TempDir(), "bench.json");
  ASSERT_TRUE(WriteFileAtomically(path, "\xef\xbb\xbf" + File(kSort)).ok());
  EXPECT_TRUE(ImportFiles({path}, {}).ok());
  for (const auto& [text, expected] :
       {std::make_pair("{}\n\xe9\n", "bench.json:2: has a byte that is no "),
        std::make_pair("\xff\xfe{", "bench.json:1: is UTF-16, expected")}) {
    ASSERT_TRUE(WriteFileAtomically(path, text).ok());
    EXPECT_THAT(std::string(ImportFiles({path}, {}).status().message()),
                HasSubstr(expected));
  }
}

TEST(Import, SaysWhichFormatsThereAre) {
  ImportOptions options;
  options.format = "xml";
  EXPECT_THAT(std::string(ImportOne("{}", options).status().message()),
              HasSubstr("google_benchmark"));
  EXPECT_FALSE(ImportContents({}, {}).ok());
  EXPECT_EQ(ImportFiles({"/no/such/file.json"}, {}).status().code(),
            absl::StatusCode::kNotFound);
}

}  // namespace
}  // namespace optrail::tracker

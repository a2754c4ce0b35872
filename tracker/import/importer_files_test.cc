// The importers of other languages' tools on the files of testdata/README.md,
// and every file against every importer.

#include <set>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_replace.h"
#include "base/file/file.h"
#include "base/random.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tracker/history/record.h"
#include "tracker/import/import.h"
#include "tracker/series/series.h"

namespace optrail::tracker {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::UnorderedElementsAre;

constexpr char kFolder[] = "tracker/import/testdata/";

std::string Content(const std::string& name) {
  const absl::StatusOr<std::string> content = ReadFile(kFolder + name);
  EXPECT_TRUE(content.ok()) << content.status();
  return content.value_or("");
}

proto::Run Import(const std::string& name) {
  const auto runs = ImportContents({{kFolder + name, Content(name)}}, {});
  EXPECT_TRUE(runs.ok()) << runs.status();
  if (!runs.ok()) return {};
  EXPECT_TRUE(ValidateRun((*runs)[0]).ok()) << ValidateRun((*runs)[0]);
  return (*runs)[0];
}

// The error of a file of testdata in which `from` is replaced by `to`.
std::string ErrorOf(const std::string& name, const std::string& from,
                    const std::string& to) {
  std::string content = Content(name);
  const size_t at = content.find(from);
  EXPECT_NE(at, std::string::npos) << name << " has no " << from;
  if (at == std::string::npos) return "";
  content.replace(at, from.size(), to);
  const auto runs = ImportContents({{kFolder + name, content}}, {});
  EXPECT_FALSE(runs.ok()) << name << ": " << to;
  EXPECT_THAT(std::string(runs.status().message()), HasSubstr(name));
  return std::string(runs.status().message());
}

std::vector<std::string> Names(const proto::Run& run) {
  std::vector<std::string> names;
  for (const proto::BenchmarkResult& result : run.results()) {
    names.push_back(result.key().operator_name());
  }
  return names;
}

const proto::BenchmarkResult& Find(const proto::Run& run,
                                   const std::string& name) {
  for (const proto::BenchmarkResult& result : run.results()) {
    if (result.key().operator_name() == name) return result;
  }
  ADD_FAILURE() << "no benchmark " << name << " among "
                << ::testing::PrintToString(Names(run));
  return proto::BenchmarkResult::default_instance();
}

// The median of each process.
std::vector<double> Processes(const proto::BenchmarkResult& result,
                              const std::string& metric = "time") {
  std::vector<double> values;
  for (const proto::Measurement& measurement : result.measurements()) {
    const auto reading = ReadingOf(measurement, metric);
    if (reading.has_value()) values.push_back(reading->value);
  }
  return values;
}

proto::Direction DirectionOf(const proto::BenchmarkResult& result,
                             const std::string& metric) {
  for (const proto::MetricSamples& samples : result.measurements(0).metrics()) {
    if (samples.metric() == metric) return samples.direction();
  }
  ADD_FAILURE() << "no metric " << metric;
  return proto::DIRECTION_UNSPECIFIED;
}

TEST(Nvbench, TheMeanIsTheOneSampleOfAProcess) {
  const proto::Run run = Import("nvbench_1.0.0.json");
  EXPECT_EQ(run.source(), "nvbench");
  EXPECT_EQ(run.hardware().id(), "imported-nvidia-h200-132c");
  EXPECT_EQ(run.hardware().device_kind(), proto::CUDA);
  EXPECT_THAT(
      Names(run),
      ElementsAre("copy[Elements=2^20 T=F32]", "copy[Elements=2^24 T=F32]",
                  "copy[Elements=2^40 T=F32]", "parse_on_host"));
  const proto::BenchmarkResult& copy = run.results(0);
  EXPECT_THAT(Processes(copy), ElementsAre(12500));
  EXPECT_FALSE(copy.measurements(0).aggregate_only());
  EXPECT_THAT(copy.labels(), ElementsAre("mean of its samples"));
  EXPECT_THAT(Processes(copy, "cpu_time"), ElementsAre(19000));
  EXPECT_THAT(Processes(copy, "batch_time"), ElementsAre(11250));
  EXPECT_THAT(Processes(copy, "bytes_per_second"),
              ElementsAre(8 * 1048576 / 1.25e-5));
  EXPECT_EQ(DirectionOf(copy, "bytes_per_second"), proto::HIGHER_IS_BETTER);
  EXPECT_EQ(DirectionOf(copy, "items_per_second"), proto::HIGHER_IS_BETTER);
  EXPECT_EQ(DirectionOf(copy, "batch_time"), proto::LOWER_IS_BETTER);
  EXPECT_EQ(run.results(2).outcome(), proto::UNSUPPORTED);
  EXPECT_EQ(run.results(2).detail(), "Not enough device memory.");
  EXPECT_THAT(Processes(run.results(3)), ElementsAre(2e6));
}

TEST(Nvbench, SamplesStandBesideTheFile) {
  const proto::BenchmarkResult copy =
      Find(Import("nvbench_samples.json"), "copy[Elements=2^20 T=F32]");
  ASSERT_EQ(copy.measurements_size(), 1);
  EXPECT_EQ(copy.measurements(0).sample_ns_size(), 4);
  EXPECT_NEAR(copy.measurements(0).median_ns(), 12562.5, .1);
}

TEST(Nvbench, OnlySamplesOfTheFilesFolderAreRead) {
  const std::string file = "nvbench_samples.json";
  const std::string path = "/home/ci/out/nvbench_samples.json-bin/0.bin";
  EXPECT_THAT(ErrorOf(file, path, "/etc/passwd"),
              HasSubstr("sample_times: value is '/etc/passwd', expected"));
  EXPECT_THAT(ErrorOf(file, path, "x-bin/7.bin"), HasSubstr("x-bin/7.bin"));
  EXPECT_THAT(ErrorOf(file, "\"size\",", "\"length\","),
              HasSubstr("sample_times: value is absent"));
}

TEST(Nvbench, WrongFieldsAreNamed) {
  const std::string file = "nvbench_1.0.0.json";
  EXPECT_THAT(ErrorOf(file, "\"1.25e-05\"", "\"fast\""),
              HasSubstr("nv/cold/time/gpu/mean: value is \"fast\""));
  EXPECT_THAT(ErrorOf(file, "\"1.25e-05\"", "\"nan\""), HasSubstr("finite"));
  EXPECT_THAT(ErrorOf(file, "\"1.25e-05\"", "\"-1\""), HasSubstr("at least 0"));
  EXPECT_THAT(ErrorOf(file, "\"1.25e-05\"", "\"1e20\""),
              HasSubstr("280 years"));
  EXPECT_THAT(ErrorOf(file, "nv/cold/time/gpu/mean", "other"),
              HasSubstr("summaries hold no time"));
  EXPECT_THAT(ErrorOf(file, "\"major\": 1", "\"major\": 2"),
              HasSubstr("meta.version.json.major is 2, expected 1"));
  EXPECT_THAT(ErrorOf(file, "2^24 T", "2^20 T"), HasSubstr("is there twice"));
}

TEST(Criterion, MessagesHaveSamplesOfOneProcess) {
  const proto::Run run = Import("criterion_messages.json");
  EXPECT_EQ(run.source(), "criterion");
  EXPECT_EQ(run.suite(), "criterion");
  EXPECT_THAT(Names(run), ElementsAre("norm", "cycles/norm"));
  EXPECT_THAT(Processes(run.results(0)), ElementsAre(3400));
  EXPECT_EQ(run.results(0).measurements(0).sample_ns_size(), 3);
  EXPECT_THAT(Processes(run.results(1), "cycles"), ElementsAre(4075));
  EXPECT_EQ(DirectionOf(run.results(1), "cycles"), proto::LOWER_IS_BETTER);
}

TEST(Criterion, RawCsvIsABenchmark) {
  const proto::Run run = Import("criterion_0.3.6_raw.csv");
  EXPECT_EQ(run.suite(), "criterion");
  EXPECT_THAT(Names(run), ElementsAre("sum 1000"));
  EXPECT_EQ(run.results(0).measurements(0).sample_ns_size(), 12);
  EXPECT_THAT(Names(Import("criterion_0.3.6_quoted_raw.csv")),
              ElementsAre("sizes/xor, \"squares\"/64"));
}

TEST(Criterion, WrongFieldsAreNamed) {
  const std::string csv = "criterion_0.3.6_raw.csv";
  EXPECT_THAT(ErrorOf(csv, "627425.0", "many"),
              HasSubstr(csv + ":2: sample_measured_value is \"many\""));
  EXPECT_THAT(ErrorOf(csv, ",2353", ",0"),
              HasSubstr("iteration_count is \"0\", expected a count"));
  EXPECT_THAT(ErrorOf(csv, "627425.0,ns", "627425.0,"),
              HasSubstr("unit is empty"));
  EXPECT_THAT(ErrorOf(csv, ",2353", ""), HasSubstr("7 fields"));
  EXPECT_THAT(ErrorOf(csv, "sum 1000", std::string("sum\0", 4)),
              HasSubstr("UTF-8"));
  const std::string messages = "criterion_messages.json";
  EXPECT_THAT(ErrorOf(messages, "204000.0,", ""),
              HasSubstr("measured_values has 2 values, expected one for each "
                        "of the 3"));
  EXPECT_THAT(ErrorOf(messages, "[30,60", "[-30,60"),
              HasSubstr("iteration_count[0] is -30"));
  EXPECT_THAT(ErrorOf(messages, "cycles/norm", "norm"),
              HasSubstr("'norm' is there twice"));
  EXPECT_THAT(ErrorOf(messages, "{\"reason\":\"group", "Compiling x"),
              HasSubstr(messages + ":3"));
}

TEST(Catch2, TheMeanIsTheOneSampleOfAProcess) {
  const proto::Run run = Import("catch2_2.13.10.xml");
  EXPECT_EQ(run.source(), "catch2");
  EXPECT_EQ(run.suite(), "bench");
  EXPECT_THAT(Names(run), ElementsAre("sorting/sort 64 \"ints\" & <more>",
                                      "sorting/large/sort 4096",
                                      "failing/throws", "sums/sum"));
  EXPECT_THAT(Processes(run.results(0)), ElementsAre(1378.9));
  EXPECT_EQ(run.results(0).measurements(0).calls_per_sample(), 311);
  EXPECT_THAT(run.results(0).labels(), ElementsAre("mean of 20 samples"));
  EXPECT_EQ(run.results(2).outcome(), proto::CRASHED);
  EXPECT_EQ(run.results(2).detail(), "no such table");
  EXPECT_EQ(Import("catch2_3.xml").suite(), "sort_bench");
}

TEST(Catch2, ABenchmarkThatRunsTwiceHasTwoSamples) {
  const std::string content = absl::StrReplaceAll(
      Content("catch2_3.xml"),
      {{"</TestCase>",
        "<BenchmarkResults name=\"sort 64\" samples=\"100\" "
        "iterations=\"31\"><mean value=\"1400\"/>"
        "</BenchmarkResults></TestCase>"}});
  const auto runs = ImportContents({{"x.xml", content}}, {});
  ASSERT_TRUE(runs.ok()) << runs.status();
  ASSERT_EQ((*runs)[0].results_size(), 1);
  EXPECT_EQ((*runs)[0].results(0).measurements(0).sample_ns_size(), 2);
}

TEST(Catch2, WrongFieldsAreNamed) {
  const std::string file = "catch2_3.xml";
  EXPECT_THAT(ErrorOf(file, "mean value=\"1378.9\"", "mean value=\"nan\""),
              HasSubstr("catch2_3.xml:6: benchmark 'sorting/sort 64': mean is "
                        "'nan', expected"));
  EXPECT_THAT(ErrorOf(file, "mean value=\"1378.9\"", "mean"),
              HasSubstr("mean is ''"));
  EXPECT_THAT(ErrorOf(file, "iterations=\"31\"", "iterations=\"many\""),
              HasSubstr("iterations is 'many'"));
  EXPECT_THAT(ErrorOf(file, "<mean", "<average"), HasSubstr("has no result"));
  EXPECT_THAT(ErrorOf(file, "</Catch2TestRun>", ""),
              HasSubstr("no valid XML: no element found"));
  EXPECT_THAT(ErrorOf(file, "sort 64", "sort \xff"), HasSubstr("no valid XML"));
}

TEST(Jmh, ForksAreProcesses) {
  const proto::Run run = Import("jmh_1.36.json");
  EXPECT_EQ(run.source(), "jmh");
  EXPECT_EQ(run.toolchain().compiler(), "OpenJDK 64-Bit Server VM 17.0.9");
  EXPECT_THAT(
      Names(run),
      ElementsAre(
          "org.example.SortBench.sort:kind=int,size=1024/avgt",
          "org.example.SortBench.sort:kind=int,size=1024/thrpt/threads:8",
          "org.example.StartBench.start/ss",
          "org.example.SortBench.merge/sample"));
  const proto::BenchmarkResult& sort = run.results(0);
  EXPECT_THAT(Processes(sort), ElementsAre(12500, 13500));
  EXPECT_EQ(sort.measurements(0).sample_ns_size(), 3);
  EXPECT_THAT(Processes(sort, "gc.alloc.rate.norm"), ElementsAre(16.5, 16.5));
  EXPECT_EQ(DirectionOf(sort, "gc.alloc.rate.norm"), proto::LOWER_IS_BETTER);
  EXPECT_EQ(DirectionOf(sort, "gc.alloc.rate"), proto::DIRECTION_UNSPECIFIED);
  EXPECT_THAT(sort.labels(),
              ElementsAre("metric gc.time has scores that are no numbers"));
  EXPECT_THAT(Processes(run.results(1), "throughput"), ElementsAre(80000));
  EXPECT_EQ(DirectionOf(run.results(1), "throughput"), proto::HIGHER_IS_BETTER);
  EXPECT_TRUE(Processes(run.results(1)).empty());
  EXPECT_THAT(Processes(run.results(2)), ElementsAre(41.5e6, 42.5e6, 40.5e6));
  EXPECT_THAT(Processes(run.results(3)), ElementsAre(117.5, 120));
}

TEST(Jmh, WrongFieldsAreNamed) {
  const std::string file = "jmh_1.36.json";
  EXPECT_THAT(ErrorOf(file, "\"us/op\"", "\"fortnights/op\""),
              HasSubstr("benchmark 'org.example.SortBench.sort': primaryMetric:"
                        " scoreUnit is 'fortnights/op', expected a time"));
  EXPECT_THAT(ErrorOf(file, "12.5,", "\"NaN\","),
              HasSubstr("rawData[0][0] is \"NaN\", expected a finite number"));
  EXPECT_THAT(ErrorOf(file, "\"rawData\"", "\"data\""),
              HasSubstr("rawData is absent"));
  EXPECT_THAT(ErrorOf(file, "\"thrpt\"", "7"), HasSubstr("mode is 7"));
}

TEST(BenchmarkDotNet, LaunchesAreProcesses) {
  const proto::Run run = Import("benchmark_dot_net_0.13.12_full.json");
  EXPECT_EQ(run.source(), "benchmark_dot_net");
  EXPECT_EQ(run.hardware().id(), "imported-amd-epyc-9r14-8c");
  EXPECT_EQ(run.toolchain().compiler(), ".NET 8.0.1 (8.0.123.58001)");
  EXPECT_THAT(Names(run),
              ElementsAre("Example.SortBench.Sort(Size: 64)",
                          "Example.SortBench.Merge [Job-AAAAAA(Runtime=.NET "
                          "8.0)]",
                          "Example.SortBench.Merge [Job-BBBBBB(Runtime=.NET "
                          "9.0)]",
                          "Example.SortBench.Throws"));
  const proto::BenchmarkResult& sort = run.results(0);
  EXPECT_THAT(Processes(sort), ElementsAre(105, 115));
  EXPECT_EQ(sort.measurements(0).calls_per_sample(), 1000);
  EXPECT_THAT(Processes(sort, "Allocated Memory"), ElementsAre(672));
  EXPECT_EQ(DirectionOf(sort, "Allocated Memory"), proto::LOWER_IS_BETTER);
  EXPECT_EQ(run.results(3).outcome(), proto::CRASHED);
}

TEST(BenchmarkDotNet, ABriefReportIsOneProcess) {
  const proto::Run run = Import("benchmark_dot_net_0.13.12_brief.json");
  EXPECT_THAT(Processes(run.results(0)), ElementsAre(110));
  EXPECT_EQ(run.results(0).measurements(0).sample_ns_size(), 6);
}

TEST(BenchmarkDotNet, WrongFieldsAreNamed) {
  const std::string brief = "benchmark_dot_net_0.13.12_brief.json";
  EXPECT_THAT(
      ErrorOf(brief, "[104.0", "[\"fast\""),
      HasSubstr("benchmark 'Example.SortBench.Sort(Size: 64)': Statistics: "
                "OriginalValues[0] is \"fast\""));
  const std::string full = "benchmark_dot_net_0.13.12_full.json";
  EXPECT_THAT(ErrorOf(full, "Job-BBBBBB(Runtime=.NET 9.0)",
                      "Job-AAAAAA(Runtime=.NET 8.0)"),
              HasSubstr("is there twice"));
  EXPECT_THAT(ErrorOf(full, "\"Result\",\n          \"LaunchIndex\": 1",
                      "\"Result\",\n          \"LaunchIndex\": -1"),
              HasSubstr("Measurements[6]: LaunchIndex is no count"));
}

TEST(Asv, CombinationsOfParametersAreBenchmarks) {
  const proto::Run run = Import("asv_0.6_v2.json");
  EXPECT_EQ(run.source(), "asv");
  EXPECT_EQ(run.commit().id(), "8a4f9d0c3b2e1f0a9d8c7b6a5f4e3d2c1b0a9f8e");
  EXPECT_EQ(run.hardware().id(), "imported-amd-epyc-8c");
  EXPECT_EQ(run.toolchain().compiler(), "virtualenv-py3.11-numpy");
  EXPECT_EQ(run.started_unix_ns(), int64_t{1795172887123} * 1'000'000);
  EXPECT_THAT(Names(run),
              UnorderedElementsAre("sums.Sums.time_sorted(10, 'int')",
                                   "sums.Sums.time_sorted(10, 'str')",
                                   "sums.Sums.time_sorted(1000, 'int')",
                                   "sums.Sums.time_sorted(1000, 'str')",
                                   "sums.time_sum", "sums.peakmem_list",
                                   "sums.mem_list", "sums.track_error",
                                   "sums.time_broken"));
  const proto::BenchmarkResult& sorted =
      Find(run, "sums.Sums.time_sorted(10, 'int')");
  EXPECT_THAT(Processes(sorted), ElementsAre(1.25e6));
  EXPECT_EQ(sorted.measurements(0).sample_ns_size(), 3);
  EXPECT_EQ(Find(run, "sums.Sums.time_sorted(10, 'str')").outcome(),
            proto::UNSUPPORTED);
  EXPECT_EQ(Find(run, "sums.Sums.time_sorted(1000, 'str')").outcome(),
            proto::CRASHED);
  EXPECT_EQ(Find(run, "sums.time_broken").outcome(), proto::CRASHED);
  EXPECT_TRUE(Find(run, "sums.time_sum").measurements(0).aggregate_only());
  EXPECT_THAT(Processes(Find(run, "sums.peakmem_list"), "peak_memory"),
              ElementsAre(41000000));
  EXPECT_EQ(DirectionOf(Find(run, "sums.mem_list"), "memory"),
            proto::LOWER_IS_BETTER);
  EXPECT_EQ(DirectionOf(Find(run, "sums.track_error"), "value"),
            proto::DIRECTION_UNSPECIFIED);
}

TEST(Asv, WrongFieldsAreNamed) {
  const std::string file = "asv_0.6_v2.json";
  EXPECT_THAT(ErrorOf(file, "\"version\": 2", "\"version\": 1"),
              HasSubstr("version is 1, expected 2"));
  EXPECT_THAT(ErrorOf(file, "[0.00125, ", "["),
              HasSubstr("benchmark 'sums.Sums.time_sorted': result has 3 "
                        "values, expected one for each combination"));
  EXPECT_THAT(ErrorOf(file, "[0.00125, ", "[\"fast\", "),
              HasSubstr("result[0] is \"fast\""));
  EXPECT_THAT(ErrorOf(file, "[0.00125, ", "[-1, "), HasSubstr("is -1"));
  EXPECT_THAT(ErrorOf(file, "[0.00124, ", "[1e200, "), HasSubstr("280 years"));
  EXPECT_THAT(ErrorOf(file, "sums.mem_list", "sums.peakmem_list"),
              HasSubstr("has the key \"sums.peakmem_list\" twice"));
  EXPECT_THAT(ErrorOf(file, "\"result_columns\": [", "\"columns\": ["),
              HasSubstr("an array 'result_columns'"));
}

TEST(Bencher, MeasuresHaveTheirUnits) {
  const proto::Run run = Import("bencher_bmf.json");
  EXPECT_EQ(run.source(), "bencher");
  EXPECT_THAT(Names(run),
              UnorderedElementsAre("benchmark_name", "my_binary",
                                   "/bin/sh -c ./my_build_script.sh"));
  const proto::BenchmarkResult& named = Find(run, "benchmark_name");
  EXPECT_THAT(Processes(named), ElementsAre(88));
  EXPECT_THAT(Processes(named, "throughput"), ElementsAre(5.55));
  EXPECT_EQ(DirectionOf(named, "throughput"), proto::HIGHER_IS_BETTER);
  EXPECT_THAT(
      Processes(Find(run, "/bin/sh -c ./my_build_script.sh"), "build-time"),
      ElementsAre(87));
  const proto::BenchmarkResult& binary = Find(run, "my_binary");
  EXPECT_EQ(DirectionOf(binary, "file-size"), proto::LOWER_IS_BETTER);
  EXPECT_EQ(DirectionOf(binary, "Open Files"), proto::DIRECTION_UNSPECIFIED);
}

TEST(Bencher, WrongFieldsAreNamed) {
  const std::string file = "bencher_bmf.json";
  EXPECT_THAT(ErrorOf(file, "88.0", "\"fast\""),
              HasSubstr("benchmark 'benchmark_name': measure 'latency': value "
                        "is \"fast\", expected nanoseconds"));
  EXPECT_THAT(ErrorOf(file, "88.0", "-1"), HasSubstr("value is -1"));
  EXPECT_THAT(ErrorOf(file, "88.0", "1e300"), HasSubstr("280 years"));
  EXPECT_THAT(ErrorOf(file, "\"value\": 5.55", "\"other\": 5.55"),
              HasSubstr("value is absent"));
  EXPECT_THAT(ErrorOf(file, "my_binary", "benchmark_name"),
              HasSubstr("has the key \"benchmark_name\" twice"));
}

constexpr struct {
  const char* file;
  const char* format;
} kFiles[] = {
    {"asv_0.6_v2.json", "asv"},
    {"bare.csv", "csv"},
    {"bencher_bmf.json", "bencher"},
    {"benchmark_dot_net_0.13.12_brief.json", "benchmark_dot_net"},
    {"benchmark_dot_net_0.13.12_full.json", "benchmark_dot_net"},
    {"catch2_2.13.10.xml", "catch2"},
    {"catch2_3.xml", "catch2"},
    {"criterion_0.3.6_quoted_raw.csv", "criterion"},
    {"criterion_0.3.6_raw.csv", "criterion"},
    {"criterion_messages.json", "criterion"},
    {"go1.19_benchmem_count3.txt", "go_bench"},
    {"go1.19_failures.txt", "go_bench"},
    {"go1.4.txt", "go_bench"},
    {"google_benchmark_1.7.1.json", "google_benchmark"},
    {"hyperfine_1.0.0.json", "hyperfine"},
    {"hyperfine_1.15.0_parameters.json", "hyperfine"},
    {"hyperfine_1.19.0.json", "hyperfine"},
    {"jmh_1.36.json", "jmh"},
    {"nvbench_1.0.0.json", "nvbench"},
    {"nvbench_samples.json", "nvbench"},
    {"plain.csv", "csv"},
    {"pytest_benchmark_3.2.2.json", "pytest_benchmark"},
    {"pytest_benchmark_4.0.0_saved.json", "pytest_benchmark"},
};

TEST(EveryFile, IsRecognisedAsWhatItIs) {
  for (const auto& [file, format] : kFiles) {
    EXPECT_EQ(Import(file).source(), format) << file;
  }
}

TEST(EveryFile, HoldsNoResultsForAnotherImporter) {
  std::set<std::string> formats;
  for (const auto& [file, format] : kFiles) formats.insert(format);
  for (const auto& [file, format] : kFiles) {
    for (const std::string& other : formats) {
      if (other == format) continue;
      ImportOptions options;
      options.format = other;
      const auto runs = ImportContents({{file, Content(file)}}, options);
      EXPECT_TRUE(!runs.ok() || (*runs)[0].results_size() == 0)
          << file << " as " << other << ": "
          << (*runs)[0].ShortDebugString().substr(0, 400);
    }
  }
}

// Whatever is cut off or changed, an importer says so and does not crash; what
// it does read is a valid run.
TEST(EveryFile, MayBeDamaged) {
  Rng rng(20261124);
  for (const auto& [file, format] : kFiles) {
    const std::string whole = Content(file);
    for (int i = 0; i < 300; ++i) {
      std::string changed = whole;
      const size_t at = rng.UniformInt(whole.size());
      switch (rng.UniformInt(4)) {
        case 0:
          changed.resize(at);
          break;
        case 1:
          changed[at] = static_cast<char>(rng.UniformInt(256));
          break;
        case 2:
          changed.insert(at, whole, rng.UniformInt(whole.size()), 20);
          break;
        default:
          changed.replace(at, 1 + rng.UniformInt(8), "1e308");
      }
      const auto runs =
          ImportContents({{kFolder + std::string(file), changed}}, {});
      if (runs.ok()) {
        EXPECT_TRUE(ValidateRun((*runs)[0]).ok())
            << ValidateRun((*runs)[0]) << changed;
      }
    }
  }
}

TEST(EveryFile, ThatIsCutOffIsAnErrorWhereTheFormatHasAnEnd) {
  for (const auto& [file, format] : kFiles) {
    if (!absl::EndsWith(file, ".json") && !absl::EndsWith(file, ".xml")) {
      continue;
    }
    std::string content = Content(file);
    content.resize(content.size() * 2 / 3);
    EXPECT_FALSE(ImportContents({{file, content}}, {}).ok()) << file;
  }
}

}  // namespace
}  // namespace optrail::tracker

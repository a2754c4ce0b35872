// Every importer on files as its tool writes them. Recorded here: hyperfine
// 1.15.0, pytest-benchmark 3.2.2 (host and commit replaced) and Go 1.19.8. The
// others have the form that these versions are documented to write.

#include <cmath>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
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

ImportedFile Recorded(const std::string& name) {
  const std::string path = "tracker/import/testdata/" + name;
  const absl::StatusOr<std::string> content = ReadFile(path);
  EXPECT_TRUE(content.ok()) << content.status();
  return {path, content.value_or("")};
}

proto::Run ImportOne(const ImportedFile& file) {
  const auto runs = ImportContents({file}, {});
  EXPECT_TRUE(runs.ok()) << runs.status();
  if (!runs.ok()) return {};
  EXPECT_EQ(runs->size(), 1);
  EXPECT_TRUE(ValidateRun((*runs)[0]).ok());
  return (*runs)[0];
}

std::string ErrorOf(const std::string& content) {
  const auto runs = ImportContents({{"dir/file", content}}, {});
  EXPECT_FALSE(runs.ok()) << content;
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
  ADD_FAILURE() << "no benchmark " << name;
  return proto::BenchmarkResult::default_instance();
}

double MetricOf(const proto::BenchmarkResult& result, const std::string& name) {
  const auto reading = ReadingOf(result.measurements(0), name);
  EXPECT_TRUE(reading.has_value()) << name;
  return reading.has_value() ? reading->value : NAN;
}

TEST(Hyperfine, EachRunIsAProcess) {
  const proto::Run run = ImportOne(Recorded("hyperfine_1.15.0.json"));
  EXPECT_EQ(run.source(), "hyperfine");
  EXPECT_EQ(run.suite(), "hyperfine");
  EXPECT_THAT(Names(run), ElementsAre("true", "sleep 0.01"));
  const proto::BenchmarkResult& result = Find(run, "sleep 0.01");
  ASSERT_EQ(result.measurements_size(), 8);
  EXPECT_DOUBLE_EQ(result.measurements(1).median_ns(), 16383372);
  EXPECT_EQ(result.measurements(1).sample_ns(0), 16383372);
}

TEST(Hyperfine, ParametersAreInTheCommand) {
  EXPECT_THAT(Names(ImportOne(Recorded("hyperfine_1.15.0_parameters.json"))),
              ElementsAre("seq 1000", "seq 2000"));
}

TEST(Hyperfine, FailuresThatWereIgnoredAreLabelled) {
  const proto::Run run = ImportOne(Recorded("hyperfine_1.15.0_failures.json"));
  EXPECT_EQ(run.results(0).outcome(), proto::OK);
  EXPECT_THAT(run.results(0).labels(), ElementsAre("exit code 1"));
}

TEST(Hyperfine, OldFilesHaveNoTimesAndNewOnesMemory) {
  const proto::Run old = ImportOne(Recorded("hyperfine_1.0.0.json"));
  EXPECT_TRUE(old.results(0).measurements(0).aggregate_only());
  EXPECT_DOUBLE_EQ(old.results(0).measurements(0).median_ns(), 101710000);
  const proto::Run run = ImportOne(Recorded("hyperfine_1.19.0.json"));
  EXPECT_DOUBLE_EQ(MetricOf(run.results(0), "memory"), 2150400);
  EXPECT_EQ(Find(run, "./crashes").outcome(), proto::CRASHED);
}

TEST(PytestBenchmark, RoundsAreSamplesOfOneProcess) {
  const proto::Run run = ImportOne(Recorded("pytest_benchmark_3.2.2.json"));
  EXPECT_EQ(run.suite(), "pytest");
  EXPECT_EQ(run.hardware().id(), "imported-amd-epyc");
  EXPECT_EQ(run.toolchain().compiler(), "CPython 3.11.2");
  EXPECT_EQ(run.commit().id(), "8a4f9d0c3b2e1f0a9d8c7b6a5f4e3d2c1b0a9f8e");
  EXPECT_EQ(run.commit().branch(), "main");
  EXPECT_THAT(Names(run), ElementsAre("test_sums.py::test_sum",
                                      "test_sums.py::test_sorted[10]",
                                      "test_sums.py::test_sorted[1000]",
                                      "test_sums.py::test_pedantic"));
  const proto::BenchmarkResult& result =
      Find(run, "test_sums.py::test_sorted[10]");
  EXPECT_THAT(result.labels(), ElementsAre("group: sums"));
  ASSERT_EQ(result.measurements_size(), 1);
  EXPECT_EQ(result.measurements(0).sample_ns_size(), 7);
  EXPECT_DOUBLE_EQ(MetricOf(result, "elements"), 10);
  const proto::BenchmarkResult& pedantic =
      Find(run, "test_sums.py::test_pedantic");
  EXPECT_EQ(pedantic.measurements(0).calls_per_sample(), 50);
  EXPECT_EQ(pedantic.measurements(0).sample_ns_size(), 6);
}

TEST(PytestBenchmark, AFileSavedWithoutDataHasMedians) {
  const proto::Run run =
      ImportOne(Recorded("pytest_benchmark_4.0.0_saved.json"));
  EXPECT_EQ(run.hardware().id(), "imported-amd-epyc-2c");
  EXPECT_EQ(run.run_id().substr(0, 17), "20261120T090807Z-");
  for (const proto::BenchmarkResult& result : run.results()) {
    ASSERT_EQ(result.measurements_size(), 1);
    EXPECT_TRUE(result.measurements(0).aggregate_only());
    EXPECT_GT(result.measurements(0).median_ns(), 100);
  }
}

TEST(GoBench, CountIsSamplesAndUnitsAreMetrics) {
  const proto::Run run = ImportOne(Recorded("go1.19_benchmem_count3.txt"));
  EXPECT_EQ(run.suite(), "example.org/toolbox/sortx");
  EXPECT_EQ(run.hardware().id(), "imported-amd-epyc");
  EXPECT_EQ(run.toolchain().os(), "linux/amd64");
  EXPECT_THAT(Names(run),
              ElementsAre("example.org/toolbox/sortx.BenchmarkSort/n=64-2",
                          "example.org/toolbox/sortx.BenchmarkSort/n=4096-2",
                          "example.org/toolbox/sortx.BenchmarkOnlyMetric-2",
                          "example.org/toolbox/strx.BenchmarkRepeat-2"));
  const proto::BenchmarkResult& sort = run.results(0);
  ASSERT_EQ(sort.measurements_size(), 1);
  EXPECT_EQ(sort.measurements(0).sample_ns_size(), 3);
  EXPECT_EQ(sort.measurements(0).calls_per_sample(), 10000);
  EXPECT_DOUBLE_EQ(sort.measurements(0).median_ns(), 2776);
  EXPECT_DOUBLE_EQ(MetricOf(sort, "MB/s"), 184.43);
  EXPECT_DOUBLE_EQ(MetricOf(sort, "swaps/op"), 32);
  EXPECT_DOUBLE_EQ(MetricOf(sort, "B/op"), 536);
  for (const MetricInfo& metric : MetricsOf(sort)) {
    EXPECT_EQ(metric.direction, metric.metric == "MB/s"
                                    ? proto::HIGHER_IS_BETTER
                                    : proto::LOWER_IS_BETTER)
        << metric.metric;
  }
  // A benchmark that reports "ns/op" as 0 has no time.
  const proto::BenchmarkResult& only = run.results(2);
  EXPECT_FALSE(only.measurements(0).has_median_ns());
  EXPECT_DOUBLE_EQ(MetricOf(only, "probes/op"), 1.5);
}

TEST(GoBench, ProcessorsBelongToTheName) {
  EXPECT_THAT(Names(ImportOne(Recorded("go1.19_cpu.txt"))),
              ElementsAre("example.org/toolbox/strx.BenchmarkRepeat",
                          "example.org/toolbox/strx.BenchmarkRepeat-2"));
}

TEST(GoBench, FailuresPanicsAndSkipsAreOutcomes) {
  const proto::Run run = ImportOne(Recorded("go1.19_failures.txt"));
  const proto::BenchmarkResult& failed =
      Find(run, "example.org/toolbox/bad.BenchmarkFails");
  EXPECT_EQ(failed.outcome(), proto::CRASHED);
  EXPECT_THAT(failed.detail(), HasSubstr("no such table"));
  EXPECT_EQ(Find(run, "example.org/toolbox/bad.BenchmarkFine-2").outcome(),
            proto::UNSUPPORTED)
      << "0.0000000 ns/op";
  EXPECT_EQ(ImportOne({"x.txt",
                       "BenchmarkX 9 0.0000000 ns/op\n"
                       "BenchmarkX 9 0.0000012 ns/op\n"
                       "BenchmarkX 9 0.0000011 ns/op\n"})
                .results(0)
                .outcome(),
            proto::OK)
      << "one of three";
  EXPECT_EQ(Find(run, "example.org/toolbox/crash.BenchmarkBefore-2").outcome(),
            proto::OK);
  const proto::BenchmarkResult& panicked =
      Find(run, "example.org/toolbox/crash.BenchmarkPanics-2");
  EXPECT_EQ(panicked.outcome(), proto::CRASHED);
  EXPECT_THAT(panicked.detail(), HasSubstr("nil map"));
  EXPECT_EQ(Find(run, "example.org/toolbox/sortx.BenchmarkSkipped-2").outcome(),
            proto::UNSUPPORTED);
}

TEST(GoBench, ReadsOldGoAndLinesTornByOutput) {
  const proto::Run old = ImportOne(Recorded("go1.4.txt"));
  EXPECT_THAT(Names(old), ElementsAre("BenchmarkSort", "BenchmarkCopy"));
  EXPECT_EQ(old.suite(), "go1");
  const proto::Run torn = ImportOne(
      {"x.txt", "pkg: a\nBenchmarkX-2  \tstarting up\n     100\t  12 ns/op\n"});
  EXPECT_THAT(Names(torn), ElementsAre("a.BenchmarkX-2"));
}

TEST(GoBench, NamesLineFieldAndValue) {
  EXPECT_THAT(ErrorOf("pkg: a\nBenchmarkX 100 twelve ns/op\n"),
              HasSubstr("dir/file:2: benchmark 'BenchmarkX': ns/op is "
                        "'twelve', expected a finite number"));
  EXPECT_THAT(ErrorOf("pkg: a\nBenchmarkX 100 NaN ns/op\n"),
              HasSubstr("ns/op is 'NaN'"));
  EXPECT_THAT(ErrorOf("pkg: a\nBenchmarkX 100 -1 ns/op\n"),
              HasSubstr("at least 0"));
  EXPECT_THAT(ErrorOf("pkg: a\nBenchmarkX 99999999999999999999 1 ns/op\n"),
              HasSubstr("the number of iterations is '99999999999999999999'"));
  EXPECT_THAT(ErrorOf("pkg: a\nFAIL\ta [build failed]\n"),
              HasSubstr("every package builds"));
  EXPECT_THAT(ErrorOf("pkg: a\nBenchmark\xff 1 1 ns/op\n"),
              HasSubstr("dir/file:2: the line is"));
}

TEST(Csv, UnitsSayWhatIsATime) {
  const proto::Run run = ImportOne(Recorded("plain.csv"));
  EXPECT_EQ(run.suite(), "plain");
  EXPECT_THAT(Names(run), ElementsAre("parse/small", "parse, quoted \"twice\"",
                                      "startup", "throughput"));
  EXPECT_THAT(run.results(0).measurements(0).sample_ns(),
              ElementsAre(12500, 12750));
  EXPECT_DOUBLE_EQ(run.results(1).measurements(0).median_ns(), 3.25e6);
  EXPECT_DOUBLE_EQ(MetricOf(run.results(2), "memory"), 18.5);
  EXPECT_EQ(MetricsOf(run.results(3))[1].direction, proto::HIGHER_IS_BETTER);
}

TEST(Csv, NeedsNoHeader) {
  const proto::Run run = ImportOne(Recorded("bare.csv"));
  EXPECT_THAT(Names(run), ElementsAre("parse/small", "parse/large"));
  EXPECT_DOUBLE_EQ(run.results(0).measurements(0).median_ns(), 12500);
  EXPECT_DOUBLE_EQ(
      ImportOne({"x", "a,1\r\nb,2\r\n"}).results(1).measurements(0).median_ns(),
      2);
}

TEST(Csv, NamesLineFieldAndValue) {
  EXPECT_THAT(ErrorOf("name,value\na,1\nb,fast\n"),
              HasSubstr("dir/file:3: value is 'fast', expected a finite"));
  EXPECT_THAT(ErrorOf("name,value\na,-1\n"), HasSubstr("dir/file:2: value"));
  EXPECT_THAT(ErrorOf("name,value\na,inf\n"), HasSubstr("'inf'"));
  EXPECT_THAT(ErrorOf("name,value\na,1e300\n"), HasSubstr("280 years"));
  EXPECT_THAT(ErrorOf("name,value\n,1\n"), HasSubstr("name is ''"));
  EXPECT_THAT(ErrorOf("name,value\na,1,2\n"), HasSubstr("expected 2 fields"));
  EXPECT_THAT(ErrorOf("name,value\n\"a,1\n"), HasSubstr("quotes"));
  EXPECT_THAT(ErrorOf(std::string("name,value\na\0b,1\n", 17)),
              HasSubstr("dir/file:2: the line is"));
  EXPECT_THAT(ErrorOf("name,iterations\nx,1y\n"), HasSubstr("not recognised"));
}

TEST(Importers, RefuseHostileJson) {
  for (const char* shape :
       {R"({"machine_info": %s, "benchmarks": []})",
        R"({"context": %s, "benchmarks": []})",
        R"({"results": [{"command": "x", "times": %s}]})"}) {
    for (const std::string& value :
         {std::string(200'000, '['), std::string("{\"a\":"),
          std::string("1e999"), std::string("\"\xff\xfe\""),
          std::string("nul")}) {
      const std::string text = absl::StrCat(
          std::string(shape).substr(0, std::string(shape).find('%')), value,
          std::string(shape).substr(std::string(shape).find('%') + 2));
      EXPECT_THAT(ErrorOf(text), HasSubstr("dir/file")) << shape;
    }
  }
}

TEST(Importers, WrongTypesNameTheirField) {
  EXPECT_THAT(ErrorOf(R"({"results": [{"command": "x", "times": [1, "2"]}]})"),
              HasSubstr("dir/file: result 'x': times[1] is \"2\", expected"));
  EXPECT_THAT(ErrorOf(R"({"results": [{"command": 7, "mean": 1}]})"),
              HasSubstr("result number 1: command is absent"));
  EXPECT_THAT(ErrorOf(R"({"results": [{"command": "x", "mean": null}]})"),
              HasSubstr("mean is null"));
  EXPECT_THAT(ErrorOf(R"({"results": [{"command": "x", "times": [1e200]}]})"),
              HasSubstr("280 years"));
  EXPECT_THAT(ErrorOf(R"({"machine_info": {}, "benchmarks": 3})"),
              HasSubstr("an array 'benchmarks'"));
  EXPECT_THAT(ErrorOf(R"({"machine_info": {}, "benchmarks": [{"name": "x",
                          "stats": {"data": [-1]}}]})"),
              HasSubstr("benchmark 'x': stats: data[0] is -1"));
  EXPECT_THAT(ErrorOf(R"({"machine_info": {}, "benchmarks": [{"name": "x"}]})"),
              HasSubstr("stats is absent"));
}

// Whatever is cut off or changed, an importer says so and does not crash; what
// it does read is a valid run.
TEST(Importers, SurviveDamage) {
  Rng rng(20261121);
  for (const char* name :
       {"hyperfine_1.19.0.json", "pytest_benchmark_3.2.2.json",
        "go1.19_failures.txt", "plain.csv"}) {
    const std::string whole = Recorded(name).content;
    for (int i = 0; i < 3000; ++i) {
      std::string changed = whole;
      const int kind = static_cast<int>(rng.UniformInt(3));
      const size_t at = rng.UniformInt(whole.size());
      if (kind == 0) changed.resize(at);
      if (kind == 1) changed[at] = static_cast<char>(rng.UniformInt(256));
      if (kind == 2)
        changed.insert(at, whole, rng.UniformInt(whole.size()), 20);
      const auto runs = ImportContents({{name, changed}}, {});
      if (runs.ok()) {
        EXPECT_TRUE(ValidateRun((*runs)[0]).ok()) << changed;
      }
    }
  }
}

}  // namespace
}  // namespace optrail::tracker

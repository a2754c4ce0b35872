#include "reports/overview.h"

#include <map>
#include <set>
#include <string>

#include "absl/algorithm/container.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "reports/build_report_data.h"
#include "reports/markdown_report.h"
#include "reports/sample/sample_history.h"
#include "tracker/judge/evidence.h"
#include "tracker/series/series.h"

namespace optrail::reports {
namespace {

using ::testing::HasSubstr;
using ::testing::SizeIs;

ReportData SampleData(const SampleOptions& options = {}) {
  const SampleHistory history = MakeSampleHistory(options);
  return BuildReportData(history.runs, history.sessions, {});
}

TEST(OverviewTest, PairsDefaultWithTunedAndCountsVerdicts) {
  const ReportData data = SampleData();
  const Overview overview = Summarize(data);
  EXPECT_THAT(overview.pairs, SizeIs(42));
  EXPECT_THAT(overview.cells, SizeIs(21));
  int counted = 0;
  for (const auto& [verdict, count] : overview.verdicts) counted += count;
  EXPECT_EQ(counted, 84);
  for (const OverviewCell& cell : overview.cells) {
    if (cell.family != "matmul") continue;
    EXPECT_GT(*cell.tuned_speedup, 3);
  }
  ASSERT_FALSE(overview.attention.empty());
  EXPECT_EQ(overview.attention[0].verdict, Verdict::kSlower);
}

TEST(OverviewTest, ARowHasAllThatOneCommitMayExplain) {
  const ReportData data = SampleData();
  int slower = 0;
  for (const AttentionRow& row : Summarize(data).attention) {
    std::set<std::string> families;
    for (const int i : row.series) families.insert(data.series[i].family);
    if (families.count("softmax") == 0) continue;
    ++slower;
    EXPECT_EQ(row.verdict, Verdict::kSlower);
    EXPECT_THAT(row.series, SizeIs(8));
    EXPECT_THAT(row.hardware, SizeIs(2));
    EXPECT_GT(*row.change_low, .07);
    EXPECT_LT(*row.change_high, .11);
    // The planted commit is among the suspects, and they are few.
    EXPECT_TRUE(absl::c_linear_search(row.suspects, 42));
    EXPECT_LE(row.suspects.size(), 3);
    for (const int i : row.series) {
      const tracker::Evidence evidence =
          tracker::EvidenceOf(*data.series[i].decided_by);
      EXPECT_LE(*row.suspect_count, *evidence.suspects);
    }
    std::set<std::string> commands;
    for (const NextCommand& command : row.commands) {
      commands.insert(command.text.substr(0, command.text.find(' ', 8)));
    }
    EXPECT_EQ(commands.count("optrail ack"), 1);
    EXPECT_EQ(commands.count("optrail compare"), 1);
  }
  EXPECT_EQ(slower, 1);
}

// Without --metric a comparison is one of times.
TEST(OverviewTest, TheComparisonOfAnotherMetricNamesIt) {
  SampleHistory history = MakeSampleHistory({});
  for (proto::Run& run : history.runs) {
    for (proto::BenchmarkResult& result : *run.mutable_results()) {
      for (proto::Measurement& measurement : *result.mutable_measurements()) {
        const auto time = tracker::ReadingOf(measurement, "time");
        measurement.Clear();
        if (!time.has_value()) continue;
        proto::MetricSamples* joules = measurement.add_metrics();
        joules->set_metric("joules");
        joules->add_values(time->value);
      }
    }
  }
  const ReportData data = BuildReportData(history.runs, {}, {});
  int compared = 0;
  for (const AttentionRow& row : Summarize(data).attention) {
    for (const NextCommand& command : row.commands) {
      if (command.what != "compare") continue;
      ++compared;
      EXPECT_THAT(command.text, HasSubstr(" --metric=joules"));
    }
  }
  EXPECT_GT(compared, 0);
}

TEST(OverviewTest, EverySeriesThatWantsAttentionIsInOneRow) {
  SampleOptions options;
  options.states = true;
  const ReportData data = SampleData(options);
  std::map<int, int> rows;
  for (const AttentionRow& row : Summarize(data).attention) {
    for (const int i : row.series) ++rows[i];
  }
  for (int i = 0; i < data.series.size(); ++i) {
    const SeriesView& series = data.series[i];
    const bool wanted =
        series.main && tracker::InfoOf(series.verdict).wants_attention;
    EXPECT_EQ(rows[i], wanted) << series.name;
  }
}

TEST(OverviewTest, TheMatrixHasEachBenchmarkOfSeveralHardwareOnce) {
  // Benchmarks with other numbers of threads are others.
  SampleHistory history = MakeSampleHistory({});
  for (proto::Run& run : history.runs) {
    for (proto::BenchmarkResult& result : *run.mutable_results()) {
      result.mutable_key()->set_threads(1);
    }
  }
  const ReportData data = BuildReportData(history.runs, {}, {});
  const HardwareMatrix matrix = Summarize(data).matrix;
  ASSERT_GE(matrix.hardware.size(), 2);
  std::map<std::string, int> hardware_of;
  for (const SeriesView& series : data.series) ++hardware_of[series.name];
  int shared = 0;
  for (const auto& [name, hardware] : hardware_of) shared += hardware > 1;
  EXPECT_EQ(matrix.rows.size() + matrix.quiet, shared);
  std::set<std::string> names;
  int rank = 0;
  for (const HardwareMatrix::Row& row : matrix.rows) {
    ASSERT_EQ(row.series.size(), matrix.hardware.size());
    EXPECT_LE(rank, tracker::VerdictRank(row.worst));
    rank = tracker::VerdictRank(row.worst);
    std::string name;
    for (size_t i = 0; i < row.series.size(); ++i) {
      if (row.series[i] == HardwareMatrix::kNotThere) continue;
      const SeriesView& series = data.series[row.series[i]];
      EXPECT_EQ(series.hardware, matrix.hardware[i]);
      EXPECT_TRUE(name.empty() || name == series.name);
      name = series.name;
    }
    EXPECT_TRUE(names.insert(name).second) << name;
    EXPECT_GT(hardware_of[name], 1);
  }
  EXPECT_GT(matrix.quiet, 0);
  EXPECT_THAT(WriteMarkdownReport(data), HasSubstr("### By hardware"));
}

TEST(OverviewTest, OneConfigUnderTwoNamesGainsNothing) {
  SampleHistory history = MakeSampleHistory({});
  for (proto::Run& run : history.runs) {
    for (proto::BenchmarkResult& result : *run.mutable_results()) {
      if (result.key().operator_name() == "matmul") {
        result.set_config("kept=default");
      }
    }
  }
  const ReportData data = BuildReportData(history.runs, history.sessions, {});
  int same = 0, others = 0;
  for (const TunedPair& pair : Summarize(data).pairs) {
    const bool matmul =
        data.series[pair.tuned_series].operator_name == "matmul";
    (matmul ? same : others) += 1;
    EXPECT_EQ(pair.speedup == 1, matmul);
    EXPECT_EQ(pair.same_config, matmul);
    EXPECT_NE(pair.default_ns, pair.tuned_ns);
  }
  EXPECT_GT(same, 0);
  EXPECT_GT(others, 0);
}

}  // namespace
}  // namespace optrail::reports

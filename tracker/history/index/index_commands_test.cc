#include "tracker/history/index/index_commands.h"

#include <algorithm>
#include <sstream>

#include "absl/strings/match.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/exit_code.h"
#include "base/file/file.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tracker/detect/csv.h"
#include "tracker/history/evaluation/generate_history.h"

namespace optrail::tracker {
namespace {

using ::testing::HasSubstr;

constexpr int64_t kNow = 1'800'000'000LL * 1'000'000'000;

class IndexCommandsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = ::testing::TempDir() + "/index_commands_XXXXXX";
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    common_.history = JoinPath(pattern, "history");
    common_.workspace = pattern;  // no repository
    common_.now_unix_ns = kNow;
    GenerateOptions options;
    options.benchmarks = 3;
    options.hardware = 1;
    options.commits = 8;
    options.processes = 2;
    options.samples = 4;
    ASSERT_TRUE(GenerateHistory(options, *History::Open(common_.history)).ok());
  }

  template <typename Command>
  std::string Run(absl::StatusOr<int> (*run)(const Command&, std::ostream&),
                  Command command, int exit_code = 0) {
    command.common = common_;
    std::ostringstream out;
    const auto result = run(command, out);
    EXPECT_TRUE(result.ok()) << result.status();
    if (result.ok()) {
      EXPECT_EQ(*result, exit_code);
    }
    return out.str();
  }

  CommonOptions common_;
};

TEST_F(IndexCommandsTest, IndexSaysWhatItHolds) {
  common_.format = OutputFormat::kCsv;
  const std::string text = Run(RunHistoryIndex, HistoryIndexCommand{});
  EXPECT_THAT(text, HasSubstr("index.sqlite,8,3,24,0,"));
}

TEST_F(IndexCommandsTest, ExportsWhatDetectReads) {
  HistoryExportCommand command;
  const std::string text = Run(RunHistoryExport, command);
  const auto series = ParseSeriesCsv(text, "export");
  ASSERT_TRUE(series.ok()) << series.status();
  ASSERT_EQ(series->size(), 3);
  const LoadedRuns loaded = *History::Open(common_.history)->LoadRuns();
  const std::vector<Series> scanned = BuildSeries(loaded.runs);
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_EQ((*series)[i].id, scanned[i].text);
    ASSERT_EQ((*series)[i].values.size(), scanned[i].points.size());
    for (size_t p = 0; p < scanned[i].points.size(); ++p) {
      EXPECT_EQ((*series)[i].values[p], *scanned[i].points[p].value);
    }
  }
  command.filter.pattern = "^softmax/";
  EXPECT_EQ(ParseSeriesCsv(Run(RunHistoryExport, command), "x")->size(), 1);
  command.file = JoinPath(common_.workspace, "out.csv");
  EXPECT_THAT(Run(RunHistoryExport, command), HasSubstr("8 points"));
  EXPECT_TRUE(ParseSeriesCsv(*ReadFile(command.file), "x").ok());
  common_.format = OutputFormat::kJson;
  EXPECT_THAT(
      Run(RunHistoryExport, command),
      AllOf(HasSubstr("\"file_format\": \"csv\""), HasSubstr("\"rows\": 8")));
  common_.format = OutputFormat::kTable;
}

TEST_F(IndexCommandsTest, AnExportOfNothingHasItsHeaderAndIsNoSuccess) {
  HistoryExportCommand command;
  command.filter.pattern = "nosuch";
  const std::string header =
      Run(RunHistoryExport, command, ToInt(ExitCode::kNotEnoughData));
  EXPECT_TRUE(absl::EndsWith(header, "\n"));
  EXPECT_THAT(header, HasSubstr("value"));
  EXPECT_EQ(std::count(header.begin(), header.end(), '\n'), 1) << header;
  command.filter.pattern = "";
  common_.history = JoinPath(common_.workspace, "empty");
  ASSERT_TRUE(CreateDirectories(common_.history).ok());
  EXPECT_EQ(Run(RunHistoryExport, command, ToInt(ExitCode::kNotEnoughData)),
            header);
}

TEST_F(IndexCommandsTest, ExportsOtherFormats) {
  HistoryExportCommand command;
  command.file_format = "openmetrics";
  EXPECT_TRUE(absl::EndsWith(Run(RunHistoryExport, command), "\n# EOF\n"));
  command.file_format = "csvw";
  command.common = common_;
  std::ostringstream out;
  EXPECT_THAT(std::string(RunHistoryExport(command, out).status().message()),
              HasSubstr("--file_format=csvw: expected --out=FILE"));
  command.file = JoinPath(common_.workspace, "points.csv");
  EXPECT_THAT(Run(RunHistoryExport, command), HasSubstr("24 points"));
  const std::string csv = *ReadFile(command.file);
  const auto schema =
      nlohmann::json::parse(*ReadFile(command.file + "-metadata.json"));
  EXPECT_EQ(schema["url"], "points.csv");
  std::vector<std::string> names;
  for (const auto& column : schema["tableSchema"]["columns"]) {
    names.push_back(column["name"]);
  }
  EXPECT_EQ(absl::StrJoin(names, ","), csv.substr(0, csv.find('\n')));
  command.file_format = "parquet";
  EXPECT_THAT(std::string(RunHistoryExport(command, out).status().message()),
              HasSubstr("--file_format=parquet: expected csv, csvw or"));
}

TEST_F(IndexCommandsTest, ThinsOnlyWhenItIsNoDryRun) {
  common_.format = OutputFormat::kCsv;
  HistoryThinCommand command;
  command.policy.keep_runs = 2;
  command.policy.keep_days = 0;
  command.policy.keep_every = 3;
  command.dry_run = true;
  for (int i = 0; i < 2; ++i) {
    EXPECT_THAT(Run(RunHistoryThin, command),
                HasSubstr("no (dry run),2,0,2,4,"));
  }
  command.dry_run = false;
  EXPECT_THAT(Run(RunHistoryThin, command), HasSubstr("yes,2,0,2,4,"));
  EXPECT_THAT(Run(RunHistoryThin, command), HasSubstr("yes,2,2,0,0,"));
  command.policy.keep_every = 0;
  command.common = common_;
  std::ostringstream out;
  EXPECT_FALSE(RunHistoryThin(command, out).ok());
  command.policy.keep_every = 3;
  command.policy.keep_commits = {"v1.0"};
  EXPECT_THAT(std::string(RunHistoryThin(command, out).status().message()),
              HasSubstr("--keep_commits=v1.0: no run's commit begins so"));
}

TEST_F(IndexCommandsTest, VerifyGroupsWhatIsOddForPeopleAndListsItForPrograms) {
  const History history = *History::Open(common_.history);
  constexpr int64_t kDayNs = 24LL * 3600 * 1'000'000'000;
  for (int i = 0; i < 50; ++i) {
    proto::Run run = *history.ReadRun(history.ListRuns()->runs[0].id());
    run.set_run_id(NewRecordId(run.started_unix_ns()));
    run.mutable_commit()->set_dirty(false);
    run.mutable_commit()->set_commit_unix_ns(run.started_unix_ns() + kDayNs);
    ASSERT_TRUE(history.AppendRun(run).ok());
  }
  const auto lines = [](const std::string& text, absl::string_view what) {
    const std::vector<absl::string_view> all = absl::StrSplit(text, '\n');
    return std::count_if(all.begin(), all.end(), [&](absl::string_view line) {
      return absl::StrContains(line, what);
    });
  };
  const std::string text = Run(RunHistoryCheck, HistoryCheckCommand{});
  EXPECT_EQ(lines(text, "clock ran backwards"), 4) << text;
  EXPECT_THAT(text, HasSubstr("and 47 more"));
  EXPECT_THAT(text, HasSubstr("50 odd"));
  common_.format = OutputFormat::kCsv;
  EXPECT_EQ(
      lines(Run(RunHistoryCheck, HistoryCheckCommand{}), "clock ran backwards"),
      50);
}

TEST_F(IndexCommandsTest, VerifyNamesDamageAndRepairMovesItAway) {
  EXPECT_THAT(Run(RunHistoryCheck, HistoryCheckCommand{}),
              HasSubstr("0 damaged, 0 odd"));
  const History history = *History::Open(common_.history);
  const std::string path = history.ListRuns()->runs[3].path;
  ASSERT_TRUE(WriteFileAtomically(path, ReadFile(path)->substr(0, 50)).ok());
  EXPECT_THAT(Run(RunHistoryCheck, HistoryCheckCommand{}, 1),
              HasSubstr("1 damaged, 0 odd"));
  HistoryRepairCommand dry;
  dry.dry_run = true;
  EXPECT_THAT(Run(RunHistoryRepair, dry, 1), HasSubstr("cut off"));
  EXPECT_THAT(Run(RunHistoryRepair, HistoryRepairCommand{}),
              HasSubstr("quarantine"));
  EXPECT_THAT(Run(RunHistoryCheck, HistoryCheckCommand{}), HasSubstr("7 runs"));
}

}  // namespace
}  // namespace optrail::tracker

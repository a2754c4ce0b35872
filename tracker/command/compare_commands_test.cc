// `compare` and `gate`, on one history.

#include <cstdlib>
#include <thread>
#include <tuple>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/file/file.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tracker/command/commands_test_fixture.h"
#include "tracker/command/show_command.h"
#include "tracker/compare/compare_command.h"
#include "tracker/gate/gate_command.h"
#include "tracker/history/history.h"
#include "tracker/import/import_command.h"

namespace optrail::tracker {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

TEST_F(CommandsTest, FilesAreComparedWithoutAHistory) {
  CompareCommand compare;
  compare.common = common_;
  const std::string one = WriteResults("one.json", 100);
  compare.a = compare.b = one;
  const auto [code, text] = Call(RunCompare, compare);
  ASSERT_TRUE(code.ok()) << code.status();
  EXPECT_EQ(*code, 3) << "one process tells nothing\n" << text;
  EXPECT_THAT(text, HasSubstr("has 1 process"));
}

TEST_F(CommandsTest, GateFailsASlowDownAndWritesItsFiles) {
  Import(Hash('a'), 100);
  Import(Hash('b'), 150);
  GateCommand gate;
  gate.common = common_;
  gate.baseline = "commit:aaaa";
  gate.candidate = "bbbb";
  gate.outputs.verdict_out = JoinPath(dir_, "out/verdict.json");
  gate.outputs.markdown_out = JoinPath(dir_, "out/gate.md");
  gate.remeasure_out = JoinPath(dir_, "out/remeasure");
  const auto [code, text] = Call(RunGate, gate);
  ASSERT_TRUE(code.ok()) << code.status();
  EXPECT_EQ(*code, 1);
  EXPECT_THAT(text, HasSubstr("red: 1 of 2 benchmarks fails"));
  const auto json = nlohmann::json::parse(*ReadFile(gate.outputs.verdict_out));
  EXPECT_EQ(json["exit_code"], 1);
  EXPECT_EQ(json["rows"][0]["name"], "BM_Sort");
  EXPECT_THAT(*ReadFile(gate.outputs.markdown_out), HasSubstr("| `BM_Sort` |"));
  EXPECT_THAT(*ReadFile(gate.remeasure_out), IsEmpty());
}

TEST_F(CommandsTest, GateAsksAScriptForMoreProcesses) {
  for (const char digit : {'a', 'b'}) {
    ImportCommand import;
    import.common = common_;
    for (int i = 0; i < 4; ++i) {
      import.files.push_back(
          WriteResults(absl::StrCat("n", i, ".json"), 100 + 6 * i));
    }
    import.commit = Hash(digit);
    import.suite = "micro";
    import.files_are_processes = true;
    import.again = true;  // equal on both sides
    import.common.now_unix_ns += digit * 60'000'000'000;
    ASSERT_TRUE(Call(RunImport, import).first.ok());
  }
  GateCommand gate;
  gate.common = common_;
  gate.baseline = "commit:aaaa";
  gate.candidate = "bbbb";
  gate.remeasure_out = JoinPath(dir_, "remeasure");
  const auto [code, text] = Call(RunGate, gate);
  ASSERT_TRUE(code.ok()) << code.status();
  EXPECT_EQ(*code, 3) << text;
  EXPECT_THAT(text, HasSubstr("RERUN"));
  const std::vector<std::string> lines =
      absl::StrSplit(*ReadFile(gate.remeasure_out), '\n');
  ASSERT_EQ(lines.size(), 3);
  EXPECT_GT(std::atoi(lines[0].c_str()), 4);
  EXPECT_EQ(lines[1], "^(BM_Sort)$");
  gate.looks = 0;
  EXPECT_THAT(std::string(Call(RunGate, gate).first.status().message()),
              HasSubstr("--looks=0: expected"));
}

TEST_F(CommandsTest, GateWaitsForHardwareOfTheQuorumAndThenNamesIt) {
  Import(Hash('a'), 100);
  Import(Hash('b'), 100);
  const auto run = History::Open(common_.history)->FindRun("latest");
  ASSERT_TRUE(run.ok()) << run.status();
  GateCommand gate;
  gate.common = common_;
  gate.baseline = "commit:aaaa";
  gate.candidate = "bbbb";
  gate.policy = Write(
      "policy.textproto",
      absl::StrCat("quorum { hardware { id: \"", run->header.hardware().id(),
                   "\" } hardware { id: \"other\" } }"));
  gate.wait = absl::Milliseconds(30);
  gate.poll = absl::Milliseconds(10);
  auto [code, text] = Call(RunGate, gate);
  ASSERT_TRUE(code.ok()) << code.status();
  EXPECT_EQ(*code, 3) << text;
  EXPECT_THAT(text, AllOf(HasSubstr("has no run on hardware other"),
                          HasSubstr("waited 30ms")));
  // It comes while the gate waits.
  gate.wait = absl::Minutes(10);
  std::thread other([&] {
    const auto history = History::Open(common_.history);
    const auto runs = history->ListRuns();
    for (const RunInfo& info : runs->runs) {
      proto::Run copy = *history->ReadRun(info.id());
      copy.mutable_hardware()->set_id("other");
      copy.set_run_id(absl::StrCat(copy.run_id(), "0"));
      EXPECT_TRUE(history->AppendRun(copy).ok());
    }
  });
  std::tie(code, text) = Call(RunGate, gate);
  other.join();
  ASSERT_TRUE(code.ok()) << code.status();
  EXPECT_THAT(text, testing::Not(HasSubstr("has no run on hardware")));
}

TEST_F(CommandsTest, ABrokenPolicyIsNamedWithItsLine) {
  Import(Hash('a'), 100);
  GateCommand gate;
  gate.common = common_;
  gate.policy = Write("policy.textproto", "rule {\n  min_effect: -1\n}\n");
  const absl::Status status = Call(RunGate, gate).first.status();
  EXPECT_THAT(
      std::string(status.message()),
      AllOf(HasSubstr("policy.textproto:2:3"), HasSubstr("min_effect is -1")));
  gate.policy = JoinPath(dir_, "absent.textproto");
  EXPECT_THAT(std::string(Call(RunGate, gate).first.status().message()),
              HasSubstr("absent.textproto"));
}

TEST_F(CommandsTest, ADamagedNewestRunIsNamedAndNoOtherTakesItsPlace) {
  Import(Hash('a'), 100);
  Import(Hash('b'), 100);
  Import(Hash('c'), 150);
  common_.now_unix_ns += 30 * 86'400 * 1'000'000'000LL;
  const RunList list = *History::Open(common_.history)->ListRuns();
  ASSERT_TRUE(WriteFileAtomically(list.runs[2].path, "garbage").ok());
  const auto names_it = HasSubstr(list.runs[2].path);
  CompareCommand compare;
  compare.common = common_;
  compare.a = list.runs[0].header.run_id();
  ShowCommand show;
  show.common = common_;
  for (const std::string& what :
       {std::string("latest"), list.runs[2].header.run_id()}) {
    show.what = compare.b = what;
    ::testing::internal::CaptureStderr();
    EXPECT_EQ(*Call(RunCompare, compare).first, 3);
    EXPECT_THAT(::testing::internal::GetCapturedStderr(), names_it);
    ::testing::internal::CaptureStderr();
    EXPECT_EQ(*Call(RunShow, show).first, 3);
    EXPECT_THAT(::testing::internal::GetCapturedStderr(),
                AllOf(names_it, HasSubstr("next: optrail history repair")));
  }
  compare.b = list.runs[1].header.run_id();
  EXPECT_EQ(*Call(RunCompare, compare).first, 0) << "both can be read";
}

TEST_F(CommandsTest, ABenchmarkThatFailsInBAloneFailsTheComparison) {
  const auto files = [&](const std::string& name, const std::string& sort) {
    std::vector<std::string> paths;
    for (int i = 0; i < 2; ++i) {
      paths.push_back(
          Write(absl::StrCat(name, i, ".json"),
                absl::StrCat(R"({"context": {"date": "2026-11-20T10:00:0)", i,
                             R"(+00:00", "num_cpus": 2, "caches": []},)",
                             R"("benchmarks": [)", sort, ",",
                             Entry("BM_Copy", 50), "]}")));
    }
    return absl::StrJoin(paths, ",");
  };
  const std::string failing =
      R"({"name": "BM_Sort", "run_name": "BM_Sort",
          "run_type": "iteration", "error_occurred": true,
          "error_message": "out of range"})";
  CompareCommand compare;
  compare.common = common_;
  compare.a = files("works", Entry("BM_Sort", 100));
  compare.b = files("fails", failing);
  const auto [code, text] = Call(RunCompare, compare);
  ASSERT_TRUE(code.ok()) << code.status();
  EXPECT_EQ(*code, 1);
  EXPECT_THAT(text, AllOf(HasSubstr("crashed"), HasSubstr("out of range")));
  compare.filter = "Sort";
  EXPECT_EQ(*Call(RunCompare, compare).first, 1) << "nothing else can be told";
  compare.filter = "Copy";
  EXPECT_NE(*Call(RunCompare, compare).first, 1);
  compare.filter = "";
  compare.a = files("failed", failing);
  EXPECT_NE(*Call(RunCompare, compare).first, 1) << "it failed before";
}

TEST_F(CommandsTest, AComparisonKeepsTheColumnsThatFit) {
  Import(Hash('a'), 100);
  Import(Hash('b'), 100);
  CompareCommand compare;
  compare.common = common_;
  compare.a = "aaaa";
  compare.b = "bbbb";
  for (const char* columns : {"400", "140"}) {
    setenv("COLUMNS", columns, 1);
    EXPECT_THAT(Call(RunCompare, compare).second, HasSubstr("ratio of"))
        << columns;
  }
  setenv("COLUMNS", "80", 1);
  EXPECT_THAT(Call(RunCompare, compare).second, Not(HasSubstr("ratio of")));
  unsetenv("COLUMNS");
}

}  // namespace
}  // namespace optrail::tracker

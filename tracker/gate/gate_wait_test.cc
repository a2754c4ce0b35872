// A gate whose evidence comes in parts, as from several machines: it says what
// is missing, or waits for it, and judges once all is there.

#include <atomic>
#include <cstdlib>
#include <functional>
#include <sstream>
#include <thread>

#include "absl/strings/str_cat.h"
#include "base/file/file.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tracker/gate/gate_command.h"
#include "tracker/gate/gate_test_fixture.h"

namespace optrail::tracker {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr int kMains = 6;

class GateWaitTest : public GateTest {
 protected:
  GateWaitTest() {
    std::string folder = absl::StrCat(::testing::TempDir(), "/wait_XXXXXX");
    EXPECT_NE(mkdtemp(folder.data()), nullptr);
    folder_ = folder;
    command_.common.history = folder_;
    command_.common.now_unix_ns = kStart + 100 * kMinute;
    command_.candidate = CommitId(kMains + 1);
    command_.poll = absl::Milliseconds(10);
  }

  // Main runs are numbered from 1; the candidate's is the one behind them.
  void RecordOn(const std::string& suite, const std::string& hardware,
                int position,
                const std::vector<std::pair<std::string, double>>& times) {
    proto::Run run =
        MakeRun(position, position > kMains ? "topic" : "main", times);
    run.set_suite(suite);
    run.mutable_hardware()->set_id(hardware);
    run.set_started_unix_ns(run.started_unix_ns() + ++recorded_ * 1'000'000);
    run.set_run_id(NewRecordId(run.started_unix_ns()));
    const absl::Status appended = History::Open(folder_)->AppendRun(run);
    EXPECT_TRUE(appended.ok()) << appended;
  }
  void RecordMains(const std::string& suite, const std::string& hardware) {
    for (int i = 1; i <= kMains; ++i) {
      RecordOn(suite, hardware, i, {{"a", 100}, {"b", 200}});
    }
  }
  void RecordCandidate(const std::string& suite, const std::string& hardware,
                       double ns = 100) {
    RecordOn(suite, hardware, kMains + 1, {{"a", ns}, {"b", 200}});
  }

  int Gate(std::string* text) {
    std::ostringstream out;
    const auto code = RunGate(command_, out);
    EXPECT_TRUE(code.ok()) << code.status();
    *text = out.str();
    return code.value_or(-1);
  }

  // Judged now, at a deadline, and while `rest` comes.
  void ExpectMissingUntil(const std::function<void()>& rest,
                          const std::string& missing, int code_without) {
    std::string text;
    EXPECT_EQ(Gate(&text), code_without) << text;
    EXPECT_THAT(text, HasSubstr(missing));
    command_.wait = absl::Milliseconds(30);
    EXPECT_EQ(Gate(&text), code_without) << text;
    EXPECT_THAT(text, AllOf(HasSubstr(missing), HasSubstr("waited 30ms")));
    command_.wait = absl::Minutes(10);
    std::thread other(rest);
    EXPECT_EQ(Gate(&text), 0) << text;
    other.join();
    EXPECT_THAT(text, Not(HasSubstr(missing)));
  }

  std::string folder_;
  GateCommand command_;
  int recorded_ = 0;
};

TEST_F(GateWaitTest, HalfOfASuitesBenchmarksAreAwaitedAndNamed) {
  RecordMains("smoke", "A");
  RecordOn("smoke", "A", kMains + 1, {{"a", 100}});
  // A benchmark that vanished fails the gate, unless it comes in time.
  ExpectMissingUntil(
      [this] {
        RecordOn("smoke", "A", kMains + 1, {{"b", 200}});
      },
      "missing", 1);
}

TEST_F(GateWaitTest, OneOfTwoSuitesIsNoVerdict) {
  RecordMains("smoke", "A");
  RecordMains("models", "A");
  RecordCandidate("smoke", "A");
  ExpectMissingUntil([this] { RecordCandidate("models", "A"); },
                     "no run of suite 'models' on A", 3);
}

TEST_F(GateWaitTest, OneOfThreeHardwareIsNoVerdict) {
  command_.policy = absl::StrCat(folder_, ".textproto");
  ASSERT_TRUE(WriteFileAtomically(
                  command_.policy,
                  "quorum { hardware { id: \"A\" } hardware { id: \"B\" } "
                  "hardware { id: \"C\" } slower_on: 2 }")
                  .ok());
  for (const char* hardware : {"A", "B", "C"}) RecordMains("smoke", hardware);
  // Slower there: two of three would be red.
  RecordCandidate("smoke", "B", 150);
  ExpectMissingUntil(
      [this] {
        RecordCandidate("smoke", "A");
        RecordCandidate("smoke", "C");
      },
      "no run on hardware C", 3);
}

// Everything that it would judge is there, and slower, but not all of it.
TEST_F(GateWaitTest, RunsThatAreStillLeasedAreNoVerdict) {
  RecordMains("smoke", "A");
  RecordCandidate("smoke", "A", 150);
  std::atomic<bool> done{false};
  command_.work = [&done]() -> absl::StatusOr<UnfinishedWork> {
    UnfinishedWork work;
    if (!done) work = {"job 7: 1 of 2 tasks is not done: 1 leased", true};
    return work;
  };
  ExpectMissingUntil(
      [this, &done] {
        for (int i = 0; i < 40; ++i) RecordCandidate("smoke", "A", 100);
        done = true;
      },
      "1 of 2 tasks is not done", 3);
}

TEST_F(GateWaitTest, NobodyWaitsForWhatWorkThatIsDoneHasNotBrought) {
  RecordMains("smoke", "A");
  RecordOn("smoke", "A", kMains + 1, {{"a", 100}});
  command_.wait = absl::Hours(24);
  command_.work = [] { return UnfinishedWork(); };
  std::string text;
  // The benchmark that vanished fails it.
  EXPECT_EQ(Gate(&text), 1) << text;
  EXPECT_THAT(text, AllOf(HasSubstr("missing"), Not(HasSubstr("waited"))));
}

TEST_F(GateWaitTest, ADatabaseThatIsAwayIsAskedAgainUntilTheEndOfTheWait) {
  RecordMains("smoke", "A");
  RecordCandidate("smoke", "A");
  int asked = 0, away = 3;
  command_.work = [&]() -> absl::StatusOr<UnfinishedWork> {
    if (++asked <= away) return absl::UnavailableError("no connection");
    return UnfinishedWork();
  };
  std::ostringstream out;
  EXPECT_TRUE(absl::IsUnavailable(RunGate(command_, out).status()));
  EXPECT_EQ(asked, 1);
  command_.wait = absl::Hours(24);
  std::string text;
  EXPECT_EQ(Gate(&text), 0) << text;
  EXPECT_EQ(asked, 4);
  away = 1'000'000;
  command_.wait = absl::Milliseconds(50);
  EXPECT_EQ(RunGate(command_, out).status().message(), "no connection");
  // The gate does not wait for work that can no longer end well.
  command_.wait = absl::Hours(24);
  command_.work = []() -> absl::StatusOr<UnfinishedWork> {
    return absl::NotFoundError("there is no job 7");
  };
  EXPECT_TRUE(absl::IsNotFound(RunGate(command_, out).status()));
}

TEST_F(GateWaitTest, NobodyWaitsForWorkThatFailed) {
  RecordMains("smoke", "A");
  RecordCandidate("smoke", "A");
  command_.wait = absl::Hours(24);
  command_.work = []() -> absl::StatusOr<UnfinishedWork> {
    return UnfinishedWork{"job 7: 1 of 2 tasks is not done: 1 failed", false};
  };
  std::string text;
  EXPECT_EQ(Gate(&text), 3) << text;
  EXPECT_THAT(text, HasSubstr("1 failed"));
}

}  // namespace
}  // namespace optrail::tracker

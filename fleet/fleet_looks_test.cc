// A bisection whose commits are measured by pilots, which run a script that
// knows what each commit takes; held against the same answers without a fleet.

#include "fleet/fleet_looks.h"

#include <signal.h>
#include <sys/wait.h>

#include <cstdlib>
#include <memory>
#include <sstream>
#include <thread>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/process/subprocess.h"
#include "fleet/testing/fleet_fixture.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tracker/bisect/bisect_command.h"
#include "tracker/checkout/interruptible.h"
#include "tracker/checkout/worktree.h"

namespace optrail::fleet {
namespace {

using ::testing::HasSubstr;
using tracker::Look;
using tracker::LookRequest;
using tracker::SlowerBenchmark;

constexpr int kCommits = 20;
constexpr int kCulprit = 13;
constexpr char kSlower[] =
    R"({"slower":{"name":"BM_\u0027x/8","metric":"time","change":0.1,)"
    R"("log_ratio":0.0953,"standard_error":0.004,"rounds":10}})";

// The share that a commit takes more than GOOD; neighbours differ.
double WorseBy(int commit) {
  return (commit >= kCulprit ? .1 : 0.) + .001 * (commit % 5);
}

std::string LookLine(int commit) {
  return absl::StrCat(R"({"look":"measured","worse_by":)", WorseBy(commit),
                      R"(,"standard_error":0.008,"host":"scripted"})");
}

// The same answers in this process.
class ScriptedLooks : public tracker::Looks {
 public:
  ScriptedLooks(int at_once, const std::vector<std::string>& commits)
      : at_once_(at_once), commits_(commits) {}
  int at_once() const override { return at_once_; }
  absl::StatusOr<absl::optional<SlowerBenchmark>> CompareEnds(
      const std::string&, const std::string&) override {
    return tracker::ParseSlower(kSlower);
  }
  absl::StatusOr<std::vector<Look>> LookAt(
      const std::vector<LookRequest>& requests,
      const SlowerBenchmark&) override {
    ++turns_;
    std::vector<Look> looks;
    for (const LookRequest& request : requests) {
      for (int i = 0; i < static_cast<int>(commits_.size()); ++i) {
        if (commits_[i] != request.commit) continue;
        looks.push_back(*tracker::ParseLook(LookLine(i)));
      }
    }
    return looks;
  }
  int builds() const override { return 0; }
  int turns() const { return turns_; }

 private:
  const int at_once_;
  const std::vector<std::string>& commits_;
  int turns_ = 0;
};

class FleetLooksTest : public FleetTest {
 protected:
  void SetUp() override {
    FleetTest::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    repository_ = absl::StrCat(Folder(), "/repository", ++repositories_);
    ASSERT_EQ(
        std::system(
            absl::StrCat("git init -q ", repository_, " && cd ", repository_,
                         " && for i in $(seq 0 ", kCommits,
                         "); do git -c user.name=a -c user.email=a@b commit -q "
                         "--allow-empty -m \"commit $i\" || exit 1; done")
                .c_str()),
        0);
    const auto log = RunCommand(
        {"git", "-C", repository_, "log", "--reverse", "--format=%H"});
    ASSERT_TRUE(log.ok()) << log.status();
    commits_ = absl::StrSplit(log->stdout_text, '\n', absl::SkipEmpty());
    ASSERT_EQ(commits_.size(), kCommits + 1);
    auto trees = tracker::Worktrees::Create({repository_, ""}, interruptible_);
    ASSERT_TRUE(trees.ok()) << trees.status();
    trees_ = *std::move(trees);
    command_.common.workspace = repository_;
    command_.common.format = OutputFormat::kJson;
    command_.good = commits_.front();
    command_.bad = commits_.back();
    command_.quiet = true;
    options_.flags = {"--run=./bench --x=\"$y\""};
    options_.poll = absl::Milliseconds(50);
    options_.most_attempts = 9;
    options_.say = [this](const std::string& what) { said_.push_back(what); };
  }

  // A pilot that answers as `ScriptedLooks` does; `before` runs first.
  PilotOptions ScriptedPilot(const std::string& before = "") {
    std::string script = absl::StrCat(
        before, "test \"$1\" = bisect || exit 2\ntest \"$4\" = '--run=./bench ",
        "--x=\"$y\"' || exit 2\ncase \"$*\" in *--look=ends*) echo '", kSlower,
        "'; exit;; *'--filter=^BM_\\x27x/8$'*) ;; *) exit 2;; esac\n",
        "case $3 in\n");
    for (int i = 0; i <= kCommits; ++i) {
      absl::StrAppend(&script, commits_[i], ") echo warning; echo '",
                      LookLine(i), "';;\n");
    }
    PilotOptions options =
        Pilot({"sh", Script(absl::StrCat(script, "*) exit 2;;\nesac\n"))});
    options.repository = repository_;
    options.until_idle = false;
    options.lease = absl::Seconds(1);
    return options;
  }

  // The commits that the answer names, and what it prints of all.
  static std::vector<std::string> Culprits(const std::string& answer) {
    std::vector<std::string> culprits;
    for (const auto& row : nlohmann::json::parse(answer)) {
      if (row["culprit"] == "yes") culprits.push_back(row["commit"]);
    }
    return culprits;
  }
  std::string OneMachine(int at_once, int* turns = nullptr) {
    ScriptedLooks looks(at_once, commits_);
    std::ostringstream out;
    EXPECT_EQ(*RunBisectBy(command_, *trees_, looks, out), 0);
    if (turns != nullptr) *turns = looks.turns();
    return out.str();
  }
  absl::StatusOr<int> OnPilots(int at_once, std::ostream& out) {
    options_.at_once = at_once;
    FleetLooks looks(options_, Open(absl::Seconds(1)));
    return RunBisectBy(command_, *trees_, looks, out);
  }
  static void End(const std::vector<pid_t>& pilots) {
    for (const pid_t pilot : pilots) {
      kill(pilot, SIGTERM);
      EXPECT_EQ(waitpid(pilot, nullptr, 0), pilot);
    }
  }

  static int repositories_;
  tracker::Interruptible interruptible_;
  std::string repository_;
  std::vector<std::string> commits_;
  std::unique_ptr<tracker::Worktrees> trees_;
  tracker::BisectCommand command_;
  FleetLooksOptions options_;
  std::vector<std::string> said_;
};

int FleetLooksTest::repositories_ = 0;

TEST_F(FleetLooksTest, SeveralAtOnceFindTheCommitOfOneMachineInFewerTurns) {
  int turns_of_one = 0, turns_of_three = 0;
  const std::string one = OneMachine(1, &turns_of_one);
  const std::string three = OneMachine(3, &turns_of_three);
  EXPECT_THAT(Culprits(one),
              testing::ElementsAre(commits_[kCulprit].substr(0, 12)));
  EXPECT_EQ(Culprits(three), Culprits(one));
  EXPECT_LT(turns_of_three, turns_of_one);
}

TEST_F(FleetLooksTest, PilotsGiveTheAnswerOfOneMachineThatAsksForAsMany) {
  std::vector<pid_t> pilots;
  for (int i = 0; i < 2; ++i) pilots.push_back(StartPilot(ScriptedPilot()));
  for (const int at_once : {1, 3}) {
    std::ostringstream out;
    const auto code = OnPilots(at_once, out);
    ASSERT_TRUE(code.ok()) << code.status();
    EXPECT_EQ(*code, 0);
    EXPECT_EQ(out.str(), OneMachine(at_once)) << at_once;
  }
  End(pilots);
  EXPECT_EQ(One("SELECT count(*) FROM optrail.tasks WHERE state <> 'done'"),
            "0");
}

// The pilot that looks first is killed as it does, and another one later.
TEST_F(FleetLooksTest, ANodeThatDiesChangesNoAnswer) {
  const pid_t first = StartPilot(ScriptedPilot("sleep 600\n"));
  const pid_t second = StartPilot(ScriptedPilot("sleep .3\n"));
  const pid_t last = StartPilot(ScriptedPilot());
  for (const pid_t pilot : {second, last}) kill(pilot, SIGSTOP);
  const auto wait_until = [this](const std::string& condition) {
    WaitFor("SELECT count(*) > 0 FROM optrail.tasks WHERE " + condition, "t");
  };
  std::thread killer([&] {
    wait_until("state = 'leased'");
    kill(first, SIGKILL);
    for (const pid_t pilot : {second, last}) kill(pilot, SIGCONT);
    // In the middle of a look between the ends.
    wait_until(
        "state = 'leased' AND command LIKE '%--look=commit%' AND pilot LIKE "
        "'host-" +
        absl::StrCat(second) + "-%'");
    kill(second, SIGKILL);
  });
  std::ostringstream out;
  const auto code = OnPilots(3, out);
  killer.join();
  for (const pid_t pilot : {first, second}) {
    EXPECT_EQ(waitpid(pilot, nullptr, 0), pilot);
  }
  End({last});
  ASSERT_TRUE(code.ok()) << code.status();
  EXPECT_EQ(*code, 0);
  EXPECT_EQ(out.str(), OneMachine(3));
  EXPECT_EQ(One("SELECT sum(leases_lost) FROM optrail.tasks"), "2");
}

TEST_F(FleetLooksTest, ALookThatFailsEndsTheSearchWithItsLog) {
  options_.most_attempts = 1;
  PilotOptions broken = ScriptedPilot();
  broken.program = {"sh", Script("echo no compiler here; exit 2\n")};
  const pid_t pilot = StartPilot(broken);
  std::ostringstream out;
  const absl::Status status = OnPilots(2, out).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("no compiler here"));
  // Output without a line of JSON is no answer.
  Sql("UPDATE optrail.pilots SET draining = true");
  EXPECT_EQ(waitpid(pilot, nullptr, 0), pilot);
  broken.program = {"echo", "all is well"};
  const pid_t other = StartPilot(broken);
  EXPECT_TRUE(absl::IsInvalidArgument(OnPilots(2, out).status()));
  End({other});
}

// A commit that is slower on one hardware need not be on another.
TEST_F(FleetLooksTest, AllLooksOfASearchAreOnTheHardwareOfTheEnds) {
  std::vector<pid_t> pilots;
  for (const char* hardware : {"hw", "other", "hw", "other"}) {
    PilotOptions options = ScriptedPilot();
    options.info.hardware_id = hardware;
    pilots.push_back(StartPilot(options));
  }
  std::ostringstream out;
  const auto code = OnPilots(3, out);
  End(pilots);
  ASSERT_TRUE(code.ok()) << code.status();
  EXPECT_EQ(*code, 0);
  EXPECT_EQ(One("SELECT count(DISTINCT hardware_id) FROM optrail.attempts "
                "JOIN optrail.pilots USING (pilot)"),
            "1");
  const std::string hardware =
      One("SELECT hardware_id FROM optrail.attempts JOIN optrail.pilots "
          "USING (pilot)");
  EXPECT_THAT(absl::StrJoin(said_, "\n"),
              HasSubstr("on hardware " + hardware + ","));
  EXPECT_EQ(One("SELECT count(*) FROM optrail.tasks WHERE job > 1 AND "
                "hardware_id <> '" +
                hardware + "'"),
            "0");
}

// One machine has no compiler: another one is there.
TEST_F(FleetLooksTest, APilotThatCannotBuildDoesNotEndTheSearch) {
  options_.most_attempts = 3;
  PilotOptions broken = ScriptedPilot();
  broken.program = {"sh", Script("echo no compiler here; exit 2\n")};
  const std::vector<pid_t> pilots = {StartPilot(broken),
                                     StartPilot(ScriptedPilot("sleep .2\n"))};
  WaitFor("SELECT count(*) FROM optrail.pilots", "2");
  std::ostringstream out;
  const auto code = OnPilots(3, out);
  End(pilots);
  ASSERT_TRUE(code.ok()) << code.status();
  EXPECT_EQ(out.str(), OneMachine(3));
  EXPECT_NE(One("SELECT count(*) FROM optrail.attempts WHERE NOT is_result"),
            "0");
}

// The server ends every connection, a few times while the search waits.
TEST_F(FleetLooksTest, ADatabaseThatBlinksEndsNoSearch) {
  const pid_t pilot = StartPilot(ScriptedPilot("sleep .3\n"));
  WaitFor("SELECT count(*) FROM optrail.pilots", "1");
  int polls = 0, blinks = 0;
  options_.may_go_on = [&] {
    constexpr int kMost = 6;
    if (++polls % 4 == 1 && blinks < kMost) {
      ++blinks;
      Sql("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid "
          "<> pg_backend_pid() AND datname = current_database()");
    }
    return absl::OkStatus();
  };
  std::ostringstream out;
  const auto code = OnPilots(3, out);
  End({pilot});
  ASSERT_TRUE(code.ok()) << code.status();
  EXPECT_GT(blinks, 2);
  EXPECT_EQ(out.str(), OneMachine(3));
  EXPECT_EQ(One("SELECT count(*) FROM optrail.tasks WHERE state <> 'done'"),
            "0");
}

TEST_F(FleetLooksTest, AnInterruptCancelsWhatNobodyWaitsFor) {
  int polls = 0;
  options_.may_go_on = [&polls] {
    return ++polls < 3 ? absl::OkStatus() : absl::CancelledError("Ctrl-C");
  };
  std::ostringstream out;
  EXPECT_TRUE(absl::IsCancelled(OnPilots(2, out).status()));
  EXPECT_EQ(One("SELECT state FROM optrail.tasks"), "cancelled");
}

TEST(LookJsonTest, ArrivesAsItIsSentAndNothingElseDoes) {
  Look look;
  look.worse_by = .25;
  look.standard_error = .01;
  look.host = "gpu7";
  const auto same = tracker::ParseLook(tracker::ToJson(look));
  ASSERT_TRUE(same.ok()) << same.status();
  EXPECT_EQ(same->kind, Look::Kind::kMeasured);
  EXPECT_EQ(same->worse_by, .25);
  EXPECT_EQ(same->host, "gpu7");
  look.kind = Look::Kind::kDoesNotBuild;
  EXPECT_EQ(tracker::ParseLook(tracker::ToJson(look))->kind, look.kind);
  const auto slower = tracker::ParseSlower(kSlower);
  ASSERT_TRUE(slower.ok()) << slower.status();
  EXPECT_EQ(tracker::ToJson(*slower),
            tracker::ToJson(*tracker::ParseSlower(tracker::ToJson(*slower))));
  EXPECT_FALSE(tracker::ParseSlower(R"({"slower":null})")->has_value());
  for (const char* bad :
       {"", "{}", "[]", "null", R"({"look":"measured"})",
        R"({"look":"odd","worse_by":0,"standard_error":0,"host":""})",
        R"({"look":"measured","worse_by":-2,"standard_error":0,"host":""})",
        R"({"look":"measured","worse_by":1e999,"standard_error":0,"host":""})",
        R"({"slower":{}})", R"({"slower":3})"}) {
    EXPECT_TRUE(absl::IsInvalidArgument(tracker::ParseLook(bad).status()))
        << bad;
    EXPECT_TRUE(absl::IsInvalidArgument(tracker::ParseSlower(bad).status()))
        << bad;
  }
}

}  // namespace
}  // namespace optrail::fleet

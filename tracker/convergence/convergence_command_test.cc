#include "tracker/convergence/convergence_command.h"

#include <cstdlib>
#include <sstream>

#include "base/file/file.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tracker/convergence/evaluation/simulate_sessions.h"
#include "tracker/history/history.h"

namespace optrail::tracker {
namespace {

using ::testing::HasSubstr;

class ConvergenceCommandTest : public ::testing::Test {
 protected:
  ConvergenceCommandTest() {
    std::string pattern = ::testing::TempDir() + "/convergence_XXXXXX";
    options_.common.history = mkdtemp(pattern.data());
  }

  void Record(const std::vector<proto::Session>& sessions) {
    const auto history = History::Open(options_.common.history);
    for (proto::Session session : sessions) {
      session.set_session_id(NewRecordId(session.started_unix_ns()));
      const absl::Status appended = history->AppendSession(session);
      ASSERT_TRUE(appended.ok()) << appended;
    }
  }

  int Run() {
    out_.str("");
    const absl::StatusOr<int> code = RunConvergence(options_, out_);
    EXPECT_TRUE(code.ok()) << code.status();
    return code.value_or(-1);
  }

  ConvergenceCommand options_;
  std::ostringstream out_;
};

TEST_F(ConvergenceCommandTest, PrintsFindingsAndFailsOnThoseThatAreNamed) {
  Record(SimulateFault(FindingKind::kMostTrialsContended, 1));
  EXPECT_EQ(Run(), 0);
  EXPECT_THAT(out_.str(), HasSubstr("most_trials_contended: simulated/cpu/"));
  EXPECT_THAT(out_.str(), HasSubstr("1 finding in 1 session\n"));
  options_.fail_on = {"most_trials_contended"};
  EXPECT_EQ(Run(), 1);
  options_.fail_on = {"winners_curse"};
  EXPECT_EQ(Run(), 0);
  options_.fail_on = {"all"};
  EXPECT_EQ(Run(), 1);
}

TEST_F(ConvergenceCommandTest, ThePolicyNamesFindingsThatFail) {
  Record(SimulateFault(FindingKind::kMostTrialsContended, 1));
  options_.policy = options_.common.history + "/policy.textproto";
  const auto write = [&](const std::string& text) {
    ASSERT_TRUE(WriteFileAtomically(options_.policy, text).ok());
  };
  write("fail_on_finding: \"winners_curse\"");
  EXPECT_EQ(Run(), 0);
  write("fail_on_finding: [\"winners_curse\", \"most_trials_contended\"]");
  EXPECT_EQ(Run(), 1);
  write("fail_on_finding: \"slow\"");
  EXPECT_THAT(std::string(RunConvergence(options_, out_).status().message()),
              HasSubstr("policy.textproto: fail_on_finding: finding 'slow'"));
}

TEST_F(ConvergenceCommandTest, PrintsJson) {
  Record(SimulateFault(FindingKind::kMostTrialsContended, 1));
  options_.common.format = OutputFormat::kJson;
  Run();
  const auto json = nlohmann::json::parse(out_.str());
  ASSERT_EQ(json.size(), 1);
  EXPECT_EQ(json[0]["finding"], "most_trials_contended");
  EXPECT_EQ(json[0]["remedies"][0]["lever"], "measurement");
}

TEST_F(ConvergenceCommandTest, FiltersByTaskAndHardware) {
  Record(SimulateFault(FindingKind::kMostTrialsContended, 1));
  options_.filter = "n=512/";
  EXPECT_EQ(Run(), 0);
  options_.filter = "n=513/";
  EXPECT_EQ(Run(), 3);
  options_.filter = "";
  options_.hardware_id = "other";
  EXPECT_EQ(Run(), 3) << "no session to judge";
}

TEST_F(ConvergenceCommandTest, RefusesWhatItDoesNotKnow) {
  options_.fail_on = {"slow"};
  EXPECT_THAT(std::string(RunConvergence(options_, out_).status().message()),
              HasSubstr("'slow': expected all, does_not_converge"));
  options_.fail_on = {};
  options_.filter = "(";
  EXPECT_FALSE(RunConvergence(options_, out_).ok());
}

}  // namespace
}  // namespace optrail::tracker

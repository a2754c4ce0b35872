#include "tracker/bisect/bisect_command.h"

#include <algorithm>
#include <sstream>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tracker/checkout/repository_test_fixture.h"

namespace optrail::tracker {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class BisectCommandTest : public ::testing::Test {
 protected:
  BisectCommandTest() {
    options_.common.workspace = repository_.path();
    options_.common.format = OutputFormat::kJson;
    options_.build.target = "//bench:program";
    options_.quiet = true;
  }

  absl::StatusOr<int> Bisect(const std::string& good, const std::string& bad) {
    options_.good = good;
    options_.bad = bad;
    const absl::StatusOr<int> code = RunBisect(options_, out_);
    EXPECT_EQ(repository_.Worktrees(), 1);
    return code;
  }

  std::vector<std::string> Culprits() {
    std::vector<std::string> culprits;
    for (const auto& row : nlohmann::json::parse(out_.str())) {
      if (row["culprit"] == "yes") culprits.push_back(row["commit"]);
    }
    return culprits;
  }

  int Builds() {
    const std::vector<std::string> commands = repository_.BazelCommands();
    return static_cast<int>(
        std::count(commands.begin(), commands.end(), "build"));
  }

  FakeRepository repository_;
  BisectCommand options_;
  std::ostringstream out_;
};

TEST_F(BisectCommandTest, FindsTheCommitWithFewBuilds) {
  std::vector<std::string> commits;
  for (int i = 0; i < 17; ++i) {
    // A little different everywhere, so that no two are equal.
    commits.push_back(repository_.Commit((i < 11 ? 100000 : 108000) + i));
  }
  EXPECT_EQ(*Bisect(commits.front(), "HEAD"), 0);
  EXPECT_THAT(Culprits(), ElementsAre(commits[11].substr(0, 12)));
  EXPECT_LE(Builds(), 2 + 4);
}

TEST_F(BisectCommandTest, SkipsWhatDoesNotBuild) {
  std::vector<std::string> commits;
  for (int i = 0; i < 9; ++i) {
    commits.push_back(i == 4 ? repository_.CommitThatDoesNotBuild()
                             : repository_.Commit((i < 6 ? 1000 : 1100) + i));
  }
  EXPECT_EQ(*Bisect(commits.front(), commits.back()), 0);
  EXPECT_THAT(Culprits(), ElementsAre(commits[6].substr(0, 12)));
}

TEST_F(BisectCommandTest, NothingSlowerIsExitCode3) {
  const std::string good = repository_.Commit(1000);
  repository_.Commit(1001);
  const std::string same = repository_.Commit(1000);
  EXPECT_EQ(*Bisect(good, "HEAD~1"), 3);
  EXPECT_EQ(*Bisect(good, same), 3);
}

TEST_F(BisectCommandTest, ABenchmarkThatFailsAtBadIsNamed) {
  const std::string good = repository_.Commit(1000);
  const std::string bad = repository_.CommitThatFails();
  const absl::Status status = Bisect(good, bad).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()),
              AllOf(HasSubstr("BM_x"), HasSubstr("no input"),
                    HasSubstr("git bisect run")));
  options_.filter = "BM_y";
  EXPECT_EQ(*Bisect(good, bad), 3) << "the filter leaves BM_x out";
}

TEST_F(BisectCommandTest, RefusesCommitsThatAreNotALine) {
  const std::string first = repository_.Commit(1000);
  const std::string second = repository_.Commit(1100);
  EXPECT_THAT(std::string(Bisect(second, first).status().message()),
              HasSubstr("first-parent line"));
  EXPECT_THAT(std::string(Bisect(first, first).status().message()),
              HasSubstr("same commit"));
  EXPECT_THAT(std::string(Bisect(first, "nowhere").status().message()),
              HasSubstr("nowhere"));
  EXPECT_EQ(Builds(), 0);
}

TEST_F(BisectCommandTest, AnEndThatDoesNotBuildIsAnError) {
  const std::string good = repository_.Commit(1000);
  const std::string bad = repository_.CommitThatDoesNotBuild();
  EXPECT_THAT(std::string(Bisect(good, bad).status().message()),
              HasSubstr("broken on purpose"));
}

}  // namespace
}  // namespace optrail::tracker

#include "fleet/task_command.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace optrail::fleet {
namespace {

TEST(PerCommitTest, AWatchIsOneTaskPerCommit) {
  EXPECT_THAT(*PerCommit({" watch --run='./bench -x'"}, {"c2", "c1"}),
              testing::ElementsAre("watch c2 --limit=1 --run='./bench -x'",
                                   "watch c1 --limit=1 --run='./bench -x'"));
  for (const char* bad :
       {"bench --op=add", "watch v1..v2", "watch --limit=3"}) {
    EXPECT_TRUE(absl::IsInvalidArgument(PerCommit({bad}, {"c"}).status()))
        << bad;
  }
}

TEST(BuildsCommitsTest, WatchDoesAndAGateThatRuns) {
  EXPECT_TRUE(BuildsCommits({"watch"}));
  EXPECT_TRUE(BuildsCommits({"bisect", "a", "b"}));
  EXPECT_TRUE(BuildsCommits({"gate", "-run=a"}));
  EXPECT_TRUE(BuildsCommits({"gate", "--build", "a"}));
  EXPECT_FALSE(BuildsCommits({"gate", "--runs=3"}));
  EXPECT_FALSE(BuildsCommits({"bench", "--run=a"}));
}

TEST(CompileAheadOfTest, KeepsTheFlagsThatCompileKnows) {
  const std::vector<std::string> flags = {
      "op", "shape", "device", "trials", "seed", "with_test_operators"};
  const auto of = [&flags](const std::string& command) {
    return *CompileAheadOf(command, flags, "sm_90a");
  };
  EXPECT_EQ(of("tune --op=relu '--shape=^n=64/f32$' -trials 9 --proof_time=3s "
               "--with_test_operators --seed=4"),
            "compile --op=relu '--shape=^n=64/f32$' -trials 9 "
            "--with_test_operators --seed=4 --hw=sm_90a");
  // A benchmark needs the default and the tuned config.
  EXPECT_EQ(of("bench --op=relu --record --device=cuda"),
            "compile --op=relu --device=cuda --trials=1 --hw=sm_90a");
  EXPECT_EQ(*CompileAheadOf("bench --op=relu", flags, ""),
            "compile --op=relu --trials=1");
  for (const char* nothing : {"gate", "watch HEAD", "compile --op=relu",
                              "tune --space=s.textproto --command=./x"}) {
    EXPECT_EQ(of(nothing), "") << nothing;
  }
  EXPECT_TRUE(absl::IsInvalidArgument(
      CompileAheadOf("tune --preset=llm", flags, "").status()));
}

TEST(CommandOfWordsTest, ArrivesAsItIsSent) {
  const std::vector<std::string> words = {
      "bisect", "a", "b", "--run=./bench \"$x\" `y` \\z", "", "--", "-history"};
  const auto command = CommandOfWords(words);
  ASSERT_TRUE(command.ok()) << command.status();
  EXPECT_EQ(*WordsOfCommand(*command), words);
  for (const char* bad : {"it's", "two\nlines"}) {
    EXPECT_TRUE(
        absl::IsInvalidArgument(CommandOfWords({"bisect", bad}).status()))
        << bad;
  }
}

TEST(WordsOfCommandTest, TakesWordsOfCommandsThatPilotsRun) {
  EXPECT_EQ(WordsOfCommand("tune --op=softmax  --seed=1")->size(), 3);
  EXPECT_EQ(WordsOfCommand("gate --candidate=commit:abc")->size(), 2);
  EXPECT_THAT(
      *WordsOfCommand("watch --build='make -s' --run='echo \"$x\"' a''"),
      testing::ElementsAre("watch", "--build=make -s", "--run=echo \"$x\"",
                           "a"));
  for (const char* bad :
       {"", "report", "bench --history=/x", "bench 'a b", "bench $(id)",
        "bench\n", "sh -c x", "gate --wait=2h", "gate -wait 2h",
        "bench -history=/x", "bisect a b --nodes=2"}) {
    EXPECT_TRUE(absl::IsInvalidArgument(WordsOfCommand(bad).status())) << bad;
  }
}

}  // namespace
}  // namespace optrail::fleet

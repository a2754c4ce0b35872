// A session of `tune --command` that an earlier version left unfinished goes on
// with today's code: tuning/testdata/stored_*.

#include <cstdlib>
#include <sstream>
#include <string>

#include "base/file.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tuning/command/tune_command.h"

namespace optrail::tuning {
namespace {

constexpr char kStored[] = "tuning/testdata/stored_2026_11";
constexpr char kJournal[] = "command-640ef6a85a1e4c24.journal";

TEST(StoredCommandJournalTest, GoesOnAfterItsThreeTrials) {
  std::string folder = ::testing::TempDir() + "/journal_XXXXXX";
  ASSERT_NE(mkdtemp(folder.data()), nullptr);
  ASSERT_TRUE(WriteFileAtomically(JoinPath(folder, kJournal),
                                  *ReadFile(JoinPath(kStored, kJournal)))
                  .ok());
  TuneCommandOptions options;
  options.space_file = JoinPath(kStored, "train.space.textproto");
  options.command = *ReadFile(JoinPath(kStored, "command.txt"));
  options.metrics = {"throughput:max", "memory:min"};
  options.max_trials = 8;
  options.seed = 3;
  options.limits.timeout = absl::Minutes(10);
  options.journal_directory = folder;
  options.quiet = true;
  std::ostringstream out, log;
  const auto code = RunTuneCommand(options, out, log);
  ASSERT_TRUE(code.ok()) << code.status();
  EXPECT_EQ(*code, 0);
  EXPECT_THAT(log.str(), ::testing::HasSubstr("resumed after 3 trials"));
  EXPECT_EQ(out.str(), *ReadFile(JoinPath(kStored, "command_front.txt")));
}

}  // namespace
}  // namespace optrail::tuning

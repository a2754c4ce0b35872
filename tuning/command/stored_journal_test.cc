// A journal of the first version of `tune --command` does not say which program
// it measured: its trials are named and left out (tuning/testdata/stored_*).

#include <cstdlib>
#include <sstream>
#include <string>

#include "base/file/file.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tuning/command/tune_command.h"

namespace optrail::tuning {
namespace {

constexpr char kStored[] = "tuning/testdata/stored_2026_11";
constexpr char kJournal[] = "command-640ef6a85a1e4c24.journal";

TEST(StoredCommandJournalTest, IsNamedAndLeftOut) {
  std::string folder = ::testing::TempDir() + "/journal_XXXXXX";
  ASSERT_NE(mkdtemp(folder.data()), nullptr);
  ASSERT_TRUE(WriteFileAtomically(JoinPath(folder, kJournal),
                                  *ReadFile(JoinPath(kStored, kJournal)))
                  .ok());
  TuneCommandOptions options;
  options.space_file = JoinPath(kStored, "train.space.textproto");
  options.command = *ReadFile(JoinPath(kStored, "command.txt"));
  options.metrics = {"throughput:max", "memory:min"};
  options.budget.set_trials(8);
  options.seed = 3;
  options.limits.timeout = absl::Minutes(10);
  options.journal_directory = folder;
  options.quiet = true;
  std::ostringstream out, log;
  const auto command = TuneCommand::Prepare(options);
  ASSERT_TRUE(command.ok()) << command.status();
  const auto session = (*command)->Run({}, log);
  ASSERT_TRUE(session.ok()) << session.status();
  EXPECT_EQ((*command)->Print(*session, out, log), 0);
  EXPECT_THAT(log.str(), ::testing::HasSubstr(JoinPath(folder, kJournal) +
                                              " is of an earlier version"));
  EXPECT_THAT(log.str(), ::testing::HasSubstr("stopped after 8 trials"));
  EXPECT_EQ(out.str(), *ReadFile(JoinPath(kStored, "command_front.txt")));
}

}  // namespace
}  // namespace optrail::tuning

#include "suites/command/command_line.h"

#include <iostream>

#include "absl/flags/flag.h"
#include "absl/strings/str_cat.h"
#include "base/file/file.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

ABSL_FLAG(int32_t, test_count, 3, "How many.");
ABSL_FLAG(bool, test_fast, false, "Whether to hurry.");
ABSL_FLAG(std::string, test_unused, "", "Of no command.");
ABSL_FLAG(std::string, test_text, "", "A text.");
ABSL_FLAG(std::vector<std::string>, test_list, {}, "A list.");

namespace optrail::suites {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class CommandLineTest : public ::testing::Test {
 protected:
  CommandLineTest() {
    Command copy;
    copy.name = "copy";
    copy.arguments = "FROM TO";
    copy.summary = "Copies.";
    copy.flags = {"test_count", "test_fast", "test_text", "test_list"};
    copy.min_arguments = 2;
    copy.max_arguments = 2;
    copy.run =
        [this](
            const std::vector<std::string>& arguments) -> absl::StatusOr<int> {
      arguments_ = arguments;
      return result_;
    };
    commands_ = {copy};
    absl::SetFlag(&FLAGS_test_count, 3);
    absl::SetFlag(&FLAGS_test_fast, false);
  }

  int Run(std::vector<std::string> args) {
    args.insert(args.begin(), "tool");
    std::vector<char*> argv;
    for (std::string& arg : args) argv.push_back(arg.data());
    ::testing::internal::CaptureStderr();
    ::testing::internal::CaptureStdout();
    const int code = RunCommandLine("tool", "About.", {{"Files", commands_}},
                                    static_cast<int>(argv.size()), argv.data());
    stdout_ = ::testing::internal::GetCapturedStdout();
    stderr_ = ::testing::internal::GetCapturedStderr();
    return code;
  }

  std::vector<Command> commands_;
  std::vector<std::string> arguments_;
  absl::StatusOr<int> result_ = 0;
  std::string stdout_, stderr_;
};

TEST_F(CommandLineTest, TakesFlagsInAllFormsBetweenArguments) {
  EXPECT_EQ(Run({"copy", "a", "--test_count=5", "--test_fast", "b"}), 0);
  EXPECT_THAT(arguments_, ElementsAre("a", "b"));
  EXPECT_EQ(absl::GetFlag(FLAGS_test_count), 5);
  EXPECT_TRUE(absl::GetFlag(FLAGS_test_fast));
  EXPECT_EQ(Run({"copy", "-test_count", "7", "--notest_fast", "a", "b"}), 0);
  EXPECT_EQ(absl::GetFlag(FLAGS_test_count), 7);
  EXPECT_FALSE(absl::GetFlag(FLAGS_test_fast));
  EXPECT_EQ(Run({"copy", "--", "--a", "-b"}), 0);
  EXPECT_THAT(arguments_, ElementsAre("--a", "-b"));
}

TEST_F(CommandLineTest, WrongUseExitsWithTwoAndNamesTheNextStep) {
  const std::vector<std::pair<std::vector<std::string>, std::string>> cases = {
      {{"copy", "a", "b", "--test_cout=5"}, "did you mean --test_count?"},
      {{"copy", "a", "b", "--test_unused=5"}, "unknown flag --test_unused"},
      {{"copy", "a", "b", "--test_count=x"}, "--test_count=x"},
      {{"copy", "a", "b", "--test_count"}, "needs a value"},
      {{"copy", "a"}, "copy takes FROM TO, but 1 argument was given"},
      {{"copy", "a", "b", "c"}, "but 3 arguments were given"},
      {{"cpoy"}, "did you mean copy?"},
      {{}, "Usage: tool COMMAND"},
  };
  for (const auto& [args, expected] : cases) {
    EXPECT_EQ(Run(args), 2) << expected;
    EXPECT_THAT(stderr_, HasSubstr(expected));
    EXPECT_EQ(stdout_, "");
  }
  Run({"copy"});
  EXPECT_THAT(stderr_, HasSubstr("next: tool help copy"));
}

TEST_F(CommandLineTest, ErrorsBecomeExitCodes) {
  result_ = 3;
  EXPECT_EQ(Run({"copy", "a", "b"}), 3);
  result_ = absl::InvalidArgumentError("file x:1: bad");
  EXPECT_EQ(Run({"copy", "a", "b"}), 2);
  EXPECT_THAT(stderr_, HasSubstr("tool copy: file x:1: bad"));
  // What a message quotes moves no cursor; its own lines stay lines.
  result_ = absl::InvalidArgumentError("value \x1b[31mred\nnext: mend it");
  EXPECT_EQ(Run({"copy", "a", "b"}), 2);
  EXPECT_THAT(stderr_, HasSubstr("value \\x1b[31mred\nnext: mend it"));
}

TEST_F(CommandLineTest, OutputThatGoesNowhereIsAnError) {
  for (const std::vector<std::string>& args :
       std::vector<std::vector<std::string>>{{"copy", "a", "b"},
                                             {"copy", "--help"},
                                             {"help", "copy"},
                                             {"help", "help"},
                                             {"help"},
                                             {"--help"}}) {
    EXPECT_EQ(Run(args), 0);
    std::cout.setstate(std::ios::badbit);
    EXPECT_EQ(Run(args), 2) << args[0];
    std::cout.clear();
    EXPECT_THAT(stderr_, HasSubstr("writing to standard output failed"));
  }
}

TEST_F(CommandLineTest, ACommandMayHaveADefaultOfItsOwn) {
  commands_[0].defaults = {{"test_count", "9"}};
  EXPECT_EQ(Run({"copy", "a", "b"}), 0);
  EXPECT_EQ(absl::GetFlag(FLAGS_test_count), 9);
  EXPECT_EQ(Run({"copy", "a", "b", "--test_count=4"}), 0);
  EXPECT_EQ(absl::GetFlag(FLAGS_test_count), 4);
  EXPECT_EQ(Run({"help", "copy"}), 0);
  EXPECT_THAT(stdout_, HasSubstr("--test_count=9"));
}

TEST_F(CommandLineTest, AFlagThatACallDoesNotUseIsRefused) {
  commands_[0].use = [](const std::vector<std::string>& arguments) {
    FlagUse use = {"to a folder", {"test_count"}};
    if (arguments[1] == "file") use = {"to a file", {"test_fast"}};
    return use;
  };
  EXPECT_EQ(Run({"copy", "a", "folder", "--test_count=5"}), 0);
  EXPECT_EQ(Run({"copy", "a", "file", "--test_fast"}), 0);
  EXPECT_EQ(Run({"copy", "a", "file", "--test_count=3"}), 2)
      << "though it is the default";
  EXPECT_THAT(stderr_, HasSubstr("--test_count: means nothing to a file"));
  EXPECT_EQ(Run({"copy", "a", "folder", "--notest_fast"}), 2);
  EXPECT_THAT(stderr_, HasSubstr("--test_fast: means nothing to a folder"));
}

TEST_F(CommandLineTest, AnEmptyValueIsNeitherAnyNorDefault) {
  for (const std::vector<std::string>& args :
       {std::vector<std::string>{"copy", "a", "b", "--test_text="},
        {"copy", "a", "b", "--test_text", ""},
        {"copy", "a", "b", "--test_count="},
        {"copy", "a", "b", "--test_list="}}) {
    EXPECT_EQ(Run(args), 2);
    EXPECT_THAT(stderr_,
                HasSubstr("is empty: expected a value; one that is not "
                          "required may be left out"));
  }
  EXPECT_EQ(Run({"copy", "a", "b", "--test_list=x,,y"}), 2);
  EXPECT_THAT(stderr_, HasSubstr("--test_list=x,,y is empty in part"));
  EXPECT_EQ(Run({"copy", "a", ""}), 2);
  EXPECT_THAT(stderr_, HasSubstr("argument 2 is empty"));
  EXPECT_EQ(Run({"copy", "--", "a", ""}), 0) << "a program's argument may be";
}

TEST_F(CommandLineTest, AFlagOfAnotherCommandNamesIt) {
  Command move;
  move.name = "move";
  move.summary = "Moves.";
  move.flags = {"test_unused"};
  move.run = [](const std::vector<std::string>&) { return 0; };
  commands_.push_back(move);
  EXPECT_EQ(Run({"copy", "a", "b", "--test_unused=5"}), 2);
  EXPECT_THAT(
      stderr_,
      HasSubstr("--test_unused: means nothing for copy; move takes it"));
  commands_[0].instead = {{"test_unused", "--test_text says it"}};
  EXPECT_EQ(Run({"copy", "a", "b", "--test_unused=5"}), 2);
  EXPECT_THAT(stderr_, HasSubstr("; --test_text says it"));
}

// "tool disk check FILE --test_fast" and "tool disk wipe".
Command Disk(std::string* ran) {
  Command disk;
  disk.name = "disk";
  disk.arguments = "check FILE|wipe";
  disk.summary = "Checks or wipes.";
  Command check;
  check.name = "check";
  check.arguments = "FILE";
  check.summary = "Checks a file.";
  check.flags = {"test_fast"};
  check.min_arguments = check.max_arguments = 1;
  check.run = [ran](const std::vector<std::string>& arguments) {
    *ran = absl::StrCat("check ", arguments[0]);
    return 0;
  };
  Command wipe;
  wipe.name = "wipe";
  wipe.summary = "Wipes all.";
  wipe.flags = {"test_count"};
  wipe.run = [ran](const std::vector<std::string>&) {
    *ran = "wipe";
    return 0;
  };
  disk.parts = {check, wipe};
  return disk;
}

TEST_F(CommandLineTest, PartsTakeTheirOwnFlagsAndArguments) {
  std::string ran;
  commands_ = {Disk(&ran)};
  EXPECT_EQ(Run({"disk", "--test_fast", "check", "x"}), 0);
  EXPECT_EQ(ran, "check x");
  EXPECT_EQ(Run({"disk", "wipe", "--test_fast"}), 2);
  EXPECT_THAT(stderr_, HasSubstr("--test_fast: means nothing for disk wipe; "
                                 "disk check takes it\nnext: tool help disk "
                                 "wipe"));
  EXPECT_EQ(Run({"disk", "check"}), 2);
  EXPECT_THAT(stderr_, HasSubstr("disk check takes FILE, but 0 arguments"));
  EXPECT_EQ(Run({"disk", "chek", "x"}), 2);
  EXPECT_THAT(stderr_, HasSubstr("\"chek\": expected check or wipe; did you "
                                 "mean check?"));
  EXPECT_EQ(Run({"disk"}), 2);
  EXPECT_THAT(stderr_, HasSubstr("disk takes check FILE|wipe"));
  commands_[0].default_part = "wipe";
  EXPECT_EQ(Run({"disk"}), 0);
  EXPECT_EQ(ran, "wipe");
}

TEST_F(CommandLineTest, HelpOfAPartShowsItsOwnFlags) {
  std::string ran;
  commands_ = {Disk(&ran)};
  commands_[0].meanings = {{"test_fast", "Skips checksums."}};
  EXPECT_EQ(Run({"help", "disk"}), 0);
  EXPECT_THAT(stdout_, HasSubstr("  wipe          Wipes all."));
  EXPECT_THAT(stdout_, HasSubstr("--test_fast=false  (check)\n"));
  for (const std::vector<std::string>& args :
       {std::vector<std::string>{"help", "disk", "check"},
        {"disk", "check", "--help"}}) {
    EXPECT_EQ(Run(args), 0);
    EXPECT_THAT(stdout_, HasSubstr("Usage: tool disk check FILE [flags]"));
    EXPECT_THAT(stdout_, HasSubstr("Skips checksums."));
    EXPECT_THAT(stdout_, ::testing::Not(HasSubstr("test_count")));
  }
  EXPECT_EQ(Run({"help", "disk", "chek"}), 2);
  EXPECT_THAT(stderr_, HasSubstr("did you mean check?"));
}

TEST_F(CommandLineTest, AMissingFileIsLookedForInItsFolder) {
  const std::string folder =
      JoinPath(::testing::TempDir(), "command_line_test_files");
  ASSERT_TRUE(CreateDirectories(folder).ok());
  const std::string there = JoinPath(folder, "runs.json");
  ASSERT_TRUE(WriteFileAtomically(there, "{}").ok());
  const auto run_reading = [&](const std::string& path) {
    result_ = ReadFile(path).status();
    return Run({"copy", "a", "b"});
  };
  EXPECT_EQ(run_reading(JoinPath(folder, "rnus.json")), 2);
  EXPECT_THAT(stderr_, HasSubstr("rnus.json: No such file or directory; did "
                                 "you mean runs.json?"));
  run_reading(JoinPath(folder, "other.json"));
  EXPECT_THAT(stderr_, HasSubstr("; next: look for a typing error"));
  run_reading(JoinPath(folder, "nosuch/runs.json"));
  EXPECT_THAT(stderr_, HasSubstr("; there is no folder " + folder + "/nosuch"));
  run_reading(folder);
  EXPECT_THAT(stderr_, HasSubstr("; expected a file"));
  // A file that a message quotes is none of this command.
  result_ = absl::NotFoundError(
      absl::StrCat("the worker says: opening ", folder,
                   "/rnus.json: No such file or directory"));
  Run({"copy", "a", "b"});
  EXPECT_THAT(stderr_, ::testing::Not(HasSubstr("did you mean")));
}

TEST_F(CommandLineTest, HelpShowsCommandsAndTheirFlagsOnStandardOutput) {
  EXPECT_EQ(Run({"help"}), 0);
  EXPECT_THAT(stdout_, HasSubstr("\nFiles\n  copy          Copies."));
  for (const std::vector<std::string>& args :
       {std::vector<std::string>{"help", "copy"},
        std::vector<std::string>{"copy", "--help"}}) {
    EXPECT_EQ(Run(args), 0);
    EXPECT_THAT(stdout_, HasSubstr("--test_count=3\n      How many."));
    EXPECT_THAT(stdout_, ::testing::Not(HasSubstr("test_unused")));
  }
}

// `copy --test_text=FILE` reads settings of FILE.
class SettingsTest : public CommandLineTest {
 protected:
  SettingsTest() {
    commands_[0].settings.flag = "test_text";
    commands_[0].settings.read = [this](const std::string& file)
        -> absl::StatusOr<std::vector<FlagSetting>> {
      if (file == "none") return absl::NotFoundError("no preset \"none\"");
      return settings_;
    };
    commands_[0].run =
        [this](const std::vector<std::string>&) -> absl::StatusOr<int> {
      count_ = absl::GetFlag(FLAGS_test_count);
      for (const char* flag : {"test_count", "test_fast", "test_list"}) {
        origins_.push_back(FlagOrigin(flag));
      }
      return result_;
    };
  }

  std::vector<FlagSetting> settings_ = {{"test_count", "7", "a.preset:2"},
                                        {"test_list", "x,y", "a.preset:3"}};
  int count_ = 0;
  std::vector<std::string> origins_;
};

TEST_F(SettingsTest, HoldWhereTheCommandLineIsSilent) {
  EXPECT_EQ(Run({"copy", "a", "b", "--test_text=a", "--test_list=z"}), 0);
  EXPECT_EQ(count_, 7);
  EXPECT_THAT(absl::GetFlag(FLAGS_test_list), ElementsAre("z"));
  EXPECT_THAT(origins_, ElementsAre("a.preset:2", "default", "command line"));
}

TEST_F(SettingsTest, AFlagWinsWhereverItStands) {
  EXPECT_EQ(Run({"copy", "--test_count=5", "a", "b", "--test_text=a"}), 0);
  EXPECT_EQ(count_, 5);
  EXPECT_THAT(origins_, ElementsAre("command line", "default", "a.preset:3"));
}

TEST_F(SettingsTest, ErrorsOfTheFileAreWrongUse) {
  EXPECT_EQ(Run({"copy", "a", "b", "--test_text=none"}), 2);
  EXPECT_THAT(stderr_, HasSubstr("no preset \"none\""));
  EXPECT_EQ(Run({"copy", "a", "b", "--test_text=a", "--test_text=b"}), 2);
  EXPECT_THAT(stderr_, HasSubstr("flag --test_text=b: it is given twice"));
  settings_[0].value = "many";
  EXPECT_EQ(Run({"copy", "a", "b", "--test_text=a", "--test_count=5"}), 2);
  EXPECT_THAT(stderr_, HasSubstr("a.preset:2: test_count is \"many\": "
                                 "expected a whole number"));
}

TEST_F(SettingsTest, AnErrorOfTheCommandNamesTheLineOfItsFlag) {
  result_ = absl::InvalidArgumentError("flag --test_count=7: expected 1 to 5");
  EXPECT_EQ(Run({"copy", "a", "b", "--test_text=a"}), 2);
  EXPECT_THAT(stderr_, HasSubstr("copy: a.preset:2: flag --test_count=7: "
                                 "expected 1 to 5\n"));
  result_ = absl::InvalidArgumentError("--test_fast: needs no --test_count");
  EXPECT_EQ(Run({"copy", "a", "b", "--test_text=a"}), 2);
  EXPECT_THAT(stderr_, HasSubstr("--test_fast: needs no --test_count; "
                                 "--test_count is set in a.preset:2\n"));
  EXPECT_EQ(Run({"copy", "a", "b", "--test_text=a", "--test_count=7"}), 2);
  EXPECT_THAT(stderr_, HasSubstr("--test_fast: needs no --test_count\n"));
}

}  // namespace
}  // namespace optrail::suites

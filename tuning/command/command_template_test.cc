#include "tuning/command/command_template.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace optrail::tuning {
namespace {

using ::testing::HasSubstr;

std::string Fill(const std::string& text,
                 const std::map<std::string, std::string>& values) {
  std::vector<std::string> knobs;
  for (const auto& [knob, value] : values) knobs.push_back(knob);
  const auto command = CommandTemplate::Parse(text, knobs);
  return command.ok() ? command->Fill(values)
                      : std::string(command.status().message());
}

TEST(CommandTemplateTest, FillsEveryPlaceOfAKnob) {
  EXPECT_EQ(Fill("./train -b {batch} --log={batch}.txt {mode}",
                 {{"batch", "64"}, {"mode", "fast"}}),
            "./train -b 64 --log=64.txt fast");
}

TEST(CommandTemplateTest, QuotesWhatTheShellWouldInterpret) {
  EXPECT_EQ(Fill("echo {a}", {{"a", "x; rm -rf $HOME"}}),
            "echo 'x; rm -rf $HOME'");
  EXPECT_EQ(Fill("echo {a}", {{"a", "it's"}}), "echo 'it'\\''s'");
  EXPECT_EQ(Fill("echo {a}", {{"a", ""}}), "echo ''");
  EXPECT_EQ(Fill("echo {a}", {{"a", "-3"}}), "echo -3");
}

TEST(CommandTemplateTest, LeavesTheShellItsBraces) {
  EXPECT_EQ(Fill("run {k} | awk '{print $1}' ${HOME} {1..3} {", {{"k", "1"}}),
            "run 1 | awk '{print $1}' ${HOME} {1..3} {");
}

TEST(CommandTemplateTest, DoubledBracesStandForSingleOnes) {
  EXPECT_EQ(Fill("f {{k}} {k}", {{"k", "1"}}), "f {k} 1");
}

TEST(CommandTemplateTest, RejectsWhatIsNoKnob) {
  EXPECT_THAT(Fill("f {k} {batchsize}", {{"k", "1"}}),
              HasSubstr("column 7: {batchsize} is no knob of the space (k)"));
}

TEST(CommandTemplateTest, RejectsACommandThatIgnoresAKnob) {
  EXPECT_THAT(Fill("f {k}", {{"k", "1"}, {"unused", "2"}}),
              HasSubstr("does not contain {unused}"));
}

TEST(CommandTemplateTest, RejectsNothing) {
  EXPECT_THAT(Fill("  ", {}), HasSubstr("the command is empty"));
}

}  // namespace
}  // namespace optrail::tuning

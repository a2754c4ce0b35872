#include "tracker/checkout/shell_template.h"

#include <gtest/gtest.h>

#include <array>
#include <cstdio>
#include <string>

namespace optrail::tracker {
namespace {

// The standard output of a shell command.
std::string Output(const std::string& command) {
  FILE* const pipe = popen(command.c_str(), "r");
  std::array<char, 256> buffer;
  const size_t size = fread(buffer.data(), 1, buffer.size(), pipe);
  pclose(pipe);
  return std::string(buffer.data(), size);
}

TEST(FillShellTemplateTest, AValueArrivesWhateverQuotesItStandsIn) {
  for (const std::string value :
       {"^(BM_a|BM_b)$", "it's", "a \"b\" $HOME `c` \\d", "plain", "{x}"}) {
    for (const std::string command :
         {"printf %s {x}", "printf %s \"{x}\"", "printf %s '{x}'",
          "printf %s \"\"{x}''", "printf %s ''\"{x}\""}) {
      EXPECT_EQ(Output(FillShellTemplate(command, {{"{x}", value}})), value)
          << command;
    }
  }
  EXPECT_EQ(Output(FillShellTemplate("printf %s \"--f={x}\"", {{"{x}", "$a"}})),
            "--f=$a");
}

TEST(FillShellTemplateTest, EscapedQuotesOpenNothing) {
  EXPECT_EQ(
      Output(FillShellTemplate("printf %s-%s \\\" {x}", {{"{x}", "a b"}})),
      "\"-a b");
  EXPECT_EQ(
      Output(FillShellTemplate("printf %s-%s \"\\\"\" {x}", {{"{x}", "a b"}})),
      "\"-a b");
}

TEST(FillShellTemplateTest, EveryPlaceholderIsFilled) {
  EXPECT_EQ(FillShellTemplate("b {out} {filter} {out}",
                              {{"{out}", "/o"}, {"{filter}", "x"}}),
            "b /o x /o");
}

}  // namespace
}  // namespace optrail::tracker

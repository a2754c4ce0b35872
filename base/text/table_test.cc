#include "base/text/table.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <string>

#include "absl/strings/ascii.h"
#include "absl/strings/str_split.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"

namespace optrail {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr char kHostile[] = "a|b\n\"c\",<script>\x1b[31m\\ \xff\xe2\x80\xae*x*";

Table Example() {
  Table table({{"benchmark"}, {"time", Align::kRight, "time_ns"}});
  table.AddRow({"matmul/512", Cell::Number(12345.5, "12.3 us")});
  table.AddRow({"add", Cell::None()});
  return table;
}

TEST(TableTest, AlignsText) {
  EXPECT_EQ(Example().ToText(),
            "benchmark      time\n"
            "----------  -------\n"
            "matmul/512  12.3 us\n"
            "add\n");
}

TEST(TableTest, ShortensTheWidestTextToFit) {
  Table table({{"what"}, {"time", Align::kRight}});
  table.AddRow({"a sentence of thirty-one letter", "12345.6 us"});
  EXPECT_EQ(table.ToText(40),
            "what                                time\n"
            "----------------------------  ----------\n"
            "a sentence of thirty-one le\xe2\x80\xa6  12345.6 us\n");
  // Twenty columns are the least; no number is cut.
  EXPECT_EQ(table.ToText(32),
            "what                        time\n"
            "--------------------  ----------\n"
            "a sentence of thirt\xe2\x80\xa6  12345.6 us\n");
  EXPECT_EQ(table.ToText(31),
            "what\n"
            "-------------------------------\n"
            "a sentence of thirty-one letter\n"
            "    time: 12345.6 us\n");
}

TEST(TableTest, WhatTellsRowsApartGoesOnBelow) {
  Table table(
      {{"shape", Align::kLeft, "", Clip::kFold}, {"time", Align::kRight}});
  table.AddRow({"n=1,h=224,w=224,c=3,k=64/padding=3,stride=2/f32", "12 us"});
  table.AddRow({"a-name-without-a-place-to-break", "3 us"});
  table.AddRow({"n=1/f32", "1 us"});
  EXPECT_EQ(table.ToText(30),
            "shape                     time\n"
            "-----------------------  -----\n"
            "n=1,h=224,w=224,c=3,     12 us\n"
            "k=64/padding=3,\n"
            "stride=2/f32\n"
            "a-name-without-a-place-   3 us\n"
            "to-break\n"
            "n=1/f32                   1 us\n");
  // Twenty columns are the least.
  EXPECT_THAT(table.ToText(27),
              HasSubstr("n=1,h=224,w=224,c=3,  12 us\nk=64/padding=3,\n"));
  EXPECT_THAT(table.ToText(26),
              HasSubstr("\nn=1,h=224,w=224,c=3,k=64/\npadding=3,stride=2/f32\n"
                        "  12 us\n"));
  EXPECT_THAT(table.ToText(), HasSubstr("k=64/padding=3,stride=2/f32  12 us"));
}

// The columns are those of `changes`.
Table Changes() {
  Table table({{"state"},
               {"benchmark", Align::kLeft, "", Clip::kNever},
               {"change", Align::kRight},
               {"points since", Align::kRight},
               {"hardware", Align::kLeft, "", Clip::kNever},
               {"why"}});
  table.AddRow({"new", "attention/cuda/heads=16,seq=512,dim=64", "+14.2%", "8",
                "nvidia-h200", "attention: compute scores in blocks"});
  table.AddRow({"new", "softmax/cuda/rows=8192,cols=1024", "+9.8%", "18",
                "nvidia-h200", "softmax: check that rows are finite"});
  return table;
}

TEST(TableTest, LongNamesAreCutNowhereAndSharedValuesAreSaidOnce) {
  EXPECT_EQ(Changes().ToText(83),
            "hardware: nvidia-h200\n"
            "                                                       points\n"
            "state  benchmark                               change   since  "
            "why\n"
            "-----  --------------------------------------  ------  ------  "
            "--------------------\n"
            "new    attention/cuda/heads=16,seq=512,dim=64  +14.2%       8  "
            "attention: compute \xe2\x80\xa6\n"
            "new    softmax/cuda/rows=8192,cols=1024         +9.8%      18  "
            "softmax: check that\xe2\x80\xa6\n");
}

TEST(TableTest, ANameThatTakesMostOfTheLineIsAboveItsRow) {
  Table table({{"benchmark", Align::kLeft, "", Clip::kNever},
               {"change", Align::kRight},
               {"hardware", Align::kLeft, "", Clip::kNever},
               {"why"}});
  const std::string name = "attention/cuda/heads=16,seq=512,dim=64/f32";
  table.AddRow({name, "+14.2%", "nvidia-h200", "scores in blocks"});
  table.AddRow({name, "+9.8%", "intel-xeon-spr-4c", "rows are finite"});
  EXPECT_EQ(table.ToText(50),
            "benchmark\n"
            "  change  hardware           why\n"
            "  ------  -----------------  ----------------\n" +
                name +
                "\n"
                "  +14.2%  nvidia-h200        scores in blocks\n"
                "   +9.8%  intel-xeon-spr-4c  rows are finite\n");
  // The terminal wraps a name that is longer than a line.
  EXPECT_EQ(table.ToText(30),
            "benchmark\n"
            "  change  why\n"
            "  ------  ----------------\n" +
                name +
                "\n"
                "  +14.2%  scores in blocks\n"
                "    hardware: nvidia-h200\n"
                "   +9.8%  rows are finite\n"
                "    hardware: intel-xeon-spr-4c\n");
}

TEST(TableTest, NoTextIsLostInAnyWidth) {
  const Table table = Changes();
  for (int width = 1; width < 180; ++width) {
    std::string text = table.ToText(width);
    text.erase(std::remove_if(text.begin(), text.end(), absl::ascii_isspace),
               text.end());
    for (const char* whole :
         {"attention/cuda/heads=16,seq=512,dim=64", "+14.2%",
          "softmax/cuda/rows=8192,cols=1024", "+9.8%", "nvidia-h200"}) {
      EXPECT_THAT(text, HasSubstr(whole)) << width;
    }
  }
}

TEST(TableTest, NoLineIsWiderThanTheTerminal) {
  Table table({{"name"}, {"what"}});
  table.AddRow({"\xe6\x97\xa5\xe6\x9c\xac\xe8\xaa\x9e\xe6\x97\xa5\xe6\x9c\xac",
                std::string(100, 'x')});
  table.AddRow({kHostile, kHostile});
  for (int width = 10; width < 130; ++width) {
    const std::string text = table.ToText(width);
    for (const absl::string_view line : absl::StrSplit(text, '\n')) {
      EXPECT_LE(DisplayWidth(line), width);
    }
  }
}

TEST(TableTest, AWordThatIsLongerThanALineIsPartedWhereItHasParts) {
  Table table({{"config", Align::kLeft, "", Clip::kFold}});
  table.AddRow({"rows=1,tasks_per_thread=1"});
  EXPECT_EQ(table.ToText(14),
            "config\n"
            "--------------\n"
            "rows=1,\n"
            "tasks_per_\n"
            "thread=1\n");
}

TEST(TableTest, AFlagIsNotParted) {
  const auto folded = [](const char* words, int width) {
    Table table({{"do", Align::kLeft, "", Clip::kFold}});
    table.AddRow({words});
    const std::string text = table.ToText(width);
    return text.substr(text.find("-\n") + 2);  // below the header
  };
  EXPECT_EQ(folded("run optrail gate --metric=cpu_time -v", 22),
            "run optrail gate\n--metric=cpu_time -v\n");
  EXPECT_EQ(folded("do it well-known", 11), "do it well-\nknown\n");
}

TEST(TableTest, AWiderTerminalTakesNoMoreLines) {
  Table table({{"benchmark", Align::kLeft, "", Clip::kNever},
               {"metric"},
               {"outcome"},
               {"median", Align::kRight},
               {"processes", Align::kRight},
               {"config", Align::kLeft, "", Clip::kFold}});
  for (const char* name : {"softmax/cpu/rows=4096,cols=1024/f32/tuned/hot",
                           "attention/cpu/heads=16,seq=512,dim=64/f32/hot"}) {
    table.AddRow({name, "time", "OK", "2.30 ms", "5",
                  "algorithm=packed,kc=256,mc=96,mr=12,nr=16,prefetch=64"});
    table.AddRow({name, "joules", "CRASHED", "", "0",
                  "algorithm=plain,prefetch=0,tile=32,unroll=1"});
  }
  const auto lines = [&](int width) {
    const std::string text = table.ToText(width);
    return std::count(text.begin(), text.end(), '\n');
  };
  for (int width = 50; width < 200; ++width) {
    EXPECT_LE(lines(width + 1), lines(width))
        << width << "\n"
        << table.ToText(width) << table.ToText(width + 1);
  }
}

// There is just room beside the name for a config of 20 columns, which would
// make each row four lines high.
TEST(TableTest, ANameIsAboveItsRowWhereThatSavesLines) {
  Table table({{"benchmark", Align::kLeft, "", Clip::kNever},
               {"config", Align::kLeft, "", Clip::kFold}});
  const std::string name(60, 'n');
  table.AddRow({name, "algorithm=packed,kc=256,mc=96,mr=12,nr=16,prefetch=64"});
  table.AddRow({name, "algorithm=packed,kc=256,mc=96,mr=6,nr=32,prefetch=32"});
  const std::string text = table.ToText(84);
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 6) << text;
  EXPECT_NE(text.find(",nr=16,prefetch=64\n"), std::string::npos) << text;
}

TEST(TableTest, WhatRowsShareIsAHeadingForPeopleAndAColumnForPrograms) {
  Table table({{"name", Align::kLeft, "", Clip::kHeading},
               {"by"},
               {"time", Align::kRight}});
  table.AddRow({"a long\nname", "us", "1"});
  table.AddRow({"a long\nname", "them", "12"});
  table.AddRow({"b", "us", "3"});
  EXPECT_EQ(table.ToText(),
            "  by    time\n"
            "  ----  ----\n"
            "a long\\nname\n"
            "  us       1\n"
            "  them    12\n"
            "b\n"
            "  us       3\n");
  EXPECT_THAT(table.ToCsv(), HasSubstr("\nb,us,3\n"));
}

TEST(TableTest, ALineThatIsFoldedBeginsWithAWord) {
  Table table({{"what"}, {"here", Align::kLeft, "", Clip::kFold}});
  table.AddRow({"operators", "add, attention, softmax, gelu"});
  // The second line is full to the comma.
  EXPECT_EQ(table.ToText(35),
            "what       here\n"
            "---------  ------------------------\n"
            "operators  add, attention, softmax,\n"
            "           gelu\n");
}

TEST(TableTest, HostileTextStaysInItsCell) {
  Table table({{kHostile, Align::kLeft, "key"}, {"other"}});
  table.AddRow({kHostile, "x"});
  const std::string text = table.ToText();
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 3);
  EXPECT_THAT(text, Not(HasSubstr("\x1b")));
  EXPECT_THAT(text, Not(HasSubstr("\xff")));
  EXPECT_THAT(text, HasSubstr("a|b\\n\"c\",<script>\\x1b[31m"));

  const std::string markdown = table.ToMarkdown();
  EXPECT_EQ(std::count(markdown.begin(), markdown.end(), '\n'), 3);
  EXPECT_THAT(markdown, HasSubstr("| `a`&#124;`b\\n\"c\",<script>"));

  EXPECT_EQ(table.ToCsv().substr(0, 10), "key,other\n");
  EXPECT_THAT(table.ToCsv(), HasSubstr("\"a|b\n\"\"c\"\",<script>"));

  const nlohmann::json json = nlohmann::json::parse(table.ToJson());
  EXPECT_EQ(json[0]["key"],
            "a|b\n\"c\",<script>\x1b[31m\\ \xef\xbf\xbd\xe2\x80\xae*x*");
}

TEST(TableTest, MarkdownAlignsColumns) {
  EXPECT_EQ(Example().ToMarkdown(),
            "| benchmark | time |\n"
            "| --- | ---: |\n"
            "| `matmul/512` | 12.3 us |\n"
            "| add |  |\n");
}

TEST(TableTest, ProgramsGetNumbersAndKeys) {
  EXPECT_EQ(Example().ToCsv(), "benchmark,time_ns\nmatmul/512,12345.5\nadd,\n");
  const nlohmann::json json = nlohmann::json::parse(Example().ToJson());
  EXPECT_EQ(json[0]["time_ns"], 12345.5);
  EXPECT_TRUE(json[1]["time_ns"].is_null());
  EXPECT_EQ(Column("Time (us)").key, "time__us_");
}

TEST(TableTest, NumbersReadBackExactly) {
  Table table({{"x"}});
  for (const double value : {0.1, 1e300, 1.0 / 3, -0.0, 5e-324}) {
    table.AddRow({Cell::Number(value, "")});
  }
  table.AddRow({Cell::Number(std::nan(""), "")});
  table.AddRow({Cell::Number(std::numeric_limits<double>::infinity(), "")});
  const nlohmann::json json = nlohmann::json::parse(table.ToJson());
  EXPECT_EQ(json[0]["x"], 0.1);
  EXPECT_EQ(json[1]["x"], 1e300);
  EXPECT_EQ(json[2]["x"], 1.0 / 3);
  EXPECT_EQ(json[4]["x"], 5e-324);
  EXPECT_TRUE(json[5]["x"].is_null());
  EXPECT_TRUE(json[6]["x"].is_null());
}

TEST(TableTest, EmptyTables) {
  const Table table({{"a"}, {"b"}});
  EXPECT_EQ(table.ToText(), "a  b\n-  -\n");
  EXPECT_EQ(table.ToCsv(), "a,b\n");
  EXPECT_EQ(table.ToJson(), "[]\n");
}

TEST(TableTest, WidthOfUnicode) {
  EXPECT_EQ(DisplayWidth("abc"), 3);
  EXPECT_EQ(DisplayWidth("gr\xc3\xbc\xc3\x9f"), 4);
  EXPECT_EQ(DisplayWidth("u\xcc\x88"), 1);         // combining diaeresis
  EXPECT_EQ(DisplayWidth("\xe6\x97\xa5"), 2);      // a kanji
  EXPECT_EQ(DisplayWidth("\xf0\x9f\x9a\x80"), 2);  // a rocket
  EXPECT_EQ(DisplayWidth("\xff\xc0\xaf"), 3);      // overlong: three bytes
}

TEST(TableTest, FlagRoundTrips) {
  for (const char* name : {"table", "json", "csv", "markdown"}) {
    OutputFormat format;
    std::string error;
    ASSERT_TRUE(AbslParseFlag(name, &format, &error));
    EXPECT_EQ(AbslUnparseFlag(format), name);
  }
  OutputFormat format;
  std::string error;
  EXPECT_FALSE(AbslParseFlag("xml", &format, &error));
  EXPECT_EQ(error, "expected table, json, csv or markdown");
  EXPECT_FALSE(AbslParseFlag("jsn", &format, &error));
  EXPECT_THAT(error, HasSubstr("did you mean json?"));
}

TEST(TableTest, TerminalWidthListensToColumns) {
  setenv("COLUMNS", "123", 1);
  EXPECT_EQ(TerminalWidth(), 123);
  unsetenv("COLUMNS");
}

}  // namespace
}  // namespace optrail

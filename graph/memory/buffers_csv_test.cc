#include "graph/memory/buffers_csv.h"

#include <gtest/gtest.h>

#include "base/random.h"

namespace optrail::graph {
namespace {

std::string ErrorOf(const std::string& text) {
  return std::string(ParseBuffersCsv(text, "in.csv").status().message());
}

TEST(BuffersCsvTest, ReadsWhatItWrites) {
  MemoryBuffer a;
  a.id = "a, \"quoted\"";
  a.lower = -3;
  a.upper = 4;
  a.size_bytes = 100;
  a.fixed_offset = 8;
  MemoryBuffer b;
  b.id = "b";
  b.upper = 1;
  b.group = "view";
  const std::string text = WriteBuffersCsv({a, b}, {8, 0});
  const auto file = ParseBuffersCsv(text, "in.csv");
  ASSERT_TRUE(file.ok()) << file.status();
  ASSERT_EQ(file->buffers.size(), 2u);
  EXPECT_EQ(file->buffers[0].id, a.id);
  EXPECT_EQ(file->buffers[0].lower, -3);
  EXPECT_EQ(file->buffers[0].fixed_offset, a.fixed_offset);
  EXPECT_EQ(file->buffers[1].fixed_offset, b.fixed_offset);
  EXPECT_EQ(file->buffers[1].group, "view");
  EXPECT_EQ(file->offsets, (std::vector<int64_t>{8, 0}));
  EXPECT_EQ(WriteBuffersCsv(file->buffers, file->offsets), text);
}

TEST(BuffersCsvTest, TakesColumnsInAnyOrderAndIgnoresOthers) {
  const auto file =
      ParseBuffersCsv("size,name,upper,lower,id\r\n4,x,3,1,b1\r\n", "in.csv");
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_EQ(file->buffers[0].size_bytes, 4);
  EXPECT_EQ(file->buffers[0].lower, 1);
  EXPECT_TRUE(file->offsets.empty());
}

TEST(BuffersCsvTest, NamesFileLineAndFieldOfWhatIsWrong) {
  const std::string header = "id,lower,upper,size\n";
  EXPECT_EQ(ErrorOf(""),
            "in.csv: empty; expected a header with id, lower, upper and size");
  EXPECT_EQ(ErrorOf("id,lower,size\n"),
            "in.csv:1: no column \"upper\" in the header \"id,lower,size\"; "
            "expected id, lower, upper and size");
  EXPECT_EQ(ErrorOf("id,id,lower,upper,size\n"),
            "in.csv:1: the column \"id\" comes twice");
  EXPECT_EQ(ErrorOf(header + "a,0,1\n"),
            "in.csv:2: 3 fields where the header has 4");
  EXPECT_EQ(ErrorOf(header + "a,0,1,5\nb,0,1,-5\n"),
            "in.csv:3: size -5 is negative; expected at least 0");
  EXPECT_EQ(ErrorOf(header + "a,0,1,99999999999999999999\n"),
            "in.csv:2: size \"99999999999999999999\" does not fit into 64 "
            "bits; expected an integer");
  EXPECT_EQ(ErrorOf(header + "a,0,1,1e3\n"),
            "in.csv:2: size \"1e3\" is not an integer");
  EXPECT_EQ(ErrorOf(header + "a,0,1,\n"),
            "in.csv:2: size \"\" is not an integer");
  EXPECT_EQ(ErrorOf(header + "a,1,1,5\n"),
            "in.csv:2: lower 1, expected less than upper 1");
  EXPECT_EQ(ErrorOf(header + "a,0,1,5\n\na,0,1,5\n"),
            "in.csv:4: id \"a\" comes twice, first on line 2");
  EXPECT_EQ(ErrorOf(header + "\"a,0,1,5\n"),
            "in.csv:2: a quoted field that never ends");
}

TEST(BuffersCsvTest, SurvivesDamagedText) {
  std::string text = "id,lower,upper,size,fixed_offset,group,offset\n";
  for (int i = 0; i < 20; ++i) {
    text += std::to_string(i) + ",0,9,\"12\",0,\"g\"\"\",7\n";
  }
  Rng rng(1);
  int rejected = 0;
  for (int round = 0; round < 2000; ++round) {
    std::string damaged = text.substr(0, rng.UniformInt(text.size()) + 1);
    for (int i = 0; i < 3; ++i) {
      damaged[rng.UniformInt(damaged.size())] =
          static_cast<char>(rng.UniformInt(256));
    }
    rejected += !ParseBuffersCsv(damaged, "in.csv").ok();
  }
  EXPECT_GT(rejected, 1000);
}

}  // namespace
}  // namespace optrail::graph

#include "tracker/detect/csv.h"

#include <zlib.h>

#include <string>

#include "base/file/file.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace optrail::tracker {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

std::string ErrorOf(absl::string_view text) {
  const auto series = ParseSeriesCsv(text, "f.csv");
  EXPECT_FALSE(series.ok());
  return std::string(series.status().message());
}

TEST(ParseSeriesCsv, ReadsInterleavedSeriesInOrderOfAppearance) {
  const auto series = ParseSeriesCsv(
      "id,t,value\nb,1,2.5\na,1,-3\nb,2,1e3\na,1.5,+4\n", "f.csv");
  ASSERT_TRUE(series.ok()) << series.status();
  ASSERT_THAT(*series, SizeIs(2));
  EXPECT_EQ((*series)[0].id, "b");
  EXPECT_THAT((*series)[0].t, ElementsAre(1, 2));
  EXPECT_THAT((*series)[0].values, ElementsAre(2.5, 1000));
  EXPECT_EQ((*series)[1].id, "a");
  EXPECT_THAT((*series)[1].t, ElementsAre(1, 1.5));
  EXPECT_THAT((*series)[1].values, ElementsAre(-3, 4));
}

TEST(ParseSeriesCsv, TakesColumnsInAnyOrderAndIgnoresOthers) {
  const auto series = ParseSeriesCsv(
      "\xEF\xBB\xBFvalue, note ,t,id\r\n7,,0,x\r\n\r\n8,hm,1,x", "f.csv");
  ASSERT_TRUE(series.ok()) << series.status();
  ASSERT_THAT(*series, SizeIs(1));
  EXPECT_THAT((*series)[0].values, ElementsAre(7, 8));
}

TEST(ParseSeriesCsv, UndoesQuotes) {
  const auto series = ParseSeriesCsv(
      "id,t,value\n\"a,\"\"b\"\"\nc\",\"0\",1\n\"a,\"\"b\"\"\nc\",1,2\n",
      "f.csv");
  ASSERT_TRUE(series.ok()) << series.status();
  ASSERT_THAT(*series, SizeIs(1));
  EXPECT_EQ((*series)[0].id, "a,\"b\"\nc");
  EXPECT_THAT((*series)[0].values, ElementsAre(1, 2));
}

TEST(ParseSeriesCsv, OfAHeaderAloneIsNoSeries) {
  const auto series = ParseSeriesCsv("id,t,value\n", "f.csv");
  ASSERT_TRUE(series.ok());
  EXPECT_THAT(*series, SizeIs(0));
}

TEST(ParseSeriesCsv, NamesWhatIsMissing) {
  EXPECT_THAT(ErrorOf(""), HasSubstr("f.csv: empty"));
  EXPECT_THAT(ErrorOf("id,value\nx,1\n"),
              HasSubstr("f.csv:1: no column \"t\" in the header \"id,value\""));
  EXPECT_THAT(ErrorOf("id,t,t,value\n"),
              HasSubstr("f.csv:1: the column \"t\" comes twice"));
  EXPECT_THAT(ErrorOf("id,t,value\nx,1,2\nx,2\n"),
              HasSubstr("f.csv:3: 2 fields where the header has 3"));
}

TEST(ParseSeriesCsv, NamesWhatIsNoFiniteNumber) {
  EXPECT_EQ(ErrorOf("id,t,value\nx,1,nan\n"),
            "f.csv:2: value \"nan\" is not a finite number");
  EXPECT_EQ(ErrorOf("id,t,value\nx,1,-inf\n"),
            "f.csv:2: value \"-inf\" is not a finite number");
  EXPECT_EQ(ErrorOf("id,t,value\nx,1,1e999\n"),
            "f.csv:2: value \"1e999\" is too large or too small for a double");
  EXPECT_EQ(ErrorOf("id,t,value\nx,1,\n"),
            "f.csv:2: value \"\" is not a number");
  EXPECT_EQ(ErrorOf("id,t,value\nx,one,1\n"),
            "f.csv:2: t \"one\" is not a number");
  EXPECT_EQ(ErrorOf("id,t,value\nx,1,1.5ms\n"),
            "f.csv:2: value \"1.5ms\" is not a number");
}

TEST(ParseSeriesCsv, RefusesTimesThatDoNotGrow) {
  EXPECT_THAT(ErrorOf("id,t,value\nx,5,1\ny,1,1\nx,4,1\n"),
              HasSubstr("f.csv:4: t 4 comes after 5 in series \"x\""));
  EXPECT_THAT(ErrorOf("id,t,value\nx,5,1\nx,5,1\n"),
              HasSubstr("f.csv:3: t 5 comes twice in series \"x\""));
}

TEST(ParseSeriesCsv, RefusesBrokenQuotes) {
  EXPECT_THAT(ErrorOf("id,t,value\nx,1,2\n\"x,1,2\n"),
              HasSubstr("f.csv:3: a quoted field that never ends"));
  EXPECT_THAT(ErrorOf("id,t,value\n\"x\"y,1,2\n"),
              HasSubstr("f.csv:2: text after the closing quote"));
}

TEST(ParseSeriesCsv, CountsTheLinesInsideQuotes) {
  EXPECT_THAT(ErrorOf("id,t,value\n\"a\nb\",1,2\nx,1,?\n"),
              HasSubstr("f.csv:4: value \"?\""));
}

std::string Gzip(const std::string& text) {
  z_stream stream = {};
  EXPECT_EQ(
      deflateInit2(&stream, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY),
      Z_OK);
  std::string out(deflateBound(&stream, text.size()) + 64, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream.avail_in = text.size();
  stream.next_out = reinterpret_cast<Bytef*>(&out[0]);
  stream.avail_out = out.size();
  EXPECT_EQ(deflate(&stream, Z_FINISH), Z_STREAM_END);
  out.resize(out.size() - stream.avail_out);
  deflateEnd(&stream);
  return out;
}

class ReadSeriesCsvTest : public ::testing::Test {
 protected:
  std::string Write(const std::string& contents) {
    const std::string path = JoinPath(::testing::TempDir(), "series.csv.gz");
    EXPECT_TRUE(WriteFileAtomically(path, contents).ok());
    return path;
  }
};

TEST_F(ReadSeriesCsvTest, ReadsPlainAndGzippedFiles) {
  std::string text = "id,t,value\n";
  for (int i = 0; i < 100000; ++i) {
    text += "s," + std::to_string(i) + "," + std::to_string(i % 7) + "\n";
  }
  for (const std::string& contents :
       {text, Gzip(text), Gzip(text.substr(0, 500)) + Gzip(text.substr(500))}) {
    const auto series = ReadSeriesCsv(Write(contents));
    ASSERT_TRUE(series.ok()) << series.status();
    ASSERT_THAT(*series, SizeIs(1));
    EXPECT_THAT((*series)[0].values, SizeIs(100000));
  }
}

TEST_F(ReadSeriesCsvTest, NamesTheFileThatIsDamagedOrMissing) {
  const std::string whole = Gzip(std::string(1000, 'x'));
  std::string path = Write(whole.substr(0, whole.size() - 9));
  EXPECT_THAT(std::string(ReadSeriesCsv(path).status().message()),
              HasSubstr(path + ": gzip data is truncated"));
  path = Write(whole.substr(0, 12) + "garbage garbage");
  EXPECT_THAT(std::string(ReadSeriesCsv(path).status().message()),
              HasSubstr(path + ": gzip data is damaged"));
  EXPECT_THAT(std::string(ReadSeriesCsv("/no/such").status().message()),
              HasSubstr("/no/such"));
}

}  // namespace
}  // namespace optrail::tracker

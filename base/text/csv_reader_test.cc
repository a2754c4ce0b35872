#include "base/text/csv_reader.h"

#include <gtest/gtest.h>

namespace optrail {
namespace {

TEST(CsvReaderTest, SplitsQuotedFieldsAndCountsLines) {
  CsvReader reader(
      "\xEF\xBB\xBF"
      "a,b\r\n\"x,\"\"y\n\",2\n\nlast,3",
      "file.csv");
  std::vector<absl::string_view> fields;
  ASSERT_TRUE(*reader.Next(fields));
  EXPECT_EQ(fields, (std::vector<absl::string_view>{"a", "b"}));
  ASSERT_TRUE(*reader.Next(fields));
  EXPECT_EQ(fields, (std::vector<absl::string_view>{"x,\"y\n", "2"}));
  EXPECT_EQ(reader.line(), 2);
  ASSERT_TRUE(*reader.Next(fields));
  EXPECT_EQ(fields, (std::vector<absl::string_view>{"last", "3"}));
  EXPECT_EQ(reader.line(), 5);
  EXPECT_EQ(reader.ErrorHere("bad").message(), "file.csv:5: bad");
  EXPECT_FALSE(*reader.Next(fields));
}

TEST(CsvReaderTest, NamesTheLineOfAQuoteThatIsNotClosed) {
  CsvReader reader("a\n\"b", "file.csv");
  std::vector<absl::string_view> fields;
  ASSERT_TRUE(*reader.Next(fields));
  EXPECT_EQ(reader.Next(fields).status().message(),
            "file.csv:2: a quoted field that never ends");
}

}  // namespace
}  // namespace optrail

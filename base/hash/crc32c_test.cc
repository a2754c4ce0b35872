#include "base/hash/crc32c.h"

#include <string>

#include "gtest/gtest.h"

namespace optrail {
namespace {

// RFC 3720, appendix B.4, and the check value of the CRC catalogues.
TEST(Crc32cTest, MatchesPublishedValues) {
  EXPECT_EQ(Crc32c(std::string(32, '\0')), 0x8a9136aa);
  EXPECT_EQ(Crc32c(std::string(32, '\xff')), 0x62a8ab43);
  std::string ascending, descending;
  for (int i = 0; i < 32; ++i) {
    ascending += static_cast<char>(i);
    descending += static_cast<char>(31 - i);
  }
  EXPECT_EQ(Crc32c(ascending), 0x46dd794e);
  EXPECT_EQ(Crc32c(descending), 0x113fdb5c);
  EXPECT_EQ(Crc32c("123456789"), 0xe3069283);
  EXPECT_EQ(Crc32c(""), 0);
}

TEST(Crc32cTest, InstructionAndTableAgreeForEveryLengthAndSplit) {
  std::string text;
  for (int n = 0; n < 70; ++n) {
    const uint32_t whole = Crc32c(text);
    EXPECT_EQ(ExtendCrc32cPortable(0, text), whole);
    const absl::string_view view = text;
    for (int split = 0; split <= n; ++split) {
      EXPECT_EQ(ExtendCrc32c(Crc32c(view.substr(0, split)), view.substr(split)),
                whole);
    }
    text += static_cast<char>(n * 37 + 200);
  }
}

}  // namespace
}  // namespace optrail

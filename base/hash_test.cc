#include "base/hash.h"

#include <set>
#include <string>

#include "gtest/gtest.h"

namespace optrail {
namespace {

// Computed by an independent implementation. Stored data holds such values:
// they may never change.
TEST(HashTest, GoldenValues) {
  EXPECT_EQ(Fingerprint(""), "efd01f60ba992926");
  EXPECT_EQ(Fingerprint("a"), "82a2a958a9bece5b");
  EXPECT_EQ(Fingerprint("optrail"), "17a3c4da75b5e2e8");
  EXPECT_EQ(Fingerprint(std::string(1000, 'x')), "27c232bef26106ba");
  EXPECT_EQ(CombineHash(7, "ab"), 0x454d1bb753d9c8f6);
}

TEST(HashTest, DistinguishesManyShortTexts) {
  std::set<uint64_t> hashes;
  for (int i = 0; i < 100000; ++i) hashes.insert(StableHash(std::to_string(i)));
  EXPECT_EQ(hashes.size(), 100000);
}

TEST(HashTest, PartsHaveBorders) {
  EXPECT_NE(CombineHash(CombineHash(0, "ab"), "c"),
            CombineHash(CombineHash(0, "a"), "bc"));
  EXPECT_NE(CombineHash(CombineHash(0, "a"), ""), CombineHash(0, "a"));
}

TEST(HashTest, RecognisesFingerprints) {
  EXPECT_TRUE(IsFingerprint(Fingerprint("text")));
  EXPECT_FALSE(IsFingerprint("0123456789abcde"));
  EXPECT_FALSE(IsFingerprint("0123456789ABCDEF"));
  EXPECT_FALSE(IsFingerprint("0123456789abcdeg"));
}

}  // namespace
}  // namespace optrail

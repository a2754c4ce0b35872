#include "base/hash/hash.h"

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
}

TEST(HashTest, DistinguishesManyShortTexts) {
  std::set<uint64_t> hashes;
  for (int i = 0; i < 100000; ++i) hashes.insert(StableHash(std::to_string(i)));
  EXPECT_EQ(hashes.size(), 100000);
}

}  // namespace
}  // namespace optrail

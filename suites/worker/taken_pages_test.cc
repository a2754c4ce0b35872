#include "suites/worker/taken_pages.h"

#include <set>

#include "gtest/gtest.h"

namespace optrail::suites {
namespace {

TEST(TakenPages, AreAnotherNumberEachTimeAndNeverMany) {
  std::set<size_t> sizes;
  for (uint64_t seed = 0; seed < 50; ++seed) {
    const TakenPages taken(seed);
    sizes.insert(taken.size_bytes());
    EXPECT_LE(taken.size_bytes(), size_t{12} << 20);
  }
  EXPECT_GE(sizes.size(), 40);
}

}  // namespace
}  // namespace optrail::suites

#include "graph/reference/npz.h"

#include <gtest/gtest.h>

#include "base/file/file.h"
#include "base/random.h"

namespace optrail::graph {
namespace {

TEST(NpzTest, ReadsWhatNumPySaved) {
  const auto arrays = ReadNpz("graph/testdata/tiny_dlrm.npz");
  ASSERT_TRUE(arrays.ok()) << arrays.status();
  ASSERT_EQ(arrays->size(), 3);
  EXPECT_EQ(TypeText(arrays->at("x").type), "f32[32,13]");
  EXPECT_EQ(TypeText(arrays->at("idx").type), "i64[32,6,4]");
  EXPECT_EQ(TypeText(arrays->at("output").type), "f32[32,1]");
}

TEST(NpzTest, DamagedFilesAreErrorsOrArrays) {
  const auto whole = ReadFile("graph/testdata/tiny_dlrm.npz");
  ASSERT_TRUE(whole.ok());
  Rng rng(3);
  for (int i = 0; i < 2000; ++i) {
    std::string damaged = *whole;
    if (i % 2 == 0) {
      damaged.resize(rng.UniformInt(static_cast<int64_t>(damaged.size())));
      EXPECT_FALSE(ParseNpz(damaged).ok());
      continue;
    }
    for (int k = 0; k < 4; ++k) {
      const int64_t near_end =
          static_cast<int64_t>(damaged.size()) - 1 - rng.UniformInt(300);
      damaged[near_end] = static_cast<char>(rng());
      damaged[rng.UniformInt(200)] = static_cast<char>(rng());
    }
    (void)ParseNpz(damaged);
  }
  EXPECT_FALSE(ParseNpz("").ok());
  EXPECT_FALSE(ParseNpy("\x93NUMPY\x03").ok());
}

}  // namespace
}  // namespace optrail::graph

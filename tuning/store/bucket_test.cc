#include "tuning/store/bucket.h"

#include <set>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tuning/proto/canonical.h"

namespace optrail::tuning {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

proto::Shape ShapeOf(const std::string& text) { return *ParseShape(text); }
Bucket BucketOf(const std::string& text) { return *Bucket::Parse(text); }

std::vector<std::string> Texts(const std::vector<proto::Shape>& shapes) {
  std::vector<std::string> texts;
  for (const proto::Shape& shape : shapes) {
    texts.push_back(CanonicalText(shape));
  }
  return texts;
}

TEST(Bucket, IsReadBack) {
  for (const char* text :
       {"m=1..64,n=4096/f32", "n=3/f32", "h=2..9,w=1..5/stride=2/f32+bf16"}) {
    EXPECT_EQ(BucketOf(text).Text(), text);
  }
  EXPECT_EQ(BucketOf("m=7..7/f32").Text(), "m=7/f32");
  EXPECT_EQ(Bucket(ShapeOf("m=7/f32")).Text(), "m=7/f32");
}

TEST(Bucket, BadTextsAreRefused) {
  for (const char* text :
       {"", "m=1..2", "m=4..2/f32", "m=..2/f32", "m=1../f32", "m=0..2/f32",
        "m=1..2..3/f32", "m=1..2/none", "m=1..99999999999999999999/f32"}) {
    EXPECT_FALSE(Bucket::Parse(text).ok()) << text;
  }
  EXPECT_THAT(std::string(Bucket::Parse("m=4..2/f32").status().message()),
              HasSubstr("is 4..2, expected SMALLEST..LARGEST"));
}

TEST(Bucket, RangesAreNoPatterns) {
  EXPECT_TRUE(Bucket::IsRange("m=1..64,n=4096/f32"));
  EXPECT_TRUE(Bucket::IsRange("m=4..2"));
  for (const char* pattern : {"m=1,n=4096/f32", "m=5..", "m=..,n=6", "m=5.*"}) {
    EXPECT_FALSE(Bucket::IsRange(pattern)) << pattern;
  }
}

TEST(Bucket, ContainsItsEnds) {
  const Bucket bucket = BucketOf("m=2..8,n=5/stride=2/f32");
  EXPECT_TRUE(bucket.Contains(ShapeOf("m=2,n=5/stride=2/f32")));
  EXPECT_TRUE(bucket.Contains(ShapeOf("m=8,n=5/stride=2/f32")));
  for (const char* text :
       {"m=1,n=5/stride=2/f32", "m=9,n=5/stride=2/f32", "m=2,n=6/stride=2/f32",
        "m=2,n=5/stride=1/f32", "m=2,n=5/f32", "m=2,n=5/stride=2/bf16",
        "m=2/stride=2/f32", "k=2,n=5/stride=2/f32"}) {
    EXPECT_FALSE(bucket.Contains(ShapeOf(text))) << text;
  }
  EXPECT_TRUE(bucket.Contains(BucketOf("m=3..8,n=5/stride=2/f32")));
  EXPECT_FALSE(bucket.Contains(BucketOf("m=3..9,n=5/stride=2/f32")));
}

TEST(Bucket, HasCorners) {
  EXPECT_THAT(Texts(BucketOf("m=1..4,n=5,k=2..3/f32").Corners()),
              ElementsAre("m=1,n=5,k=2/f32", "m=4,n=5,k=2/f32",
                          "m=4,n=5,k=3/f32", "m=1,n=5,k=3/f32"));
  EXPECT_THAT(Texts(BucketOf("n=5/f32").Corners()), ElementsAre("n=5/f32"));
}

TEST(Bucket, HalvesCoverItOnce) {
  const auto halves = BucketOf("m=1..4096,n=2..4/f32").Split();
  ASSERT_TRUE(halves.has_value());
  EXPECT_EQ(halves->first.Text(), "m=1..64,n=2..4/f32");
  EXPECT_EQ(halves->second.Text(), "m=65..4096,n=2..4/f32");
  const auto two = BucketOf("m=7..8/f32").Split();
  ASSERT_TRUE(two.has_value());
  EXPECT_EQ(two->first.Text(), "m=7/f32");
  EXPECT_EQ(two->second.Text(), "m=8/f32");
  EXPECT_FALSE(BucketOf("m=7/f32").Split().has_value());
  EXPECT_FALSE(BucketOf("m=7..13/f32").Split(2).has_value());
  EXPECT_TRUE(BucketOf("m=7..14/f32").Split(2).has_value());
}

TEST(Bucket, HasDoublings) {
  EXPECT_EQ(BucketOf("m=1..64,n=2..4,k=9/f32").Doublings(), 7);
  EXPECT_EQ(BucketOf("m=7/f32").Doublings(), 0);
}

TEST(Bucket, RandomShapesLieInside) {
  const Bucket bucket = BucketOf("m=1..3,n=100..110/f32");
  Rng rng(5);
  std::set<std::string> drawn;
  for (int i = 0; i < 500; ++i) {
    const proto::Shape shape = bucket.RandomShape(rng);
    EXPECT_TRUE(bucket.Contains(shape)) << CanonicalText(shape);
    drawn.insert(CanonicalText(shape));
  }
  EXPECT_EQ(drawn.size(), 33u);
  EXPECT_EQ(CanonicalText(BucketOf("m=4..16,n=9/f32").Centre()), "m=8,n=9/f32");
}

}  // namespace
}  // namespace optrail::tuning

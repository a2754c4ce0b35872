#include "tracker/detect/folded_change.h"

#include "gtest/gtest.h"

namespace optrail::tracker {
namespace {

TEST(FoldedChange, KeepsEveryField) {
  ChangePoint change;
  change.index = 41;
  change.earliest = 38;
  change.latest = 43;
  change.begin = 20;
  change.end = 50;
  change.between = 7;
  change.confidence = .75;
  change.level_before = 101;
  change.level_after = 117;
  change.relative_change = .158;
  change.relative_change_low = .12;
  change.relative_change_high = .2;
  // A field that is new to the record is new here, too.
  EXPECT_EQ(proto::FoldedChange::descriptor()->field_count(), 12);
  const ChangePoint same = FromFolded(ToFolded(change));
  EXPECT_EQ(same.index, 41);
  EXPECT_EQ(same.earliest, 38);
  EXPECT_EQ(same.latest, 43);
  EXPECT_EQ(same.begin, 20);
  EXPECT_EQ(same.end, 50);
  EXPECT_EQ(same.between, 7);
  EXPECT_EQ(same.confidence, .75);
  EXPECT_EQ(same.level_before, 101);
  EXPECT_EQ(same.level_after, 117);
  EXPECT_EQ(same.relative_change, .158);
  EXPECT_EQ(same.relative_change_low, .12);
  EXPECT_EQ(same.relative_change_high, .2);
}

}  // namespace
}  // namespace optrail::tracker

#include "base/text/proto_utf8.h"

#include "base/text/textproto_test.pb.h"
#include "gtest/gtest.h"

namespace optrail {
namespace {

TEST(ProtoUtf8Test, FindsAndReplacesInvalidTextAnywhereInAMessage) {
  proto::TextProtoTest message;
  message.add_knob()->set_name("fine");
  message.add_knob()->mutable_range()->set_max(7);
  (*message.mutable_limits())["also fine"] = 3;
  EXPECT_FALSE(HasInvalidUtf8(message));

  message.add_knob()->set_name("cut \xe2\x82");
  EXPECT_TRUE(HasInvalidUtf8(message));
  ReplaceInvalidUtf8In(&message);
  EXPECT_FALSE(HasInvalidUtf8(message));
  EXPECT_EQ(message.knob(2).name(), "cut \xef\xbf\xbd");
  EXPECT_EQ(message.knob(0).name(), "fine");
  EXPECT_EQ(message.knob(1).range().max(), 7);
  EXPECT_EQ(message.limits().at("also fine"), 3);

  proto::TextProtoTest read;
  EXPECT_TRUE(read.ParseFromString(message.SerializeAsString()));
}

}  // namespace
}  // namespace optrail

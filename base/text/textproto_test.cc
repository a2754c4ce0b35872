#include "base/text/textproto.h"

#include <string>

#include "absl/status/status.h"
#include "base/text/textproto_test.pb.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace optrail {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr char kText[] = R"(# A comment.
knob { name: "unroll" values: [1, 2, 4] }
knob {
  name: "tile"
  range {
    min: 1
    max: 64
  }
}
weight: 0.1
)";

TEST(TextProtoTest, KnowsWhereEachFieldStands) {
  const auto parsed =
      ParseTextProto<proto::TextProtoTest>(kText, "x.textproto").value();
  EXPECT_EQ(parsed.message.knob(1).range().max(), 64);
  const TextProtoPlace root = parsed.root();
  EXPECT_EQ(root.ToString(), "x.textproto");
  EXPECT_EQ(root.Child("knob", 0).ToString(), "x.textproto:2:1");
  EXPECT_EQ(root.Child("knob", 0).Child("name").ToString(), "x.textproto:2:8");
  EXPECT_EQ(root.Child("knob", 1).Child("range").Child("max").ToString(),
            "x.textproto:7:5");
  EXPECT_EQ(root.Child("weight").line(), 10);
  EXPECT_EQ(root.Child("weight").column(), 1);
}

TEST(TextProtoTest, MissingFieldStandsWhereItsMessageDoes) {
  const auto parsed =
      ParseTextProto<proto::TextProtoTest>(kText, "x.textproto").value();
  const TextProtoPlace knob = parsed.root().Child("knob", 0);
  EXPECT_EQ(knob.Child("range").Child("min").ToString(), "x.textproto:2:1");
  EXPECT_EQ(parsed.root().Child("knob", 7).Child("name").ToString(),
            "x.textproto");
  const absl::Status error = knob.Child("range").Error("range wanted");
  EXPECT_TRUE(absl::IsInvalidArgument(error));
  EXPECT_EQ(error.message(), "x.textproto:2:1: range wanted");
}

TEST(TextProtoTest, PlacesOutliveACopyOfTheResult) {
  auto parsed = ParseTextProto<proto::TextProtoTest>(kText, "x.textproto");
  const auto moved = *std::move(parsed);
  EXPECT_EQ(moved.root().Child("knob", 1).line(), 3);
}

TEST(TextProtoTest, ErrorsNameFileLineAndColumn) {
  struct Case {
    const char* text;
    const char* start;
    const char* what;
  };
  for (const Case& c : {
           Case{"knob {\n  nmae: \"x\"\n}", "x.textproto:2:", "nmae"},
           Case{"weight: 1\nweight: 2", "x.textproto:2:", "multiple times"},
           Case{"weight: \"heavy\"", "x.textproto:1:", "heavy"},
           Case{"knob {\n", "x.textproto:2:", "Expected identifier"},
           Case{"knob { values: 99999999999999999999 }",
                "x.textproto:1:", "out of range"},
       }) {
    const absl::Status status =
        ParseTextProto<proto::TextProtoTest>(c.text, "x.textproto").status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << c.text;
    EXPECT_THAT(std::string(status.message()), StartsWith(c.start));
    EXPECT_THAT(std::string(status.message()), HasSubstr(c.what));
  }
}

TEST(TextProtoTest, AnUnknownNameIsToldWhatIsExpected) {
  const auto error = [](const std::string& text) {
    return std::string(
        ParseTextProto<proto::TextProtoTest>(text, "x").status().message());
  };
  // The place is the name's, not the place of what follows it.
  EXPECT_EQ(error("weight: 1\nknob {\n  nmae: \"x\"\n}"),
            "x:3:3: unknown field \"nmae\" of Knob, expected name, values or "
            "range; did you mean name?");
  EXPECT_EQ(error("\tzzzzzz\n  : 7"),
            "x:1:9: unknown field \"zzzzzz\" of TextProtoTest, expected knob, "
            "limits, weight or direction");
  EXPECT_EQ(error("direction: LOWER_BETTER"),
            "x:1:12: unknown value \"LOWER_BETTER\" of field direction, "
            "expected LOWER_IS_BETTER or HIGHER_IS_BETTER; did you mean "
            "LOWER_IS_BETTER?");
}

TEST(TextProtoTest, PrintsTheSameTextForTheSameMessage) {
  proto::TextProtoTest a, b;
  for (const char* name : {"z", "a", "m"}) (*a.mutable_limits())[name] = 1;
  for (const char* name : {"m", "z", "a"}) (*b.mutable_limits())[name] = 1;
  a.set_weight(0.1);
  b.set_weight(0.1);
  EXPECT_EQ(PrintTextProto(a), PrintTextProto(b));
  EXPECT_EQ(PrintTextProto(a),
            "limits {\n  key: \"a\"\n  value: 1\n}\n"
            "limits {\n  key: \"m\"\n  value: 1\n}\n"
            "limits {\n  key: \"z\"\n  value: 1\n}\n"
            "weight: 0.1\n");
  EXPECT_EQ(PrintTextProto(proto::TextProtoTest()), "");
}

TEST(TextProtoTest, PrintedTextParsesBack) {
  proto::TextProtoTest message;
  message.set_weight(1.0 / 3);
  message.add_knob()->set_name(
      "gr\xc3\xb6\xc3\x9f"
      "e \"quoted\"\n");
  const std::string text = PrintTextProto(message);
  EXPECT_THAT(text, HasSubstr("gr\xc3\xb6\xc3\x9f"
                              "e"));
  const auto parsed = ParseTextProto<proto::TextProtoTest>(text, "x").value();
  EXPECT_EQ(parsed.message.weight(), message.weight());
  EXPECT_EQ(parsed.message.knob(0).name(), message.knob(0).name());
}

}  // namespace
}  // namespace optrail

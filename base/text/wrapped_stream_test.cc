#include "base/text/wrapped_stream.h"

#include <sstream>
#include <string>

#include "gtest/gtest.h"

namespace optrail {
namespace {

TEST(WrappedStreamTest, WrapsSentencesThatAreWrittenInPieces) {
  std::ostringstream out;
  {
    const WrappedStream wrapped(out, 20);
    out << "note: " << 12 << " of them ";
    EXPECT_EQ(out.str(), "") << "the line may go on";
    out << "were left out\nshort\n";
    out << "no end";
  }
  EXPECT_EQ(out.str(), "note: 12 of them\n  were left out\nshort\nno end");
  out << " and on";
  EXPECT_EQ(out.str().substr(out.str().size() - 13), "no end and on");
}

TEST(WrappedStreamTest, LeavesColumnsCommandsAndRedrawnLinesAsTheyAre) {
  std::ostringstream out;
  const WrappedStream wrapped(out, 12);
  for (const std::string text :
       {"  name   123456789  1\n", "optrail show x --filter='^a b$'\n",
        "\r\033[Ktuning 37% of it now"}) {
    out.str("");
    out << text;
    EXPECT_EQ(out.str(), text);
  }
}

TEST(WrappedStreamTest, LeavesCommandsToCiServicesInOneLine) {
  std::ostringstream out;
  {
    const WrappedStream wrapped(out, 12);
    out << "::error title=a::slower by more than it may\n##vso[task] a b c d\n";
  }
  EXPECT_EQ(
      out.str(),
      "::error title=a::slower by more than it may\n##vso[task] a b c d\n");
}

TEST(WrappedStreamTest, WithoutATerminalTheStreamIsItself) {
  std::ostringstream out;
  std::streambuf* const buffer = out.rdbuf();
  const WrappedStream wrapped(out, 0);
  EXPECT_EQ(static_cast<std::ostream&>(out).rdbuf(), buffer);
}

}  // namespace
}  // namespace optrail

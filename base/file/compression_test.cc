#include "base/file/compression.h"

#include <lzma.h>
#include <zlib.h>

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace optrail {
namespace {

using ::testing::HasSubstr;

constexpr size_t kMost = size_t{64} << 20;

std::string Gzipped(const std::string& text) {
  z_stream stream = {};
  EXPECT_EQ(deflateInit2(&stream, 9, Z_DEFLATED, 16 + MAX_WBITS, 8,
                         Z_DEFAULT_STRATEGY),
            Z_OK);
  std::string out(deflateBound(&stream, text.size()) + 64, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream.avail_in = text.size();
  stream.next_out = reinterpret_cast<Bytef*>(&out[0]);
  stream.avail_out = out.size();
  EXPECT_EQ(deflate(&stream, Z_FINISH), Z_STREAM_END);
  out.resize(out.size() - stream.avail_out);
  deflateEnd(&stream);
  return out;
}

std::string Xzed(const std::string& text) {
  std::string out(lzma_stream_buffer_bound(text.size()), '\0');
  size_t used = 0;
  EXPECT_EQ(lzma_easy_buffer_encode(
                6, LZMA_CHECK_CRC64, nullptr,
                reinterpret_cast<const uint8_t*>(text.data()), text.size(),
                reinterpret_cast<uint8_t*>(&out[0]), &used, out.size()),
            LZMA_OK);
  out.resize(used);
  return out;
}

// Longer than the pieces in which output is made.
std::string Text() {
  std::string text;
  for (int i = 0; i < 200000; ++i) text += std::to_string(i * 7919LL % 10007);
  return text;
}

TEST(DecompressTest, ReturnsWhatWasCompressedAndPlainDataAsTheyAre) {
  const std::string text = Text();
  for (const std::string& data : {text, Gzipped(text), Xzed(text)}) {
    const auto result = Decompress(data, "f", kMost);
    ASSERT_TRUE(result.ok()) << result.status();
    EXPECT_EQ(*result, text);
  }
  EXPECT_EQ(Decompress("", "f", 0).value(), "");
  EXPECT_EQ(Decompress(Xzed(""), "f", 0).value(), "");
}

TEST(DecompressTest, ReadsPartsThatFollowEachOther) {
  EXPECT_EQ(Decompress(Gzipped("one ") + Gzipped("two"), "f", kMost).value(),
            "one two");
  EXPECT_EQ(Decompress(Xzed("one ") + Xzed("two"), "f", kMost).value(),
            "one two");
}

TEST(DecompressTest, RefusesEveryTruncation) {
  for (const std::string& data : {Gzipped("some text"), Xzed("some text")}) {
    for (size_t size = 6; size < data.size(); ++size) {
      const auto result = Decompress(data.substr(0, size), "dir/f", kMost);
      ASSERT_EQ(result.status().code(), absl::StatusCode::kInvalidArgument);
      EXPECT_THAT(result.status().message(), HasSubstr("dir/f: "));
      EXPECT_THAT(result.status().message(), HasSubstr("truncated"));
    }
  }
}

TEST(DecompressTest, RefusesDamageAndWhatFollowsTheEnd) {
  for (std::string data : {Gzipped(Text()), Xzed(Text())}) {
    EXPECT_THAT(
        Decompress(data + "more than a header", "f", kMost).status().message(),
        HasSubstr(" data is damaged"));
    data[data.size() / 2] ^= 0x55;
    EXPECT_FALSE(Decompress(data, "f", kMost).ok());
  }
}

TEST(DecompressTest, StopsAtTheMostThatIsWanted) {
  const std::string bomb(1 << 22, 'a');
  for (const std::string& data : {Gzipped(bomb), Xzed(bomb)}) {
    EXPECT_TRUE(Decompress(data, "f", bomb.size()).ok());
    EXPECT_THAT(Decompress(data, "f", bomb.size() - 1).status().message(),
                HasSubstr("unpacks to more than 4194303 bytes"));
  }
}

TEST(WithoutCompressionSuffixTest, RemovesOneSuffix) {
  EXPECT_EQ(WithoutCompressionSuffix("a/b.json.gz"), "a/b.json");
  EXPECT_EQ(WithoutCompressionSuffix("b.tsv.xz"), "b.tsv");
  EXPECT_EQ(WithoutCompressionSuffix("b.json"), "b.json");
}

}  // namespace
}  // namespace optrail

#include "base/file/compression.h"

#include <lzma.h>
#include <zlib.h>

#include <algorithm>
#include <cstdint>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

namespace optrail {
namespace {

constexpr absl::string_view kGzip = "\x1F\x8B";
constexpr absl::string_view kXz =
    "\xFD"
    "7zXZ";

enum class Step { kMore, kEnd, kTruncated, kDamaged };

// Both libraries take input and give output piece by piece. A piece has at most
// 1 GiB, since zlib counts in 32 bits.
struct Piece {
  const uint8_t* in;
  size_t in_size;
  uint8_t* out;
  size_t out_size;
};

class Gzip {
 public:
  // 16: with a gzip header.
  Gzip() : started_(inflateInit2(&stream_, 16 + MAX_WBITS) == Z_OK) {}
  ~Gzip() { inflateEnd(&stream_); }
  bool started() const { return started_; }
  static const char* name() { return "gzip"; }

  Step Next(Piece& piece) {
    stream_.next_in = const_cast<Bytef*>(piece.in);
    stream_.avail_in = static_cast<uInt>(piece.in_size);
    stream_.next_out = piece.out;
    stream_.avail_out = static_cast<uInt>(piece.out_size);
    const int code = inflate(&stream_, Z_NO_FLUSH);
    piece = {stream_.next_in, stream_.avail_in, stream_.next_out,
             stream_.avail_out};
    if (code == Z_OK) return Step::kMore;
    if (code == Z_BUF_ERROR) return Step::kTruncated;
    if (code != Z_STREAM_END) return Step::kDamaged;
    inflateReset(&stream_);
    return Step::kEnd;
  }

 private:
  z_stream stream_ = {};
  bool started_;
};

class Xz {
 public:
  Xz() { Start(); }
  ~Xz() { lzma_end(&stream_); }
  bool started() const { return started_; }
  static const char* name() { return "xz"; }

  Step Next(Piece& piece) {
    stream_.next_in = piece.in;
    stream_.avail_in = piece.in_size;
    stream_.next_out = piece.out;
    stream_.avail_out = piece.out_size;
    const lzma_ret code = lzma_code(&stream_, LZMA_RUN);
    piece = {stream_.next_in, stream_.avail_in, stream_.next_out,
             stream_.avail_out};
    if (code == LZMA_OK) return Step::kMore;
    if (code == LZMA_BUF_ERROR) return Step::kTruncated;
    if (code != LZMA_STREAM_END) return Step::kDamaged;
    Start();
    return Step::kEnd;
  }

 private:
  void Start() {
    constexpr uint64_t kMemory = uint64_t{256} << 20;
    started_ = lzma_stream_decoder(&stream_, kMemory, 0) == LZMA_OK;
  }

  lzma_stream stream_ = LZMA_STREAM_INIT;
  bool started_;
};

template <typename Decoder>
absl::StatusOr<std::string> DecompressWith(const std::string& data,
                                           absl::string_view name,
                                           size_t max_bytes) {
  constexpr size_t kPiece = size_t{1} << 30;
  Decoder decoder;
  if (!decoder.started()) {
    return absl::InternalError(absl::StrCat(name, ": the library that reads ",
                                            decoder.name(), " did not start"));
  }
  const auto error = [&](absl::string_view what) {
    return absl::InvalidArgumentError(
        absl::StrCat(name, ": ", decoder.name(), " data ", what));
  };
  std::string text;
  std::string chunk(size_t{1} << 18, '\0');
  size_t used = 0;
  while (true) {
    const size_t in_size = std::min(data.size() - used, kPiece);
    Piece piece = {reinterpret_cast<const uint8_t*>(data.data()) + used,
                   in_size, reinterpret_cast<uint8_t*>(&chunk[0]),
                   chunk.size()};
    const Step step = decoder.Next(piece);
    used += in_size - piece.in_size;
    const size_t made = chunk.size() - piece.out_size;
    if (made > max_bytes - text.size()) {
      return error(absl::StrCat("unpacks to more than ", max_bytes, " bytes"));
    }
    text.append(chunk, 0, made);
    if (step == Step::kDamaged) return error("is damaged");
    if (step == Step::kTruncated) {
      return error(absl::StrCat("is truncated (", text.size(),
                                " bytes could be unpacked)"));
    }
    if (step == Step::kEnd && used == data.size()) return text;
  }
}

}  // namespace

absl::StatusOr<std::string> Decompress(std::string data, absl::string_view name,
                                       size_t max_bytes) {
  if (absl::StartsWith(data, kGzip)) {
    return DecompressWith<Gzip>(data, name, max_bytes);
  }
  if (absl::StartsWith(data, kXz)) {
    return DecompressWith<Xz>(data, name, max_bytes);
  }
  return data;
}

absl::string_view WithoutCompressionSuffix(absl::string_view path) {
  if (!absl::ConsumeSuffix(&path, ".gz")) absl::ConsumeSuffix(&path, ".xz");
  return path;
}

}  // namespace optrail

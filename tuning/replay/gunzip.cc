#include "tuning/replay/gunzip.h"

#include <zlib.h>

#include <algorithm>
#include <limits>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace optrail::tuning {

bool IsGzip(absl::string_view data) {
  return data.size() >= 2 && data[0] == '\x1f' && data[1] == '\x8b';
}

absl::StatusOr<std::string> Gunzip(absl::string_view data, size_t max_bytes) {
  if (data.size() > std::numeric_limits<uInt>::max()) {
    return absl::InvalidArgumentError("gzip data of more than 4 GiB");
  }
  z_stream stream = {};
  // 16: expect a gzip header, not a zlib one.
  if (inflateInit2(&stream, 16 + MAX_WBITS) != Z_OK) {
    return absl::InternalError("zlib could not start");
  }
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(data.data()));
  stream.avail_in = static_cast<uInt>(data.size());
  std::string text;
  int result = Z_OK;
  while (result == Z_OK && text.size() <= max_bytes) {
    const size_t done = text.size();
    const size_t chunk = std::max<size_t>(64 * 1024, done / 2);
    text.resize(done + chunk);
    stream.next_out = reinterpret_cast<Bytef*>(&text[done]);
    stream.avail_out = static_cast<uInt>(chunk);
    result = inflate(&stream, Z_NO_FLUSH);
    text.resize(done + chunk - stream.avail_out);
  }
  const std::string detail = stream.msg == nullptr ? "" : stream.msg;
  inflateEnd(&stream);
  if (text.size() > max_bytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("gzip data unpacks to more than ", max_bytes, " bytes"));
  }
  if (result == Z_BUF_ERROR) {
    return absl::InvalidArgumentError(absl::StrCat(
        "gzip data is truncated (", text.size(), " bytes could be unpacked)"));
  }
  if (result != Z_STREAM_END) {
    return absl::InvalidArgumentError(
        absl::StrCat("gzip data is damaged: ", detail));
  }
  return text;
}

}  // namespace optrail::tuning

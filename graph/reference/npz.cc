#include "graph/reference/npz.h"

#include <cstring>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/file/file.h"
#include "base/status_macros.h"
#include "graph/ir/ops.h"
#include "zlib.h"

namespace optrail::graph {
namespace {

constexpr size_t kMostArrayBytes = size_t{1} << 32;

uint64_t Number(absl::string_view bytes, size_t at, size_t size) {
  uint64_t number = 0;
  std::memcpy(&number, bytes.data() + at, size);
  return number;
}

absl::Status Damaged(absl::string_view what) {
  return absl::InvalidArgumentError(
      absl::StrCat("is no complete archive of NumPy: ", what,
                   "; next: write it again with numpy.savez, or look whether "
                   "its copy was cut off"));
}

// The text behind 'key': in the header, a dict of Python.
std::string HeaderField(absl::string_view header, absl::string_view key) {
  const size_t at = header.find(absl::StrCat("'", key, "':"));
  if (at == absl::string_view::npos) return "";
  absl::string_view rest = header.substr(at + key.size() + 3);
  while (absl::ConsumePrefix(&rest, " ")) {
  }
  const char end = absl::StartsWith(rest, "(") ? ')' : ',';
  return std::string(rest.substr(0, rest.find(end)));
}

proto::ElementType TypeOf(absl::string_view descr) {
  static const auto* const types =
      new std::map<std::string, proto::ElementType>{
          {"'<f8'", proto::ELEMENT_F64}, {"'<f4'", proto::ELEMENT_F32},
          {"'<f2'", proto::ELEMENT_F16}, {"'<i8'", proto::ELEMENT_I64},
          {"'<i4'", proto::ELEMENT_I32}, {"'<i2'", proto::ELEMENT_I16},
          {"'|i1'", proto::ELEMENT_I8},  {"'<u8'", proto::ELEMENT_U64},
          {"'<u4'", proto::ELEMENT_U32}, {"'<u2'", proto::ELEMENT_U16},
          {"'|u1'", proto::ELEMENT_U8},  {"'|b1'", proto::ELEMENT_BOOL}};
  const auto found = types->find(std::string(descr));
  return found == types->end() ? proto::ELEMENT_TYPE_UNSPECIFIED
                               : found->second;
}

absl::StatusOr<std::string> Inflated(absl::string_view bytes, size_t size) {
  std::string result(size, '\0');
  z_stream stream = {};
  // Negative window bits: no header, as in ZIP files.
  if (inflateInit2(&stream, -MAX_WBITS) != Z_OK) {
    return absl::ResourceExhaustedError("zlib cannot start");
  }
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  stream.avail_in = static_cast<uInt>(bytes.size());
  stream.next_out = reinterpret_cast<Bytef*>(result.data());
  stream.avail_out = static_cast<uInt>(size);
  const int code = inflate(&stream, Z_FINISH);
  inflateEnd(&stream);
  if (code != Z_STREAM_END || stream.avail_out != 0) {
    return Damaged("compressed values");
  }
  return result;
}

// One entry of the central directory at `at`, which moves on.
absl::Status ReadEntry(absl::string_view zip, size_t& at, NamedArrays& arrays) {
  if (at + 46 > zip.size() || Number(zip, at, 4) != 0x02014b50) {
    return Damaged("directory");
  }
  const uint64_t method = Number(zip, at + 10, 2);
  const uint64_t packed = Number(zip, at + 20, 4);
  const uint64_t size = Number(zip, at + 24, 4);
  const uint64_t name_size = Number(zip, at + 28, 2);
  const uint64_t extra = Number(zip, at + 30, 2) + Number(zip, at + 32, 2);
  const uint64_t local = Number(zip, at + 42, 4);
  if (at + 46 + name_size + extra > zip.size() || local + 30 > zip.size()) {
    return Damaged("entry");
  }
  std::string name(zip.substr(at + 46, name_size));
  at += 46 + name_size + extra;
  const uint64_t begin =
      local + 30 + Number(zip, local + 26, 2) + Number(zip, local + 28, 2);
  if (begin + packed > zip.size() || size > kMostArrayBytes) {
    return Damaged(absl::CEscape(name));
  }
  std::string values(zip.substr(begin, packed));
  if (method == 8) {
    OPTRAIL_ASSIGN_OR_RETURN(values, Inflated(values, size));
  } else if (method != 0) {
    return Damaged("compression method");
  }
  absl::StatusOr<Array> array = ParseNpy(values);
  if (!array.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat(absl::CEscape(name), ": ", array.status().message()));
  }
  arrays[std::string(absl::StripSuffix(name, ".npy"))] = *std::move(array);
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Array> ParseNpy(absl::string_view contents) {
  if (!absl::StartsWith(contents, "\x93NUMPY") || contents.size() < 12) {
    return absl::InvalidArgumentError("is no array of NumPy");
  }
  const bool long_header = contents[6] >= 2;
  const size_t begin = long_header ? 12 : 10;
  const uint64_t size = Number(contents, 8, long_header ? 4 : 2);
  if (size > contents.size() - begin) {
    return absl::InvalidArgumentError("the header is cut short");
  }
  const absl::string_view header = contents.substr(begin, size);
  TensorType type{TypeOf(HeaderField(header, "descr")), {}};
  if (type.type == proto::ELEMENT_TYPE_UNSPECIFIED ||
      HeaderField(header, "fortran_order") != "False") {
    return absl::InvalidArgumentError(absl::StrCat(
        "header ", absl::CEscape(header),
        ": expected little-endian numbers or booleans in C order"));
  }
  std::string shape = HeaderField(header, "shape");
  for (const absl::string_view part :
       absl::StrSplit(absl::StripPrefix(shape, "("), ',')) {
    int64_t dim = 0;
    if (absl::StripAsciiWhitespace(part).empty()) continue;
    if (!absl::SimpleAtoi(part, &dim)) {
      return absl::InvalidArgumentError(
          absl::StrCat("shape ", absl::CEscape(shape)));
    }
    type.dims.push_back(dim);
  }
  OPTRAIL_RETURN_IF_ERROR(CheckDims(type.dims));
  return Array::Decode(type, contents.substr(begin + size));
}

absl::StatusOr<NamedArrays> ParseNpz(absl::string_view zip) {
  // The end of the directory is the last 22 bytes, where there is no comment.
  constexpr size_t kEnd = 22;
  if (zip.size() < kEnd || Number(zip, zip.size() - kEnd, 4) != 0x06054b50) {
    return Damaged("end of the directory");
  }
  const uint64_t entries = Number(zip, zip.size() - kEnd + 10, 2);
  size_t at = Number(zip, zip.size() - kEnd + 16, 4);
  NamedArrays arrays;
  for (uint64_t i = 0; i < entries; ++i) {
    OPTRAIL_RETURN_IF_ERROR(ReadEntry(zip, at, arrays));
  }
  return arrays;
}

absl::StatusOr<NamedArrays> ReadNpz(const std::string& path) {
  OPTRAIL_ASSIGN_OR_RETURN(const std::string contents, ReadFile(path));
  absl::StatusOr<NamedArrays> arrays = ParseNpz(contents);
  if (arrays.ok()) return arrays;
  return absl::Status(arrays.status().code(),
                      absl::StrCat(path, ": ", arrays.status().message()));
}

}  // namespace optrail::graph

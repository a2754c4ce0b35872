#include "ops/core/input_file.h"

#include <stdlib.h>

#include <cstdint>
#include <cstring>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "absl/types/optional.h"
#include "absl/types/span.h"
#include "base/file/file.h"
#include "base/status_macros.h"
#include "ops/core/data_type.h"

namespace optrail::ops {
namespace {

constexpr absl::string_view kMagic("\x93NUMPY", 6);

absl::StatusOr<std::string> Find(const std::string& path) {
  std::vector<std::string> places = {path};
  if (!absl::StartsWith(path, "/")) {
    for (const char* const variable :
         {"BUILD_WORKSPACE_DIRECTORY", "TEST_SRCDIR"}) {
      const char* const folder = getenv(variable);
      if (folder == nullptr) continue;
      std::string place = folder;
      const char* const workspace = getenv("TEST_WORKSPACE");
      if (variable == absl::string_view("TEST_SRCDIR") &&
          workspace != nullptr) {
        place = JoinPath(place, workspace);
      }
      places.push_back(JoinPath(place, path));
    }
  }
  for (const std::string& place : places) {
    if (FileExists(place)) return place;
  }
  return absl::NotFoundError(absl::StrCat(
      "no input file ", path, "; looked for ", absl::StrJoin(places, ", ")));
}

// The text behind 'key': up to the next comma outside of a tuple.
absl::string_view FieldOf(absl::string_view header, absl::string_view key) {
  const size_t at = header.find(absl::StrCat("'", key, "':"));
  if (at == absl::string_view::npos) return "";
  absl::string_view rest = header.substr(at + key.size() + 3);
  while (absl::StartsWith(rest, " ")) rest.remove_prefix(1);
  return rest.substr(0, rest.find(','));
}

template <typename T>
std::vector<double> Values(absl::string_view bytes) {
  std::vector<double> values(bytes.size() / sizeof(T));
  for (size_t i = 0; i < values.size(); ++i) {
    T value;
    std::memcpy(&value, bytes.data() + i * sizeof(T), sizeof(T));
    values[i] = static_cast<double>(value);
  }
  return values;
}

absl::optional<std::vector<double>> Decode(absl::string_view type,
                                           absl::string_view bytes) {
  if (type == "'<f2'") {
    std::vector<double> values(bytes.size() / 2);
    DecodeValues(proto::F16, bytes.data(), 0, absl::MakeSpan(values));
    return values;
  }
  if (type == "'<f4'") return Values<float>(bytes);
  if (type == "'<f8'") return Values<double>(bytes);
  if (type == "'|i1'") return Values<int8_t>(bytes);
  if (type == "'|u1'" || type == "'|b1'") return Values<uint8_t>(bytes);
  if (type == "'<i2'") return Values<int16_t>(bytes);
  if (type == "'<u2'") return Values<uint16_t>(bytes);
  if (type == "'<i4'") return Values<int32_t>(bytes);
  if (type == "'<u4'") return Values<uint32_t>(bytes);
  if (type == "'<i8'") return Values<int64_t>(bytes);
  if (type == "'<u8'") return Values<uint64_t>(bytes);
  return absl::nullopt;
}

}  // namespace

absl::StatusOr<std::vector<double>> ReadInputFile(const std::string& path) {
  OPTRAIL_ASSIGN_OR_RETURN(const std::string place, Find(path));
  OPTRAIL_ASSIGN_OR_RETURN(const std::string file, ReadFile(place));
  const auto error = [&](absl::string_view what) {
    return absl::InvalidArgumentError(absl::StrCat(place, ": ", what));
  };
  absl::string_view rest = file;
  if (!absl::StartsWith(rest, kMagic) || rest.size() < 12) {
    return error("not a NumPy file, expected what numpy.save() writes (.npy)");
  }
  const int version = static_cast<unsigned char>(rest[6]);
  const size_t length_bytes = version == 1 ? 2 : 4;
  size_t length = 0;
  for (size_t i = length_bytes; i-- > 0;) {
    length = length << 8 | static_cast<unsigned char>(rest[8 + i]);
  }
  if (version < 1 || version > 2 || length > rest.size() - 8 - length_bytes) {
    return error("a truncated header, or a version beyond 2");
  }
  const absl::string_view header = rest.substr(8 + length_bytes, length);
  rest.remove_prefix(8 + length_bytes + length);
  if (FieldOf(header, "fortran_order") != "False") {
    return error("its rows are not consecutive, expected C order");
  }
  const absl::string_view type = FieldOf(header, "descr");
  absl::optional<std::vector<double>> values = Decode(type, rest);
  if (!values.has_value()) {
    return error(absl::StrCat("values of type ", type,
                              ", expected little-endian floats of 2 to 8 bytes "
                              "or integers"));
  }
  if (values->empty()) return error("no values, expected at least one");
  return *std::move(values);
}

}  // namespace optrail::ops

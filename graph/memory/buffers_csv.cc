#include "graph/memory/buffers_csv.h"

#include <algorithm>
#include <charconv>
#include <limits>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "base/file/file.h"
#include "base/status_macros.h"
#include "base/text/csv_reader.h"

namespace optrail::graph {
namespace {

enum Column { kId, kLower, kUpper, kSize, kFixedOffset, kGroup, kOffset };
constexpr absl::string_view kColumns[] = {
    "id", "lower", "upper", "size", "fixed_offset", "group", "offset"};
constexpr int kNumColumns = sizeof(kColumns) / sizeof(kColumns[0]);
constexpr int kNumRequired = 4;

// The index of each column in the records of a file; -1 if it has none.
struct Layout {
  int place[kNumColumns];
  size_t fields = 0;
};

absl::StatusOr<Layout> ReadHeader(CsvReader& reader, absl::string_view name) {
  std::vector<absl::string_view> fields;
  OPTRAIL_ASSIGN_OR_RETURN(const bool has_header, reader.Next(fields));
  if (!has_header) {
    return absl::InvalidArgumentError(absl::StrCat(
        name, ": empty; expected a header with id, lower, upper and size"));
  }
  Layout layout;
  layout.fields = fields.size();
  for (int c = 0; c < kNumColumns; ++c) {
    layout.place[c] = -1;
    for (size_t i = 0; i < fields.size(); ++i) {
      if (absl::StripAsciiWhitespace(fields[i]) != kColumns[c]) continue;
      if (layout.place[c] >= 0) {
        return reader.ErrorHere(
            absl::StrCat("the column \"", kColumns[c], "\" comes twice"));
      }
      layout.place[c] = static_cast<int>(i);
    }
    if (layout.place[c] < 0 && c < kNumRequired) {
      return reader.ErrorHere(
          absl::StrCat("no column \"", kColumns[c], "\" in the header ",
                       QuoteCsvField(absl::StrJoin(fields, ",")),
                       "; expected id, lower, upper and size"));
    }
  }
  return layout;
}

absl::StatusOr<int64_t> ParseInteger(absl::string_view field, Column column,
                                     int64_t least, const CsvReader& reader) {
  const absl::string_view text = absl::StripAsciiWhitespace(field);
  int64_t value = 0;
  const char* const end = text.data() + text.size();
  const std::from_chars_result result =
      std::from_chars(text.data(), end, value);
  if (result.ec == std::errc::result_out_of_range) {
    return reader.ErrorHere(
        absl::StrCat(kColumns[column], " ", QuoteCsvField(field),
                     " does not fit into 64 bits; expected an integer"));
  }
  if (text.empty() || result.ec != std::errc() || result.ptr != end) {
    return reader.ErrorHere(absl::StrCat(
        kColumns[column], " ", QuoteCsvField(field), " is not an integer"));
  }
  if (value < least) {
    return reader.ErrorHere(absl::StrCat(kColumns[column], " ", value,
                                         " is negative; expected at least ",
                                         least));
  }
  return value;
}

// One row after the header.
absl::Status ParseRow(const std::vector<absl::string_view>& fields,
                      const Layout& layout, const CsvReader& reader,
                      BuffersFile* file) {
  if (fields.size() != layout.fields) {
    return reader.ErrorHere(absl::StrCat(
        fields.size(), " fields where the header has ", layout.fields));
  }
  const auto field = [&](Column column) {
    return layout.place[column] < 0 ? absl::string_view()
                                    : fields[layout.place[column]];
  };
  constexpr int64_t kAny = std::numeric_limits<int64_t>::min();
  MemoryBuffer buffer;
  buffer.id = std::string(field(kId));
  OPTRAIL_ASSIGN_OR_RETURN(buffer.lower,
                           ParseInteger(field(kLower), kLower, kAny, reader));
  OPTRAIL_ASSIGN_OR_RETURN(buffer.upper,
                           ParseInteger(field(kUpper), kUpper, kAny, reader));
  OPTRAIL_ASSIGN_OR_RETURN(buffer.size_bytes,
                           ParseInteger(field(kSize), kSize, 0, reader));
  if (buffer.lower >= buffer.upper) {
    return reader.ErrorHere(absl::StrCat(
        "lower ", buffer.lower, ", expected less than upper ", buffer.upper));
  }
  if (!absl::StripAsciiWhitespace(field(kFixedOffset)).empty()) {
    OPTRAIL_ASSIGN_OR_RETURN(
        buffer.fixed_offset,
        ParseInteger(field(kFixedOffset), kFixedOffset, 0, reader));
  }
  buffer.group = std::string(absl::StripAsciiWhitespace(field(kGroup)));
  if (layout.place[kOffset] >= 0) {
    OPTRAIL_ASSIGN_OR_RETURN(
        const int64_t offset,
        ParseInteger(field(kOffset), kOffset, kAny, reader));
    file->offsets.push_back(offset);
  }
  file->buffers.push_back(std::move(buffer));
  return absl::OkStatus();
}

std::string CsvField(absl::string_view text) {
  if (text.find_first_of(",\"\r\n") == absl::string_view::npos) {
    return std::string(text);
  }
  return absl::StrCat("\"", absl::StrReplaceAll(text, {{"\"", "\"\""}}), "\"");
}

}  // namespace

absl::StatusOr<BuffersFile> ParseBuffersCsv(absl::string_view text,
                                            absl::string_view name) {
  CsvReader reader(text, name);
  OPTRAIL_ASSIGN_OR_RETURN(const Layout layout, ReadHeader(reader, name));
  BuffersFile file;
  absl::flat_hash_map<std::string, int64_t> line_of;
  std::vector<absl::string_view> fields;
  while (true) {
    OPTRAIL_ASSIGN_OR_RETURN(const bool more, reader.Next(fields));
    if (!more) break;
    if (static_cast<int64_t>(file.buffers.size()) >= kMostBuffers) {
      return reader.ErrorHere(
          absl::StrCat("expected at most ", kMostBuffers, " buffers"));
    }
    OPTRAIL_RETURN_IF_ERROR(ParseRow(fields, layout, reader, &file));
    const std::string& id = file.buffers.back().id;
    const auto [found, is_new] = line_of.emplace(id, reader.line());
    if (!is_new) {
      return reader.ErrorHere(absl::StrCat("id ", QuoteCsvField(id),
                                           " comes twice, first on line ",
                                           found->second));
    }
  }
  return file;
}

absl::StatusOr<BuffersFile> ReadBuffersCsv(const std::string& path) {
  OPTRAIL_ASSIGN_OR_RETURN(const std::string text, ReadFile(path));
  return ParseBuffersCsv(text, path);
}

std::string WriteBuffersCsv(const std::vector<MemoryBuffer>& buffers,
                            const std::vector<int64_t>& offsets) {
  const bool fixed = std::any_of(
      buffers.begin(), buffers.end(),
      [](const MemoryBuffer& b) { return b.fixed_offset.has_value(); });
  const bool grouped =
      std::any_of(buffers.begin(), buffers.end(),
                  [](const MemoryBuffer& b) { return !b.group.empty(); });
  std::string text =
      absl::StrCat("id,lower,upper,size", fixed ? ",fixed_offset" : "",
                   grouped ? ",group" : "", ",offset\n");
  for (size_t i = 0; i < buffers.size(); ++i) {
    const MemoryBuffer& buffer = buffers[i];
    absl::StrAppend(&text, CsvField(buffer.id), ",", buffer.lower, ",",
                    buffer.upper, ",", buffer.size_bytes);
    if (fixed) {
      absl::StrAppend(&text, ",");
      if (buffer.fixed_offset.has_value()) {
        absl::StrAppend(&text, *buffer.fixed_offset);
      }
    }
    if (grouped) absl::StrAppend(&text, ",", CsvField(buffer.group));
    absl::StrAppend(&text, ",", offsets[i], "\n");
  }
  return text;
}

}  // namespace optrail::graph

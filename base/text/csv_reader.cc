#include "base/text/csv_reader.h"

#include <algorithm>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "base/status_macros.h"

namespace optrail {

std::string QuoteCsvField(absl::string_view text) {
  constexpr size_t kMostShown = 40;
  std::string shown = absl::CHexEscape(text.substr(0, kMostShown));
  return absl::StrCat("\"", shown, text.size() > kMostShown ? "..." : "", "\"");
}

CsvReader::CsvReader(absl::string_view text, absl::string_view name)
    : rest_(text), name_(name) {
  if (absl::StartsWith(rest_, "\xEF\xBB\xBF")) rest_.remove_prefix(3);
}

absl::Status CsvReader::ErrorHere(absl::string_view what) const {
  return absl::InvalidArgumentError(
      absl::StrCat(name_, ":", line_, ": ", what));
}

absl::StatusOr<bool> CsvReader::Next(std::vector<absl::string_view>& fields) {
  fields.clear();
  while (!rest_.empty() && (rest_[0] == '\n' || rest_[0] == '\r')) {
    if (rest_[0] == '\n') ++next_line_;
    rest_.remove_prefix(1);
  }
  line_ = next_line_;
  if (rest_.empty()) return false;
  buffer_.clear();
  unquoted_.clear();
  while (true) {
    if (!rest_.empty() && rest_[0] == '"') {
      OPTRAIL_RETURN_IF_ERROR(TakeQuoted(fields));
    } else {
      const size_t end = std::min(rest_.find_first_of(",\n"), rest_.size());
      absl::string_view field = rest_.substr(0, end);
      rest_.remove_prefix(end);
      if (rest_.empty() || rest_[0] == '\n') {
        field = absl::StripSuffix(field, "\r");
      }
      fields.push_back(field);
    }
    if (rest_.empty()) break;
    const char separator = rest_[0];
    rest_.remove_prefix(1);
    if (separator == '\n') {
      ++next_line_;
      break;
    }
  }
  for (const Unquoted& u : unquoted_) {
    fields[u.field] = absl::string_view(buffer_).substr(u.begin, u.size);
  }
  return true;
}

absl::Status CsvReader::TakeQuoted(std::vector<absl::string_view>& fields) {
  const size_t begin = buffer_.size();
  rest_.remove_prefix(1);
  while (true) {
    const size_t quote = rest_.find('"');
    if (quote == absl::string_view::npos) {
      return ErrorHere("a quoted field that never ends");
    }
    absl::StrAppend(&buffer_, rest_.substr(0, quote));
    rest_.remove_prefix(quote + 1);
    if (rest_.empty() || rest_[0] != '"') break;
    buffer_.push_back('"');
    rest_.remove_prefix(1);
  }
  const size_t size = buffer_.size() - begin;
  next_line_ += std::count(buffer_.begin() + begin, buffer_.end(), '\n');
  unquoted_.push_back({fields.size(), begin, size});
  fields.emplace_back();
  if (absl::StartsWith(rest_, "\r\n")) rest_.remove_prefix(1);
  if (!rest_.empty() && rest_[0] != ',' && rest_[0] != '\n') {
    return ErrorHere("text after the closing quote of a field");
  }
  return absl::OkStatus();
}

}  // namespace optrail

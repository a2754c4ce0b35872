#include "base/text/table.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "base/check.h"
#include "base/text/closest.h"
#include "base/text/markdown.h"
#include "base/text/quote.h"
#include "base/text/table_text.h"

namespace optrail {
namespace {

constexpr absl::string_view kReplacement = "\xef\xbf\xbd";  // U+FFFD

// The shortest digits that read back as the same double.
std::string Shortest(double value) {
  char buffer[32];
  const auto result = std::to_chars(buffer, buffer + sizeof(buffer), value);
  return std::string(buffer, result.ptr);
}

}  // namespace

Column::Column(std::string header_text, Align alignment, std::string key_text,
               Clip may_clip)
    : header(std::move(header_text)),
      align(alignment),
      clip(may_clip),
      key(std::move(key_text)) {
  if (!key.empty()) return;
  for (const char c : header) {
    const auto byte = static_cast<unsigned char>(c);
    key += absl::ascii_isalnum(byte) ? absl::ascii_tolower(byte) : '_';
  }
}

Cell Cell::Number(double value, std::string text) {
  Cell cell(std::move(text));
  cell.number = value;
  return cell;
}

Cell Cell::Integer(int64_t value) {
  return Number(static_cast<double>(value), absl::StrCat(value));
}

Cell Cell::None() {
  Cell cell("");
  cell.is_null = true;
  return cell;
}

bool AbslParseFlag(absl::string_view text, OutputFormat* format,
                   std::string* error) {
  for (const OutputFormat candidate :
       {OutputFormat::kTable, OutputFormat::kJson, OutputFormat::kCsv,
        OutputFormat::kMarkdown}) {
    if (text == AbslUnparseFlag(candidate)) {
      *format = candidate;
      return true;
    }
  }
  *error = ExpectedOneOf(text, {"table", "json", "csv", "markdown"});
  return false;
}

std::string AbslUnparseFlag(OutputFormat format) {
  switch (format) {
    case OutputFormat::kTable:
      return "table";
    case OutputFormat::kJson:
      return "json";
    case OutputFormat::kCsv:
      return "csv";
    case OutputFormat::kMarkdown:
      return "markdown";
  }
  return "table";
}

Table::Table(std::vector<Column> columns) : columns_(std::move(columns)) {
  OPTRAIL_CHECK(std::any_of(
      columns_.begin(), columns_.end(),
      [](const Column& column) { return column.clip != Clip::kHeading; }))
      << "a table without columns";
}

void Table::AddRow(std::vector<Cell> cells) {
  OPTRAIL_CHECK(cells.size() == columns_.size())
      << cells.size() << " cells in " << columns_.size() << " columns";
  rows_.push_back(std::move(cells));
}

std::string Table::ToText(int width) const {
  return TableText(columns_, rows_, width);
}

std::string Table::ToMarkdown() const {
  std::string text = "|";
  for (const Column& column : columns_) {
    absl::StrAppend(&text, " ", EscapeForMarkdown(column.header), " |");
  }
  absl::StrAppend(&text, "\n|");
  for (const Column& column : columns_) {
    absl::StrAppend(&text,
                    column.align == Align::kRight ? " ---: |" : " --- |");
  }
  absl::StrAppend(&text, "\n");
  for (const std::vector<Cell>& row : rows_) {
    absl::StrAppend(&text, "|");
    for (const Cell& cell : row) {
      absl::StrAppend(&text, " ", EscapeForMarkdown(cell.text), " |");
    }
    absl::StrAppend(&text, "\n");
  }
  return text;
}

std::string Table::ToCsv() const {
  std::vector<std::string> fields;
  for (const Column& column : columns_) {
    fields.push_back(QuoteForCsv(column.key));
  }
  std::string text = absl::StrCat(absl::StrJoin(fields, ","), "\n");
  for (const std::vector<Cell>& row : rows_) {
    fields.clear();
    for (const Cell& cell : row) {
      fields.push_back(cell.number.has_value() ? Shortest(*cell.number)
                                               : QuoteForCsv(cell.text));
    }
    // A line of one empty field would be an empty line.
    if (fields.size() == 1 && fields[0].empty()) fields[0] = "\"\"";
    absl::StrAppend(&text, absl::StrJoin(fields, ","), "\n");
  }
  return text;
}

std::string Table::ToJson() const {
  std::vector<std::string> objects;
  for (const std::vector<Cell>& row : rows_) {
    std::vector<std::string> members;
    for (size_t i = 0; i < row.size(); ++i) {
      const Cell& cell = row[i];
      std::string value = QuoteForJson(cell.text);
      if (cell.is_null) value = "null";
      // JSON has no NaN and no infinity.
      if (cell.number.has_value()) {
        value = std::isfinite(*cell.number) ? Shortest(*cell.number) : "null";
      }
      members.push_back(
          absl::StrCat(QuoteForJson(columns_[i].key), ": ", value));
    }
    objects.push_back(absl::StrCat("  {", absl::StrJoin(members, ", "), "}"));
  }
  if (objects.empty()) return "[]\n";
  return absl::StrCat("[\n", absl::StrJoin(objects, ",\n"), "\n]\n");
}

std::string Table::Format(OutputFormat format, int width) const {
  switch (format) {
    case OutputFormat::kTable:
      return ToText(width);
    case OutputFormat::kJson:
      return ToJson();
    case OutputFormat::kCsv:
      return ToCsv();
    case OutputFormat::kMarkdown:
      return ToMarkdown();
  }
  return ToText(width);
}

int TerminalWidth() {
  int width = 0;
  const char* columns = std::getenv("COLUMNS");
  if (columns != nullptr && absl::SimpleAtoi(columns, &width) && width > 0) {
    return width;
  }
  winsize size = {};
  if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0) return size.ws_col;
  return 0;
}

std::string QuoteForJson(absl::string_view text) {
  std::string quoted = "\"";
  while (!text.empty()) {
    const CodePoint c = FirstCodePoint(text);
    if (!c.valid) {
      absl::StrAppend(&quoted, kReplacement);
    } else if (c.value == '"' || c.value == '\\') {
      quoted += '\\';
      quoted += static_cast<char>(c.value);
    } else if (c.value == '\n') {
      quoted += "\\n";
    } else if (IsHostile(c.value)) {
      absl::StrAppendFormat(&quoted, "\\u%04x", static_cast<uint32_t>(c.value));
    } else {
      absl::StrAppend(&quoted, text.substr(0, c.size_bytes));
    }
    text.remove_prefix(c.size_bytes);
  }
  return quoted + "\"";
}

}  // namespace optrail

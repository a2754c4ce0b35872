#include "base/table.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "base/check.h"
#include "base/closest.h"
#include "base/markdown.h"
#include "base/quote.h"

namespace optrail {
namespace {

constexpr absl::string_view kEllipsis = "\xe2\x80\xa6";     // U+2026
constexpr absl::string_view kReplacement = "\xef\xbf\xbd";  // U+FFFD
constexpr absl::string_view kGap = "  ";
constexpr int kMinColumnWidth = 4;
// The least width beside columns that are never cut. The terminal wraps such a
// line anyway, so that it should not lose its numbers too.
constexpr int kMinWidthBesideUncut = 20;
constexpr int kMinFoldedWidth = 12;

bool IsBetween(char32_t c, char32_t low, char32_t high) {
  return c >= low && c <= high;
}

int WidthOf(char32_t c) {
  if (IsBetween(c, 0x300, 0x36f) || IsBetween(c, 0x200b, 0x200f) ||
      IsBetween(c, 0x20d0, 0x20ff) || IsBetween(c, 0xfe00, 0xfe0f)) {
    return 0;
  }
  if (IsBetween(c, 0x1100, 0x115f) || IsBetween(c, 0x2e80, 0xa4cf) ||
      IsBetween(c, 0xac00, 0xd7a3) || IsBetween(c, 0xf900, 0xfaff) ||
      IsBetween(c, 0xfe30, 0xfe6f) || IsBetween(c, 0xff00, 0xff60) ||
      IsBetween(c, 0xffe0, 0xffe6) || IsBetween(c, 0x1f300, 0x1faff) ||
      IsBetween(c, 0x20000, 0x3fffd)) {
    return 2;
  }
  return 1;
}

// At most `width` columns of `text`, the last one an ellipsis if it is cut.
std::string Shorten(const std::string& text, int width) {
  if (DisplayWidth(text) <= width) return text;
  std::string result;
  int used = 0;
  for (absl::string_view rest = text; !rest.empty();) {
    const CodePoint c = FirstCodePoint(rest);
    used += WidthOf(c.value);
    if (used > width - 1) break;
    absl::StrAppend(&result, rest.substr(0, c.size_bytes));
    rest.remove_prefix(c.size_bytes);
  }
  return absl::StrCat(result, kEllipsis);
}

// Takes columns from the widest one that may be cut at a time until the line
// fits.
void Shrink(int width, const std::vector<Column>& columns,
            std::vector<int>* widths) {
  int total = static_cast<int>(kGap.size() * (widths->size() - 1));
  for (const int w : *widths) total += w;
  const bool uncut = std::any_of(
      columns.begin(), columns.end(),
      [](const Column& column) { return column.clip == Clip::kNever; });
  const int least = uncut ? kMinWidthBesideUncut : kMinColumnWidth;
  while (total > width) {
    int* widest = nullptr;
    for (size_t i = 0; i < widths->size(); ++i) {
      const Clip clip = columns[i].clip;
      if (clip == Clip::kNever ||
          (*widths)[i] <= (clip == Clip::kFold ? kMinFoldedWidth : least)) {
        continue;
      }
      if (widest == nullptr || (*widths)[i] > *widest) widest = &(*widths)[i];
    }
    if (widest == nullptr) return;
    --*widest;
    --total;
  }
}

// Lines of at most `width` columns, which end after a comma, slash or hyphen
// where they can.
std::vector<std::string> Fold(const std::string& text, int width) {
  std::vector<std::string> lines(1);
  int used = 0;
  for (absl::string_view rest = text; !rest.empty();) {
    const CodePoint c = FirstCodePoint(rest);
    if (used + WidthOf(c.value) > width && used > 0) {
      size_t end = lines.back().find_last_of(",/- ");
      // A word that is longer than a line is split at its parts.
      if (end == std::string::npos) end = lines.back().find_last_of("_=");
      std::string begun;
      if (end != std::string::npos) begun = lines.back().substr(end + 1);
      lines.back().resize(lines.back().size() - begun.size());
      lines.push_back(begun);
      used = DisplayWidth(begun);
    }
    // A space between two words that are on two lines is none.
    if (used > 0 || lines.size() == 1 || c.value != ' ') {
      absl::StrAppend(&lines.back(), rest.substr(0, c.size_bytes));
      used += WidthOf(c.value);
    }
    rest.remove_prefix(c.size_bytes);
  }
  return lines;
}

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
  std::vector<Column> columns;
  for (const Column& column : columns_) {
    if (column.clip != Clip::kHeading) columns.push_back(column);
  }
  // The header is the first line.
  std::vector<std::vector<std::string>> lines(1);
  std::vector<std::string> headings(1);  // of each line
  for (const Column& column : columns) {
    lines[0].push_back(EscapeForTerminal(column.header));
  }
  for (const std::vector<Cell>& row : rows_) {
    lines.emplace_back();
    headings.emplace_back();
    for (size_t i = 0; i < row.size(); ++i) {
      const std::string cell = EscapeForTerminal(row[i].text);
      if (columns_[i].clip == Clip::kHeading) {
        absl::StrAppend(&headings.back(), cell, "\n");
      } else {
        lines.back().push_back(cell);
      }
    }
  }
  const std::string indent(columns.size() < columns_.size() ? 2 : 0, ' ');
  std::vector<int> widths(columns.size(), 0);
  for (const auto& line : lines) {
    for (size_t i = 0; i < line.size(); ++i) {
      widths[i] = std::max(widths[i], DisplayWidth(line[i]));
    }
  }
  if (width > 0) {
    Shrink(width - static_cast<int>(indent.size()), columns, &widths);
  }

  std::string text;
  for (size_t row = 0; row < lines.size(); ++row) {
    if (row > 0 && headings[row] != headings[row - 1]) {
      absl::StrAppend(&text, headings[row]);
    }
    std::vector<std::vector<std::string>> cells;  // lines of each
    size_t height = 1;
    for (size_t i = 0; i < columns.size(); ++i) {
      cells.push_back(
          columns[i].clip == Clip::kFold
              ? Fold(lines[row][i], widths[i])
              : std::vector<std::string>{Shorten(lines[row][i], widths[i])});
      height = std::max(height, cells.back().size());
    }
    for (size_t below = 0; below < height; ++below) {
      std::string line = indent;
      for (size_t i = 0; i < columns.size(); ++i) {
        const std::string cell = below < cells[i].size() ? cells[i][below] : "";
        const std::string padding(
            static_cast<size_t>(std::max(0, widths[i] - DisplayWidth(cell))),
            ' ');
        if (i > 0) absl::StrAppend(&line, kGap);
        if (columns[i].align == Align::kRight) {
          absl::StrAppend(&line, padding, cell);
        } else {
          absl::StrAppend(&line, cell, padding);
        }
      }
      absl::StrAppend(&text, absl::StripTrailingAsciiWhitespace(line), "\n");
    }
    if (row > 0) continue;
    std::vector<std::string> rules;
    for (const int w : widths) rules.emplace_back(static_cast<size_t>(w), '-');
    absl::StrAppend(&text, indent, absl::StrJoin(rules, kGap), "\n");
  }
  return text;
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

int DisplayWidth(absl::string_view text) {
  int width = 0;
  while (!text.empty()) {
    const CodePoint c = FirstCodePoint(text);
    width += c.valid ? WidthOf(c.value) : 1;
    text.remove_prefix(c.size_bytes);
  }
  return width;
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

#ifndef OPTRAIL_BASE_TEXT_TABLE_H_
#define OPTRAIL_BASE_TEXT_TABLE_H_

// Table is a result with rows and columns that a person reads in a terminal or
// a pull request and a program reads as JSON or CSV.
//
//   Table table({{"benchmark"}, {"time", Align::kRight, "time_ns"}});
//   table.AddRow({"matmul", Cell::Number(12345, "12.3 us")});
//   std::cout << table.ToText(TerminalWidth());
//
// People get a cell's text, programs its number where it has one. Whatever is
// in a cell (newlines, pipes, escape sequences), it stays in its cell.

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "base/text/utf8.h"

namespace optrail {

enum class Align { kLeft, kRight };

// Whether a table that is to fit a terminal may shorten a column's text: not
// what people copy from it, such as ids. What tells rows apart is folded: it
// goes on below. What the rows that follow share is a line above them.
enum class Clip { kMay, kNever, kFold, kHeading };

struct Column {
  Column(std::string header, Align align = Align::kLeft, std::string key = "",
         Clip clip = Clip::kMay);

  std::string header;
  Align align;
  Clip clip;
  // The name for programs; by default the header in lower case, everything but
  // letters and digits replaced by "_".
  std::string key;
};

struct Cell {
  Cell(std::string text) : text(std::move(text)) {}  // NOLINT: implicit
  Cell(absl::string_view text) : text(text) {}       // NOLINT: implicit
  Cell(const char* text) : text(text) {}             // NOLINT: implicit
  // `text` for people, the value for programs.
  static Cell Number(double value, std::string text);
  static Cell Integer(int64_t value);
  // Empty for people, null in JSON.
  static Cell None();

  std::string text;
  std::optional<double> number;
  bool is_null = false;
};

enum class OutputFormat { kTable, kJson, kCsv, kMarkdown };
// For flags of that type: table, json, csv, markdown.
bool AbslParseFlag(absl::string_view text, OutputFormat* format,
                   std::string* error);
std::string AbslUnparseFlag(OutputFormat format);

class Table {
 public:
  explicit Table(std::vector<Column> columns);

  // Adds a row; there must be as many cells as columns.
  void AddRow(std::vector<Cell> cells);
  int num_rows() const { return static_cast<int>(rows_.size()); }

  // Aligned columns that fit `width` (0: no limit). Long texts are shortened or
  // folded first. If that is not enough:
  // - a value that all rows share stands once, above the table;
  // - a name that is never cut gets a line of its own, above its row;
  // - the widest columns become lines "header: value" below their row.
  // No number is cut. A name that is longer than a line is left to the
  // terminal, which wraps it, so that it can be copied.
  std::string ToText(int width = 0) const;
  // A table of GitHub-flavoured Markdown.
  std::string ToMarkdown() const;
  // RFC 4180, with a header line of keys, lines ended by "\n".
  std::string ToCsv() const;
  // An array of one object per row, keys in column order.
  std::string ToJson() const;

  // One of the above; `width` is for kTable.
  std::string Format(OutputFormat format, int width = 0) const;

 private:
  std::vector<Column> columns_;
  std::vector<std::vector<Cell>> rows_;
};

// Columns of the terminal on standard output (or $COLUMNS), else 0.
int TerminalWidth();

// Columns that UTF-8 `text` takes: combining marks none, East Asian wide
// characters and emoji two; invalid bytes one each.
int DisplayWidth(absl::string_view text);

// A JSON string with its quotes; invalid UTF-8 becomes U+FFFD.
std::string QuoteForJson(absl::string_view text);

}  // namespace optrail

#endif  // OPTRAIL_BASE_TEXT_TABLE_H_

#include "base/text/table_text.h"

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "base/text/utf8.h"

namespace optrail {
namespace {

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

constexpr absl::string_view kEllipsis = "\xe2\x80\xa6";  // U+2026
constexpr absl::string_view kGap = "  ";
// A column of text that is longer keeps this width. With less, nobody could
// read what is left of it.
constexpr int kLeastTextWidth = 20;
constexpr int kIndentBelow = 4;

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

// The last place in `line` after which another may begin: a comma, slash, space
// or the hyphen after a letter or digit, not that of a flag. npos: none.
size_t LastBreak(absl::string_view line) {
  size_t end = line.find_last_of(",/- ");
  while (end != absl::string_view::npos && line[end] == '-' &&
         (end == 0 || !absl::ascii_isalnum(line[end - 1]))) {
    end =
        end == 0 ? absl::string_view::npos : line.find_last_of(",/- ", end - 1);
  }
  return end;
}

// Lines of at most `width` columns, which end after a comma, slash or hyphen
// where they can.
std::vector<std::string> Fold(const std::string& text, int width) {
  std::vector<std::string> lines(1);
  int used = 0;
  for (absl::string_view rest = text; !rest.empty();) {
    const CodePoint c = FirstCodePoint(rest);
    if (used + WidthOf(c.value) > width && used > 0) {
      size_t end = LastBreak(lines.back());
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

int LongestWord(const std::string& text) {
  int longest = 0;
  for (const absl::string_view word : absl::StrSplit(text, ' ')) {
    longest = std::max(longest, DisplayWidth(word));
  }
  return longest;
}

// The place of a column in a table of a given width.
enum class Place {
  kColumn,
  kAbove,  // a line above the rows that share its value
  kBelow,  // "header: value" below each row
  kOnce,   // "header: value" above the table, since all rows share it
};

// A layout shortens and folds columns, and does this besides. The last three
// show shared values once, too.
enum class Effort {
  kNone,
  kShare,  // show a value that all rows share once
  kBelow,  // give a long name a line of its own, move columns below their row
  kWhole,  // the same, and fold no column that may go below
  kLift,   // give any name a line of its own, move none
};

// Lays rows of text out in lines of a given width. It keeps as many columns as
// fit; no number is cut.
class TextLayout {
 public:
  TextLayout(const std::vector<Column>& columns,
             const std::vector<std::vector<Cell>>& rows)
      : columns_(columns) {
    for (const Column& column : columns) {
      headers_.push_back(EscapeForTerminal(column.header));
      places_.push_back(column.clip == Clip::kHeading ? Place::kAbove
                                                      : Place::kColumn);
    }
    for (const std::vector<Cell>& row : rows) {
      rows_.emplace_back();
      for (const Cell& cell : row) {
        rows_.back().push_back(EscapeForTerminal(cell.text));
      }
    }
    for (size_t i = 0; i < columns.size(); ++i) {
      int widest = 0;
      for (const auto& row : rows_) {
        widest = std::max(widest, DisplayWidth(row[i]));
      }
      widths_.push_back(std::max(widest, DisplayWidth(headers_[i])));
      least_.push_back(std::max(widest, LongestWord(headers_[i])));
      if (IsCuttable(i)) {
        least_.back() = std::min(least_.back(), kLeastTextWidth);
      }
    }
  }

  // Returns whether the table fits then.
  bool FitInto(int width, Effort effort) {
    width_ = width;
    // With less room than a text should have, it gets all of it.
    const int room = std::max(1, width - static_cast<int>(Indent().size()));
    if (IsCuttable(0)) least_[0] = std::min(least_[0], room);
    if (Total(widths_) <= width) return true;
    for (size_t i = 1; i < least_.size() && effort == Effort::kWhole; ++i) {
      if (columns_[i].clip == Clip::kFold) least_[i] = widths_[i];
    }
    if (effort >= Effort::kShare) ShowSharedValuesOnce();
    if (effort >= Effort::kBelow && Total(widths_) > width) {
      LiftTheName(effort == Effort::kLift ? 0 : width / 2);
    }
    while ((effort == Effort::kBelow || effort == Effort::kWhole) &&
           Total(least_) > width && MoveWidestBelow()) {
    }
    Shrink();
    return Total(least_) <= width;
  }

  std::string Text() const {
    std::string text;
    AppendFields(OnlyRow(Place::kOnce), 0, &text);
    if (lifted_ != kNone) absl::StrAppend(&text, headers_[lifted_], "\n");
    const bool has_columns =
        std::count(places_.begin(), places_.end(), Place::kColumn) > 0;
    if (has_columns) {
      AppendRow(headers_, /*is_header=*/true, &text);
      std::vector<std::string> rules;
      for (size_t i = 0; i < places_.size(); ++i) {
        if (places_[i] == Place::kColumn) {
          rules.emplace_back(static_cast<size_t>(widths_[i]), '-');
        }
      }
      absl::StrAppend(&text, Indent(), absl::StrJoin(rules, kGap), "\n");
    }
    std::string last_above;
    for (const std::vector<std::string>& row : rows_) {
      const std::string above = LinesAbove(row);
      if (above != last_above) absl::StrAppend(&text, above);
      last_above = above;
      if (has_columns) AppendRow(row, /*is_header=*/false, &text);
      AppendFields(Fields(row, Place::kBelow), kIndentBelow, &text);
    }
    return text;
  }

 private:
  static constexpr size_t kNone = static_cast<size_t>(-1);
  struct Field {
    std::string text;
    bool is_whole;  // it is never cut
  };

  bool IsCuttable(size_t column) const {
    return columns_[column].align == Align::kLeft &&
           columns_[column].clip != Clip::kNever;
  }

  std::string Indent() const {
    const bool is_indented =
        std::count(places_.begin(), places_.end(), Place::kAbove) > 0;
    return std::string(is_indented ? 2 : 0, ' ');
  }

  int Total(const std::vector<int>& widths) const {
    int total = static_cast<int>(Indent().size() - kGap.size());
    for (size_t i = 0; i < widths.size(); ++i) {
      if (places_[i] == Place::kColumn) {
        total += widths[i] + static_cast<int>(kGap.size());
      }
    }
    return total;
  }

  void ShowSharedValuesOnce() {
    if (rows_.size() < 2) return;
    for (size_t i = 1; i < places_.size(); ++i) {
      if (places_[i] == Place::kColumn &&
          std::all_of(rows_.begin(), rows_.end(),
                      [&](const auto& row) { return row[i] == rows_[0][i]; })) {
        places_[i] = Place::kOnce;
      }
    }
  }

  // Gives a name of more than `least` columns a line of its own.
  void LiftTheName(int least) {
    if (Indent().size() > 0) return;  // there are names above
    if (std::count(places_.begin(), places_.end(), Place::kColumn) < 2) return;
    for (size_t i = 0; i < places_.size(); ++i) {
      const bool is_name = columns_[i].align == Align::kLeft &&
                           (columns_[i].clip == Clip::kNever ||
                            (i == 0 && columns_[i].clip == Clip::kFold));
      if (places_[i] == Place::kColumn && is_name && widths_[i] > least &&
          (lifted_ == kNone || widths_[i] > widths_[lifted_])) {
        lifted_ = i;
      }
    }
    if (lifted_ != kNone) places_[lifted_] = Place::kAbove;
  }

  bool MoveWidestBelow() {
    size_t widest = kNone;
    for (size_t i = 1; i < places_.size(); ++i) {
      if (places_[i] == Place::kColumn &&
          (widest == kNone || least_[i] >= least_[widest])) {
        widest = i;
      }
    }
    if (widest == kNone) return false;
    places_[widest] = Place::kBelow;
    return true;
  }

  // Folds headers, then takes the width that lacks from the widest columns.
  void Shrink() {
    for (size_t i = 0; i < widths_.size(); ++i) {
      if (!IsCuttable(i)) widths_[i] = least_[i];
    }
    for (int total = Total(widths_); total > width_; --total) {
      size_t widest = kNone;
      for (size_t i = 0; i < widths_.size(); ++i) {
        if (places_[i] == Place::kColumn && widths_[i] > least_[i] &&
            (widest == kNone || widths_[i] > widths_[widest])) {
          widest = i;
        }
      }
      if (widest == kNone) return;
      --widths_[widest];
    }
  }

  std::vector<Field> Fields(const std::vector<std::string>& row,
                            Place place) const {
    std::vector<Field> fields;
    for (size_t i = 0; i < row.size(); ++i) {
      if (places_[i] != place || row[i].empty()) continue;
      fields.push_back({absl::StrCat(headers_[i], ": ", row[i]),
                        columns_[i].clip == Clip::kNever});
    }
    return fields;
  }

  std::vector<Field> OnlyRow(Place place) const {
    return rows_.empty() ? std::vector<Field>() : Fields(rows_[0], place);
  }

  // Lines of fields, as many in each as fit.
  void AppendFields(const std::vector<Field>& fields, int indent,
                    std::string* text) const {
    const int room = std::max(1, width_ - indent);
    std::vector<std::string> lines;
    for (const Field& field : fields) {
      const int width = DisplayWidth(field.text);
      if (!lines.empty() && DisplayWidth(lines.back()) + 2 + width <= room) {
        absl::StrAppend(&lines.back(), "; ", field.text);
      } else if (field.is_whole || width <= room) {
        lines.push_back(field.text);
      } else {
        for (std::string& line : Fold(field.text, room)) {
          lines.push_back(std::move(line));
        }
      }
    }
    for (const std::string& line : lines) {
      absl::StrAppend(text, std::string(static_cast<size_t>(indent), ' '),
                      absl::StripTrailingAsciiWhitespace(line), "\n");
    }
  }

  std::string LinesAbove(const std::vector<std::string>& row) const {
    std::string text;
    for (size_t i = 0; i < row.size(); ++i) {
      if (places_[i] != Place::kAbove) continue;
      if (i == lifted_ && columns_[i].clip == Clip::kFold) {
        absl::StrAppend(&text, absl::StrJoin(Fold(row[i], width_), "\n"), "\n");
      } else {
        absl::StrAppend(&text, row[i], "\n");
      }
    }
    return text;
  }

  void AppendRow(const std::vector<std::string>& row, bool is_header,
                 std::string* text) const {
    std::vector<std::vector<std::string>> cells(row.size());  // lines of each
    size_t height = 0;
    for (size_t i = 0; i < row.size(); ++i) {
      if (places_[i] != Place::kColumn) continue;
      cells[i] = is_header || columns_[i].clip == Clip::kFold
                     ? Fold(row[i], widths_[i])
                     : std::vector<std::string>{Shorten(row[i], widths_[i])};
      height = std::max(height, cells[i].size());
    }
    // The rule below headers touches each.
    for (std::vector<std::string>& lines : cells) {
      if (is_header) lines.insert(lines.begin(), height - lines.size(), "");
      lines.resize(height);
    }
    for (size_t number = 0; number < height; ++number) {
      std::string line = Indent();
      absl::string_view gap = "";
      for (size_t i = 0; i < row.size(); ++i) {
        if (places_[i] != Place::kColumn) continue;
        const absl::string_view cell =
            absl::StripTrailingAsciiWhitespace(cells[i][number]);
        const std::string padding(
            static_cast<size_t>(std::max(0, widths_[i] - DisplayWidth(cell))),
            ' ');
        const bool is_right = columns_[i].align == Align::kRight;
        absl::StrAppend(&line, gap, is_right ? padding : "", cell,
                        is_right ? "" : padding);
        gap = kGap;
      }
      absl::StrAppend(text, absl::StripTrailingAsciiWhitespace(line), "\n");
    }
  }

  const std::vector<Column>& columns_;
  std::vector<std::string> headers_;
  std::vector<std::vector<std::string>> rows_;
  std::vector<Place> places_;
  std::vector<int> widths_;
  std::vector<int> least_;
  int width_ = 0;
  size_t lifted_ = kNone;  // the column that has lines of its own
};

}  // namespace

std::string TableText(const std::vector<Column>& columns,
                      const std::vector<std::vector<Cell>>& rows, int width) {
  if (width <= 0) return TextLayout(columns, rows).Text();
  // The best layout fits and has the fewest lines: with just enough room for a
  // folded name, a line of its own shows more.
  std::string best;
  const auto lines = [](const std::string& text) {
    return std::count(text.begin(), text.end(), '\n');
  };
  for (const Effort effort : {Effort::kNone, Effort::kShare, Effort::kBelow,
                              Effort::kWhole, Effort::kLift}) {
    TextLayout layout(columns, rows);
    const bool fits = layout.FitInto(width, effort);
    std::string text = layout.Text();
    // If nothing fits, moving columns comes closest.
    if (best.empty() ? fits || effort == Effort::kBelow
                     : fits && lines(text) < lines(best)) {
      best = std::move(text);
    }
  }
  return best;
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

}  // namespace optrail

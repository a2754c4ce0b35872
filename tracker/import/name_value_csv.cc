#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "absl/types/optional.h"
#include "tracker/import/importers.h"
#include "tracker/import/text_file.h"

namespace optrail::tracker {
namespace {

// The fields of a line; absent where a quote is not closed or not alone.
absl::optional<std::vector<std::string>> Split(absl::string_view line) {
  std::vector<std::string> fields;
  while (true) {
    std::string field;
    line = absl::StripLeadingAsciiWhitespace(line);
    if (absl::ConsumePrefix(&line, "\"")) {
      while (true) {
        const size_t quote = line.find('"');
        if (quote == absl::string_view::npos) return absl::nullopt;
        absl::StrAppend(&field, line.substr(0, quote));
        line.remove_prefix(quote + 1);
        if (!absl::ConsumePrefix(&line, "\"")) break;
        field.push_back('"');
      }
      line = absl::StripLeadingAsciiWhitespace(line);
      if (!line.empty() && line[0] != ',') return absl::nullopt;
    } else {
      const absl::string_view plain = line.substr(0, line.find(','));
      field = std::string(absl::StripTrailingAsciiWhitespace(plain));
      line.remove_prefix(plain.size());
    }
    fields.push_back(std::move(field));
    if (!absl::ConsumePrefix(&line, ",")) return fields;
  }
}

bool IsSkipped(absl::string_view line) {
  line = absl::StripLeadingAsciiWhitespace(line);
  return line.empty() || line[0] == '#';
}

struct Columns {
  int name = 0, value = 1, unit = 2, metric = -1;
  int count = 0;  // 0: no header, two or three of them
};

// Absent if the line is no header.
absl::optional<Columns> ParseHeader(const std::vector<std::string>& fields) {
  Columns columns{-1, -1, -1, -1, static_cast<int>(fields.size())};
  for (int i = 0; i < columns.count; ++i) {
    const std::string field = absl::AsciiStrToLower(fields[i]);
    int* column = field == "name"     ? &columns.name
                  : field == "value"  ? &columns.value
                  : field == "unit"   ? &columns.unit
                  : field == "metric" ? &columns.metric
                                      : nullptr;
    if (column == nullptr || *column != -1) return absl::nullopt;
    *column = i;
  }
  if (columns.name == -1 || columns.value == -1) return absl::nullopt;
  return columns;
}

class Parser {
 public:
  explicit Parser(const ImportedFile& file) : lines_(file) {}

  absl::Status Parse(CollectedResults& collected) {
    bool is_first = true;
    return lines_.ForEach([&](absl::string_view line) {
      if (IsSkipped(line)) return absl::OkStatus();
      const auto fields = Split(line);
      if (!fields.has_value()) {
        return lines_.Wrong("the line", line, "quotes around a whole field");
      }
      if (std::exchange(is_first, false)) {
        if (const auto header = ParseHeader(*fields)) {
          columns_ = *header;
          return absl::OkStatus();
        }
      }
      return AddRow(line, *fields, collected);
    });
  }

 private:
  absl::Status AddRow(absl::string_view line,
                      const std::vector<std::string>& fields,
                      CollectedResults& collected) {
    const int count = static_cast<int>(fields.size());
    if (columns_.count == 0 ? (count < 2 || count > 3)
                            : count != columns_.count) {
      return lines_.Wrong("the line", line,
                          columns_.count == 0
                              ? "name,value or name,value,unit"
                              : absl::StrCat(columns_.count, " fields"));
    }
    const auto field = [&](int column) {
      return column >= 0 && column < count ? fields[column] : std::string();
    };
    const std::string name = field(columns_.name);
    if (name.empty()) return lines_.Wrong("name", name, "a text");
    double value = 0;
    if (!absl::SimpleAtod(field(columns_.value), &value) ||
        !std::isfinite(value)) {
      return lines_.Wrong("value", field(columns_.value), "a finite number");
    }
    const std::string unit = field(columns_.unit);
    const std::string metric = field(columns_.metric);
    const double ns = unit.empty() ? 1 : NsOfUnit(unit);
    Collected& one = collected.Of(name);
    const bool is_time = ns > 0 && (metric.empty() || metric == "time");
    if (!is_time) {
      const std::string metric_name = metric.empty() ? unit : metric;
      if (metric_name == "time")
        return lines_.Wrong("unit", unit, "ns, us, ms or s");
      one.AddMetric(metric_name, unit, DirectionOfName(unit), value);
      return absl::OkStatus();
    }
    if (value < 0 || !FitsStoredTime(value * ns, 1)) {
      return lines_.Wrong("value", field(columns_.value),
                          "a time of at least 0 and less than 280 years");
    }
    one.times_ns.push_back(value * ns);
    return absl::OkStatus();
  }

  TextLines lines_;
  Columns columns_;
};

bool Recognises(absl::string_view content) {
  for (const absl::string_view line :
       absl::StrSplit(content.substr(0, 65536), '\n')) {
    if (IsSkipped(line)) continue;
    const auto fields = Split(absl::StripSuffix(line, "\r"));
    double unused;
    return fields.has_value() && fields->size() >= 2 &&
           (ParseHeader(*fields).has_value() ||
            (fields->size() <= 3 && absl::SimpleAtod((*fields)[1], &unused)));
  }
  return false;
}

absl::Status Read(const ImportedFile& file, CollectedResults& results,
                  proto::Run&) {
  return Parser(file).Parse(results);
}

}  // namespace

extern constexpr Importer kNameValueCsv = {"csv", Recognises, Read};

}  // namespace optrail::tracker

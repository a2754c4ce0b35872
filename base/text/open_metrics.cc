#include "base/text/open_metrics.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "base/text/utf8.h"

namespace optrail {

OpenMetricsFamily::OpenMetricsFamily(std::string name, absl::string_view type,
                                     absl::string_view unit,
                                     absl::string_view help)
    : name_(std::move(name)) {
  absl::StrAppend(&text_, "# TYPE ", name_, " ", type, "\n");
  if (!unit.empty()) {
    absl::StrAppend(&text_, "# UNIT ", name_, " ", unit, "\n");
  }
  absl::StrAppend(&text_, "# HELP ", name_, " ", help, "\n");
}

void OpenMetricsFamily::Add(absl::string_view suffix, absl::string_view labels,
                            double value) {
  absl::StrAppend(&text_, name_, suffix);
  if (!labels.empty()) absl::StrAppend(&text_, "{", labels, "}");
  absl::StrAppend(&text_, " ", absl::StrFormat("%.17g", value), "\n");
  has_samples_ = true;
}

std::string OpenMetricsLabel(absl::string_view name, absl::string_view value) {
  return absl::StrCat(
      name, "=\"",
      absl::StrReplaceAll(ReplaceInvalidUtf8(value),
                          {{"\\", "\\\\"}, {"\"", "\\\""}, {"\n", "\\n"}}),
      "\"");
}

}  // namespace optrail

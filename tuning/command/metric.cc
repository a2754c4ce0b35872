#include "tuning/command/metric.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/text/json.h"
#include "base/text/utf8.h"
#include "nlohmann/json.hpp"

namespace optrail::tuning {
namespace {

using Json = nlohmann::json;

// The start of the output, for messages.
std::string Excerpt(absl::string_view output) {
  constexpr size_t kLength = 80;
  const absl::string_view text = absl::StripAsciiWhitespace(output);
  if (text.empty()) return "nothing";
  const bool cut = text.size() > kLength;
  return absl::StrCat("'", EscapeForTerminal(TruncateUtf8(text, kLength)),
                      cut ? "...'" : "'");
}

absl::StatusOr<double> CheckValue(const Metric& metric, double value) {
  if (std::isfinite(value) && value > 0) return value;
  return absl::InvalidArgumentError(
      absl::StrCat("metric '", metric.name(), "' is ", value,
                   ", expected a positive, finite number"));
}

Json ParseObject(absl::string_view text) {
  // Whatever the command printed: nesting is bounded, and it is UTF-8.
  absl::StatusOr<Json> json = ParseJson(text, "the command's output");
  return json.ok() && json->is_object() ? *std::move(json) : Json();
}

// Null if the output holds no JSON object.
Json FindObject(absl::string_view output) {
  std::vector<absl::string_view> lines = absl::StrSplit(output, '\n');
  std::reverse(lines.begin(), lines.end());
  for (const absl::string_view line : lines) {
    const absl::string_view text = absl::StripAsciiWhitespace(line);
    if (!absl::StartsWith(text, "{")) continue;
    Json json = ParseObject(text);
    if (json.is_object()) return json;
  }
  return ParseObject(absl::StripAsciiWhitespace(output));
}

absl::StatusOr<double> ReadFromJson(const Metric& metric,
                                    absl::string_view output) {
  const Json root = FindObject(output);
  if (!root.is_object()) {
    return absl::InvalidArgumentError(
        absl::StrCat("the command printed no JSON object but ", Excerpt(output),
                     "; expected {\"", metric.name(), "\": NUMBER}"));
  }
  std::vector<std::string> path = {metric.name()};
  if (!root.contains(metric.name())) path = absl::StrSplit(metric.name(), '.');
  const Json* at = &root;
  for (const std::string& member : path) {
    if (!at->is_object() || !at->contains(member)) {
      return absl::InvalidArgumentError(
          absl::StrCat("the command's JSON has no '", metric.name(), "'"));
    }
    at = &(*at)[member];
  }
  if (!at->is_number()) {
    return absl::InvalidArgumentError(absl::StrCat("metric '", metric.name(),
                                                   "' is ", ShortJson(*at),
                                                   ", expected a number"));
  }
  return CheckValue(metric, at->get<double>());
}

absl::StatusOr<double> ReadByPattern(const Metric& metric,
                                     absl::string_view output) {
  re2::StringPiece rest(output.data(), output.size());
  std::string found, last;
  bool any = false;
  while (RE2::FindAndConsume(&rest, *metric.pattern, &found)) {
    any = true;
    last = found;
    // A match of nothing would be found for ever.
    if (found.empty() && !rest.empty()) rest.remove_prefix(1);
    if (rest.empty()) break;
  }
  if (!any) {
    return absl::InvalidArgumentError(
        absl::StrCat("the pattern of metric '", metric.name(),
                     "' matches nothing in ", Excerpt(output)));
  }
  double value = 0;
  if (!absl::SimpleAtod(last, &value)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "metric '", metric.name(), "' is '", last, "', expected a number"));
  }
  return CheckValue(metric, value);
}

}  // namespace

absl::Status SetPattern(absl::string_view text, std::vector<Metric>& metrics) {
  const std::pair<absl::string_view, absl::string_view> parts =
      absl::StrSplit(text, absl::MaxSplits('=', 1));
  const auto metric =
      std::find_if(metrics.begin(), metrics.end(),
                   [&](const Metric& m) { return m.name() == parts.first; });
  if (metric == metrics.end()) {
    return absl::InvalidArgumentError(
        absl::StrCat("metric pattern '", text,
                     "': expected NAME=REGEXP with the name of a metric"));
  }
  auto pattern = std::make_shared<RE2>(
      re2::StringPiece(parts.second.data(), parts.second.size()), RE2::Quiet);
  if (!pattern->ok()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "pattern of metric '", metric->name(), "': ", pattern->error()));
  }
  if (pattern->NumberOfCapturingGroups() < 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("pattern of metric '", metric->name(),
                     "': expected a group around the number, as in "
                     "throughput: ([0-9.]+)"));
  }
  metric->pattern = std::move(pattern);
  return absl::OkStatus();
}

absl::StatusOr<double> ReadMetric(const Metric& metric,
                                  absl::string_view output) {
  // A program that prints a file's name in Latin-1 still prints its numbers.
  const std::string text = ReplaceInvalidUtf8(output);
  return metric.pattern == nullptr ? ReadFromJson(metric, text)
                                   : ReadByPattern(metric, text);
}

}  // namespace optrail::tuning

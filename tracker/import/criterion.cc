#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "base/text/csv_reader.h"
#include "base/text/json.h"
#include "tracker/import/importers.h"
#include "tracker/import/json_fields.h"
#include "tracker/import/text_file.h"

namespace optrail::tracker {
namespace {

constexpr char kHeader[] =
    "group,function,value,throughput_num,throughput_type,sample_measured_value,"
    "unit,iteration_count";

constexpr char kTime[] = "a finite value of at least 0";
constexpr char kCount[] = "a count of at least 1";

// What `calls` calls took together. The samples of a benchmark have different
// numbers of calls: the most are stored, by which rounding changes least.
absl::Status AddSample(const JsonFields& entry, double value, double calls,
                       const std::string& unit, Collected& one) {
  if (const double ns = NsOfUnit(unit); ns > 0) {
    OPTRAIL_RETURN_IF_ERROR(
        entry.AddTime("the measured value", value / calls, ns, calls, one));
    one.calls_per_sample =
        std::max(one.calls_per_sample, static_cast<int64_t>(calls));
    return absl::OkStatus();
  }
  one.AddMetric(unit, unit, proto::LOWER_IS_BETTER, value / calls);
  return absl::OkStatus();
}

// A message of cargo-criterion; those that are not about a benchmark are
// skipped.
absl::Status AddMessage(const nlohmann::json& json, const std::string& where,
                        CollectedResults& results) {
  const JsonFields unnamed(json, where);
  OPTRAIL_ASSIGN_OR_RETURN(const std::string reason, unnamed.Name("reason"));
  if (reason != "benchmark-complete") return absl::OkStatus();
  OPTRAIL_ASSIGN_OR_RETURN(const std::string id, unnamed.Name("id"));
  const JsonFields entry(json, EntryName(where, "benchmark", id, 0));
  if (results.Has(id)) return entry.GivenTwice(id);
  OPTRAIL_ASSIGN_OR_RETURN(const std::string unit, entry.Name("unit"));
  OPTRAIL_ASSIGN_OR_RETURN(const std::vector<double> values,
                           entry.Numbers("measured_values", 0, kTime));
  OPTRAIL_ASSIGN_OR_RETURN(const std::vector<double> calls,
                           entry.Numbers("iteration_count", 1, kCount));
  if (values.empty() || values.size() != calls.size()) {
    return entry.Wrong("measured_values",
                       absl::StrCat("has ", values.size(), " values"),
                       absl::StrCat("one for each of the ", calls.size(),
                                    " of iteration_count"));
  }
  for (size_t i = 0; i < values.size(); ++i) {
    OPTRAIL_RETURN_IF_ERROR(
        AddSample(entry, values[i], calls[i], unit, results.Of(id)));
  }
  return absl::OkStatus();
}

absl::Status ReadMessages(const ImportedFile& file, CollectedResults& results) {
  TextLines lines(file);
  return lines.ForEach([&](absl::string_view line) -> absl::Status {
    if (absl::StripAsciiWhitespace(line).empty()) return absl::OkStatus();
    const std::string where = absl::StrCat(file.path, ":", lines.number());
    OPTRAIL_ASSIGN_OR_RETURN(const nlohmann::json json, ParseJson(line, where));
    return AddMessage(json, where, results);
  });
}

// A row of raw.csv: `fields` are as in kHeader.
absl::Status AddRow(const std::vector<absl::string_view>& fields,
                    const std::string& path, const CsvReader& reader,
                    CollectedResults& results) {
  enum { kGroup, kFunction, kValue, kNumber, kType, kMeasured, kUnit, kCalls };
  if (fields.size() != kCalls + 1) {
    return reader.ErrorHere(absl::StrCat("the row has ", fields.size(),
                                         " fields, expected ", kHeader));
  }
  std::string id(fields[kGroup]);
  for (const int part : {kFunction, kValue}) {
    if (!fields[part].empty()) absl::StrAppend(&id, "/", fields[part]);
  }
  if (id.empty()) return reader.ErrorHere("group is empty, expected a text");
  double value = 0, calls = 0;
  if (!absl::SimpleAtod(fields[kMeasured], &value) || !std::isfinite(value) ||
      value < 0) {
    return reader.ErrorHere(absl::StrCat("sample_measured_value is ",
                                         QuoteCsvField(fields[kMeasured]),
                                         ", expected ", kTime));
  }
  if (!absl::SimpleAtod(fields[kCalls], &calls) || !std::isfinite(calls) ||
      calls < 1) {
    return reader.ErrorHere(absl::StrCat("iteration_count is ",
                                         QuoteCsvField(fields[kCalls]),
                                         ", expected ", kCount));
  }
  if (fields[kUnit].empty()) {
    return reader.ErrorHere("unit is empty, expected ns or another unit");
  }
  const nlohmann::json none;
  const std::string where = absl::StrCat(path, ":", reader.line());
  return AddSample(JsonFields(none, EntryName(where, "benchmark", id, 0)),
                   value, calls, std::string(fields[kUnit]), results.Of(id));
}

absl::Status ReadCsv(const ImportedFile& file, CollectedResults& results) {
  // Refuses what is no text, before names are stored.
  TextLines lines(file);
  OPTRAIL_RETURN_IF_ERROR(
      lines.ForEach([](absl::string_view) { return absl::OkStatus(); }));
  CsvReader reader(file.content, file.path);
  std::vector<absl::string_view> fields;
  OPTRAIL_RETURN_IF_ERROR(reader.Next(fields).status());  // the header
  while (true) {
    OPTRAIL_ASSIGN_OR_RETURN(const bool more, reader.Next(fields));
    if (!more) return absl::OkStatus();
    OPTRAIL_RETURN_IF_ERROR(AddRow(fields, file.path, reader, results));
  }
}

bool IsCsv(absl::string_view content) {
  return absl::StartsWith(content, kHeader);
}

bool Recognises(absl::string_view content) {
  return IsCsv(content) ||
         LooksLike(content, '{', {"\"reason\"", "-complete\""});
}

absl::Status Read(const ImportedFile& file, CollectedResults& results,
                  proto::Run& run) {
  run.set_suite("criterion");
  return IsCsv(file.content) ? ReadCsv(file, results)
                             : ReadMessages(file, results);
}

}  // namespace

extern constexpr Importer kCriterion = {"criterion", Recognises, Read};

}  // namespace optrail::tracker

#include "tracker/import/hyperfine.h"

#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "base/json.h"
#include "base/status_macros.h"
#include "tracker/import/collected.h"
#include "tracker/import/json_fields.h"

namespace optrail::tracker {
namespace {

constexpr double kNsPerSecond = 1e9;
constexpr char kTimeExpected[] = "a finite time in seconds of at least 0";

// What the runs' exit codes say; null for a run that a signal ended.
absl::Status AddExitCodes(const JsonFields& entry, Collected& collected) {
  const nlohmann::json* codes = entry.Find("exit_codes");
  if (codes == nullptr || codes->is_null()) return absl::OkStatus();
  if (!codes->is_array()) {
    return entry.Wrong("exit_codes", absl::StrCat("is ", ShortJson(*codes)),
                       "an array");
  }
  std::set<std::string> failures;
  for (const nlohmann::json& code : *codes) {
    if (code.is_null()) {
      collected.outcome = proto::CRASHED;
      collected.detail = "a run was killed by a signal";
    } else if (!code.is_number_integer()) {
      return entry.Wrong("exit_codes", absl::StrCat("holds ", ShortJson(code)),
                         "integers or null");
    } else if (code != 0) {
      failures.insert(ShortJson(code));
    }
  }
  if (!failures.empty()) {
    collected.labels.insert(
        absl::StrCat("exit code ", absl::StrJoin(failures, ", ")));
  }
  return absl::OkStatus();
}

absl::Status AddTimes(const JsonFields& entry, Collected& collected) {
  OPTRAIL_ASSIGN_OR_RETURN(const std::vector<double> seconds,
                           entry.Numbers("times", 0, kTimeExpected));
  collected.times_are_processes = true;
  for (const double second : seconds) {
    if (!FitsStoredTime(second * kNsPerSecond, 1)) {
      return entry.Wrong("times", absl::StrCat("holds ", second),
                         "less than 280 years");
    }
    collected.times_ns.push_back(second * kNsPerSecond);
  }
  if (!seconds.empty()) return absl::OkStatus();
  const char* field = entry.Has("median") ? "median" : "mean";
  OPTRAIL_ASSIGN_OR_RETURN(const double second,
                           entry.Number(field, 0, kTimeExpected));
  collected.aggregate_ns = second * kNsPerSecond;
  collected.aggregate = field;
  return absl::OkStatus();
}

class Impl : public Importer {
 public:
  absl::string_view format() const override { return "hyperfine"; }

  bool Recognises(absl::string_view content) const override {
    const absl::string_view head =
        absl::StripLeadingAsciiWhitespace(content).substr(0, 4096);
    return absl::StartsWith(head, "{") &&
           absl::StrContains(head, "\"results\"") &&
           absl::StrContains(head, "\"command\"");
  }

  absl::StatusOr<proto::Run> Parse(
      const ImportedFile& file, const ImportOptions& options) const override {
    OPTRAIL_ASSIGN_OR_RETURN(const nlohmann::json json,
                             ParseJson(file.content, file.path));
    const nlohmann::json* results = JsonFields(json, file.path).Find("results");
    if (results == nullptr || !results->is_array()) {
      return absl::InvalidArgumentError(
          absl::StrCat(file.path, ": expected an object with an array ",
                       "'results', as --export-json writes it"));
    }
    CollectedResults collected;
    for (size_t i = 0; i < results->size(); ++i) {
      const std::string command =
          JsonFields((*results)[i], file.path).Text("command");
      const JsonFields entry(
          (*results)[i],
          absl::StrCat(file.path, ": result ",
                       command.empty()
                           ? absl::StrCat("number ", i + 1)
                           : absl::StrCat("'", command.substr(0, 100), "'")));
      if (command.empty()) return entry.Wrong("command", "is absent", "a text");
      Collected& one = collected.Of(command);
      OPTRAIL_RETURN_IF_ERROR(AddTimes(entry, one));
      OPTRAIL_RETURN_IF_ERROR(AddExitCodes(entry, one));
      OPTRAIL_ASSIGN_OR_RETURN(
          const std::vector<double> bytes,
          entry.Numbers("memory_usage_byte", 0, "a number of bytes"));
      for (const double value : bytes) {
        one.AddMetric("memory", "B", proto::LOWER_IS_BETTER, value);
      }
    }
    proto::Run run;
    run.set_source(std::string(format()));
    run.set_started_unix_ns(options.default_started_unix_ns);
    run.mutable_hardware()->set_device_kind(proto::CPU);
    run.mutable_hardware()->set_id(
        options.hardware_id.empty() ? "imported" : options.hardware_id);
    collected.MoveTo(proto::Conditions(), &run);
    return run;
  }
};

}  // namespace

const Importer* HyperfineImporter() {
  static const Impl* const importer = new Impl;
  return importer;
}

}  // namespace optrail::tracker

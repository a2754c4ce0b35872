#include "tracker/import/pytest_benchmark.h"

#include <cmath>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "absl/time/time.h"
#include "base/json.h"
#include "base/status_macros.h"
#include "re2/re2.h"
#include "tracker/import/collected.h"
#include "tracker/import/json_fields.h"
#include "tracker/import/suite_name.h"

namespace optrail::tracker {
namespace {

constexpr double kNsPerSecond = 1e9;
constexpr char kTimeExpected[] = "a finite time in seconds of at least 0";

const nlohmann::json& ObjectAt(const JsonFields& fields, const char* name) {
  static const auto* const empty = new nlohmann::json(nlohmann::json::object());
  const nlohmann::json* found = fields.Find(name);
  return found != nullptr && found->is_object() ? *found : *empty;
}

absl::Status AddStats(const JsonFields& stats, Collected& collected) {
  OPTRAIL_ASSIGN_OR_RETURN(const std::vector<double> rounds,
                           stats.Numbers("data", 0, kTimeExpected));
  double calls = 1;
  if (stats.Has("iterations")) {
    OPTRAIL_ASSIGN_OR_RETURN(
        calls, stats.Number("iterations", 1, "a count of at least 1"));
  }
  if (rounds.empty()) {
    OPTRAIL_ASSIGN_OR_RETURN(const double seconds,
                             stats.Number("median", 0, kTimeExpected));
    collected.aggregate_ns = seconds * kNsPerSecond;
    collected.aggregate = "median";
    return absl::OkStatus();
  }
  for (const double seconds : rounds) {
    if (!FitsStoredTime(seconds * kNsPerSecond, calls)) {
      return stats.Wrong("data", absl::StrCat("holds ", seconds),
                         "less than 280 years");
    }
    collected.times_ns.push_back(seconds * kNsPerSecond);
  }
  collected.calls_per_sample = static_cast<int64_t>(calls);
  return absl::OkStatus();
}

void AddExtraInfo(const nlohmann::json& extra, Collected& collected) {
  for (const auto& [field, value] : extra.items()) {
    if (value.is_number() && std::isfinite(value.get<double>())) {
      collected.AddMetric(field, value.get<double>());
    }
  }
}

void ReadMachine(const JsonFields& machine, const std::string& id,
                 proto::Run* run) {
  const JsonFields cpu(ObjectAt(machine, "cpu"), "");
  // "brand_raw" since py-cpuinfo 6, "brand" before.
  const std::string brand =
      cpu.Has("brand_raw") ? cpu.Text("brand_raw") : cpu.Text("brand");
  proto::Hardware* hardware = run->mutable_hardware();
  hardware->set_device_kind(proto::CPU);
  hardware->set_model(brand);
  if (const auto count = cpu.Count("count");
      count.has_value() && *count > 0 && *count < 1 << 20) {
    hardware->set_cores(static_cast<int32_t>(*count));
  }
  std::string made = "imported";
  const std::string model = HardwareIdPart(brand);
  if (!model.empty()) absl::StrAppend(&made, "-", model);
  if (hardware->has_cores())
    absl::StrAppend(&made, "-", hardware->cores(), "c");
  hardware->set_id(id.empty() ? made : id);
  run->mutable_toolchain()->set_os(machine.Text("system"));
  run->mutable_toolchain()->set_os_kernel(machine.Text("release"));
  const std::string implementation = machine.Text("python_implementation");
  if (!implementation.empty()) {
    run->mutable_toolchain()->set_compiler(
        absl::StrCat(implementation, " ", machine.Text("python_version")));
  }
}

void ReadCommit(const JsonFields& info, proto::Commit* commit) {
  static const RE2* const kHash = new RE2("[0-9a-f]{40}|[0-9a-f]{64}");
  const std::string id = info.Text("id");
  if (!RE2::FullMatch(id, *kHash)) return;  // "unversioned"
  commit->set_id(id);
  commit->set_dirty(info.Flag("dirty"));
  const std::string branch = info.Text("branch");
  if (!absl::StartsWith(branch, "(")) commit->set_branch(branch);
}

int64_t ReadDate(const std::string& text, int64_t default_unix_ns) {
  absl::Time time;
  std::string error;
  for (const char* format : {absl::RFC3339_full, "%Y-%m-%dT%H:%M:%E*S"}) {
    if (absl::ParseTime(format, text, &time, &error)) {
      return absl::ToUnixNanos(time);
    }
  }
  return default_unix_ns;
}

class Impl : public Importer {
 public:
  absl::string_view format() const override { return "pytest_benchmark"; }

  bool Recognises(absl::string_view content) const override {
    const absl::string_view head =
        absl::StripLeadingAsciiWhitespace(content).substr(0, 65536);
    return absl::StartsWith(head, "{") &&
           absl::StrContains(head, "\"machine_info\"");
  }

  absl::StatusOr<proto::Run> Parse(
      const ImportedFile& file, const ImportOptions& options) const override {
    OPTRAIL_ASSIGN_OR_RETURN(const nlohmann::json json,
                             ParseJson(file.content, file.path));
    const JsonFields top(json, file.path);
    const nlohmann::json* benchmarks = top.Find("benchmarks");
    if (benchmarks == nullptr || !benchmarks->is_array()) {
      return absl::InvalidArgumentError(
          absl::StrCat(file.path, ": expected an object with an array ",
                       "'benchmarks', as --benchmark-json writes it"));
    }
    CollectedResults collected;
    for (size_t i = 0; i < benchmarks->size(); ++i) {
      OPTRAIL_RETURN_IF_ERROR(
          AddBenchmark((*benchmarks)[i], file.path, i, collected));
    }
    proto::Run run;
    run.set_source(std::string(format()));
    run.set_suite("pytest");
    run.set_started_unix_ns(
        ReadDate(top.Text("datetime"), options.default_started_unix_ns));
    ReadMachine(JsonFields(ObjectAt(top, "machine_info"), ""),
                options.hardware_id, &run);
    ReadCommit(JsonFields(ObjectAt(top, "commit_info"), ""),
               run.mutable_commit());
    collected.MoveTo(proto::Conditions(), &run);
    return run;
  }

 private:
  static absl::Status AddBenchmark(const nlohmann::json& json,
                                   const std::string& path, size_t index,
                                   CollectedResults& collected) {
    const JsonFields unnamed(json, path);
    std::string name = unnamed.Text("fullname");
    if (name.empty()) name = unnamed.Text("name");
    const JsonFields entry(
        json, absl::StrCat(path, ": benchmark ",
                           name.empty()
                               ? absl::StrCat("number ", index + 1)
                               : absl::StrCat("'", name.substr(0, 100), "'")));
    if (name.empty()) return entry.Wrong("fullname", "is absent", "a text");
    const nlohmann::json* stats = entry.Find("stats");
    if (stats == nullptr || !stats->is_object()) {
      return entry.Wrong("stats",
                         stats == nullptr
                             ? "is absent"
                             : absl::StrCat("is ", ShortJson(*stats)),
                         "an object");
    }
    Collected& one = collected.Of(name);
    OPTRAIL_RETURN_IF_ERROR(AddStats(
        JsonFields(*stats, absl::StrCat(entry.where(), ": stats")), one));
    AddExtraInfo(ObjectAt(entry, "extra_info"), one);
    if (const std::string group = entry.Text("group"); !group.empty()) {
      one.labels.insert(absl::StrCat("group: ", group));
    }
    return absl::OkStatus();
  }
};

}  // namespace

const Importer* PytestBenchmarkImporter() {
  static const Impl* const importer = new Impl;
  return importer;
}

}  // namespace optrail::tracker

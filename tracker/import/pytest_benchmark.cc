#include <cmath>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/json.h"
#include "base/status_macros.h"
#include "re2/re2.h"
#include "tracker/import/importers.h"
#include "tracker/import/json_fields.h"
#include "tracker/import/suite_name.h"

namespace optrail::tracker {
namespace {

const nlohmann::json& ObjectAt(const JsonFields& fields, const char* name) {
  static const auto* const empty = new nlohmann::json(nlohmann::json::object());
  const nlohmann::json* found = fields.Find(name);
  return found != nullptr && found->is_object() ? *found : *empty;
}

absl::Status AddStats(const JsonFields& stats, Collected& collected) {
  double calls = 1;
  if (stats.Has("iterations")) {
    OPTRAIL_ASSIGN_OR_RETURN(
        calls, stats.Number("iterations", 1, "a count of at least 1"));
  }
  collected.calls_per_sample = static_cast<int64_t>(calls);
  return stats.AddSeconds("data", calls, "median", collected);
}

void AddExtraInfo(const nlohmann::json& extra, Collected& collected) {
  for (const auto& [field, value] : extra.items()) {
    if (value.is_number() && std::isfinite(value.get<double>())) {
      collected.AddMetric(field, value.get<double>());
    }
  }
}

void ReadMachine(const JsonFields& machine, proto::Run* run) {
  const JsonFields cpu(ObjectAt(machine, "cpu"), "");
  // "brand_raw" since py-cpuinfo 6, "brand" before.
  const std::string brand =
      cpu.Has("brand_raw") ? cpu.Text("brand_raw") : cpu.Text("brand");
  proto::Hardware* hardware = run->mutable_hardware();
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
  hardware->set_id(made);
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

absl::Status AddBenchmark(const nlohmann::json& json, const std::string& path,
                          size_t index, CollectedResults& collected) {
  const JsonFields unnamed(json, path);
  std::string name = unnamed.Text("fullname");
  if (name.empty()) name = unnamed.Text("name");
  const JsonFields entry(json, EntryName(path, "benchmark", name, index));
  if (name.empty()) return entry.Wrong("fullname", "is absent", "a text");
  const nlohmann::json* stats = entry.Find("stats");
  if (stats == nullptr || !stats->is_object()) {
    return entry.Wrong(
        "stats",
        stats == nullptr ? "is absent" : absl::StrCat("is ", ShortJson(*stats)),
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

bool Recognises(absl::string_view content) {
  const absl::string_view head =
      absl::StripLeadingAsciiWhitespace(content).substr(0, 65536);
  return absl::StartsWith(head, "{") &&
         absl::StrContains(head, "\"machine_info\"");
}

absl::Status Read(const ImportedFile& file, CollectedResults& results,
                  proto::Run& run) {
  OPTRAIL_ASSIGN_OR_RETURN(const nlohmann::json json,
                           ParseJson(file.content, file.path));
  const JsonFields top(json, file.path);
  OPTRAIL_ASSIGN_OR_RETURN(const nlohmann::json* benchmarks,
                           top.Results("benchmarks", "--benchmark-json"));
  for (size_t i = 0; i < benchmarks->size(); ++i) {
    OPTRAIL_RETURN_IF_ERROR(
        AddBenchmark((*benchmarks)[i], file.path, i, results));
  }
  run.set_suite("pytest");
  SetStart(top.Text("datetime"), run);
  ReadMachine(JsonFields(ObjectAt(top, "machine_info"), ""), &run);
  ReadCommit(JsonFields(ObjectAt(top, "commit_info"), ""),
             run.mutable_commit());
  return absl::OkStatus();
}

}  // namespace

extern constexpr Importer kPytestBenchmark = {"pytest_benchmark", Recognises,
                                              Read};

}  // namespace optrail::tracker

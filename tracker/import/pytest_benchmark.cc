#include <cmath>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "base/text/json.h"
#include "tracker/import/importers.h"
#include "tracker/import/json_fields.h"
#include "tracker/import/text_file.h"

namespace optrail::tracker {
namespace {

absl::Status AddStats(const JsonFields& stats, Collected& collected) {
  double calls = 1;
  if (stats.Has("iterations")) {
    OPTRAIL_ASSIGN_OR_RETURN(
        calls, stats.Number("iterations", 1, "a count of at least 1"));
  }
  collected.calls_per_sample = static_cast<int64_t>(calls);
  return stats.AddSeconds("data", calls, "median", collected);
}

void AddExtraInfo(const JsonFields& extra, Collected& collected) {
  for (const auto& [field, value] : extra.json().items()) {
    if (value.is_number() && std::isfinite(value.get<double>())) {
      collected.AddMetric(field, value.get<double>());
    }
  }
}

void ReadMachine(const JsonFields& machine, proto::Run* run) {
  const JsonFields cpu = machine.Part("cpu");
  // "brand_raw" since py-cpuinfo 6, "brand" before.
  const std::string brand =
      cpu.Has("brand_raw") ? cpu.Text("brand_raw") : cpu.Text("brand");
  SetMachine(brand, cpu.Count("count"), *run);
  run->mutable_toolchain()->set_os(machine.Text("system"));
  run->mutable_toolchain()->set_os_kernel(machine.Text("release"));
  const std::string implementation = machine.Text("python_implementation");
  if (!implementation.empty()) {
    run->mutable_toolchain()->set_compiler(
        absl::StrCat(implementation, " ", machine.Text("python_version")));
  }
}

void ReadCommit(const JsonFields& info, proto::Commit* commit) {
  SetCommit(info.Text("id"), commit);  // or "unversioned"
  if (commit->id().empty()) return;
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
  OPTRAIL_ASSIGN_OR_RETURN(const JsonFields stats, entry.Object("stats"));
  Collected& one = collected.Of(name);
  OPTRAIL_RETURN_IF_ERROR(AddStats(stats, one));
  AddExtraInfo(entry.Part("extra_info"), one);
  if (const std::string group = entry.Text("group"); !group.empty()) {
    one.labels.insert(absl::StrCat("group: ", group));
  }
  return absl::OkStatus();
}

bool Recognises(absl::string_view content) {
  return LooksLike(content, '{', {"\"machine_info\""});
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
  OPTRAIL_RETURN_IF_ERROR(top.ReadStart("datetime", run));
  ReadMachine(top.Part("machine_info"), &run);
  ReadCommit(top.Part("commit_info"), run.mutable_commit());
  return absl::OkStatus();
}

}  // namespace

extern constexpr Importer kPytestBenchmark = {"pytest_benchmark", Recognises,
                                              Read};

}  // namespace optrail::tracker

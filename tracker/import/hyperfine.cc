#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"
#include "base/text/json.h"
#include "tracker/import/importers.h"
#include "tracker/import/json_fields.h"
#include "tracker/import/text_file.h"

namespace optrail::tracker {
namespace {

// An exit code is null for a run that a signal ended.
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

// Each time is a process; so is each memory usage where there are as many.
void AddProcesses(const Collected& all, const std::vector<double>& bytes,
                  const std::string& command, CollectedResults& results) {
  results.Of(command) = all;
  for (size_t i = 0; i < all.times_ns.size(); ++i) {
    Collected& one = results.Of(command, static_cast<int64_t>(i));
    one.times_ns = {all.times_ns[i]};
    if (bytes.size() != all.times_ns.size()) continue;
    one.AddMetric("memory", "B", proto::LOWER_IS_BETTER, bytes[i]);
  }
}

bool Recognises(absl::string_view content) {
  return LooksLike(content.substr(0, 4096), '{',
                   {"\"results\"", "\"command\""});
}

absl::Status Read(const ImportedFile& file, CollectedResults& results,
                  proto::Run&) {
  OPTRAIL_ASSIGN_OR_RETURN(const nlohmann::json json,
                           ParseJson(file.content, file.path));
  OPTRAIL_ASSIGN_OR_RETURN(
      const nlohmann::json* entries,
      JsonFields(json, file.path).Results("results", "--export-json"));
  for (size_t i = 0; i < entries->size(); ++i) {
    const std::string command =
        JsonFields((*entries)[i], file.path).Text("command");
    const JsonFields entry((*entries)[i],
                           EntryName(file.path, "result", command, i));
    if (command.empty()) return entry.Wrong("command", "is absent", "a text");
    Collected all;
    OPTRAIL_RETURN_IF_ERROR(entry.AddSeconds(
        "times", 1, entry.Has("median") ? "median" : "mean", all));
    OPTRAIL_RETURN_IF_ERROR(AddExitCodes(entry, all));
    OPTRAIL_ASSIGN_OR_RETURN(
        const std::vector<double> bytes,
        entry.Numbers("memory_usage_byte", 0, "a number of bytes"));
    AddProcesses(all, bytes, command, results);
  }
  return absl::OkStatus();
}

}  // namespace

extern constexpr Importer kHyperfine = {"hyperfine", Recognises, Read};

}  // namespace optrail::tracker

#include "tracker/watch/failures.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/file/file.h"
#include "base/hash/hash.h"
#include "base/status_macros.h"
#include "base/text/json.h"

namespace optrail::tracker {

absl::StatusOr<Failures> Failures::Read(std::string path,
                                        const std::string& commands) {
  Failures failures(std::move(path), Fingerprint(commands));
  if (!FileExists(failures.path_)) return failures;
  OPTRAIL_ASSIGN_OR_RETURN(const std::string text, ReadFile(failures.path_));
  for (const absl::string_view line :
       absl::StrSplit(text, '\n', absl::SkipEmpty())) {
    const auto json = ParseJson(line, failures.path_);
    if (!json.ok() || !json->is_object()) continue;
    const auto field = [&](const char* name) {
      const auto found = json->find(name);
      return found != json->end() && found->is_string()
                 ? found->get<std::string>()
                 : std::string();
    };
    if (field("commands") != failures.commands_id_) continue;
    failures.by_commit_[field("commit")] = field("what");
  }
  return failures;
}

const std::string* Failures::Of(const std::string& commit) const {
  const auto found = by_commit_.find(commit);
  return found == by_commit_.end() ? nullptr : &found->second;
}

absl::Status Failures::Add(const std::string& commit, const std::string& what) {
  by_commit_[commit] = what;
  const nlohmann::ordered_json json = {
      {"commit", commit}, {"commands", commands_id_}, {"what", what}};
  // A line feed first: what was cut off before stays alone on its line.
  const std::string line = absl::StrCat(
      "\n", json.dump(-1, ' ', true, nlohmann::json::error_handler_t::replace),
      "\n");
  const int descriptor =
      open(path_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  if (descriptor < 0) return FileError("opening", path_, errno);
  const ssize_t written = write(descriptor, line.data(), line.size());
  const int error = errno;
  close(descriptor);
  if (written == static_cast<ssize_t>(line.size())) return absl::OkStatus();
  return FileError("writing", path_, written < 0 ? error : ENOSPC);
}

}  // namespace optrail::tracker

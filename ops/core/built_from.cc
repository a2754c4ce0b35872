#include "ops/core/built_from.h"

#include <map>
#include <utility>

#include "absl/status/statusor.h"
#include "base/file/file.h"
#include "base/hash/hash.h"

namespace optrail::ops {
namespace {

using FilesByBackend =
    std::map<std::pair<std::string, std::string>, std::vector<BuiltFile>>;

FilesByBackend& AllFiles() {
  static auto* const files = new FilesByBackend;
  return *files;
}

}  // namespace

void AddBuiltFrom(absl::string_view op, absl::string_view backend,
                  std::vector<BuiltFile> files) {
  AllFiles()[{std::string(op), std::string(backend)}] = std::move(files);
}

const std::vector<BuiltFile>& BuiltFrom(absl::string_view op,
                                        absl::string_view backend) {
  static const auto* const none = new std::vector<BuiltFile>;
  const auto found = AllFiles().find({std::string(op), std::string(backend)});
  return found == AllFiles().end() ? *none : found->second;
}

std::vector<std::string> ChangedSources(absl::string_view op,
                                        absl::string_view backend,
                                        const std::string& workspace) {
  std::vector<std::string> changed;
  for (const BuiltFile& file : BuiltFrom(op, backend)) {
    const absl::StatusOr<std::string> contents =
        ReadFile(JoinPath(workspace, file.path));
    if (contents.ok() && Fingerprint(*contents) != file.fingerprint) {
      changed.push_back(file.path);
    }
  }
  return changed;
}

}  // namespace optrail::ops

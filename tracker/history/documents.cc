#include "tracker/history/documents.h"

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/file/file.h"
#include "base/status_macros.h"
#include "tracker/history/record_store.h"

namespace optrail::tracker {
namespace {

DocumentsOpener url_opener = nullptr;

// Names come from people and from certificates, and become paths here.
absl::Status CheckName(absl::string_view name) {
  if (!name.empty() && name[0] != '.' && !absl::StrContains(name, '/')) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "document '", name, "': expected the name of a file, without a folder"));
}

class Files : public Documents {
 public:
  explicit Files(const std::string& folder)
      : Documents(folder), folder_(folder) {}

  std::string HowToRemove(absl::string_view) const override {
    return "move it out of the folder";
  }
  absl::StatusOr<std::vector<std::string>> List() const override {
    auto names = ListDirectory(folder_);
    if (absl::IsNotFound(names.status())) return std::vector<std::string>();
    if (!names.ok()) return names;
    // No document has such a name: files that are being written, and those that
    // editors and file systems leave.
    names->erase(std::remove_if(names->begin(), names->end(),
                                [](const std::string& name) {
                                  return absl::StartsWith(name, ".");
                                }),
                 names->end());
    return names;
  }
  absl::StatusOr<std::string> Read(const std::string& name) const override {
    OPTRAIL_RETURN_IF_ERROR(CheckName(name));
    return ReadRegularFile(JoinPath(folder_, name));
  }
  absl::Status Put(const std::string& name,
                   const std::string& bytes) const override {
    OPTRAIL_RETURN_IF_ERROR(CheckName(name));
    OPTRAIL_RETURN_IF_ERROR(CreateDirectories(folder_));
    return WriteNewFileAtomically(JoinPath(folder_, name), bytes);
  }

 private:
  const std::string folder_;
};

}  // namespace

std::string Documents::PlaceOf(absl::string_view name) const {
  return absl::StrCat(place_, "/", name);
}

absl::StatusOr<std::unique_ptr<Documents>> OpenDocuments(
    absl::string_view history, absl::string_view folder) {
  if (!IsStoreUrl(history)) {
    return std::make_unique<Files>(
        JoinPath(std::string(history), std::string(folder)));
  }
  if (url_opener != nullptr) return url_opener(history, folder);
  return absl::UnimplementedError(
      "--history=postgresql://...: this program was built without PostgreSQL; "
      "next: use `optrail`, or a folder");
}

bool RegisterUrlDocuments(DocumentsOpener opener) {
  url_opener = opener;
  return true;
}

}  // namespace optrail::tracker

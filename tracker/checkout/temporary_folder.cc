#include "tracker/checkout/temporary_folder.h"

#include <stdlib.h>

#include <cerrno>
#include <filesystem>
#include <iostream>
#include <system_error>

#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "base/file/file.h"

namespace optrail::tracker {
namespace {

namespace fs = std::filesystem;

// Never follows a link out of the folder.
void MakeFoldersWritable(const fs::path& root) {
  std::error_code ignored;
  fs::permissions(root, fs::perms::owner_all, fs::perm_options::add, ignored);
  fs::directory_iterator entries(root, ignored);
  if (ignored) return;
  for (const fs::directory_entry& entry : entries) {
    if (entry.symlink_status(ignored).type() == fs::file_type::directory) {
      MakeFoldersWritable(entry.path());
    }
  }
}

}  // namespace

absl::StatusOr<std::unique_ptr<TemporaryFolder>> TemporaryFolder::Create(
    absl::string_view name) {
  const char* const parent = std::getenv("TMPDIR");
  std::string path =
      JoinPath(parent != nullptr && parent[0] == '/' ? parent : "/tmp",
               absl::StrCat("optrail-", name, "-XXXXXX"));
  if (mkdtemp(path.data()) == nullptr) {
    return FileError("creating a temporary folder", path, errno);
  }
  return absl::WrapUnique(new TemporaryFolder(std::move(path)));
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code error;
  fs::remove_all(path_, error);
  if (!error) return;
  MakeFoldersWritable(path_);
  fs::remove_all(path_, error);
  if (error) {
    std::cerr << "warning: " << path_
              << " could not be removed: " << error.message() << "\n";
  }
}

}  // namespace optrail::tracker

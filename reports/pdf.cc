#include "reports/pdf.h"

#include <stdlib.h>

#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "base/file.h"
#include "base/status_macros.h"
#include "base/subprocess.h"

namespace optrail::reports {
namespace {

// A folder of our own that goes away with everything in it.
class TemporaryFolder {
 public:
  static absl::StatusOr<TemporaryFolder> Create() {
    std::error_code error;
    const std::filesystem::path base =
        std::filesystem::temp_directory_path(error);
    if (error) return absl::InternalError("no folder for temporary files");
    std::string path = (base / "optrail-report-XXXXXX").string();
    if (mkdtemp(path.data()) == nullptr) {
      return absl::InternalError(absl::StrCat("creating ", path, " failed"));
    }
    return TemporaryFolder(path);
  }
  TemporaryFolder(TemporaryFolder&& other) noexcept
      : path_(std::move(other.path_)) {
    other.path_.clear();
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
  }
  const std::string& path() const { return path_; }

 private:
  explicit TemporaryFolder(std::string path) : path_(std::move(path)) {}
  std::string path_;
};

}  // namespace

absl::StatusOr<std::string> PrintToPdf(absl::string_view html) {
  OPTRAIL_ASSIGN_OR_RETURN(const TemporaryFolder folder,
                           TemporaryFolder::Create());
  const std::string page = JoinPath(folder.path(), "report.html");
  const std::string pdf = JoinPath(folder.path(), "report.pdf");
  OPTRAIL_RETURN_IF_ERROR(WriteFileAtomically(page, html));
  for (const char* browser :
       {"chromium", "chromium-browser", "google-chrome"}) {
    CommandOptions limits;
    limits.timeout = absl::Minutes(1);
    const absl::StatusOr<CommandResult> result = RunCommand(
        {browser, "--headless", "--no-sandbox", "--disable-gpu",
         "--no-first-run", "--disable-background-networking",
         "--disable-component-update", "--disable-sync",
         absl::StrCat("--user-data-dir=", JoinPath(folder.path(), "profile")),
         "--no-pdf-header-footer", "--virtual-time-budget=5000",
         absl::StrCat("--print-to-pdf=", pdf), absl::StrCat("file://", page)},
        limits);
    if (absl::IsNotFound(result.status())) continue;
    OPTRAIL_RETURN_IF_ERROR(result.status());
    if (!result->exit.ok() || !FileExists(pdf)) {
      return absl::InternalError(
          absl::StrCat(browser, " printed no PDF: ", result->exit.ToString()));
    }
    return ReadFile(pdf);
  }
  return absl::UnimplementedError("unsupported here: chromium not found");
}

}  // namespace optrail::reports

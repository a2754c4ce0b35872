#include "reports/pdf.h"

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "base/file/file.h"
#include "base/process/subprocess.h"
#include "base/status_macros.h"
#include "tracker/checkout/temporary_folder.h"

namespace optrail::reports {

absl::StatusOr<std::string> PrintToPdf(absl::string_view html) {
  OPTRAIL_ASSIGN_OR_RETURN(const auto folder,
                           tracker::TemporaryFolder::Create("report"));
  const std::string page = JoinPath(folder->path(), "report.html");
  const std::string pdf = JoinPath(folder->path(), "report.pdf");
  OPTRAIL_RETURN_IF_ERROR(WriteFileAtomically(page, html));
  for (const char* browser :
       {"chromium", "chromium-browser", "google-chrome"}) {
    CommandOptions limits;
    limits.timeout = absl::Minutes(1);
    const absl::StatusOr<CommandResult> result = RunCommand(
        {browser, "--headless", "--no-sandbox", "--disable-gpu",
         "--no-first-run", "--disable-background-networking",
         "--disable-component-update", "--disable-sync",
         absl::StrCat("--user-data-dir=", JoinPath(folder->path(), "profile")),
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

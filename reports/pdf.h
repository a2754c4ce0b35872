#ifndef OPTRAIL_REPORTS_PDF_H_
#define OPTRAIL_REPORTS_PDF_H_

// Prints a page with headless Chromium, where one is installed.

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace optrail::reports {

// The PDF's bytes. Unimplemented ("unsupported here: chromium not found")
// without a browser; its own message where it fails or takes over a minute.
absl::StatusOr<std::string> PrintToPdf(absl::string_view html);

}  // namespace optrail::reports

#endif  // OPTRAIL_REPORTS_PDF_H_

#include "base/file/failed_file.h"

#include <utility>

#include "absl/strings/cord.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"

namespace optrail {

// Defined by file.cc, which writes it: "2 no/such/file".
extern const char kFilePayload[];

absl::optional<FailedFile> FailedFileOf(const absl::Status& status) {
  const absl::optional<absl::Cord> payload = status.GetPayload(kFilePayload);
  if (!payload.has_value()) return absl::nullopt;
  const std::string text(*payload);
  const std::pair<absl::string_view, absl::string_view> parts =
      absl::StrSplit(text, absl::MaxSplits(' ', 1));
  FailedFile failed;
  if (!absl::SimpleAtoi(parts.first, &failed.error_number)) {
    return absl::nullopt;
  }
  failed.path = std::string(parts.second);
  return failed;
}

}  // namespace optrail

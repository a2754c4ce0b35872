#include "base/exit_code.h"

#include "absl/strings/cord.h"

namespace optrail {
namespace {

constexpr char kPayload[] = "optrail/exit_code";

absl::Status Marked(absl::Status status, absl::string_view mark) {
  status.SetPayload(kPayload, absl::Cord(mark));
  return status;
}

}  // namespace

absl::Status CheckFailedError(absl::string_view message) {
  return Marked(absl::FailedPreconditionError(message), "check failed");
}

absl::Status NotEnoughDataError(absl::string_view message) {
  return Marked(absl::FailedPreconditionError(message), "not enough data");
}

ExitCode ExitCodeOf(const absl::Status& status) {
  if (status.ok()) return ExitCode::kOk;
  const auto mark = status.GetPayload(kPayload);
  if (!mark.has_value()) return ExitCode::kBadInput;
  return *mark == "check failed" ? ExitCode::kCheckFailed
                                 : ExitCode::kNotEnoughData;
}

}  // namespace optrail

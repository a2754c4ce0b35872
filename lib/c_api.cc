#include "lib/c_api.h"

#include <string>

#include "base/text/utf8.h"

namespace optrail::lib {
namespace {

constexpr size_t kMostBytes = 4096;

// The message of the last failed call of this thread.
std::string& Message() {
  thread_local std::string message;
  return message;
}

optrail_status StatusOf(absl::StatusCode code) {
  switch (code) {
    case absl::StatusCode::kOk:
      return OPTRAIL_OK;
    case absl::StatusCode::kInvalidArgument:
    case absl::StatusCode::kOutOfRange:
      return OPTRAIL_INVALID_ARGUMENT;
    case absl::StatusCode::kNotFound:
      return OPTRAIL_NOT_FOUND;
    case absl::StatusCode::kUnimplemented:
    case absl::StatusCode::kUnavailable:
      return OPTRAIL_UNSUPPORTED;
    case absl::StatusCode::kResourceExhausted:
      return OPTRAIL_OUT_OF_MEMORY;
    case absl::StatusCode::kFailedPrecondition:
    case absl::StatusCode::kPermissionDenied:
      return OPTRAIL_FAILED_PRECONDITION;
    default:
      return OPTRAIL_INTERNAL;
  }
}

}  // namespace

optrail_status Report(optrail_status status, const char* message) {
  try {
    Message() = message;
  } catch (...) {
    // Without memory the status has to do.
  }
  return status;
}

optrail_status Report(const absl::Status& status) {
  try {
    // A message may hold what a caller passed in, which may be long, and goes
    // to logs.
    Message() = EscapeForTerminal(TruncateUtf8(status.message(), kMostBytes));
  } catch (...) {
  }
  return StatusOf(status.code());
}

}  // namespace optrail::lib

extern "C" {

const char* optrail_message(void) { return optrail::lib::Message().c_str(); }

const char* optrail_status_name(optrail_status status) {
  switch (status) {
    case OPTRAIL_OK:
      return "OK";
    case OPTRAIL_INVALID_ARGUMENT:
      return "INVALID_ARGUMENT";
    case OPTRAIL_NOT_FOUND:
      return "NOT_FOUND";
    case OPTRAIL_UNSUPPORTED:
      return "UNSUPPORTED";
    case OPTRAIL_OUT_OF_MEMORY:
      return "OUT_OF_MEMORY";
    case OPTRAIL_FAILED_PRECONDITION:
      return "FAILED_PRECONDITION";
    case OPTRAIL_UNAVAILABLE:
      return "UNAVAILABLE";
    case OPTRAIL_INTERNAL:
      return "INTERNAL";
  }
  return "UNKNOWN";
}

}  // extern "C"

#include "suites/worker/worker_reply.h"

#include <string>

#include "absl/strings/ascii.h"

namespace optrail::suites {
namespace {

proto::Outcome OutcomeOfPrepare(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kUnimplemented:
    case absl::StatusCode::kUnavailable:
      return proto::UNSUPPORTED;
    case absl::StatusCode::kResourceExhausted:
      return proto::OUT_OF_MEMORY;
    case absl::StatusCode::kInternal:
      return proto::COMPILE_ERROR;
    default:
      return proto::INVALID;
  }
}

}  // namespace

proto::WorkerReply ReplyOf(proto::Outcome outcome, absl::string_view detail) {
  proto::WorkerReply reply;
  reply.set_outcome(outcome);
  // Compilers end what they say with a line break.
  reply.set_detail(std::string(absl::StripTrailingAsciiWhitespace(detail)));
  return reply;
}

proto::WorkerReply PrepareFailed(const absl::Status& status) {
  return ReplyOf(OutcomeOfPrepare(status), status.message());
}

proto::WorkerReply RunFailed(const absl::Status& status) {
  return ReplyOf(
      absl::IsDataLoss(status) ? proto::WRONG_RESULT : proto::LAUNCH_ERROR,
      status.message());
}

proto::WorkerReply TimerFailed(const absl::Status& status) {
  const proto::Outcome outcome = OutcomeOfPrepare(status);
  const bool is_known =
      outcome == proto::UNSUPPORTED || outcome == proto::OUT_OF_MEMORY;
  return ReplyOf(is_known ? outcome : proto::LAUNCH_ERROR, status.message());
}

proto::WorkerReply MeterFailed(const absl::Status& status) {
  const bool is_unsupported =
      absl::IsFailedPrecondition(status) || absl::IsUnimplemented(status);
  return ReplyOf(is_unsupported ? proto::UNSUPPORTED : proto::LAUNCH_ERROR,
                 status.message());
}

}  // namespace optrail::suites

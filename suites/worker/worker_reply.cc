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

proto::Evaluation EvaluationOf(proto::Outcome outcome,
                               absl::string_view detail) {
  proto::Evaluation evaluation;
  evaluation.mutable_trial()->set_outcome(outcome);
  // Compilers end what they say with a line break.
  evaluation.mutable_trial()->set_detail(
      std::string(absl::StripTrailingAsciiWhitespace(detail)));
  return evaluation;
}

proto::Evaluation PrepareFailed(const absl::Status& status) {
  return EvaluationOf(OutcomeOfPrepare(status), status.message());
}

proto::Evaluation RunFailed(const absl::Status& status) {
  return EvaluationOf(
      absl::IsDataLoss(status) ? proto::WRONG_RESULT : proto::LAUNCH_ERROR,
      status.message());
}

proto::Evaluation TimerFailed(const absl::Status& status) {
  const proto::Outcome outcome = OutcomeOfPrepare(status);
  const bool is_known =
      outcome == proto::UNSUPPORTED || outcome == proto::OUT_OF_MEMORY;
  return EvaluationOf(is_known ? outcome : proto::LAUNCH_ERROR,
                      status.message());
}

proto::Evaluation MeterFailed(const absl::Status& status) {
  const bool is_unsupported =
      absl::IsFailedPrecondition(status) || absl::IsUnimplemented(status);
  return EvaluationOf(is_unsupported ? proto::UNSUPPORTED : proto::LAUNCH_ERROR,
                      status.message());
}

}  // namespace optrail::suites

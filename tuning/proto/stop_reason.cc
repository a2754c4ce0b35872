#include "tuning/proto/stop_reason.h"

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "base/units.h"

namespace optrail::tuning {

std::string StopReasonName(proto::StopReason reason) {
  if (reason == proto::STOP_REASON_UNSPECIFIED) return "";
  if (!proto::StopReason_IsValid(reason)) {
    return absl::StrCat("stop_reason_", static_cast<int>(reason));
  }
  return absl::AsciiStrToLower(proto::StopReason_Name(reason));
}

std::string ProofEndNote(const proto::Proof& proof) {
  switch (proof.end()) {
    case proto::PROOF_TIME_SPENT:
      return "time spent";
    case proto::PROOF_ROUNDS_SPENT:
      return "rounds spent";
    case proto::PROOF_DISTURBED:
      return "disturbed";
    default:
      return "";
  }
}

std::string ProofText(const proto::Proof& proof) {
  const std::string note = ProofEndNote(proof);
  return absl::StrCat(
      proof.claimed() ? "proven" : "no gain is proven, the default stays",
      ", in ", proof.rounds(), " rounds of both: ", FormatChange(proof.gain()),
      " (", FormatChange(proof.gain_low()), " to ",
      FormatChange(proof.gain_high()), note.empty() ? "" : "; ", note, ") ",
      proof.metric(), " over the default");
}

}  // namespace optrail::tuning

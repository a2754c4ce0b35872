#include "tuning/proto/stop_reason.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "base/units.h"
#include "tuning/proto/canonical.h"

namespace optrail::tuning {
namespace {

// The end stays open for a note and the bracket.
std::string IntervalText(double gain, double low, double high) {
  return absl::StrCat(FormatChange(gain), " (", FormatChange(low), " to ",
                      FormatChange(high));
}

std::string IntervalText(const proto::Proof& proof) {
  return IntervalText(proof.gain(), proof.gain_low(), proof.gain_high());
}

}  // namespace

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

std::string ProofText(const proto::Session& session) {
  const proto::Proof& proof = session.proof();
  const std::string note = ProofEndNote(proof);
  const bool worse = proof.gain() < 0;
  const char* const stays = IncumbentStays(session)
                                ? "no gain is proven, the stored config stays"
                                : "no gain is proven, the default stays";
  return absl::StrCat(
      proof.claimed() ? "proven" : stays, ", in ", proof.rounds(),
      " rounds of both: ",
      worse ? IntervalText(-proof.gain(), -proof.gain_high(), -proof.gain_low())
            : IntervalText(proof),
      note.empty() ? "" : absl::StrCat("; ", note),
      worse ? ") worse" : ") better", " than the default in ", proof.metric());
}

bool IncumbentStays(const proto::Session& session) {
  return session.has_incumbent() && session.has_winner() &&
         CanonicalText(session.incumbent()) == CanonicalText(session.winner());
}

std::string IncumbentText(const proto::Session& session) {
  if (!session.has_incumbent() || !session.has_winner()) return "";
  if (IncumbentStays(session)) {
    if (!session.has_incumbent_proof()) return "";
    const proto::Proof& proof = session.incumbent_proof();
    return absl::StrCat("the stored config stays: in ", proof.rounds(),
                        " rounds of both the best other one is ",
                        IntervalText(proof), ")");
  }
  const std::string incumbent = CanonicalText(session.incumbent());
  const std::string winner = CanonicalText(session.winner());
  const auto replaced = [](const proto::Proof& proof, const std::string& gain) {
    return absl::StrCat("the stored config is replaced: in ", proof.rounds(),
                        " rounds of both the new one is ", gain, ")");
  };
  if (const proto::Proof& proof = session.incumbent_proof();
      proof.claimed() && CanonicalText(proof.candidate()) == winner) {
    return replaced(proof, IntervalText(proof));
  }
  // The default defends itself in the proof of the first, and replaces a config
  // in that one's proof.
  const proto::Proof& proof = session.proof();
  const std::string candidate = CanonicalText(proof.candidate());
  const bool was_default =
      std::any_of(session.finalists().begin(), session.finalists().end(),
                  [&](const proto::Finalist& finalist) {
                    return finalist.is_default() &&
                           CanonicalText(finalist.config()) == incumbent;
                  });
  if (was_default && proof.claimed() && candidate == winner) {
    return replaced(proof, IntervalText(proof));
  }
  if (candidate == incumbent && proof.gain() < 0) {
    return replaced(proof, IntervalText(-proof.gain(), -proof.gain_high(),
                                        -proof.gain_low()));
  }
  return "the stored config is replaced: it could not be measured";
}

}  // namespace optrail::tuning

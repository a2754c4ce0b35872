#include "tuning/proto/stop_reason.h"

#include <algorithm>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "base/text/units.h"
#include "tuning/proto/canonical.h"

namespace optrail::tuning {
namespace {

// Names that in which the gain of a proof is a gain.
std::string GainedIn(const proto::Session& session, const proto::Proof& proof) {
  std::vector<std::string> metrics;
  bool weighted = false;
  for (const proto::Objective& objective : session.objectives()) {
    metrics.push_back(objective.metric());
    weighted |= objective.has_weight();
  }
  if (!weighted || metrics.size() < 2) return proof.metric();
  return absl::StrCat("the weighted product of ",
                      absl::StrJoin(metrics, " and "));
}

}  // namespace

std::string GainText(const proto::Session& session, const proto::Proof& proof,
                     absl::string_view than) {
  const bool worse = proof.gain() < 0;
  const double gain = worse ? -proof.gain() : proof.gain();
  const double low = worse ? -proof.gain_high() : proof.gain_low();
  const double high = worse ? -proof.gain_low() : proof.gain_high();
  const auto text = [](double change) {
    const std::string percent = FormatChange(change);
    return std::string(absl::StripPrefix(percent, "+"));
  };
  const std::string note = ProofEndNote(proof);
  const std::string in = GainedIn(session, proof);
  return absl::StrCat(
      text(gain), worse ? " worse" : " better", " than ", than,
      in.empty() ? "" : absl::StrCat(" in ", in), " (",
      proof.has_gain_low() ? absl::StrCat(text(low), " to ", text(high))
                           : "too few rounds for an interval",
      ", ", proof.rounds(), " paired round", proof.rounds() == 1 ? "" : "s",
      note.empty() ? "" : absl::StrCat("; ", note), ")");
}

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

bool IncumbentStays(const proto::Session& session) {
  return session.has_incumbent() && session.has_winner() &&
         CanonicalText(session.incumbent()) == CanonicalText(session.winner());
}

std::string IncumbentText(const proto::Session& session) {
  if (!session.has_incumbent() || !session.has_winner()) return "";
  if (IncumbentStays(session)) {
    if (!session.has_incumbent_proof()) return "";
    return absl::StrCat("the stored config stays: the best other one is ",
                        GainText(session, session.incumbent_proof(), "it"));
  }
  const std::string incumbent = CanonicalText(session.incumbent());
  const std::string winner = CanonicalText(session.winner());
  const auto replaced = [&](const proto::Proof& proof) {
    return absl::StrCat("the stored config is replaced: the new one is ",
                        GainText(session, proof, "it"));
  };
  if (const proto::Proof& proof = session.incumbent_proof();
      proof.claimed() && CanonicalText(proof.candidate()) == winner) {
    return replaced(proof);
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
    return replaced(proof);
  }
  if (candidate == incumbent && proof.gain() < 0) {
    proto::Proof inverse = proof;
    inverse.set_gain(-proof.gain());
    inverse.set_gain_low(-proof.gain_high());
    inverse.set_gain_high(-proof.gain_low());
    return replaced(inverse);
  }
  return "the stored config is replaced: it could not be measured";
}

}  // namespace optrail::tuning

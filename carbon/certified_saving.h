#ifndef OPTRAIL_CARBON_CERTIFIED_SAVING_H_
#define OPTRAIL_CARBON_CERTIFIED_SAVING_H_

// SavingOf makes what a certificate may say of a saving: an interval, and a
// verdict that agrees with `optrail compare` of its two runs.
//
//   json["saving"] = SavingOf(base, candidate, work, json);
//   page += SavingText(json);  // "The candidate emits 20.0% less (18.1 to ..."
//
// On one hardware, the error of the meter or the model and that of the grid's
// intensity are the same for both sides and cancel; the scatter of processes
// does not. The judge is tracker/compare, on the two runs alone, so that
// whoever has them gets the same verdict. A saving is stated only if the
// interval excludes none and the judge calls a benchmark better.

#include <string>

#include "carbon/certified_work.h"
#include "nlohmann/json.hpp"
#include "tracker/proto/run.pb.h"

namespace optrail::carbon {

// Verdicts of a saving.
inline constexpr char kEmitsLess[] = "less";
inline constexpr char kEmitsMore[] = "more";
inline constexpr char kUnchanged[] = "unchanged";
inline constexpr char kCannotTell[] = "can't tell";

// The member "saving": verdict, reason, low and high (95%, fractions of what
// the base emits). `certificate` has both sides and the saved fraction.
nlohmann::json SavingOf(const proto::Run& base, const proto::Run& candidate,
                        const CertifiedWork& work,
                        const nlohmann::json& certificate);

// One or two sentences for people, also of a certificate that says nothing but
// the saved fraction. Throws what nlohmann throws for a missing field.
std::string SavingText(const nlohmann::json& certificate);

}  // namespace optrail::carbon

#endif  // OPTRAIL_CARBON_CERTIFIED_SAVING_H_

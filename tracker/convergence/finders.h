#ifndef OPTRAIL_TRACKER_CONVERGENCE_FINDERS_H_
#define OPTRAIL_TRACKER_CONVERGENCE_FINDERS_H_

// The parts of findings.h: faults that one session shows by itself
// (session_findings.cc), that only several together show (history_findings.cc;
// of several shapes or of one space space_findings.cc), and those of the tuner,
// which several tasks show (tuner_findings.cc).

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/types/optional.h"
#include "absl/types/span.h"
#include "tracker/convergence/convergence.h"
#include "tracker/convergence/findings.h"
#include "tuning/space/space.h"

namespace optrail::tracker {

// `space` is SpaceOf(session), null if there is none.
std::vector<Finding> FindSessionFaults(const SessionAnalysis& session,
                                       const tuning::BoundSpace* space,
                                       const FindingOptions& options);

// The relative standard deviation of a reading, as far as the session tells.
double NoiseOf(const SessionAnalysis& session);

// Returns whether every config of the space was tried and has an answer, so
// that no other search finds a better one. A CONTENDED trial has none; one that
// was raced out (CENSORED) is known to be worse.
bool IsExhausted(const SessionAnalysis& session);

// Twice the session's trials, and no more than the space has configs.
int64_t TwiceTheTrials(const SessionAnalysis& session);

// Knobs whose range ends where the best config is.
std::vector<Remedy> RangeRemedies(const SessionAnalysis& session,
                                  const tuning::BoundSpace* space);

// Another strategy than the session's. `log_gain` is what the trials show that
// it may bring.
Remedy StrategyRemedy(const SessionAnalysis& session, double log_gain);

// log(cost / cost) of the best of the first half of the trials over the best of
// all; 0 if nothing worked in the first half.
double GainOfSecondHalf(const SessionAnalysis& session);
// The same of the first reading over the best.
double GainOfSearch(const SessionAnalysis& session);

// nullopt if that is nothing.
absl::optional<RemedyGain> ExpectHalfOf(double log_gain);

struct SessionWithSpace {
  const SessionAnalysis* session;
  std::unique_ptr<tuning::BoundSpace> space;  // may be null
};

using Sessions = std::vector<const SessionWithSpace*>;

// How slow the winner is: beside the default verified in the same session,
// which cancels the machine, and by itself, which a better default does not
// change. Logarithms; a session is worse than another only if both are.
struct Quality {
  double beside_default = 0;
  double raw = 0;
};

absl::optional<Quality> QualityOf(const SessionAnalysis& session);
// By how much `a` is worse than `b`, in logarithms.
double Worse(const Quality& a, const Quality& b);

// The logarithm of the trials to 95% of the best.
absl::optional<double> Effort(const SessionAnalysis& session);

std::string ShortCommit(const proto::Commit& commit);

// A session that measures in another way than those before it is compared all
// the same, and that is part of the evidence.
void AddSettingsEvidence(const proto::Session& before,
                         const proto::Session& after, Finding& finding);

// Those of one hardware, in time order. Returns the first session that the
// finding is about, by its place; sessions.size() if there is none.
size_t FindWorseTuner(const Sessions& sessions, const FindingOptions& options,
                      std::vector<Finding>& findings);

void FindWorseHardware(const std::map<std::string, Sessions>& by_hardware,
                       const FindingOptions& options,
                       std::vector<Finding>& findings);

// Winners that lose to the default on the other shapes of their task.
void FindLosersElsewhere(absl::Span<const SessionWithSpace> sessions,
                         const FindingOptions& options,
                         std::vector<Finding>& findings);

// Spaces whose prior ranks slow configs first.
void FindMisleadingPriors(absl::Span<const SessionWithSpace> sessions,
                          const FindingOptions& options,
                          std::vector<Finding>& findings);

// `sessions` in time order.
std::vector<Finding> FindHistoryFaults(
    absl::Span<const SessionWithSpace> sessions, const FindingOptions& options);

}  // namespace optrail::tracker

#endif  // OPTRAIL_TRACKER_CONVERGENCE_FINDERS_H_

#include "tracker/compare/comparison_notes.h"

#include <map>

#include "absl/strings/str_cat.h"
#include "tracker/series/series.h"
#include "tuning/proto/measurement_settings_text.h"

namespace optrail::tracker {
namespace {

using RunPointers = std::vector<const proto::Run*>;

// Against the last run of the candidate: each difference once, with how many
// runs of the side have it unless all do.
void NoteSettings(absl::string_view side, const RunPointers& runs,
                  const proto::Run& last, std::vector<std::string>* notes) {
  std::map<std::string, size_t> differences;
  for (const proto::Run* run : runs) {
    const std::string change =
        MeasuredDifferently(run->settings(), last.settings());
    if (!change.empty()) ++differences[change];
  }
  for (const auto& [change, count] : differences) {
    notes->push_back(count == runs.size()
                         ? change
                         : absl::StrCat(change, " (", count, " of ",
                                        runs.size(), " runs of the ", side,
                                        ")"));
  }
}

// The first pair of runs that claim to be of the same code but were measured by
// different programs: other flags, other inputs of the build, or a work tree
// that git took for clean.
void NoteBuilds(const RunPointers& baseline, const RunPointers& candidate,
                std::vector<std::string>* notes) {
  for (const proto::Run* a : baseline) {
    for (const proto::Run* b : candidate) {
      if (a->commit().id().empty() || a->commit().id() != b->commit().id() ||
          a->commit().dirty() || b->commit().dirty() ||
          !tuning::IsAnotherBuild(a->settings(), b->settings())) {
        continue;
      }
      notes->push_back(absl::StrCat(
          "same commit, another build: binary ",
          a->settings().binary_fingerprint(), " (run ", a->run_id(), ") -> ",
          b->settings().binary_fingerprint(), " (run ", b->run_id(), ")"));
      return;
    }
  }
}

// The base of two runs measured in pairs is the one that started first; in
// older records both have one time.
void NotePairs(const RunPointers& baseline, const RunPointers& candidate,
               std::vector<std::string>* notes) {
  for (const proto::Run* a : baseline) {
    for (const proto::Run* b : candidate) {
      if (a->pairing_id().empty() || a->pairing_id() != b->pairing_id()) {
        continue;
      }
      if (a->started_unix_ns() == b->started_unix_ns()) {
        notes->push_back(absl::StrCat(
            "runs ", a->run_id(), " and ", b->run_id(),
            " were measured in pairs: the order of the sides was not "
            "recorded"));
        return;
      }
    }
  }
}

}  // namespace

std::vector<std::string> ComparisonNotes(const RunPointers& baseline,
                                         const RunPointers& candidate) {
  std::vector<std::string> notes;
  const std::string change = DescribeToolchainChange(
      baseline.back()->toolchain(), candidate.back()->toolchain());
  if (!change.empty()) {
    notes.push_back(absl::StrCat("toolchain changed: ", change));
  }
  NoteSettings("baseline", baseline, *candidate.back(), &notes);
  NoteSettings("candidate", candidate, *candidate.back(), &notes);
  NoteBuilds(baseline, candidate, &notes);
  NotePairs(baseline, candidate, &notes);
  for (const proto::Run* run : baseline) {
    if (!run->commit().dirty()) continue;
    notes.push_back(absl::StrCat("baseline run ", run->run_id(),
                                 " has changes that its commit lacks"));
  }
  for (const proto::Run* run : candidate) {
    for (const proto::Run* other : baseline) {
      if (run->run_id() == other->run_id()) {
        notes.push_back(
            absl::StrCat("run ", run->run_id(), " is on both sides"));
      }
    }
  }
  return notes;
}

}  // namespace optrail::tracker

#include "tracker/gate/candidate.h"

#include <map>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"
#include "tracker/command/filter_values.h"
#include "tracker/gate/baseline.h"
#include "tracker/history/selectors.h"
#include "tracker/series/series.h"
#include "tuning/proto/measurement_settings_text.h"

namespace optrail::tracker {
namespace {

// Whether two runs of one commit, both with local changes or both without, are
// of one code: changes that the commit lacks are known by their binary alone.
bool SameCode(const proto::Run& run, const proto::Run& last) {
  return !last.commit().dirty() ||
         (!last.settings().binary_fingerprint().empty() &&
          run.settings().binary_fingerprint() ==
              last.settings().binary_fingerprint());
}

// Runs with local changes do not stand for the commit where there are others.
std::vector<RunInfo> OfTheCommit(std::vector<RunInfo> runs,
                                 std::vector<std::string>* notes) {
  std::vector<RunInfo> clean;
  for (const RunInfo& run : runs) {
    if (!run.header.commit().dirty()) clean.push_back(run);
  }
  if (clean.empty() || clean.size() == runs.size()) return runs;
  for (const RunInfo& run : runs) {
    if (!run.header.commit().dirty()) continue;
    notes->push_back(absl::StrCat(
        "run ", run.id(),
        " is not judged: its work tree had changes that the commit lacks; "
        "--candidate=",
        run.id(), " judges it"));
  }
  return clean;
}

// Returns those runs of one suite and hardware that are like the last of them.
CandidateGroup AlikeToLast(std::vector<RunInfo> runs, const Policy& policy,
                           std::vector<std::string>* notes) {
  runs = OfTheCommit(std::move(runs), notes);
  CandidateGroup group;
  const proto::Run last = runs.back().header;
  for (RunInfo& run : runs) {
    const std::string toolchain =
        DescribeToolchainChange(run.header.toolchain(), last.toolchain());
    if (&run == &runs.back()) {
      // A run is its own whatever it holds: of two dirty trees nobody knows
      // without a fingerprint, and settings that are no numbers equal nothing.
      group.runs.push_back(std::move(run));
    } else if (!toolchain.empty()) {
      notes->push_back(absl::StrCat("run ", run.id(),
                                    " is not judged: its toolchain is not "
                                    "that of the last run: ",
                                    toolchain));
    } else if (!SameCode(run.header, last)) {
      notes->push_back(absl::StrCat(
          "run ", run.id(),
          " is not judged: its work tree had other changes that the commit "
          "lacks than that of the last run"));
    } else if (MeasuredAlike(policy, run.header, last)) {
      group.runs.push_back(std::move(run));
    } else {
      notes->push_back(
          absl::StrCat("run ", run.id(),
                       " is not judged: measured differently than the "
                       "last: ",
                       tuning::DescribeSettingsChange(run.header.settings(),
                                                      last.settings())));
      group.other_settings.push_back(std::move(run));
    }
  }
  if (last.commit().dirty()) {
    notes->push_back(absl::StrCat("run ", last.run_id(),
                                  " was measured with changes that commit ",
                                  ShortHash(last.commit().id()), " lacks"));
  }
  return group;
}

// Distinct values of the runs, for messages: "a, b" or "none".
template <typename Get>
std::string Values(const std::vector<RunInfo>& runs, Get get) {
  std::set<std::string> values;
  for (const RunInfo& run : runs) values.insert(get(run.header));
  return values.empty() ? "none" : absl::StrJoin(values, ", ");
}

std::string DamagedText(const std::vector<BadFile>& bad_files) {
  if (bad_files.empty()) return "";
  return absl::StrCat("; ", bad_files.size(),
                      bad_files.size() == 1 ? " record is" : " records are",
                      " damaged and may be of it (", bad_files[0].path, ": ",
                      bad_files[0].reason, "); next: optrail history repair");
}

class Finder {
 public:
  Finder(const History& history, const GateOptions& options, RunList all)
      : history_(history), options_(options), all_(std::move(all)) {}

  // Returns the runs that GateOptions::candidate names, whatever their suite
  // and hardware.
  absl::StatusOr<std::vector<RunInfo>> Named(Candidate* candidate) const {
    if (all_.runs.empty() && IsLatest(options_.candidate)) {
      candidate->name = options_.candidate;
      return std::vector<RunInfo>();
    }
    absl::StatusOr<Selection> selected =
        Select(history_, options_.candidate, options_.git.resolve);
    if (absl::IsDataLoss(selected.status())) {
      candidate->name = options_.candidate;
      candidate->reason = GateReason::kDamagedRecord;
      candidate->problem = std::string(selected.status().message());
      return std::vector<RunInfo>();
    }
    if (!selected.ok()) return selected.status();
    candidate->name = selected->name;
    candidate->notes = selected->notes;
    candidate->is_commit = !selected->commit.empty();
    if (options_.candidate != "latest") return std::move(selected->runs);
    const std::string commit = selected->runs.back().header.commit().id();
    if (commit.empty()) return std::move(selected->runs);
    // All of the newest commit, not the one run that was recorded last.
    candidate->is_commit = true;
    candidate->name = absl::StrCat("commit ", ShortHash(commit), " (latest)");
    std::vector<RunInfo> runs;
    for (const RunInfo& run : all_.runs) {
      if (run.header.commit().id() == commit) runs.push_back(run);
    }
    return runs;
  }

  // Those of the suite and hardware that were asked for; says what is missing.
  std::vector<RunInfo> Wanted(const std::vector<RunInfo>& named,
                              Candidate* candidate) const {
    std::vector<RunInfo> wanted;
    for (const RunInfo& run : named) {
      const bool hardware = options_.hardware_id.empty() ||
                            run.header.hardware().id() == options_.hardware_id;
      const bool suite =
          options_.suite.empty() || run.header.suite() == options_.suite;
      if (hardware && suite) wanted.push_back(run);
    }
    if (!wanted.empty()) return wanted;
    if (named.empty()) {
      candidate->problem = absl::StrCat(
          candidate->name, " has no run in history ", history_.dir(),
          DamagedText(all_.bad_files), NewestText(),
          "; next: optrail gate --run=COMMAND, which measures it, or record it "
          "with optrail bench --record or optrail import");
      return wanted;
    }
    candidate->reason = GateReason::kMissing;
    candidate->problem = absl::StrCat(
        candidate->name, " has no run",
        options_.suite.empty()
            ? ""
            : absl::StrCat(" of suite '", options_.suite, "'"),
        options_.hardware_id.empty()
            ? ""
            : absl::StrCat(" on hardware ", options_.hardware_id),
        "; it has suites ",
        Values(named, [](const proto::Run& run) { return run.suite(); }),
        " on hardware ",
        Values(named,
               [](const proto::Run& run) { return run.hardware().id(); }),
        UnknownFilterText(all_.runs, {options_.suite, options_.hardware_id}),
        DamagedText(all_.bad_files));
    return wanted;
  }

 private:
  std::string NewestText() const {
    if (all_.runs.empty()) return "";
    return absl::StrCat("; the newest commit there is ",
                        ShortHash(all_.runs.back().header.commit().id()),
                        ", which --candidate=latest judges");
  }

  const History& history_;
  const GateOptions& options_;
  const RunList all_;
};

// A commit's runs of other hardware than was asked for are no part of the
// answer, and that is said.
void NoteClocks(const std::vector<RunInfo>& runs, int64_t now_unix_s,
                std::vector<std::string>* notes) {
  if (now_unix_s == 0) return;
  for (const RunInfo& run : runs) {
    if (!IsInTheFuture(run.header.started_unix_ns(),
                       now_unix_s * 1'000'000'000)) {
      continue;
    }
    notes->push_back(absl::StrCat(
        "run ", run.id(), " is dated in the future: was a clock wrong?"));
  }
}

}  // namespace

absl::StatusOr<Candidate> FindCandidate(const History& history,
                                        const Policy& policy,
                                        const GateOptions& options) {
  Candidate candidate;
  OPTRAIL_ASSIGN_OR_RETURN(RunList all, history.ListRuns());
  const Finder finder(history, options, std::move(all));
  OPTRAIL_ASSIGN_OR_RETURN(const std::vector<RunInfo> named,
                           finder.Named(&candidate));
  if (!candidate.problem.empty()) return candidate;
  const std::vector<RunInfo> wanted = finder.Wanted(named, &candidate);
  if (!candidate.problem.empty()) return candidate;
  NoteClocks(wanted, options.now_unix_s, &candidate.notes);
  std::map<std::pair<std::string, std::string>, std::vector<RunInfo>> groups;
  for (const RunInfo& run : wanted) {
    groups[{run.header.hardware().id(), run.header.suite()}].push_back(run);
  }
  for (auto& [key, runs] : groups) {
    candidate.groups.push_back(
        AlikeToLast(std::move(runs), policy, &candidate.notes));
  }
  return candidate;
}

}  // namespace optrail::tracker

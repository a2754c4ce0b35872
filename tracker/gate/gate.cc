#include "tracker/gate/gate.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"
#include "tracker/judge/judge.h"
#include "tracker/series/series.h"
#include "tracker/triage/triage.h"
#include "tuning/proto/canonical.h"
#include "tuning/proto/measurement_settings_text.h"

namespace optrail::tracker {
namespace {

// Runs that noise is learned from, and that are looked at for benchmarks that
// the last ones lack.
constexpr int kLearningRuns = 60;
// A clock may be ahead by as much; a run that started later is not to be
// believed.
constexpr int64_t kClockToleranceNs = int64_t{24} * 3600 * 1'000'000'000;

using ResolvedBaseline = GateReport::ResolvedBaseline;

std::string ShortHash(absl::string_view commit) {
  return commit.empty() ? "no commit" : std::string(commit.substr(0, 12));
}

bool SameToolchain(const proto::Run& a, const proto::Run& b) {
  return DescribeToolchainChange(a.toolchain(), b.toolchain()).empty();
}

bool MeasuredAlike(const Policy& policy, const proto::Run& a,
                   const proto::Run& b) {
  return policy.proto().on_other_settings() == proto::IGNORE ||
         tuning::DescribeSettingsChange(a.settings(), b.settings()).empty();
}

bool SameEpoch(const Policy& policy, const proto::Run& a, const proto::Run& b) {
  return SameToolchain(a, b) && MeasuredAlike(policy, a, b);
}

std::set<std::string> Ids(const std::vector<RunInfo>& runs) {
  std::set<std::string> ids;
  for (const RunInfo& run : runs) ids.insert(run.id());
  return ids;
}

// Whether a run may be the past of the candidate. Positions along first parents
// compare within a branch only; across branches git knows what is an ancestor,
// and without it the time of recording has to do.
class Past {
 public:
  Past(const GitLookup& git, const proto::Run& candidate)
      : git_(git), candidate_(candidate) {}

  bool Has(const proto::Run& run) const {
    const proto::Commit& commit = run.commit();
    const proto::Commit& head = candidate_.commit();
    if (!commit.id().empty() && commit.id() == head.id()) {
      return run.started_unix_ns() < candidate_.started_unix_ns();
    }
    if (git_.merge_base && !commit.id().empty() && !head.id().empty()) {
      auto [known, is_new] = ancestors_.insert({commit.id(), Unknown()});
      if (is_new) {
        const auto base = git_.merge_base(commit.id(), head.id());
        if (base.ok()) known->second = *base == commit.id();
      }
      if (known->second.has_value()) return *known->second;
    }
    if (commit.branch() == head.branch() &&
        commit.has_first_parent_position() &&
        head.has_first_parent_position() &&
        commit.first_parent_position() != head.first_parent_position()) {
      return commit.first_parent_position() < head.first_parent_position();
    }
    return run.started_unix_ns() < candidate_.started_unix_ns();
  }

 private:
  using Unknown = absl::optional<bool>;
  const GitLookup& git_;
  const proto::Run& candidate_;
  mutable std::map<std::string, absl::optional<bool>> ancestors_;
};

// Finds the runs of a baseline among those of the candidate's suite and
// hardware.
class BaselineFinder {
 public:
  // `runs` in series order.
  BaselineFinder(const Policy& policy, const GitLookup& git,
                 const std::vector<RunInfo>& runs,
                 const std::vector<RunInfo>& candidates)
      : policy_(policy),
        git_(git),
        runs_(runs),
        candidate_(candidates.back().header),
        past_(git, candidate_),
        candidate_ids_(Ids(candidates)) {}

  absl::StatusOr<ResolvedBaseline> Find(const proto::Baseline& baseline,
                                        const History& history,
                                        const RunFilter& filter) const {
    OPTRAIL_ASSIGN_OR_RETURN(ResolvedBaseline found,
                             FindRuns(baseline, history, filter));
    LookAtSettings(&found);
    return found;
  }

  // What a full window left out: runs before its first, newest first.
  std::vector<RunInfo> Before(const proto::Baseline::Window& window,
                              const ResolvedBaseline& found) const {
    const std::set<std::string> in_window = Ids(found.runs);
    std::vector<RunInfo> older;
    size_t passed = 0;
    for (auto run = runs_.rbegin();
         run != runs_.rend() && older.size() < kLearningRuns; ++run) {
      if (in_window.count(run->id()) > 0) {
        ++passed;
      } else if (passed == in_window.size() &&
                 StandingOf(window, *run) == Standing::kOfWindow) {
        older.push_back(*run);
      }
    }
    return older;
  }

 private:
  absl::StatusOr<ResolvedBaseline> FindRuns(const proto::Baseline& baseline,
                                            const History& history,
                                            const RunFilter& filter) const {
    ResolvedBaseline found;
    found.text = BaselineText(baseline);
    switch (baseline.baseline_case()) {
      case proto::Baseline::kWindow:
        FindWindow(baseline.window(), &found);
        return found;
      case proto::Baseline::kRun: {
        absl::StatusOr<std::vector<RunInfo>> runs =
            history.Resolve(baseline.run(), filter);
        if (absl::IsNotFound(runs.status())) {
          found.problem = std::string(runs.status().message());
          return found;
        }
        if (!runs.ok()) return runs.status();
        for (RunInfo& run : *runs) AddUnlessCandidate(run, &found);
        if (found.runs.empty()) {
          found.problem = "it is the candidate itself";
        }
        return found;
      }
      case proto::Baseline::kCommit:
        return FindCommit(baseline.commit(), std::move(found));
      case proto::Baseline::kTag: {
        if (!git_.resolve) return NeedsGit(found.text);
        OPTRAIL_ASSIGN_OR_RETURN(const std::string commit,
                                 git_.resolve(baseline.tag()));
        return FindCommit(commit, std::move(found));
      }
      case proto::Baseline::kMergeBase: {
        if (!git_.merge_base) return NeedsGit(found.text);
        if (candidate_.commit().id().empty()) {
          return absl::FailedPreconditionError(
              absl::StrCat("baseline ", found.text, ": candidate run ",
                           candidate_.run_id(), " has no commit"));
        }
        OPTRAIL_ASSIGN_OR_RETURN(
            const std::string commit,
            git_.merge_base(candidate_.commit().id(), baseline.merge_base()));
        return FindCommit(commit, std::move(found));
      }
      case proto::Baseline::BASELINE_NOT_SET:
        break;
    }
    return absl::InvalidArgumentError("a baseline says nothing");
  }

  // Says that runs were measured differently; leaves them out where the policy
  // forbids to compare.
  void LookAtSettings(ResolvedBaseline* found) const {
    const bool forbidden = policy_.proto().on_other_settings() == proto::FAIL;
    std::vector<RunInfo> alike;
    std::string difference;
    for (const RunInfo& run : found->runs) {
      if (MeasuredAlike(policy_, run.header, candidate_)) {
        alike.push_back(run);
      } else {
        difference = tuning::DescribeSettingsChange(run.header.settings(),
                                                    candidate_.settings());
      }
    }
    if (difference.empty()) return;
    if (!forbidden) {
      found->measured_differently = difference;
      return;
    }
    found->runs = std::move(alike);
    if (!found->runs.empty()) return;
    found->measured_differently = difference;
    found->problem = absl::StrCat("measured differently: ", difference,
                                  "; on_other_settings forbids to compare");
  }

  static absl::Status NeedsGit(absl::string_view text) {
    return absl::FailedPreconditionError(
        absl::StrCat("baseline ", text, " needs a git work tree"));
  }

  void AddUnlessCandidate(const RunInfo& run, ResolvedBaseline* found) const {
    if (candidate_ids_.count(run.id()) == 0) found->runs.push_back(run);
  }

  absl::StatusOr<ResolvedBaseline> FindCommit(const std::string& commit,
                                              ResolvedBaseline found) const {
    std::set<std::string> commits;
    for (const RunInfo& run : runs_) {
      if (commit.empty() ||
          !absl::StartsWith(run.header.commit().id(), commit) ||
          run.header.commit().dirty()) {
        continue;
      }
      commits.insert(run.header.commit().id());
      AddUnlessCandidate(run, &found);
    }
    if (commits.size() > 1) {
      return absl::InvalidArgumentError(
          absl::StrCat("baseline ", found.text,
                       " could be any of: ", absl::StrJoin(commits, ", ")));
    }
    if (found.runs.empty()) {
      found.problem = absl::StrCat("no run of suite '", candidate_.suite(),
                                   "' on ", candidate_.hardware().id(),
                                   " at commit ", ShortHash(commit));
    }
    return found;
  }

  // What a run is to a window.
  enum class Standing {
    kCandidate,
    kOtherBranch,
    kOtherToolchain,
    kDirty,
    kNoAncestor,
    kOtherSettings,
    kOfWindow,
  };
  Standing StandingOf(const proto::Baseline::Window& window,
                      const RunInfo& run) const {
    const proto::Run& header = run.header;
    if (candidate_ids_.count(run.id()) > 0) return Standing::kCandidate;
    if (header.commit().branch() != window.branch()) {
      return Standing::kOtherBranch;
    }
    if (!SameToolchain(header, candidate_)) return Standing::kOtherToolchain;
    if (header.commit().dirty()) return Standing::kDirty;
    if (!past_.Has(header)) return Standing::kNoAncestor;
    return MeasuredAlike(policy_, header, candidate_)
               ? Standing::kOfWindow
               : Standing::kOtherSettings;
  }

  // Newest first, until the window is full. Where too few runs were measured
  // like the candidate, others stand in, whose level is less sure.
  void FindWindow(const proto::Baseline::Window& window,
                  ResolvedBaseline* found) const {
    int other_toolchain = 0, dirty = 0, no_ancestor = 0;
    std::vector<RunInfo> other_settings;
    std::set<std::string> other_branches;
    for (auto place = runs_.rbegin(); place != runs_.rend(); ++place) {
      if (static_cast<int>(found->runs.size()) == window.runs()) break;
      const RunInfo& run = *place;
      switch (StandingOf(window, run)) {
        case Standing::kCandidate:
          break;
        case Standing::kOtherBranch:
          other_branches.insert(run.header.commit().branch());
          break;
        case Standing::kOtherToolchain:
          ++other_toolchain;
          break;
        case Standing::kDirty:
          ++dirty;
          break;
        case Standing::kNoAncestor:
          ++no_ancestor;
          break;
        case Standing::kOtherSettings:
          other_settings.push_back(run);
          break;
        case Standing::kOfWindow:
          found->runs.push_back(run);
          break;
      }
    }
    const int needed =
        std::min(policy_.proto().min_baseline_runs(), window.runs());
    if (static_cast<int>(found->runs.size()) < needed &&
        policy_.proto().on_other_settings() != proto::FAIL) {
      const size_t room = window.runs() - found->runs.size();
      found->runs.insert(
          found->runs.end(), other_settings.begin(),
          other_settings.begin() +
              static_cast<int64_t>(std::min(room, other_settings.size())));
    }
    SortInSeriesOrder(found->runs);
    if (static_cast<int>(found->runs.size()) >= needed) return;
    found->problem = absl::StrCat(
        found->runs.size(), " earlier runs of suite '", candidate_.suite(),
        "' on ", candidate_.hardware().id(), ", branch ", window.branch(),
        "; at least ", needed, " are needed");
    other_branches.erase("");
    // Many a main branch has another name.
    if (found->runs.empty() && !other_branches.empty()) {
      absl::StrAppend(&found->problem, " (the history has runs of branch ",
                      absl::StrJoin(other_branches, ", "),
                      ": --baseline=window:", *other_branches.begin(), ":",
                      window.runs(), ")");
    }
    if (other_toolchain > 0) {
      absl::StrAppend(&found->problem, " (", other_toolchain,
                      " more are from another toolchain)");
    }
    if (!other_settings.empty()) {
      absl::StrAppend(&found->problem, " (", other_settings.size(),
                      " more were measured differently)");
    }
    if (no_ancestor > 0) {
      absl::StrAppend(&found->problem, " (", no_ancestor,
                      " more are no ancestors of the candidate)");
    }
    if (dirty > 0) {
      absl::StrAppend(&found->problem, " (", dirty,
                      " more have changes that their commit lacks)");
    }
  }

  const Policy& policy_;
  const GitLookup& git_;
  const std::vector<RunInfo>& runs_;
  const proto::Run& candidate_;
  const Past past_;
  const std::set<std::string> candidate_ids_;
};

absl::StatusOr<std::vector<proto::Run>> ReadAll(
    const History& history, const std::vector<RunInfo>& runs) {
  std::vector<proto::Run> read;
  for (const RunInfo& run : runs) {
    OPTRAIL_ASSIGN_OR_RETURN(proto::Run whole, history.ReadRun(run.id()));
    read.push_back(std::move(whole));
  }
  return read;
}

std::vector<const proto::Run*> Pointers(const std::vector<proto::Run>& runs) {
  std::vector<const proto::Run*> pointers;
  for (const proto::Run& run : runs) pointers.push_back(&run);
  return pointers;
}

// What was wrong, however it was measured: runs that are not judged otherwise,
// with nothing but what failed.
absl::StatusOr<std::vector<proto::Run>> ReadFailures(
    const History& history, const std::vector<RunInfo>& runs) {
  OPTRAIL_ASSIGN_OR_RETURN(std::vector<proto::Run> read,
                           ReadAll(history, runs));
  std::vector<proto::Run> failed;
  for (proto::Run& run : read) {
    auto* results = run.mutable_results();
    results->erase(std::remove_if(results->begin(), results->end(),
                                  [](const proto::BenchmarkResult& result) {
                                    return !tuning::IsFailure(result.outcome());
                                  }),
                   results->end());
    if (!results->empty()) failed.push_back(std::move(run));
  }
  return failed;
}

// The last runs may have measured a part of the suite (`--benchmark_filter`).
// Of a benchmark that they lack the window holds runs before them, with nothing
// else in them: without these it would be new, and never worse.
absl::Status FillWindow(const BaselineFinder& finder, const History& history,
                        const proto::Baseline::Window& window,
                        const std::vector<proto::Run>& candidates,
                        ResolvedBaseline* found,
                        std::vector<proto::Run>* baseline) {
  std::map<std::string, int> lacking;  // runs, by benchmark
  for (const proto::Run& run : candidates) {
    for (const proto::BenchmarkResult& result : run.results()) {
      lacking[CanonicalText(result.key())] = window.runs();
    }
  }
  const auto count = [&lacking](const proto::Run& run) {
    for (const proto::BenchmarkResult& result : run.results()) {
      const auto place = lacking.find(CanonicalText(result.key()));
      if (place != lacking.end() && --place->second <= 0) lacking.erase(place);
    }
  };
  for (const proto::Run& run : *baseline) count(run);
  if (lacking.empty()) return absl::OkStatus();
  for (const RunInfo& info : finder.Before(window, *found)) {
    if (lacking.empty()) break;
    OPTRAIL_ASSIGN_OR_RETURN(proto::Run run, history.ReadRun(info.id()));
    auto* results = run.mutable_results();
    results->erase(
        std::remove_if(results->begin(), results->end(),
                       [&lacking](const proto::BenchmarkResult& result) {
                         return result.config_source() == proto::GIVEN ||
                                lacking.count(CanonicalText(result.key())) == 0;
                       }),
        results->end());
    if (results->empty()) continue;
    count(run);
    found->runs.insert(found->runs.begin(), info);
    baseline->insert(baseline->begin(), std::move(run));
  }
  return absl::OkStatus();
}

// A config that somebody forced (`bench --config`) is judged as a candidate and
// is no yardstick for others.
void DropGivenConfigs(std::vector<proto::Run>& runs) {
  for (proto::Run& run : runs) {
    auto* results = run.mutable_results();
    results->erase(std::remove_if(results->begin(), results->end(),
                                  [](const proto::BenchmarkResult& result) {
                                    return result.config_source() ==
                                           proto::GIVEN;
                                  }),
                   results->end());
  }
}

// What noise is learned from: the latest runs like the candidate, of the branch
// of the baseline, up to its last run.
std::vector<RunInfo> LearningRuns(const Policy& policy,
                                  const std::vector<RunInfo>& runs,
                                  const std::vector<RunInfo>& baseline,
                                  const std::vector<RunInfo>& candidates) {
  const std::set<std::string> baseline_ids = Ids(baseline);
  const std::set<std::string> candidate_ids = Ids(candidates);
  const std::string& branch = baseline.back().header.commit().branch();
  std::vector<RunInfo> learned;
  bool in_time = false;
  for (auto run = runs.rbegin(); run != runs.rend(); ++run) {
    if (static_cast<int>(learned.size()) == kLearningRuns) break;
    in_time = in_time || baseline_ids.count(run->id()) > 0;
    if (in_time && baseline_ids.count(run->id()) == 0 &&
        candidate_ids.count(run->id()) == 0 &&
        run->header.commit().branch() == branch &&
        !run->header.commit().dirty() &&
        SameEpoch(policy, run->header, candidates.back().header)) {
      learned.push_back(*run);
    }
  }
  std::reverse(learned.begin(), learned.end());
  return learned;
}

// Whether two runs of one commit are of one code: changes that the commit lacks
// are known by their binary alone.
bool SameCode(const proto::Run& run, const proto::Run& last) {
  if (run.run_id() == last.run_id()) return true;
  if (run.commit().dirty() != last.commit().dirty()) return false;
  return !last.commit().dirty() ||
         (!last.settings().binary_fingerprint().empty() &&
          run.settings().binary_fingerprint() ==
              last.settings().binary_fingerprint());
}

// Where the level of each series that is the norm now begins, by PriorKey: the
// run of the last change that is confirmed or that somebody acknowledged. Says
// which changes nobody has answered.
std::map<std::string, std::string> LevelStarts(
    const std::vector<proto::Run>& runs, const TriageBook& book,
    std::vector<std::string>* notes) {
  std::map<std::string, std::string> starts;
  const std::vector<Series> series = BuildSeries(runs);
  const std::vector<Judgement> judgements = JudgeAll(series, book);
  for (size_t i = 0; i < series.size(); ++i) {
    const Judgement& judgement = judgements[i];
    if (judgement.baseline_begin <= 0) continue;
    const Point& point = series[i].points[judgement.baseline_begin];
    starts[PriorKey(series[i].key.benchmark, series[i].key.metric)] =
        point.run_ids.front();
    for (const Change& change : judgement.changes) {
      if (!change.IsAlert()) continue;
      notes->push_back(absl::StrCat(
          DisplayName(series[i].key.benchmark), ": worse by ",
          static_cast<int>(std::lround(100 * change.worse_by)),
          "% since commit ", ShortHash(change.after().commit.id()),
          ", which nobody has answered, and judged against that level; next: "
          "optrail changes"));
    }
  }
  return starts;
}

// A candidate commit may have runs of several suites and machines: those like
// the last of them.
std::vector<RunInfo> AlikeToLast(std::vector<RunInfo> runs,
                                 const Policy& policy,
                                 std::vector<RunInfo>* measured_differently,
                                 std::vector<std::string>* notes) {
  const proto::Run last = runs.back().header;
  std::vector<RunInfo> alike;
  for (RunInfo& run : runs) {
    if (&run == &runs.back()) {
      // A run is its own whatever it holds: of two dirty trees nobody knows
      // without a fingerprint, and settings that are no numbers equal nothing.
      alike.push_back(std::move(run));
    } else if (run.header.suite() == last.suite() &&
               run.header.hardware().id() == last.hardware().id() &&
               SameToolchain(run.header, last)) {
      if (!SameCode(run.header, last)) {
        notes->push_back(absl::StrCat(
            "run ", run.id(), " is not judged: ",
            run.header.commit().dirty() ? "its work tree had" : "the last has",
            " changes that the commit lacks"));
        continue;
      }
      if (MeasuredAlike(policy, run.header, last)) {
        alike.push_back(std::move(run));
        continue;
      }
      notes->push_back(
          absl::StrCat("run ", run.id(),
                       " is not judged: measured differently than the "
                       "last: ",
                       tuning::DescribeSettingsChange(run.header.settings(),
                                                      last.settings())));
      measured_differently->push_back(std::move(run));
    } else {
      notes->push_back(absl::StrCat("run ", run.id(),
                                    " is of another suite, hardware or "
                                    "toolchain than the last and is not "
                                    "judged"));
    }
  }
  return alike;
}

// What matters first: what fails, what cannot be told of what may fail, and so
// on for warnings.
int Rank(const GateRow& row) {
  const bool cannot_tell = row.row.verdict == Verdict::kCannotTell;
  switch (row.action) {
    case proto::FAIL:
      return cannot_tell ? 1 : 0;
    case proto::WARN:
      return cannot_tell ? 3 : 2;
    default:
      return row.row.verdict == Verdict::kUnchanged ? 5 : 4;
  }
}

// Only what must be escaped, so that people can read the result.
std::string EscapeForRegex(absl::string_view text) {
  std::string escaped;
  for (const char c : text) {
    if (absl::string_view("\\.+*?()[]{}|^$").find(c) !=
        absl::string_view::npos) {
      escaped += '\\';
    }
    if (c == '\0') {
      escaped += "\\x00";
    } else if (c == '\n') {  // the filter is one line of --remeasure_out
      escaped += "\\n";
    } else {
      escaped += c;
    }
  }
  return escaped;
}

std::string Plural(int count, absl::string_view what) {
  return absl::StrCat(count, " ", what, count == 1 ? "" : "s");
}

// The time of a record by its file's name, "20261120T090807Z"; "" for others.
absl::string_view TimeOf(absl::string_view path) {
  const absl::string_view name = path.substr(path.rfind('/') + 1);
  const absl::string_view id = name.substr(0, name.find('.'));
  return IsRecordId(id) ? id.substr(0, id.find('-')) : absl::string_view();
}

// What GateOptions::candidate names. "latest" is the newest run there is: no
// run from the future, and nothing, with a summary that says what to do, where
// the newest record cannot be read.
absl::StatusOr<std::vector<RunInfo>> FindCandidates(const History& history,
                                                    const GateOptions& options,
                                                    const RunFilter& filter,
                                                    GateReport* report) {
  RunFilter until_now = filter;
  const bool latest = absl::StartsWith(options.candidate, "latest");
  if (!latest || options.now_unix_s == 0) {
    return history.Resolve(options.candidate, filter);
  }
  const int64_t now_ns = options.now_unix_s * 1'000'000'000 + kClockToleranceNs;
  until_now.started_before_unix_ns = now_ns;
  OPTRAIL_ASSIGN_OR_RETURN(std::vector<RunInfo> candidates,
                           history.Resolve(options.candidate, until_now));
  OPTRAIL_ASSIGN_OR_RETURN(const RunList all, history.ListRuns(filter));
  for (const RunInfo& run : all.runs) {
    if (run.header.started_unix_ns() < now_ns) continue;
    report->notes.push_back(absl::StrCat(
        "run ", run.id(),
        " is from the future and never the latest: was a clock wrong?"));
  }
  const std::string newest = candidates.back().id().substr(0, 16);
  const std::string now = NewRecordId(now_ns).substr(0, 16);
  for (const BadFile& bad : all.bad_files) {
    const absl::string_view time = TimeOf(bad.path);
    if (time.empty() || time < newest || time > now) continue;
    report->summary = absl::StrCat(
        "can't tell: the newest record is damaged (", bad.path, ": ",
        bad.reason, "); next: optrail history repair, or --candidate=",
        candidates.back().id(), " for the newest that can be read");
    return std::vector<RunInfo>();
  }
  return candidates;
}

}  // namespace

int GateReport::CountRed() const {
  return static_cast<int>(
      std::count_if(rows.begin(), rows.end(),
                    [](const GateRow& row) { return Rank(row) == 0; }));
}

int GateReport::CountCannotTell() const {
  return static_cast<int>(
      std::count_if(rows.begin(), rows.end(),
                    [](const GateRow& row) { return Rank(row) == 1; }));
}

CompareOptions CompareOptionsFor(const Policy& policy, int comparisons,
                                 int looks) {
  CompareOptions options;
  options.false_alarm_rate =
      policy.proto().run_false_alarm_rate() / std::max(1, comparisons);
  options.looks = std::max(1, looks);
  options.power = policy.proto().power();
  options.min_processes = policy.proto().min_processes();
  if (policy.proto().on_other_settings() == proto::IGNORE) {
    options.settings_error = 0;
  }
  options.threshold =
      [&policy](absl::string_view name,
                absl::string_view metric) -> absl::optional<Threshold> {
    const RuleView rule = policy.RuleFor(name, metric);
    if (rule.action == proto::IGNORE) return absl::nullopt;
    return rule.threshold;
  };
  return options;
}

void Judge(const Policy& policy, const Comparison& comparison,
           absl::string_view baseline_text, int64_t now_unix_s,
           GateReport* report) {
  for (const Row& row : comparison.rows) {
    GateRow judged;
    judged.row = row;
    judged.baseline = std::string(baseline_text);
    judged.rule = policy.RuleFor(row.name, row.metric);
    judged.action = policy.ActionFor(row.verdict, judged.rule);
    const proto::Exemption* exemption =
        policy.ExemptionFor(row.name, row.metric, now_unix_s);
    if (exemption != nullptr && judged.action == proto::FAIL) {
      judged.action = proto::WARN;
      judged.exempted = absl::StrCat("exempted until ", exemption->until(),
                                     ": ", exemption->reason());
    }
    report->rows.push_back(std::move(judged));
  }
  for (const std::string& note : comparison.notes) {
    report->notes.push_back(absl::StrCat(baseline_text, ": ", note));
  }
}

void Conclude(GateReport* report) {
  std::stable_sort(report->rows.begin(), report->rows.end(),
                   [](const GateRow& a, const GateRow& b) {
                     const auto key = [](const GateRow& row) {
                       return std::make_tuple(Rank(row),
                                              VerdictRank(row.row.verdict),
                                              -row.row.worse_by);
                     };
                     return key(a) < key(b);
                   });
  const int red = report->CountRed();
  const int unclear = report->CountCannotTell();
  int faster = 0, judged = 0;
  for (const GateRow& row : report->rows) {
    faster += row.row.verdict == Verdict::kFaster;
    judged += row.row.verdict != Verdict::kNew &&
              row.row.verdict != Verdict::kCannotTell;
  }
  std::vector<std::string> problems;
  for (const ResolvedBaseline& baseline : report->baselines) {
    if (baseline.problem.empty()) continue;
    problems.push_back(absl::StrCat(baseline.text, ": ", baseline.problem));
  }
  const std::string of = absl::StrCat(
      " of ", Plural(static_cast<int>(report->rows.size()), "benchmark"));
  if (red > 0) {
    report->exit_code = 1;
    report->summary =
        absl::StrCat("red: ", red, of, red == 1 ? " fails" : " fail");
    if (unclear > 0) {
      absl::StrAppend(&report->summary, ", ", unclear, " can't be told");
    }
  } else if (!problems.empty()) {
    report->exit_code = 3;
    report->summary = absl::StrCat("can't tell: no baseline (",
                                   absl::StrJoin(problems, "; "), ")");
  } else if (report->rows.empty()) {
    report->exit_code = 3;
    report->summary = "can't tell: there is no benchmark that a rule gates";
  } else if (unclear > 0) {
    report->exit_code = 3;
    report->summary = absl::StrCat("can't tell for ", unclear, of);
  } else if (judged == 0) {
    report->exit_code = 3;
    report->summary = absl::StrCat("can't tell: none", of, " was judged");
  } else {
    report->exit_code = 0;
    report->summary = absl::StrCat("green: nothing", of, " got worse");
  }
  if (faster > 0) absl::StrAppend(&report->summary, "; ", faster, " faster");
  for (const ResolvedBaseline& baseline : report->baselines) {
    if (baseline.measured_differently.empty() || !baseline.problem.empty()) {
      continue;
    }
    absl::StrAppend(&report->summary, "; measured differently than ",
                    baseline.text);
  }
}

absl::StatusOr<GateReport> Gate(const History& history, const Policy& policy,
                                const GateOptions& options) {
  GateReport report;
  report.run_false_alarm_rate = policy.proto().run_false_alarm_rate();
  RunFilter filter;
  filter.suite = options.suite;
  OPTRAIL_ASSIGN_OR_RETURN(std::vector<RunInfo> candidates,
                           FindCandidates(history, options, filter, &report));
  if (candidates.empty()) return report;
  std::vector<RunInfo> other_settings;
  report.candidate_runs = AlikeToLast(std::move(candidates), policy,
                                      &other_settings, &report.notes);
  const proto::Run& candidate = report.candidate_runs.back().header;

  filter.suite = candidate.suite();
  filter.hardware_id = candidate.hardware().id();
  OPTRAIL_ASSIGN_OR_RETURN(const RunList list, history.ListRuns(filter));
  for (const BadFile& bad : list.bad_files) {
    report.notes.push_back(
        absl::StrCat("damaged file skipped: ", bad.path, ": ", bad.reason));
  }
  std::vector<proto::Baseline> baselines(policy.proto().baseline().begin(),
                                         policy.proto().baseline().end());
  if (options.baseline.has_value()) baselines = {*options.baseline};

  OPTRAIL_ASSIGN_OR_RETURN(std::vector<proto::Run> candidate_whole,
                           ReadAll(history, report.candidate_runs));
  OPTRAIL_ASSIGN_OR_RETURN(std::vector<proto::Run> failures,
                           ReadFailures(history, other_settings));
  std::move(failures.begin(), failures.end(),
            std::back_inserter(candidate_whole));
  const BaselineFinder finder(policy, options.git, list.runs,
                              report.candidate_runs);
  OPTRAIL_ASSIGN_OR_RETURN(const LoadedTriage triage, history.LoadTriage());
  const TriageBook book(triage.records, candidate.started_unix_ns());
  for (const proto::Baseline& baseline : baselines) {
    OPTRAIL_ASSIGN_OR_RETURN(ResolvedBaseline found,
                             finder.Find(baseline, history, filter));
    if (found.problem.empty()) {
      OPTRAIL_ASSIGN_OR_RETURN(std::vector<proto::Run> baseline_whole,
                               ReadAll(history, found.runs));
      DropGivenConfigs(baseline_whole);
      if (baseline.has_window()) {
        OPTRAIL_RETURN_IF_ERROR(FillWindow(finder, history, baseline.window(),
                                           candidate_whole, &found,
                                           &baseline_whole));
      }
      CompareOptions compare = CompareOptionsFor(
          policy, static_cast<int>(baselines.size()), options.looks);
      OPTRAIL_ASSIGN_OR_RETURN(
          std::vector<proto::Run> learned,
          ReadAll(history, LearningRuns(policy, list.runs, found.runs,
                                        report.candidate_runs)));
      DropGivenConfigs(learned);
      compare.history = Pointers(learned);
      compare.window = baseline.has_window();
      std::map<std::string, std::string> starts;
      if (compare.window) {
        std::vector<proto::Run> past = learned;
        past.insert(past.end(), baseline_whole.begin(), baseline_whole.end());
        starts = LevelStarts(past, book, &report.notes);
        compare.level_start = [&starts](const proto::BenchmarkKey& key,
                                        absl::string_view metric) {
          const auto found = starts.find(PriorKey(key, metric));
          return found == starts.end() ? "" : found->second;
        };
      }
      OPTRAIL_ASSIGN_OR_RETURN(const Comparison comparison,
                               Compare(Pointers(baseline_whole),
                                       Pointers(candidate_whole), compare));
      Judge(policy, comparison, found.text, options.now_unix_s, &report);
    }
    report.baselines.push_back(std::move(found));
  }
  for (const proto::Exemption* exemption :
       policy.ExpiredExemptions(options.now_unix_s)) {
    report.notes.push_back(absl::StrCat("the exemption of '",
                                        exemption->benchmark(), "' ended on ",
                                        exemption->until()));
  }
  Conclude(&report);
  return report;
}

absl::optional<Remeasure> RemeasureRequest(const GateReport& report) {
  std::set<std::string> names;
  Remeasure request;
  for (const GateRow& row : report.rows) {
    if (Rank(row) != 1 || !row.row.processes_needed.has_value()) continue;
    names.insert(EscapeForRegex(row.row.name));
    const int needed = *row.row.processes_needed;
    int have =
        std::min(row.row.baseline.processes, row.row.candidate.processes);
    // Of pairs, rounds are what counts.
    if (row.row.ratio.has_value()) {
      have = std::min(row.row.ratio->baseline_processes,
                      row.row.ratio->candidate_processes);
    }
    request.processes = std::max(request.processes, needed);
    // Spread that grew while measuring may ask for fewer than there are.
    request.additional_processes =
        std::max({request.additional_processes, needed - have, 1});
  }
  if (names.empty()) return absl::nullopt;
  request.filter = absl::StrCat("^(", absl::StrJoin(names, "|"), ")$");
  return request;
}

}  // namespace optrail::tracker

#include "tracker/gate/baseline.h"

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"
#include "tracker/compare/learning_runs.h"
#include "tracker/history/selectors.h"
#include "tracker/series/series.h"
#include "tuning/proto/measurement_settings_text.h"

namespace optrail::tracker {
namespace {

// Commits of a window that say which suites a commit has.
constexpr size_t kSuiteCommits = 10;
constexpr char kIsTheCandidate[] = "it is the candidate itself";

bool SameToolchain(const proto::Run& a, const proto::Run& b) {
  return DescribeToolchainChange(a.toolchain(), b.toolchain()).empty();
}

std::set<std::string> Ids(const std::vector<RunInfo>& runs) {
  std::set<std::string> ids;
  for (const RunInfo& run : runs) ids.insert(run.id());
  return ids;
}

absl::Status NeedsGit(const proto::Baseline& baseline) {
  return absl::FailedPreconditionError(absl::StrCat(
      "baseline ", BaselineText(baseline), " needs a git work tree"));
}

}  // namespace

bool MeasuredAlike(const Policy& policy, const proto::Run& a,
                   const proto::Run& b) {
  return policy.proto().on_other_settings() == proto::IGNORE ||
         tuning::DescribeSettingsChange(a.settings(), b.settings()).empty();
}

bool Past::GitKnowsTheCandidate() const {
  if (!git_knows_the_candidate_.has_value()) {
    const std::string& head = candidate_.commit().id();
    git_knows_the_candidate_ =
        git_.merge_base && !head.empty() && git_.merge_base(head, head).ok();
  }
  return *git_knows_the_candidate_;
}

bool Past::Has(const proto::Run& run) const {
  const proto::Commit& commit = run.commit();
  const proto::Commit& head = candidate_.commit();
  if (!commit.id().empty() && commit.id() == head.id()) {
    return run.started_unix_ns() < candidate_.started_unix_ns();
  }
  if (!commit.id().empty() && GitKnowsTheCandidate()) {
    auto [known, is_new] =
        ancestors_.insert({commit.id(), absl::optional<bool>()});
    if (is_new) {
      const auto base = git_.merge_base(commit.id(), head.id());
      if (base.ok()) known->second = *base == commit.id();
    }
    if (known->second.has_value()) return *known->second;
  }
  if (commit.branch() == head.branch() && commit.has_first_parent_position() &&
      head.has_first_parent_position() &&
      commit.first_parent_position() != head.first_parent_position()) {
    return commit.first_parent_position() < head.first_parent_position();
  }
  return run.started_unix_ns() < candidate_.started_unix_ns();
}

BaselineFinder::BaselineFinder(const Policy& policy, const GitLookup& git,
                               const std::vector<RunInfo>& runs,
                               const std::vector<RunInfo>& candidates)
    : policy_(policy),
      git_(git),
      runs_(runs),
      candidate_(candidates.back().header),
      past_(git, candidate_),
      candidate_ids_(Ids(candidates)) {}

absl::StatusOr<ResolvedBaseline> BaselineFinder::Find(
    const proto::Baseline& baseline, const History& history,
    const RunFilter& filter) const {
  OPTRAIL_ASSIGN_OR_RETURN(ResolvedBaseline found,
                           FindRuns(baseline, history, filter));
  LookAtSettings(&found);
  return found;
}

// InvalidArgument for a name that neither the history nor git knows: a typing
// error, where one that is known and was not measured is not enough data.
absl::Status BaselineFinder::CheckIsKnown(const proto::Baseline& baseline,
                                          const History& history) const {
  const std::string& name =
      baseline.has_run() ? baseline.run() : baseline.commit();
  if (name.empty() || IsLatest(name)) return absl::OkStatus();
  const absl::Status known = Select(history, name, git_.resolve).status();
  if (!absl::IsNotFound(known)) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("baseline ", BaselineText(baseline), ": ", known.message()));
}

absl::StatusOr<ResolvedBaseline> BaselineFinder::FindRuns(
    const proto::Baseline& baseline, const History& history,
    const RunFilter& filter) const {
  ResolvedBaseline found;
  found.text = BaselineText(baseline);
  found.suite = candidate_.suite();
  found.hardware_id = candidate_.hardware().id();
  if (baseline.has_window()) {
    FindWindow(baseline.window(), &found);
    return found;
  }
  OPTRAIL_RETURN_IF_ERROR(CheckIsKnown(baseline, history));
  if (baseline.has_run()) {
    return FindRun(baseline.run(), history, filter, std::move(found));
  }
  OPTRAIL_ASSIGN_OR_RETURN(const absl::optional<std::string> commit,
                           CommitOf(baseline));
  if (!commit.has_value()) {
    return absl::InvalidArgumentError("a baseline says nothing");
  }
  return FindCommit(*commit, std::move(found));
}

absl::StatusOr<ResolvedBaseline> BaselineFinder::FindRun(
    const std::string& run, const History& history, const RunFilter& filter,
    ResolvedBaseline found) const {
  absl::StatusOr<Selection> selected =
      SelectRuns(history, run, git_.resolve, filter);
  if (absl::IsNotFound(selected.status()) ||
      absl::IsDataLoss(selected.status())) {
    found.problem = std::string(selected.status().message());
    return found;
  }
  if (!selected.ok()) return selected.status();
  for (const RunInfo& one : selected->runs) AddUnlessCandidate(one, &found);
  if (found.runs.empty()) found.problem = kIsTheCandidate;
  return found;
}

absl::StatusOr<absl::optional<std::string>> BaselineFinder::CommitOf(
    const proto::Baseline& baseline) const {
  if (baseline.has_commit()) {
    // A name ("HEAD~1") or a prefix of a hash.
    if (git_.resolve) {
      absl::StatusOr<std::string> commit = git_.resolve(baseline.commit());
      if (commit.ok()) return absl::make_optional(*std::move(commit));
    }
    return absl::make_optional(baseline.commit());
  }
  if (baseline.has_tag()) {
    if (!git_.resolve) return NeedsGit(baseline);
    OPTRAIL_ASSIGN_OR_RETURN(std::string commit, git_.resolve(baseline.tag()));
    return absl::make_optional(std::move(commit));
  }
  if (!baseline.has_merge_base()) return absl::optional<std::string>();
  if (!git_.merge_base) return NeedsGit(baseline);
  if (candidate_.commit().id().empty()) {
    return absl::FailedPreconditionError(
        absl::StrCat("baseline ", BaselineText(baseline), ": candidate run ",
                     candidate_.run_id(), " has no commit"));
  }
  OPTRAIL_ASSIGN_OR_RETURN(
      std::string commit,
      git_.merge_base(candidate_.commit().id(), baseline.merge_base()));
  return absl::make_optional(std::move(commit));
}

void BaselineFinder::LookAtSettings(ResolvedBaseline* found) const {
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

void BaselineFinder::AddUnlessCandidate(const RunInfo& run,
                                        ResolvedBaseline* found) const {
  if (candidate_ids_.count(run.id()) == 0) found->runs.push_back(run);
}

absl::StatusOr<ResolvedBaseline> BaselineFinder::FindCommit(
    const std::string& commit, ResolvedBaseline found) const {
  std::set<std::string> commits;
  for (const RunInfo& run : runs_) {
    if (commit.empty() || !absl::StartsWith(run.header.commit().id(), commit) ||
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
  if (found.runs.empty() && !commits.empty()) {
    found.problem = kIsTheCandidate;
  } else if (found.runs.empty()) {
    found.problem = absl::StrCat("no run of suite '", candidate_.suite(),
                                 "' on ", candidate_.hardware().id(),
                                 " at commit ", ShortHash(commit));
  }
  return found;
}

BaselineFinder::Standing BaselineFinder::StandingOf(
    const proto::Baseline::Window& window, const RunInfo& run) const {
  const proto::Run& header = run.header;
  if (candidate_ids_.count(run.id()) > 0) return Standing::kCandidate;
  if (header.commit().branch() != window.branch()) {
    return Standing::kOtherBranch;
  }
  if (!SameToolchain(header, candidate_)) return Standing::kOtherToolchain;
  if (header.commit().dirty()) return Standing::kDirty;
  if (!past_.Has(header)) return Standing::kNoAncestor;
  return MeasuredAlike(policy_, header, candidate_) ? Standing::kOfWindow
                                                    : Standing::kOtherSettings;
}

// Newest first, until the window is full. Where too few runs were measured
// like the candidate, others stand in, whose level is less sure.
void BaselineFinder::FindWindow(const proto::Baseline::Window& window,
                                ResolvedBaseline* found) const {
  std::map<Standing, int> left_out;
  std::vector<RunInfo> other_settings;
  for (auto run = runs_.rbegin(); run != runs_.rend(); ++run) {
    if (static_cast<int>(found->runs.size()) == window.runs()) break;
    const Standing standing = StandingOf(window, *run);
    if (standing == Standing::kOfWindow) {
      found->runs.push_back(*run);
      continue;
    }
    ++left_out[standing];
    if (standing == Standing::kOtherSettings) other_settings.push_back(*run);
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
  found->problem = WindowProblem(window, found->runs.size(), needed, left_out);
}

std::string BaselineFinder::WindowProblem(
    const proto::Baseline::Window& window, size_t runs, int needed,
    const std::map<Standing, int>& left_out) const {
  std::string text = absl::StrCat(
      runs, runs == 1 ? " earlier run" : " earlier runs", " of suite '",
      candidate_.suite(), "' on ", candidate_.hardware().id(), ", branch ",
      window.branch(), "; at least ", needed, " are needed");
  std::set<std::string> other_branches;
  for (const RunInfo& run : runs_) {
    if (StandingOf(window, run) == Standing::kOtherBranch) {
      other_branches.insert(run.header.commit().branch());
    }
  }
  const bool some_have_none = other_branches.erase("") > 0;
  if (runs == 0 && some_have_none) {
    absl::StrAppend(&text, " (the history has runs of no branch: set ",
                    "OPTRAIL_BRANCH=", window.branch(),
                    " where they are recorded)");
  }
  // Many a main branch has another name.
  if (runs == 0 && !other_branches.empty()) {
    absl::StrAppend(&text, " (the history has runs of branch ",
                    absl::StrJoin(other_branches, ", "),
                    ": --baseline=window:", *other_branches.begin(), ":",
                    window.runs(), ")");
  }
  const std::pair<Standing, const char*> reasons[] = {
      {Standing::kOtherToolchain, "are from another toolchain"},
      {Standing::kOtherSettings, "were measured differently"},
      {Standing::kNoAncestor, "are no ancestors of the candidate"},
      {Standing::kDirty, "have changes that their commit lacks"}};
  for (const auto& [standing, what] : reasons) {
    const auto count = left_out.find(standing);
    if (count == left_out.end()) continue;
    absl::StrAppend(&text, " (", count->second, " more ", what, ")");
  }
  // Nobody has to wait for a window.
  for (auto run = runs_.rbegin(); run != runs_.rend(); ++run) {
    if (StandingOf(window, *run) != Standing::kOfWindow ||
        run->header.commit().id().empty()) {
      continue;
    }
    absl::StrAppend(
        &text, " (--baseline=commit:", ShortHash(run->header.commit().id()),
        " compares with the newest of them)");
    break;
  }
  return text;
}

std::vector<RunInfo> BaselineFinder::Before(
    const proto::Baseline::Window& window,
    const ResolvedBaseline& found) const {
  const std::set<std::string> in_window = Ids(found.runs);
  std::vector<RunInfo> older;
  size_t passed = 0;
  for (auto run = runs_.rbegin();
       run != runs_.rend() && older.size() < kMostLearningRuns; ++run) {
    if (in_window.count(run->id()) > 0) {
      ++passed;
    } else if (passed == in_window.size() &&
               StandingOf(window, *run) == Standing::kOfWindow) {
      older.push_back(*run);
    }
  }
  return older;
}

absl::StatusOr<std::vector<proto::Run>> BaselineFinder::Read(
    const proto::Baseline& baseline, const History& history,
    const std::vector<proto::Run>& candidates, ResolvedBaseline* found) const {
  OPTRAIL_ASSIGN_OR_RETURN(std::vector<proto::Run> whole,
                           ReadAll(history, found->runs));
  DropGivenConfigs(&whole);
  if (baseline.has_window()) {
    OPTRAIL_RETURN_IF_ERROR(
        FillWindow(baseline.window(), history, candidates, found, &whole));
  }
  return whole;
}

absl::Status BaselineFinder::FillWindow(
    const proto::Baseline::Window& window, const History& history,
    const std::vector<proto::Run>& candidates, ResolvedBaseline* found,
    std::vector<proto::Run>* whole) const {
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
  for (const proto::Run& run : *whole) count(run);
  if (lacking.empty()) return absl::OkStatus();
  for (const RunInfo& info : Before(window, *found)) {
    if (lacking.empty()) break;
    OPTRAIL_ASSIGN_OR_RETURN(proto::Run run, history.ReadRun(info.id()));
    DropResults(
        [&lacking](const proto::BenchmarkResult& result) {
          return result.config_source() == proto::GIVEN ||
                 lacking.count(CanonicalText(result.key())) == 0;
        },
        &run);
    if (run.results().empty()) continue;
    count(run);
    found->runs.insert(found->runs.begin(), info);
    whole->insert(whole->begin(), std::move(run));
  }
  return absl::OkStatus();
}

std::set<std::string> BaselineFinder::Suites(
    const proto::Baseline& baseline) const {
  std::set<std::string> suites;
  if (!baseline.has_window()) {
    // What is wrong with a baseline is said where it is judged by.
    const auto commit = CommitOf(baseline);
    if (!commit.ok() || !commit->has_value() || (*commit)->empty()) {
      return suites;
    }
    for (const RunInfo& run : runs_) {
      if (absl::StartsWith(run.header.commit().id(), **commit)) {
        suites.insert(run.header.suite());
      }
    }
    return suites;
  }
  std::set<std::string> commits;
  std::map<std::string, std::set<std::string>> commits_of;  // by suite
  for (auto run = runs_.rbegin(); run != runs_.rend(); ++run) {
    const proto::Commit& commit = run->header.commit();
    if (commit.branch() != baseline.window().branch() || commit.dirty() ||
        commit.id() == candidate_.commit().id() || !past_.Has(run->header)) {
      continue;
    }
    if (commits.size() == kSuiteCommits && commits.count(commit.id()) == 0) {
      break;
    }
    commits.insert(commit.id());
    commits_of[run->header.suite()].insert(commit.id());
  }
  for (const auto& [suite, of_suite] : commits_of) {
    if (2 * of_suite.size() >= commits.size()) suites.insert(suite);
  }
  return suites;
}

absl::StatusOr<std::vector<proto::Run>> ReadAll(
    const History& history, const std::vector<RunInfo>& runs) {
  std::vector<proto::Run> read;
  for (const RunInfo& run : runs) {
    OPTRAIL_ASSIGN_OR_RETURN(proto::Run whole, history.ReadRun(run.id()));
    read.push_back(std::move(whole));
  }
  return read;
}

}  // namespace optrail::tracker

#include "reports/series_view.h"

#include <algorithm>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "reports/session_view.h"
#include "tracker/judge/evidence.h"
#include "tracker/series/series_key.h"
#include "tuning/proto/canonical.h"

namespace optrail::reports {
namespace {

// Tells the commits of runs apart. Outside of git each time is its own.
using CommitKey = std::tuple<std::string, bool, int64_t>;

CommitKey KeyOf(const proto::Run& run) {
  return {run.commit().id(), run.commit().dirty(),
          run.commit().id().empty() ? run.started_unix_ns() : 0};
}

// "threads=1/hot/v2": what the key holds beyond operator, shape and selection.
std::string VariantText(const proto::BenchmarkKey& key) {
  std::vector<std::string> parts;
  if (key.device_kind() != proto::DEVICE_KIND_UNSPECIFIED) {
    parts.push_back(tuning::DeviceAndBackend(key.device_kind(), key.backend()));
  }
  if (key.threads() > 0) {
    parts.push_back(absl::StrCat(key.threads(),
                                 key.threads() == 1 ? " thread" : " threads"));
  }
  if (key.cache_mode() != proto::CACHE_MODE_UNSPECIFIED) {
    parts.push_back(tuning::CacheModeName(key.cache_mode()));
  }
  if (key.launch_mode() != proto::LAUNCH_MODE_UNSPECIFIED) {
    parts.push_back(tuning::LaunchModeName(key.launch_mode()));
  }
  if (key.devices() > 0) {
    parts.push_back(absl::StrCat(key.devices(), " devices"));
  }
  if (key.version() != 0) parts.push_back(absl::StrCat("v", key.version()));
  return absl::StrJoin(parts, ", ");
}

// "BM_Sort" of "BM_Sort/1024", "io/test_a.py" of "io/test_a.py::test_b[1]".
std::string FamilyOf(const std::string& imported) {
  const size_t file = imported.find(".py::");
  const size_t end =
      file != std::string::npos ? file + 3 : imported.find_first_of("/[(<");
  return end == 0 ? imported : imported.substr(0, end);
}

bool IsAnswered(const tracker::Change& change) {
  tracker::ChangeCounts one;
  if (IsListed(change, tracker::kLeastEffect)) one.Add(change);
  return one.muted + one.answered > 0;
}

}  // namespace

RunTables::RunTables(const std::vector<const proto::Run*>& runs) {
  OrderCommits(runs);
  AddSuites(runs);
}

void RunTables::OrderCommits(const std::vector<const proto::Run*>& runs) {
  struct Found {
    const proto::Run* run;
    int64_t first_unix_ns;
  };
  std::map<CommitKey, Found> found;
  bool positions_known = true;
  for (const proto::Run* run : runs) {
    auto [it, inserted] =
        found.emplace(KeyOf(*run), Found{run, run->started_unix_ns()});
    it->second.first_unix_ns =
        std::min(it->second.first_unix_ns, int64_t{run->started_unix_ns()});
    positions_known &= run->commit().has_first_parent_position();
  }
  std::vector<std::pair<CommitKey, Found>> ordered(found.begin(), found.end());
  std::stable_sort(
      ordered.begin(), ordered.end(), [&](const auto& a, const auto& b) {
        if (positions_known) {
          const int64_t pa = a.second.run->commit().first_parent_position();
          const int64_t pb = b.second.run->commit().first_parent_position();
          if (pa != pb) return pa < pb;
        }
        return a.second.first_unix_ns < b.second.first_unix_ns;
      });
  std::map<CommitKey, int> places;
  for (const auto& [key, each] : ordered) {
    places[key] = static_cast<int>(commits_.size());
    commits_.push_back(ConvertCommit(each.run->commit()));
    if (commits_.back().unix_ns == 0) {
      commits_.back().unix_ns = each.first_unix_ns;
    }
  }
  for (const proto::Run* run : runs) {
    runs_[run->run_id()].commit = places.at(KeyOf(*run));
  }
}

void RunTables::AddSuites(const std::vector<const proto::Run*>& runs) {
  std::map<std::tuple<std::string, std::string, std::string>, int> suites;
  for (const proto::Run* run : runs) {
    const auto [suite, is_new] =
        suites.emplace(std::make_tuple(run->suite(), run->hardware().id(),
                                       run->commit().branch()),
                       static_cast<int>(suite_commits_.size()));
    if (is_new) suite_commits_.emplace_back();
    OfRun& of_run = runs_.at(run->run_id());
    of_run.suite = suite->second;
    suite_commits_[suite->second].push_back(of_run.commit);
  }
  for (std::vector<int>& commits : suite_commits_) {
    std::sort(commits.begin(), commits.end());
  }
}

std::vector<int> RunTables::GapsOf(const tracker::Series& series,
                                   const std::vector<int>& at) const {
  std::vector<int> suites;
  for (const tracker::Point& point : series.points) {
    for (const std::string& id : point.runs->ids) {
      const int suite = runs_.at(id).suite;
      if (std::find(suites.begin(), suites.end(), suite) == suites.end()) {
        suites.push_back(suite);
      }
    }
  }
  std::vector<int> gaps;
  for (size_t i = 1; i < at.size(); ++i) {
    for (const int suite : suites) {
      const std::vector<int>& ran = suite_commits_[suite];
      const auto next = std::upper_bound(ran.begin(), ran.end(), at[i - 1]);
      if (next == ran.end() || *next >= at[i]) continue;
      gaps.push_back(static_cast<int>(i));
      break;
    }
  }
  return gaps;
}

SeriesView ViewOf(const tracker::Series& series, const RunTables& tables,
                  int hardware) {
  const proto::BenchmarkKey& key = series.key.benchmark;
  SeriesView result;
  result.of = &series;
  result.name = tracker::DisplayName(key);
  if (series.key.metric != "time") {
    absl::StrAppend(&result.name, " ", series.key.metric);
  }
  result.operator_name = key.operator_name();
  result.imported = key.selection() == proto::CONFIG_SELECTION_UNSPECIFIED &&
                    key.shape().dims_size() == 0;
  result.family =
      result.imported ? FamilyOf(key.operator_name()) : key.operator_name();
  if (key.shape().dims_size() > 0 || key.shape().data_types_size() > 0) {
    result.shape = tuning::CanonicalText(key.shape());
  }
  result.selection = tracker::SelectionName(key);
  result.variant = VariantText(key);
  result.hardware = hardware;
  result.commits.reserve(series.points.size());
  for (const tracker::Point& point : series.points) {
    result.commits.push_back(tables.CommitOf(*point.runs));
    result.process_count +=
        std::min<int64_t>(point.processes.size(), kMostProcesses);
    if (point.roofline_fraction && series.key.metric == "time") {
      result.roofline_fraction = *point.roofline_fraction;
    }
  }
  result.point_count = static_cast<int64_t>(series.points.size());
  // One with some of its points brings its gaps along.
  if (series.times == nullptr) {
    result.gaps = tables.GapsOf(series, result.commits);
  }
  return result;
}

void AddJudgement(const tracker::Judgement& judgement, SeriesView& result) {
  for (const tracker::Change& change : judgement.changes) {
    // Epochs are told by themselves; a return is no news.
    if (change.kind == tracker::ChangeKind::kEpoch ||
        change.kind == tracker::ChangeKind::kReturn) {
      continue;
    }
    ChangeView point;
    point.point = change.change.index;
    point.relative_change = change.change.relative_change;
    point.relative_change_low = change.change.relative_change_low;
    point.relative_change_high = change.change.relative_change_high;
    point.confidence = change.change.confidence;
    point.provisional =
        change.provisional ||
        (change.kind == tracker::ChangeKind::kCreep && !change.stands_apart);
    point.for_the_worse = change.worse_by > 0;
    point.answered = IsAnswered(change);
    point.state = tracker::ChangeText(change);
    if (change.kind == tracker::ChangeKind::kRenamed) {
      absl::StrAppend(&point.state, ": called ", change.cause, " before");
    } else if (!change.cause.empty()) {
      absl::StrAppend(&point.state, ": ", change.cause);
    }
    if (!change.opinion.reason.empty()) {
      absl::StrAppend(&point.state, ": ", change.opinion.reason);
    }
    result.changes.push_back(std::move(point));
  }
  result.verdict = judgement.standing;
  result.verdict_detail = judgement.why;
  result.levels = judgement.levels;
  result.known_points = judgement.known_points;
  result.needed_points = judgement.needed_points;
  result.minimum_detectable_effect = judgement.minimum_detectable_effect;
  if (judgement.decided_by >= 0) {
    const tracker::ChangePoint& change =
        judgement.changes[judgement.decided_by].change;
    result.ratio = 1 + change.relative_change;
    result.ratio_low = 1 + change.relative_change_low;
    result.ratio_high = 1 + change.relative_change_high;
    result.decided_by = judgement.changes[judgement.decided_by];
  }
}

}  // namespace optrail::reports

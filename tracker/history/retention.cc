#include "tracker/history/retention.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "base/hash/hash.h"
#include "base/stats/statistics.h"
#include "base/status_macros.h"
#include "tracker/series/series.h"

namespace optrail::tracker {
namespace {

bool IsPinned(const proto::Run& run, const RetentionPolicy& policy) {
  if (std::find(policy.keep_ids.begin(), policy.keep_ids.end(), run.run_id()) !=
      policy.keep_ids.end()) {
    return true;
  }
  for (const std::string& commit : policy.keep_commits) {
    if (absl::StartsWith(run.commit().id(), commit)) return true;
  }
  return false;
}

// Whether one of the older runs stays. It depends on nothing but the run, so
// that one pass after another keeps the same ones.
bool IsKthRun(const proto::Run& run, int k) {
  const uint64_t number =
      run.commit().has_first_parent_position()
          ? static_cast<uint64_t>(run.commit().first_parent_position())
          : StableHash(run.run_id());
  return number % static_cast<uint64_t>(k) == 0;
}

bool ThinMeasurement(proto::Measurement* measurement) {
  bool changed = false;
  if (measurement->sample_ns_size() > 0) {
    if (const auto reading = ReadingOf(*measurement, "time")) {
      measurement->set_median_ns(reading->value);
      measurement->set_clean_sample_count(reading->samples);
    }
    measurement->clear_sample_ns();
    measurement->clear_contended_samples();
    measurement->clear_unwaited_ns();
    changed = true;
  }
  for (proto::MetricSamples& metric : *measurement->mutable_metrics()) {
    if (metric.values_size() <= 1) continue;
    const double median = Median(metric.values());
    metric.clear_values();
    metric.add_values(median);
    changed = true;
  }
  return changed;
}

}  // namespace

absl::Status ValidateRetention(const RetentionPolicy& policy) {
  const std::tuple<const char*, int, int> fields[] = {
      {"keep_runs", policy.keep_runs, 0},
      {"keep_days", policy.keep_days, 0},
      {"keep_every", policy.keep_every, 1}};
  for (const auto& [name, value, least] : fields) {
    if (value >= least) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("--", name, "=", value, ": expected at least ", least));
  }
  for (const std::string& commit : policy.keep_commits) {
    if (!commit.empty()) continue;
    return absl::InvalidArgumentError(
        "--keep_commits holds '', expected a prefix of a hash");
  }
  return absl::OkStatus();
}

std::string DescribeRetention(const RetentionPolicy& policy) {
  return absl::StrCat(
      "the newest ", policy.keep_runs, " runs and those of ", policy.keep_days,
      " days whole; of the others ",
      policy.keep_every == 1 ? "all" : absl::StrCat("1 in ", policy.keep_every),
      ", as medians");
}

bool ThinRun(proto::Run* run) {
  bool changed = false;
  for (proto::BenchmarkResult& result : *run->mutable_results()) {
    for (proto::Measurement& measurement : *result.mutable_measurements()) {
      changed |= ThinMeasurement(&measurement);
    }
  }
  return changed;
}

absl::StatusOr<RetentionPlan> PlanRetention(const History& history,
                                            const RetentionPolicy& policy,
                                            int64_t now_unix_ns) {
  OPTRAIL_RETURN_IF_ERROR(ValidateRetention(policy));
  RetentionPlan plan;
  plan.policy = DescribeRetention(policy);
  OPTRAIL_ASSIGN_OR_RETURN(const LoadedTombstones tombstones,
                           history.LoadTombstones());
  OPTRAIL_ASSIGN_OR_RETURN(RunList list, history.ListRuns());
  plan.bad_files = list.bad_files;
  plan.bad_files.insert(plan.bad_files.end(), tombstones.bad_files.begin(),
                        tombstones.bad_files.end());
  std::sort(list.runs.begin(), list.runs.end(),
            [](const RunInfo& a, const RunInfo& b) {
              return std::make_tuple(a.header.started_unix_ns(), a.id()) >
                     std::make_tuple(b.header.started_unix_ns(), b.id());
            });
  std::map<std::tuple<std::string, std::string, std::string>, int> newer;
  for (const RunInfo& info : list.runs) {
    const proto::Run& run = info.header;
    // Those dated in the future must not push the others out.
    const bool is_ahead = IsInTheFuture(run.started_unix_ns(), now_unix_ns);
    int& rank =
        newer[{run.suite(), run.hardware().id(), run.commit().branch()}];
    if (is_ahead || rank < policy.keep_runs || IsPinned(run, policy) ||
        absl::FromUnixNanos(now_unix_ns) -
                absl::FromUnixNanos(run.started_unix_ns()) <=
            policy.keep_days * absl::Hours(24)) {
      rank += is_ahead ? 0 : 1;
      ++plan.kept_whole;
      continue;
    }
    ++rank;
    absl::StatusOr<proto::Run> read = history.ReadRun(info.id());
    if (!read.ok()) {
      plan.bad_files.push_back(
          {info.path, std::string(read.status().message())});
      continue;
    }
    read->clear_checksum();
    const int64_t bytes = static_cast<int64_t>(read->ByteSizeLong());
    const auto buried = tombstones.by_run.find(info.id());
    const bool only_buried = IsKthRun(run, policy.keep_every) &&
                             buried != tombstones.by_run.end() &&
                             buried->second == proto::REMOVED;
    if (only_buried && !policy.accept_removals) ++plan.buried_but_kept;
    const bool remove = only_buried ? policy.accept_removals
                                    : !IsKthRun(run, policy.keep_every);
    if (remove) {
      plan.remove.push_back(info.id());
    } else if (ThinRun(&*read)) {
      plan.thin.push_back(info.id());
      plan.bytes_after += static_cast<int64_t>(read->ByteSizeLong());
    } else {
      ++plan.thinned_before;
      continue;
    }
    plan.bytes_before += bytes;
  }
  std::reverse(plan.thin.begin(), plan.thin.end());
  std::reverse(plan.remove.begin(), plan.remove.end());
  return plan;
}

absl::Status ApplyRetention(const History& history, const RetentionPlan& plan,
                            int64_t now_unix_ns) {
  proto::Tombstones tombstones;
  tombstones.set_tombstones_id(NewRecordId(now_unix_ns));
  tombstones.set_created_unix_ns(now_unix_ns);
  tombstones.set_policy(plan.policy);
  OPTRAIL_ASSIGN_OR_RETURN(const LoadedTombstones before,
                           history.LoadTombstones());
  const auto bury = [&](const std::string& run_id, proto::TombstoneKind kind) {
    const auto known = before.by_run.find(run_id);
    if (known != before.by_run.end() && known->second == kind) return;
    proto::Tombstone* tombstone = tombstones.add_tombstones();
    tombstone->set_run_id(run_id);
    tombstone->set_kind(kind);
  };
  for (const std::string& id : plan.remove) bury(id, proto::REMOVED);
  for (const std::string& id : plan.thin) bury(id, proto::THINNED);
  if (tombstones.tombstones_size() > 0) {
    OPTRAIL_RETURN_IF_ERROR(history.AppendTombstones(tombstones));
  }
  for (const std::string& id : plan.remove) {
    const absl::Status removed = history.RemoveRun(id);
    if (!removed.ok() && !absl::IsNotFound(removed)) return removed;
  }
  for (const std::string& id : plan.thin) {
    absl::StatusOr<proto::Run> run = history.ReadRun(id);
    if (absl::IsNotFound(run.status())) continue;
    if (!run.ok()) return run.status();
    if (ThinRun(&*run)) OPTRAIL_RETURN_IF_ERROR(history.ReplaceRun(*run));
  }
  return absl::OkStatus();
}

}  // namespace optrail::tracker

#include "suites/tune/transfer_sources.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "tuning/proto/canonical.h"
#include "tuning/session/objective.h"
#include "tuning/session/proposer.h"
#include "tuning/store/store.h"

namespace optrail::suites {
namespace {

// In doublings of a dimension.
constexpr double kOtherHardware = 2;
constexpr double kOtherCacheMode = 1;
constexpr double kOtherLaunchMode = 1;
// Farther tasks are another problem.
constexpr double kFarthest = 6;

constexpr size_t kMostSources = 4;
// A session of fewer trials, or of which the space knows fewer, tells too
// little.
constexpr int kLeastTrials = 12;

}  // namespace

absl::optional<double> TaskDistance(const proto::Task& a,
                                    const proto::Task& b) {
  if (a.operator_name() != b.operator_name() ||
      a.device_kind() != b.device_kind() || a.backend() != b.backend() ||
      std::max(a.devices(), 1) != std::max(b.devices(), 1) ||
      tuning::TrialKey(a, proto::Config()) ==
          tuning::TrialKey(b, proto::Config())) {
    return absl::nullopt;
  }
  absl::optional<double> distance = tuning::ShapeDistance(a.shape(), b.shape());
  if (!distance.has_value()) return absl::nullopt;
  const double threads_a = std::max(a.threads(), 1);
  const double threads_b = std::max(b.threads(), 1);
  *distance += std::abs(std::log2(threads_a / threads_b));
  if (a.hardware_id() != b.hardware_id()) *distance += kOtherHardware;
  if (a.cache_mode() != b.cache_mode()) *distance += kOtherCacheMode;
  if (a.launch_mode() != b.launch_mode()) *distance += kOtherLaunchMode;
  return distance;
}

std::vector<int> NearestTasks(const std::vector<proto::Task>& tasks, size_t i) {
  std::vector<std::pair<double, int>> nearest;
  for (size_t j = 0; j < tasks.size(); ++j) {
    if (j == i) continue;
    const absl::optional<double> distance = TaskDistance(tasks[i], tasks[j]);
    if (!distance.has_value() || *distance > kFarthest) continue;
    nearest.emplace_back(*distance, static_cast<int>(j));
  }
  std::sort(nearest.begin(), nearest.end());
  if (nearest.size() > kMostSources) nearest.resize(kMostSources);
  std::vector<int> indices;
  for (const auto& [distance, index] : nearest) indices.push_back(index);
  return indices;
}

std::vector<std::string> ChooseTransferSessions(
    const std::vector<tracker::SessionInfo>& sessions,
    const proto::Task& task) {
  std::vector<std::pair<double, std::string>> nearest;
  absl::flat_hash_set<std::string> tasks;
  for (auto info = sessions.rbegin(); info != sessions.rend(); ++info) {
    if (info->trial_count < kLeastTrials) continue;
    const proto::Task& other = info->header.task();
    const absl::optional<double> distance = TaskDistance(task, other);
    if (!distance.has_value() || *distance > kFarthest) continue;
    // An older session's trials are among the known ones of the newest.
    if (!tasks.insert(tuning::TrialKey(other, proto::Config())).second) {
      continue;
    }
    nearest.emplace_back(*distance, info->id());
  }
  std::stable_sort(
      nearest.begin(), nearest.end(),
      [](const auto& a, const auto& b) { return a.first < b.first; });
  if (nearest.size() > kMostSources) nearest.resize(kMostSources);
  std::vector<std::string> ids;
  for (auto& [distance, id] : nearest) ids.push_back(std::move(id));
  return ids;
}

std::vector<tuning::TransferSource> LoadTransferSources(
    const tracker::History& history,
    const google::protobuf::RepeatedPtrField<std::string>& session_ids,
    const tuning::BoundSpace& space) {
  std::vector<tuning::TransferSource> sources;
  for (const proto::Session& session :
       LoadSourceSessions(history, session_ids)) {
    tuning::TransferSource source;
    source.name = session.session_id();
    const std::vector<proto::Objective> objectives =
        tuning::ObjectivesOf(session);
    for (const proto::Trial& trial : session.trials()) {
      // A contended trial says nothing about its config.
      if (trial.outcome() == proto::CONTENDED ||
          trial.outcome() == proto::OUTCOME_UNSPECIFIED) {
        continue;
      }
      absl::StatusOr<tuning::Levels> levels = space.ToLevels(trial.config());
      if (!levels.ok()) continue;
      source.trials.push_back(
          tuning::ForStrategy(objectives, trial, *std::move(levels)));
    }
    if (static_cast<int>(source.trials.size()) >= kLeastTrials) {
      sources.push_back(std::move(source));
    }
  }
  return sources;
}

std::vector<proto::Session> LoadSourceSessions(
    const tracker::History& history,
    const google::protobuf::RepeatedPtrField<std::string>& session_ids) {
  std::vector<proto::Session> sessions;
  for (const std::string& id : session_ids) {
    absl::StatusOr<proto::Session> session = history.ReadSession(id);
    if (session.ok()) sessions.push_back(*std::move(session));
  }
  return sessions;
}

}  // namespace optrail::suites

#include "tracker/compare/learning_runs.h"

#include <algorithm>
#include <set>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "tracker/series/series.h"
#include "tuning/proto/measurement_settings_text.h"

namespace optrail::tracker {

std::vector<proto::Run> LearningRuns(
    const History& history, const std::vector<RunInfo>& runs,
    const std::vector<const proto::Run*>& baseline,
    const std::vector<const proto::Run*>& candidate,
    const LearningOptions& options) {
  const proto::Run& last = *candidate.back();
  const std::string& branch = baseline.back()->commit().branch();
  std::set<std::string> bases, sides;
  for (const proto::Run* run : baseline) bases.insert(run->run_id());
  sides = bases;
  for (const proto::Run* run : candidate) sides.insert(run->run_id());
  const auto teaches = [&](const RunInfo& run) {
    const proto::Run& header = run.header;
    return sides.count(run.id()) == 0 && header.commit().branch() == branch &&
           !header.commit().dirty() &&
           DescribeToolchainChange(header.toolchain(), last.toolchain())
               .empty() &&
           (options.any_settings ||
            tuning::DescribeSettingsChange(header.settings(), last.settings())
                .empty());
  };
  // One past the last run before which runs teach; past the end if none is in
  // the history.
  auto place =
      std::find_if(runs.rbegin(), runs.rend(), [&](const RunInfo& run) {
        return (options.window ? bases : sides).count(run.id()) > 0;
      }).base();
  if (place == runs.begin()) place = runs.end();
  std::vector<RunInfo> nearest;
  for (auto run = place; run != runs.begin();) {
    if (nearest.size() == kMostLearningRuns) break;
    if (teaches(*--run)) nearest.push_back(*run);
  }
  for (auto run = place; !options.window && run != runs.end(); ++run) {
    if (nearest.size() == kMostLearningRuns) break;
    if (teaches(*run)) nearest.push_back(*run);
  }
  SortInSeriesOrder(nearest);
  std::vector<proto::Run> read;
  for (const RunInfo& info : nearest) {
    absl::StatusOr<proto::Run> run = history.ReadRun(info.id());
    if (run.ok()) read.push_back(*std::move(run));
  }
  DropGivenConfigs(&read);
  return read;
}

void DropResults(const std::function<bool(const proto::BenchmarkResult&)>& drop,
                 proto::Run* run) {
  auto* results = run->mutable_results();
  results->erase(std::remove_if(results->begin(), results->end(), drop),
                 results->end());
}

void DropGivenConfigs(std::vector<proto::Run>* runs) {
  for (proto::Run& run : *runs) {
    DropResults(
        [](const proto::BenchmarkResult& result) {
          return result.config_source() == proto::GIVEN;
        },
        &run);
  }
}

}  // namespace optrail::tracker

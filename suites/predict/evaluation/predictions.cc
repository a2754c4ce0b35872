// Scores predictions of what tuning brings: each session of a history against
// what the others say of its task.
//
//   bazel run //suites/predict/evaluation:predictions --
//       --history=$PWD/docs/history
//
// Coverage (.9 is promised) and rank correlation are printed for all of them
// and for each kind of device, where the default config was timed before, and
// where its time follows from other sessions, too. Tasks that are near to a
// session that the predictor learns from (two doublings at most) are told from
// those that are not, and among the near ones those whose near session has
// another shape: not all of them are the same shape on other hardware, with
// other caches or launched otherwise. --each prints every session.

#include <iostream>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/flags/parse.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_format.h"
#include "base/status_macros.h"
#include "suites/predict/predict.h"
#include "suites/predict/start_order.h"
#include "suites/tune/transfer_sources.h"
#include "tracker/history/history.h"
#include "tuning/store/store.h"

ABSL_FLAG(std::string, history, "docs/history", "Folder of runs and sessions.");
ABSL_FLAG(bool, each, false, "Print every session.");

namespace optrail::suites {
namespace {

using Scored = GainPredictor::Scored;

// At most two doublings of a dimension away from the session of another task
// that the predictor learns from, as `scored` is of each of them. If
// `other_shape`, sessions of the same shape do not count.
std::set<std::string> NearSessions(
    const std::vector<tracker::SessionInfo>& sessions,
    const std::vector<Scored>& scored, bool other_shape) {
  constexpr double kNear = 2;
  std::set<std::string> learned, near;
  for (const Scored& one : scored) learned.insert(one.session);
  for (const tracker::SessionInfo& one : sessions) {
    if (learned.count(one.id()) == 0) continue;
    for (const tracker::SessionInfo& other : sessions) {
      if (learned.count(other.id()) == 0) continue;
      const proto::Task& task = one.header.task();
      const proto::Task& other_task = other.header.task();
      if (other_shape &&
          tuning::ShapeDistance(task.shape(), other_task.shape()) == 0.) {
        continue;
      }
      const auto distance = TaskDistance(task, other_task);
      if (distance && *distance <= kNear) near.insert(one.id());
    }
  }
  return near;
}

void PrintScore(const std::string& name, const std::vector<Scored>& all) {
  if (all.size() < 2) return;
  const PredictionScore score = ScorePredictions(all);
  std::cout << absl::StrFormat(
      "%-18s %4d tasks  covered %4d (%.3f)  rank correlation %.2f  median "
      "error "
      "%.1f%%\n",
      name, score.predictions, score.covered,
      static_cast<double>(score.covered) / score.predictions,
      score.rank_correlation, 100 * score.median_error);
}

void PrintEach(const std::vector<Scored>& all) {
  for (const Scored& one : all) {
    std::cout << absl::StrFormat(
        "  %s realised %5.1f%%  predicted %5.1f%% (%.1f to %.1f)  like %s\n",
        one.session, 100 * one.realised, 100 * one.predicted.gain,
        100 * one.predicted.gain_low, 100 * one.predicted.gain_high,
        one.predicted.nearest_session);
  }
}

void PrintScores(const std::string& title,
                 const std::vector<tracker::SessionInfo>& sessions,
                 bool estimates) {
  std::cout << title << "\n";
  const std::vector<Scored> all =
      GainPredictor(sessions, WorkOf).LeaveOneOut(estimates);
  const std::set<std::string> near_ids = NearSessions(sessions, all, false);
  const std::set<std::string> shape_ids = NearSessions(sessions, all, true);
  std::vector<Scored> near, near_shape, far;
  for (const Scored& one : all) {
    (near_ids.count(one.session) > 0 ? near : far).push_back(one);
    if (shape_ids.count(one.session) > 0) near_shape.push_back(one);
  }
  PrintScore("all", all);
  PrintScore("near", near);
  PrintScore("near another shape", near_shape);
  PrintScore("far", far);
  for (const auto& [kind, name] : {std::make_pair(proto::CPU, "cpu"),
                                   std::make_pair(proto::CUDA, "cuda")}) {
    std::vector<tracker::SessionInfo> some;
    for (const tracker::SessionInfo& session : sessions) {
      if (session.header.task().device_kind() == kind) some.push_back(session);
    }
    PrintScore(name, GainPredictor(some, WorkOf).LeaveOneOut(estimates));
  }
  if (absl::GetFlag(FLAGS_each)) PrintEach(all);
}

absl::StatusOr<int> Run() {
  OPTRAIL_ASSIGN_OR_RETURN(
      const tracker::History history,
      tracker::History::Open(absl::GetFlag(FLAGS_history)));
  OPTRAIL_ASSIGN_OR_RETURN(const tracker::SessionList list,
                           history.ListSessions());
  PrintScores("the default config was timed before", list.sessions,
              /*estimates=*/false);
  PrintScores("its time follows from other sessions", list.sessions,
              /*estimates=*/true);
  return 0;
}

}  // namespace
}  // namespace optrail::suites

int main(int argc, char** argv) {
  absl::ParseCommandLine(argc, argv);
  const auto code = optrail::suites::Run();
  if (!code.ok()) std::cerr << code.status() << "\n";
  return code.ok() ? *code : 2;
}

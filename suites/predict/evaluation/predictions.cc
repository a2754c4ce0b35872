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
//
// Last comes what could be had: the rank correlation of the proven gains with
// themselves (where many are 0, nobody can order those), with what each search
// read before its proof, and with the mean gain of operator, backend and
// hardware, the task itself included.

#include <algorithm>
#include <cmath>
#include <iostream>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/flags/parse.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_format.h"
#include "base/random.h"
#include "base/stats/rank_correlation.h"
#include "base/stats/statistics.h"
#include "base/status_macros.h"
#include "suites/predict/predict.h"
#include "suites/predict/start_order.h"
#include "suites/tune/transfer_sources.h"
#include "tracker/convergence/convergence.h"
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

// With ties in `gains` in random orders: the mean of `kOrders`.
double CorrelationWithItself(const std::vector<double>& gains) {
  constexpr int kOrders = 100;
  Rng rng(1);
  double sum = 0;
  for (int order = 0; order < kOrders; ++order) {
    std::vector<std::pair<double, double>> keys;
    for (const double gain : gains) keys.emplace_back(gain, rng.UniformReal());
    std::vector<double> places;
    for (const auto& key : keys) {
      places.push_back(static_cast<double>(
          std::count_if(keys.begin(), keys.end(),
                        [&](const auto& other) { return other < key; })));
    }
    sum += RankCorrelation(gains, places);
  }
  return sum / kOrders;
}

// The default's first reading over the best one of the search, less 1; NaN
// where the search did not read the default.
absl::StatusOr<double> SearchGain(const tracker::History& history,
                                  const std::string& session_id) {
  OPTRAIL_ASSIGN_OR_RETURN(const proto::Session session,
                           history.ReadSession(session_id));
  const tracker::SessionAnalysis analysis = tracker::AnalyzeSession(session);
  for (const tracker::FinalistPoint& one : analysis.finalists) {
    if (!one.is_default || !analysis.best_cost) continue;
    if (one.first_cost) return *one.first_cost / *analysis.best_cost - 1;
    for (const tracker::TrialPoint& trial : analysis.trials) {
      if (trial.cost && trial.config_text == one.config_text) {
        return *trial.cost / *analysis.best_cost - 1;
      }
    }
  }
  return std::nan("");
}

// For all tasks, and those of CPUs and of CUDA.
absl::Status PrintBounds(const tracker::History& history,
                         const std::vector<tracker::SessionInfo>& sessions) {
  std::map<std::string, proto::Task> tasks;
  for (const tracker::SessionInfo& one : sessions) {
    tasks[one.id()] = one.header.task();
  }
  const std::vector<Scored> all = GainPredictor(sessions).LeaveOneOut();
  std::cout << "what could be had\n";
  for (const auto& [name, kind] :
       {std::make_pair("all", proto::DEVICE_KIND_UNSPECIFIED),
        std::make_pair("cpu", proto::CPU),
        std::make_pair("cuda", proto::CUDA)}) {
    std::vector<double> gains, searched, searched_gains;
    std::map<std::string, std::vector<double>> alike;
    std::vector<std::string> groups;
    for (const Scored& one : all) {
      const proto::Task& task = tasks[one.session];
      if (kind != proto::DEVICE_KIND_UNSPECIFIED &&
          task.device_kind() != kind) {
        continue;
      }
      gains.push_back(one.realised);
      OPTRAIL_ASSIGN_OR_RETURN(const double search,
                               SearchGain(history, one.session));
      if (!std::isnan(search)) {
        searched.push_back(search);
        searched_gains.push_back(one.realised);
      }
      groups.push_back(task.operator_name() + "/" + task.backend() + "/" +
                       task.hardware_id());
      alike[groups.back()].push_back(one.realised);
    }
    if (gains.size() < 2) continue;
    std::vector<double> means;
    for (const std::string& group : groups) means.push_back(Mean(alike[group]));
    std::cout << absl::StrFormat(
        "%-18s %4d tasks  themselves %.2f  their searches %.2f (%d tasks)  "
        "mean "
        "of operator, backend and hardware %.2f\n",
        name, gains.size(), CorrelationWithItself(gains),
        RankCorrelation(searched, searched_gains), searched.size(),
        RankCorrelation(means, gains));
  }
  return absl::OkStatus();
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
  OPTRAIL_RETURN_IF_ERROR(PrintBounds(history, list.sessions));
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

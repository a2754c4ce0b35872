// Scores predictions of what tuning brings: each session of a history against
// what the others say of its task.
//
//   bazel run //suites/predict/evaluation:predictions --
//       --history=$PWD/docs/history
//
// Coverage (.9 is promised) and rank correlation are printed for all of them
// and for each kind of device; --each prints every session.

#include <iostream>
#include <string>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/flags/parse.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_format.h"
#include "base/status_macros.h"
#include "suites/predict/predict.h"
#include "tracker/history/history.h"

ABSL_FLAG(std::string, history, "docs/history", "Folder of runs and sessions.");
ABSL_FLAG(bool, each, false, "Print every session.");

namespace optrail::suites {
namespace {

void PrintScore(const std::string& name,
                const std::vector<tracker::SessionInfo>& sessions) {
  const std::vector<GainPredictor::Scored> all =
      GainPredictor(sessions).LeaveOneOut();
  const PredictionScore score = ScorePredictions(all);
  std::cout << absl::StrFormat(
      "%-5s %4d tasks  covered %4d (%.3f)  rank correlation %.2f  median error "
      "%.1f%%\n",
      name, score.predictions, score.covered,
      static_cast<double>(score.covered) / score.predictions,
      score.rank_correlation, 100 * score.median_error);
  if (!absl::GetFlag(FLAGS_each)) return;
  for (const GainPredictor::Scored& one : all) {
    std::cout << absl::StrFormat(
        "  %s realised %5.1f%%  predicted %5.1f%% (%.1f to %.1f)  like %s\n",
        one.session, 100 * one.realised, 100 * one.predicted.gain,
        100 * one.predicted.gain_low, 100 * one.predicted.gain_high,
        one.predicted.nearest_session);
  }
}

absl::StatusOr<int> Run() {
  OPTRAIL_ASSIGN_OR_RETURN(
      const tracker::History history,
      tracker::History::Open(absl::GetFlag(FLAGS_history)));
  OPTRAIL_ASSIGN_OR_RETURN(const tracker::SessionList list,
                           history.ListSessions());
  PrintScore("all", list.sessions);
  for (const auto& [kind, name] : {std::make_pair(proto::CPU, "cpu"),
                                   std::make_pair(proto::CUDA, "cuda")}) {
    std::vector<tracker::SessionInfo> some;
    for (const tracker::SessionInfo& session : list.sessions) {
      if (session.header.task().device_kind() == kind) some.push_back(session);
    }
    PrintScore(name, some);
  }
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

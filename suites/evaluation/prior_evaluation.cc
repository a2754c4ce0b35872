// Prints how well a space's prior tells the configs of tuning sessions apart:
// of those that a session measured, the time of the best over the time of the
// one that the prior ranks first, and over the time of the default.
//
//   optrail tune --op=matmul --shape=... --strategy=random --trials=160
//   ./bazelw run //suites/evaluation:prior_evaluation -- --filter=matmul/cuda
//       --history=DIR --space=ops/product/cuda/product_cuda.space.textproto
//
// The last line has the geometric means. Where the prior ranks several configs
// first, its pick is their geometric mean. What a search measured is no fair
// sample: it asks where the prior is high. Sessions of `--strategy=random` are
// drawn from the best `top_k` configs by the prior of their time.

#include <algorithm>
#include <cmath>
#include <iostream>
#include <string>
#include <utility>

#include "absl/flags/flag.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/file/file.h"
#include "base/status_macros.h"
#include "base/text/table.h"
#include "base/text/units.h"
#include "re2/re2.h"
#include "suites/evaluation/evaluation.h"
#include "suites/evaluation/prior_judgement.h"
#include "tracker/history/history.h"
#include "tuning/proto/canonical.h"

ABSL_FLAG(std::string, history, "docs/history", "Folder with the sessions.");
ABSL_FLAG(std::string, filter, "",
          "Only sessions of tasks that this regular expression matches.");
ABSL_FLAG(std::string, space, "",
          "File of the space; empty: the one of each session.");
ABSL_FLAG(int, configs, 0, "Configs listed of each session, the best first.");

namespace optrail::suites {
namespace {

absl::StatusOr<PriorJudgement> Judge(const proto::Session& session) {
  const std::string file = absl::GetFlag(FLAGS_space);
  if (file.empty()) {
    return JudgePrior(session, session.space_textproto(), session.session_id());
  }
  OPTRAIL_ASSIGN_OR_RETURN(const std::string text, ReadFile(file));
  return JudgePrior(session, text, file);
}

void List(const PriorJudgement& judged) {
  const size_t count =
      std::min(judged.measured.size(),
               static_cast<size_t>(std::max(0, absl::GetFlag(FLAGS_configs))));
  for (size_t i = 0; i < judged.measured.size(); ++i) {
    if (i >= count && !judged.IsPick(i) && i != judged.standard) continue;
    if (count == 0) continue;
    const PriorJudgement::Measured& one = judged.measured[i];
    std::cout << "  " << FormatDurationNs(one.time_ns) << "  prior "
              << absl::StrFormat("%.0f", one.prior)
              << (judged.IsPick(i) ? "  picked" : "")
              << (i == judged.standard ? "  default" : "") << "  "
              << tuning::CanonicalText(one.config) << "\n";
  }
}

absl::StatusOr<ExitCode> Run() {
  const RE2 filter(absl::GetFlag(FLAGS_filter));
  if (!filter.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat("flag --filter: ", filter.error()));
  }
  OPTRAIL_ASSIGN_OR_RETURN(
      const tracker::History history,
      tracker::History::Open(absl::GetFlag(FLAGS_history)));
  OPTRAIL_ASSIGN_OR_RETURN(const tracker::SessionList list,
                           history.ListSessions());
  Table table({{"task", Align::kLeft},
               {"configs", Align::kRight},
               {"best", Align::kRight},
               {"prior's pick", Align::kRight},
               {"default", Align::kRight}});
  double picks = 0, defaults = 0;
  int sessions = 0, with_default = 0, without_prior = 0;
  for (const tracker::SessionInfo& info : list.sessions) {
    if (!RE2::PartialMatch(tuning::TaskText(info.header.task()), filter)) {
      continue;
    }
    OPTRAIL_ASSIGN_OR_RETURN(const proto::Session session,
                             history.ReadSession(info.id()));
    OPTRAIL_ASSIGN_OR_RETURN(const PriorJudgement judged, Judge(session));
    if (judged.measured.size() < 2) continue;
    if (!judged.has_prior) {
      ++without_prior;
      continue;
    }
    ++sessions;
    const double pick = judged.PickShare();
    picks += std::log(pick);
    Cell standard = Cell::None();
    if (judged.standard) {
      ++with_default;
      const double share = judged.Share(*judged.standard);
      defaults += std::log(share);
      standard = Cell::Number(share, absl::StrFormat("%.2f", share));
    }
    List(judged);
    table.AddRow({judged.task,
                  Cell::Integer(static_cast<int64_t>(judged.measured.size())),
                  Cell::Number(judged.measured[0].time_ns,
                               FormatDurationNs(judged.measured[0].time_ns)),
                  Cell::Number(pick, absl::StrFormat("%.2f", pick)),
                  std::move(standard)});
  }
  std::cout << table.Format(OutputFormat::kTable, TerminalWidth());
  if (without_prior > 0) {
    std::cout << absl::StrFormat(
        "%d sessions are left out: their space has no prior\n", without_prior);
  }
  if (sessions == 0) {
    return absl::NotFoundError(
        without_prior > 0 ? "no session whose space has a prior matches "
                            "--filter; next: --space=FILE with one"
                          : "no session matches --filter");
  }
  std::cout << absl::StrFormat(
      "%d sessions: the prior's pick at %.3f of the best", sessions,
      std::exp(picks / sessions));
  if (with_default > 0) {
    std::cout << absl::StrFormat("; the default, measured in %d, at %.3f",
                                 with_default,
                                 std::exp(defaults / with_default));
  }
  std::cout << "\n";
  return ExitCode::kOk;
}

}  // namespace
}  // namespace optrail::suites

int main(int argc, char** argv) {
  return optrail::suites::EvaluationMain(argc, argv, optrail::suites::Run);
}

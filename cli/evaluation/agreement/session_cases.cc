// A tuning session: the report, show and convergence give one account of it.

#include <cmath>

#include "absl/strings/match.h"
#include "base/check.h"
#include "cli/evaluation/agreement/cases.h"
#include "cli/evaluation/agreement/made_session.h"
#include "tuning/proto/session.pb.h"

namespace optrail::agreement {
namespace {

// The ranking rounds had the default at .62x of the winner's speed; the proof,
// in rounds of its own, says 10.5% faster.
proto::Session ProvenSession() {
  proto::Session session = BaseSession(54, 104);
  AddFinalist(&session, 1, 1000, 620, /*is_default=*/true);
  AddFinalist(&session, 8, 1050, 1000, false);
  AddFinalist(&session, 16, 1080, 1010, false);
  AddFinalist(&session, 32, 1090, 1020, false);
  AddProof(&session, 8, .105);
  return session;
}

void Append(const Workbench& bench, const proto::Session& session) {
  const absl::Status status = bench.OpenHistory().AppendSession(session);
  OPTRAIL_CHECK(status.ok()) << status;
}

Json SessionOfReport(const Workbench& bench) {
  const Json report =
      bench.Ask({"report", "--report_format=json", "--out=-"}).Parsed();
  return At(report, "sessions").empty() ? Json() : At(report, "sessions")[0];
}

void ThePageCountsTheTrialsThatShowCounts(Workbench& bench, Findings& found) {
  Append(bench, ProvenSession());
  const Answer show = bench.Ask({"show", kMadeSessionId});
  found.Expect(show.Says("104 trials"), "show does not say 104 trials");
  const Answer markdown =
      bench.Ask({"report", "--report_format=markdown", "--out=-"});
  found.Expect(absl::StrContains(markdown.out, " 104 ") &&
                   !absl::StrContains(markdown.out, " 158 "),
               "the report counts warm starts as trials");
}

void TheSpeedupIsThatOfTheProof(Workbench& bench, Findings& found) {
  Append(bench, ProvenSession());
  const double speedup = NumberOf(SessionOfReport(bench), "verified_speedup");
  found.Expect(
      IsNear(speedup, 1 / (1 - .105), .001),
      absl::StrCat("the report says ", speedup, "x, the proof 10.5% faster"));
  const Answer markdown =
      bench.Ask({"report", "--report_format=markdown", "--out=-"});
  found.Expect(!markdown.Says("0.62x"),
               "the report shows the ranking rounds as verified");
}

void TheReportShowsTheProof(Workbench& bench, Findings& found) {
  Append(bench, ProvenSession());
  const Answer show = bench.Ask({"show", kMadeSessionId});
  found.Expect(show.Says("10.5%") && show.Says("42"),
               "show does not print the proof");
  const Answer markdown =
      bench.Ask({"report", "--report_format=markdown", "--out=-"});
  const Answer html = bench.Ask({"report", "--report_format=html", "--out=-"});
  found.Expect(markdown.Says("10.5%"), "the Markdown lacks the proof");
  found.Expect(html.Says("10.5%") || html.Says("0.105"),
               "the page lacks the proof");
}

void ThePageDoesNotSayThatMostGetSlowerWhereMostGotFaster(Workbench& bench,
                                                          Findings& found) {
  Append(bench, ProvenSession());
  const Answer html = bench.Ask({"report", "--report_format=html", "--out=-"});
  std::string text = html.out;
  for (char& c : text) {
    if (c == '\n') c = ' ';
  }
  found.Expect(!absl::StrContains(text, "get slower: the winner"),
               "\"so most get slower\" is fixed text");
}

void AnUnprovenWinnerIsNotCalledFaster(Workbench& bench, Findings& found) {
  proto::Session session = ProvenSession();
  session.mutable_proof()->set_gain(.002);
  session.mutable_proof()->set_gain_low(-.02);
  session.mutable_proof()->set_gain_high(.024);
  session.mutable_proof()->set_claimed(false);
  session.mutable_winner()->clear_set();
  SetTile(1, session.mutable_winner());
  Append(bench, session);
  const double speedup = NumberOf(SessionOfReport(bench), "verified_speedup");
  found.Expect(
      std::isnan(speedup) || std::abs(speedup - 1) < .003,
      absl::StrCat("the default stays, and the report says ", speedup, "x"));
}

void ACommandsMetricIsItsOwn(Workbench& bench, Findings& found) {
  proto::Session session = BaseSession(0, 12);
  session.mutable_task()->set_operator_name("compressor");
  session.mutable_command()->set_command("./compress --level={tile}");
  proto::Objective* objective = session.add_objectives();
  objective->set_metric("ratio");
  objective->set_unit("x");
  objective->set_direction(proto::HIGHER_IS_BETTER);
  for (int i = 0; i < session.trials_size(); ++i) {
    proto::Trial* trial = session.mutable_trials(i);
    trial->clear_time_ns();
    proto::MetricSamples* samples = trial->add_objectives();
    samples->set_metric("ratio");
    samples->set_unit("x");
    samples->set_direction(proto::HIGHER_IS_BETTER);
    samples->add_values(2 + .125 * ((i * 5) % 12));
  }
  SetTile(8, session.mutable_winner());
  proto::Finalist* finalist = session.add_finalists();
  SetTile(8, finalist->mutable_config());
  finalist->set_outcome(proto::OK);
  proto::MetricSamples* verified = finalist->add_objectives();
  verified->set_metric("ratio");
  verified->set_unit("x");
  verified->set_direction(proto::HIGHER_IS_BETTER);
  verified->add_values(3.25);
  Append(bench, session);
  const Answer show = bench.Ask({"show", kMadeSessionId});
  found.Expect(show.Says("ratio") && show.Says("3.375"),
               "show lacks the best value of the metric");
  const Answer html = bench.Ask({"report", "--report_format=html", "--out=-"});
  found.Expect(html.Says("ratio") && html.Says("3.375"),
               "the page lacks the best value of the metric");
  const Answer markdown =
      bench.Ask({"report", "--report_format=markdown", "--out=-"});
  found.Expect(markdown.Says("3.25"),
               "the Markdown lacks the winner's value of the metric");
}

void ConvergenceCountsWhatShowCounts(Workbench& bench, Findings& found) {
  // Twice the warm starts of what was measured: findings speak of the latter.
  proto::Session session = BaseSession(40, 20);
  for (int i = 40; i < 60; ++i) {
    session.mutable_trials(i)->set_outcome(proto::CRASHED);
    session.mutable_trials(i)->clear_time_ns();
  }
  SetTile(8, session.mutable_winner());
  Append(bench, session);
  const Answer convergence = bench.Ask({"convergence"});
  found.Expect(!absl::StrContains(convergence.out, " of 60") &&
                   !absl::StrContains(convergence.out, "60 trials"),
               absl::StrCat("convergence counts warm starts as trials: ",
                            convergence.out));
  found.Expect(absl::StrContains(convergence.out, "20"),
               absl::StrCat("convergence does not speak of the 20 trials: ",
                            convergence.out));
}

}  // namespace

std::vector<Case> SessionCases() {
  return {
      {"ThePageCountsTheTrialsThatShowCounts",
       ThePageCountsTheTrialsThatShowCounts},
      {"TheSpeedupIsThatOfTheProof", TheSpeedupIsThatOfTheProof},
      {"TheReportShowsTheProof", TheReportShowsTheProof},
      {"ThePageDoesNotSayThatMostGetSlowerWhereMostGotFaster",
       ThePageDoesNotSayThatMostGetSlowerWhereMostGotFaster},
      {"AnUnprovenWinnerIsNotCalledFaster", AnUnprovenWinnerIsNotCalledFaster},
      {"ACommandsMetricIsItsOwn", ACommandsMetricIsItsOwn},
      {"ConvergenceCountsWhatShowCounts", ConvergenceCountsWhatShowCounts},
  };
}

}  // namespace optrail::agreement

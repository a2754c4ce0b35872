#include "reports/proof_sides.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/algorithm/container.h"
#include "base/stats/paired_test.h"
#include "base/stats/statistics.h"
#include "tuning/proto/canonical.h"
#include "tuning/proto/meter_window.h"
#include "tuning/session/objective.h"

namespace optrail::reports {
namespace {

// Time, what meters read, and what is tuned for.
std::vector<proto::Objective> MetricsIn(const proto::Session& session) {
  std::vector<proto::Objective> metrics = {tuning::TimeObjective()};
  const auto add = [&metrics](proto::Objective metric) {
    const bool known = absl::c_any_of(metrics, [&](const auto& other) {
      return other.metric() == metric.metric();
    });
    if (!known) metrics.push_back(std::move(metric));
  };
  for (proto::Objective& objective : tuning::ObjectivesOf(session)) {
    add(std::move(objective));
  }
  for (const proto::Measurement& reading :
       session.proof().candidate_measurements()) {
    for (const auto& metered : tuning::MeteredMetrics(reading)) {
      proto::Objective metric;
      metric.set_metric(metered.metric);
      metric.set_unit(metered.unit);
      add(std::move(metric));
    }
  }
  return metrics;
}

absl::optional<ProofSide> SideOf(const proto::Proof& proof,
                                 const proto::Objective& metric) {
  std::vector<double> baseline, chosen, log_ratios;
  const int rounds = std::min(proof.default_measurements_size(),
                              proof.candidate_measurements_size());
  for (int i = 0; i < rounds; ++i) {
    const auto a = tuning::ValueOf(proof.default_measurements(i), metric);
    const auto b = tuning::ValueOf(proof.candidate_measurements(i), metric);
    if (!a || !b || !(*a > 0) || !(*b > 0)) continue;
    baseline.push_back(*a);
    chosen.push_back(*b);
    log_ratios.push_back(std::log(*b / *a));
  }
  if (log_ratios.empty()) return absl::nullopt;
  ProofSide side;
  side.metric = metric.metric();
  side.unit = metric.unit();
  side.baseline = Median(baseline);
  side.chosen = Median(chosen);
  side.rounds = static_cast<int>(log_ratios.size());
  if (side.rounds < 2) return side;
  const PairedEvidence evidence = PairedTest(log_ratios, PairedTestOptions());
  side.ratio = std::exp(evidence.log_ratio);
  side.p_value = evidence.p_value;
  if (std::isfinite(evidence.low) && std::isfinite(evidence.high)) {
    side.low = std::exp(evidence.low);
    side.high = std::exp(evidence.high);
  }
  return side;
}

absl::optional<double> ErrorOf(const proto::Session& session,
                               const std::string& config_text) {
  for (const proto::Trial& trial : session.trials()) {
    if (trial.has_error_in_tolerances() &&
        tuning::CanonicalText(trial.config()) == config_text) {
      return trial.error_in_tolerances();
    }
  }
  return absl::nullopt;
}

}  // namespace

std::vector<ProofSide> SidesOf(const proto::Session& session) {
  std::vector<ProofSide> sides;
  if (!session.has_proof()) return sides;
  for (const proto::Objective& metric : MetricsIn(session)) {
    if (auto side = SideOf(session.proof(), metric)) {
      sides.push_back(*std::move(side));
    }
  }
  for (const proto::Finalist& finalist : session.finalists()) {
    if (!finalist.is_default()) continue;
    const auto baseline =
        ErrorOf(session, tuning::CanonicalText(finalist.config()));
    const auto chosen =
        ErrorOf(session, tuning::CanonicalText(session.proof().candidate()));
    if (!baseline || !chosen) continue;
    ProofSide error;
    error.metric = "error";
    error.unit = "tolerances";
    error.baseline = *baseline;
    error.chosen = *chosen;
    sides.push_back(error);
  }
  return sides;
}

}  // namespace optrail::reports

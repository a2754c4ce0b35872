#include "tuning/session/proof.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "tuning/session/objective.h"

namespace optrail::tuning {
namespace {

PairedTestOptions TestOptions(const ProofOptions& options) {
  PairedTestOptions test;
  test.false_alarm_rate = options.false_gain_rate;
  test.miss_rate = (1 - options.confidence) / 2;
  test.min_effect = 0;
  test.min_rounds = options.min_rounds;
  // An interval of 1% where ratios vary by 3 to 8% needs hundreds of rounds, at
  // which an effect of a fifth of the spread counts; a gain of many spreads
  // must show in a few.
  test.variances = {.04, 2, 256};
  return test;
}

}  // namespace

PairedProof::PairedProof(const ProofOptions& options,
                         std::vector<proto::Objective> objectives)
    : options_(options),
      objectives_(std::move(objectives)),
      test_(TestOptions(options)) {
  Look();
}

void PairedProof::Add(double candidate_cost, double default_cost) {
  log_ratios_.push_back(std::log(candidate_cost / default_cost));
  if (rounds() >= next_look_ || rounds() >= options_.max_rounds) Look();
}

void PairedProof::Look() {
  evidence_ = PairedTest(log_ratios_, test_);
  // Sorting for each round of hundreds would be quadratic.
  next_look_ = rounds() + std::max(1, rounds() / 20);
}

bool PairedProof::Narrow() const {
  const double high = GainOf(objectives_, std::exp(evidence_.inner_low));
  const double low = GainOf(objectives_, std::exp(evidence_.inner_high));
  const double gain = GainOf(objectives_, std::exp(evidence_.log_ratio));
  return (high - low) / 2 <= options_.half_width * std::max(1., gain);
}

bool PairedProof::Open(absl::Duration spent) {
  if (rounds() < options_.min_rounds) return true;
  const bool all_rounds = rounds() >= options_.max_rounds;
  const bool last =
      all_rounds || (options_.max_time && spent >= *options_.max_time);
  if (evidence_.rounds < rounds()) {
    if (!last) return true;
    Look();
  }
  if (Narrow()) {
    end_ = proto::PROOF_PRECISE;
    return false;
  }
  if (!last) return true;
  end_ = all_rounds ? proto::PROOF_ROUNDS_SPENT : proto::PROOF_TIME_SPENT;
  return false;
}

bool PairedProof::Claimed() const {
  return rounds() >= options_.min_rounds &&
         evidence_.high < std::log1p(-options_.margin) &&
         1 - std::exp(evidence_.log_ratio) >= options_.min_gain;
}

bool PairedProof::LostBy(double margin) const {
  return rounds() >= options_.min_rounds &&
         evidence_.low > -std::log1p(-margin);
}

void PairedProof::Fill(proto::Proof* proof) const {
  proof->set_metric(objectives_[0].metric());
  proof->set_confidence(options_.confidence);
  proof->set_rounds(rounds());
  proof->set_claimed(Claimed());
  proof->set_end(end_);
  if (rounds() == 0) return;
  proof->set_gain(GainOf(objectives_, std::exp(evidence_.log_ratio)));
  if (std::isfinite(evidence_.inner_low)) {
    proof->set_gain_low(GainOf(objectives_, std::exp(evidence_.inner_high)));
    proof->set_gain_high(GainOf(objectives_, std::exp(evidence_.inner_low)));
  }
}

}  // namespace optrail::tuning

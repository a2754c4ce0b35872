#include "tuning/session/evaluation/simulated_sessions.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/clock.h"
#include "base/random.h"
#include "base/stats/statistics.h"
#include "tuning/proto/canonical.h"
#include "tuning/session/evaluator.h"
#include "tuning/space/space.h"

namespace optrail::tuning {
namespace {

constexpr double kTimeNs = 1e5;

// Config 0 is the default; the last is the best.
class NoisyTable : public OneAtATime {
 public:
  NoisyTable(const RecordedNoise::Source& source,
             const SimulationOptions& options, uint64_t seed)
      : source_(source), options_(options), rng_(seed) {}

  double TrueNs(const proto::Config& config) const {
    return TrueNs(config.set(0).int_());
  }
  double TrueNs(int64_t index) const {
    const bool gains =
        options_.all_gain ? index > 0 : index == options_.configs - 1;
    return kTimeNs * (gains ? 1 - options_.gain : 1);
  }

  // A reading of each of `count` in one round.
  std::vector<double> Round(size_t count) {
    std::vector<double> readings;
    while (readings.size() < count) {
      std::vector<double> round =
          source_.rounds[rng_.UniformInt(source_.rounds.size())];
      rng_.Shuffle(round);
      readings.insert(readings.end(), round.begin(), round.end());
    }
    readings.resize(count);
    return readings;
  }

 protected:
  Evaluation Evaluate(const Request& request) override {
    if (request.purpose() != last_purpose_ || request.round() != last_round_) {
      last_purpose_ = request.purpose();
      last_round_ = request.round();
      in_round_.clear();
    }
    if (in_round_.empty()) in_round_ = Round(2);
    Evaluation answer;
    const double time_ns = TrueNs(request.config()) * in_round_.back();
    in_round_.pop_back();
    answer.mutable_trial()->set_outcome(proto::OK);
    answer.mutable_trial()->set_time_ns(time_ns);
    answer.mutable_trial()->set_elapsed_ns(ElapsedNs(request.purpose()));
    answer.mutable_trial()->add_measurements()->set_median_ns(time_ns);
    return answer;
  }

 private:
  int64_t ElapsedNs(Purpose purpose) const {
    if (options_.search_time <= absl::ZeroDuration()) return 1;
    return absl::ToInt64Nanoseconds(
        purpose == Request::SEARCH ? options_.search_time / options_.configs
                                   : options_.reading_time);
  }

  const RecordedNoise::Source& source_;
  const SimulationOptions& options_;
  Rng rng_;
  Purpose last_purpose_ = Request::SEARCH;
  int64_t last_round_ = -1;
  std::vector<double> in_round_;
};

// Until the proof, the winner was chosen and judged on the same five rounds of
// the default and the four best: least median, unless its median ratio to the
// default was above 0.995.
bool OldRuleClaims(const proto::Session& session, NoisyTable& table) {
  std::vector<std::pair<double, int64_t>> read;
  for (const proto::Trial& trial : session.trials()) {
    if (trial.config().set(0).int_() != 0) {
      read.emplace_back(trial.time_ns(), trial.config().set(0).int_());
    }
  }
  std::sort(read.begin(), read.end());
  std::vector<int64_t> finalists = {0};
  for (size_t i = 0; i < 4 && i < read.size(); ++i) {
    finalists.push_back(read[i].second);
  }
  std::vector<std::vector<double>> times(finalists.size());
  for (int round = 0; round < 5; ++round) {
    const std::vector<double> noise = table.Round(finalists.size());
    for (size_t i = 0; i < finalists.size(); ++i) {
      times[i].push_back(table.TrueNs(finalists[i]) * noise[i]);
    }
  }
  size_t winner = 0;
  for (size_t i = 1; i < finalists.size(); ++i) {
    if (Median(times[i]) < Median(times[winner])) winner = i;
  }
  std::vector<double> ratios;
  for (int round = 0; round < 5; ++round) {
    ratios.push_back(times[winner][round] / times[0][round]);
  }
  return winner != 0 && Median(ratios) <= .995;
}

}  // namespace

SimulationResult Simulate(const RecordedNoise& noise,
                          const SimulationOptions& options) {
  std::vector<std::string> values;
  const std::string text = absl::StrCat(
      "knob { name: \"config\" ints: [",
      [&] {
        std::string list;
        for (int i = 0; i < options.configs; ++i) {
          absl::StrAppend(&list, i == 0 ? "" : ", ", i);
        }
        return list;
      }(),
      "] }\ndefault { set { knob: \"config\" int: 0 } }\n");
  const auto space = Space::Parse(text, "simulation");
  OPTRAIL_CHECK(space.ok());
  const auto bound = space->Bind(proto::Shape(), proto::Hardware());
  OPTRAIL_CHECK(bound.ok());

  SimulationResult result;
  std::vector<double> rounds;
  Rng rng(options.seed);
  for (int i = 0; i < options.sessions; ++i) {
    const uint64_t seed = options.seed * 1'000'003 + i;
    NoisyTable table(noise.Draw(rng), options, seed);
    FakeClock clock;
    SessionSetup setup;
    setup.header.set_strategy("random");
    setup.header.set_seed(seed);
    setup.header.mutable_budget()->set_trials(options.configs);
    setup.default_config = (*bound)->default_config();
    setup.propose = [&](const proto::Session& begun, int batch) {
      ProposerOptions proposer;
      proposer.batch = batch;
      return MakeProposer(**bound, begun, proposer);
    };
    setup.race_factor = 0;
    setup.finalists = options.finalists;
    setup.rank_rounds = options.rank_rounds;
    setup.proof = options.proof;
    const auto session = RunSession(setup, table, clock);
    OPTRAIL_CHECK(session.ok());
    ++result.sessions;
    const proto::Proof& proof = session->proof();
    const bool claimed =
        CanonicalText(session->winner()) != CanonicalText(setup.default_config);
    OPTRAIL_CHECK(claimed == proof.claimed());
    const double truth = 1 - table.TrueNs(proof.candidate()) / kTimeNs;
    result.claimed += claimed;
    result.right += claimed && truth > 0;
    ++result.proofs;
    result.covering += proof.gain_low() <= truth && truth <= proof.gain_high();
    const double half = (proof.gain_high() - proof.gain_low()) / 2;
    result.narrow += half <= .01 + 1e-9;
    result.mean_half_width += half;
    rounds.push_back(proof.rounds());
    result.mean_proof_time += absl::Nanoseconds(session->time().prove_ns());
    for (const proto::Finalist& finalist : session->finalists()) {
      result.mean_rank_readings += finalist.measurements_size();
    }
    result.old_rule += OldRuleClaims(*session, table);
  }
  result.mean_half_width /= result.sessions;
  result.mean_rank_readings /= result.sessions;
  result.mean_proof_time /= result.sessions;
  result.mean_rounds = Mean(rounds);
  result.p95_rounds = Quantile(rounds, .95);
  return result;
}

}  // namespace optrail::tuning

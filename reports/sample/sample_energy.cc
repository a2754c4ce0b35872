// A made-up session for joules and time (sample_sessions.h).

#include <cmath>
#include <utility>

#include "base/random.h"
#include "reports/sample/sample_sessions.h"

namespace optrail::reports {
namespace {

constexpr int kThreads[] = {128, 256, 512, 1024};
constexpr int kBlocks[] = {132, 264, 528};
constexpr int kDefault = 0, kWinner = 7, kRounds = 8;

proto::Config ConfigOf(int threads, int blocks) {
  proto::Config config;
  for (const auto& [name, value] :
       {std::make_pair("blocks", blocks), {"threads", threads}}) {
    proto::KnobValue* knob = config.add_set();
    knob->set_knob(name);
    knob->set_int_(value);
  }
  return config;
}

proto::Objective Objective(const char* metric, const char* unit,
                           double weight) {
  proto::Objective objective;
  objective.set_metric(metric);
  objective.set_unit(unit);
  objective.set_direction(proto::LOWER_IS_BETTER);
  objective.set_weight(weight);
  return objective;
}

// Configs that take more power take less time, so that there is a front.
struct Values {
  double time_ns = 0, joules = 0;
};
Values ValuesOf(int threads, int blocks, Rng& rng) {
  const double busy = std::log2(blocks / 66.) + .3 * std::log2(threads / 64.);
  const double time_ns = 6e4 + 9e4 * std::exp(-.6 * busy);
  const double watts = 180 + 110 * busy;
  const auto noise = [&] { return std::exp(.004 * rng.Gaussian()); };
  return {time_ns * noise(), watts * time_ns * 1e-9 * noise()};
}

proto::Measurement Reading(const Values& values, Rng& rng) {
  constexpr int64_t kCalls = 10'000;
  proto::Measurement reading;
  reading.set_median_ns(values.time_ns * std::exp(.003 * rng.Gaussian()));
  proto::MeterWindow* window = reading.add_windows();
  window->set_metric("joules");
  window->set_unit("J");
  window->set_direction(proto::LOWER_IS_BETTER);
  window->set_calls(kCalls);
  window->set_value(kCalls * values.joules * std::exp(.003 * rng.Gaussian()));
  window->set_duration_ns(
      static_cast<int64_t>(static_cast<double>(kCalls) * values.time_ns));
  window->set_source("NVML energy counter");
  window->set_check(proto::AGREES);
  window->set_idle_watts(80);
  return reading;
}

void AddJoules(double joules,
               google::protobuf::RepeatedPtrField<proto::MetricSamples>* to) {
  proto::MetricSamples* samples = to->Add();
  samples->set_metric("joules");
  samples->set_unit("J");
  samples->set_direction(proto::LOWER_IS_BETTER);
  samples->add_values(joules);
}

}  // namespace

proto::Session MakeEnergySession(const SampleOptions& options) {
  Rng rng(options.seed * 6151);
  const SampleHardware& gpu = kSampleHardware[2];
  const SampleOperator op = SampleOperators()[0];
  const int64_t unix_ns = CommitTime(options, 32);
  proto::Session session;
  session.set_session_id(SampleRecordId(unix_ns, 980000));
  session.mutable_task()->set_operator_name(op.name);
  session.mutable_task()->set_device_kind(gpu.device);
  *session.mutable_task()->mutable_shape() = MakeShape(op, 0);
  session.mutable_task()->set_hardware_id(gpu.id);
  session.mutable_task()->set_threads(1);
  session.mutable_task()->set_cache_mode(proto::COLD);
  *session.mutable_hardware() = MakeHardware(gpu);
  *session.mutable_commit() = MakeCommit(options, 32);
  *session.add_objectives() = Objective("joules", "J", 2);
  *session.add_objectives() = Objective("time", "ns", 1);
  session.set_strategy("bayesian");
  session.set_seed(7);
  session.set_stop_reason(proto::SPACE_EXHAUSTED);
  session.set_started_unix_ns(unix_ns);
  session.set_sittings(1);
  std::vector<Values> values;
  for (const int threads : kThreads) {
    for (const int blocks : kBlocks) {
      values.push_back(ValuesOf(threads, blocks, rng));
      proto::Trial* trial = session.add_trials();
      *trial->mutable_config() = ConfigOf(threads, blocks);
      trial->set_outcome(proto::OK);
      trial->set_elapsed_ns(1'400'000'000);
      session.set_elapsed_ns(session.elapsed_ns() + trial->elapsed_ns());
      trial->set_time_ns(values.back().time_ns);
      trial->set_error_in_tolerances(.1 + .02 * rng.UniformReal());
      AddJoules(values.back().joules, trial->mutable_objectives());
    }
  }
  for (const int place : {kWinner, kDefault}) {
    proto::Finalist* finalist = session.add_finalists();
    *finalist->mutable_config() = session.trials(place).config();
    finalist->set_outcome(proto::OK);
    finalist->set_is_default(place == kDefault);
    finalist->set_time_ns(values[place].time_ns);
    AddJoules(values[place].joules, finalist->mutable_objectives());
  }
  *session.mutable_winner() = session.trials(kWinner).config();
  proto::Proof& proof = *session.mutable_proof();
  *proof.mutable_candidate() = session.winner();
  for (int round = 0; round < kRounds; ++round) {
    *proof.add_default_measurements() = Reading(values[kDefault], rng);
    *proof.add_candidate_measurements() = Reading(values[kWinner], rng);
  }
  const auto cost = [&](int place) {
    return values[place].joules * values[place].joules * values[place].time_ns;
  };
  const double gain = 1 - cost(kWinner) / cost(kDefault);
  proof.set_metric("joules, time");
  proof.set_gain(gain);
  proof.set_gain_low(gain - .012);
  proof.set_gain_high(gain + .011);
  proof.set_confidence(.99);
  proof.set_rounds(kRounds);
  proof.set_claimed(true);
  return session;
}

}  // namespace optrail::reports

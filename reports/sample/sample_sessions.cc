#include "reports/sample/sample_sessions.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "base/random.h"
#include "tuning/schedule/rule.h"
#include "tuning/schedule/trace_source.h"

namespace optrail::reports {
namespace {

struct SampleKnob {
  const char* name;
  std::vector<int64_t> values;
};

std::vector<SampleKnob> Knobs() {
  return {{"mr", {2, 4, 6, 8, 12}},
          {"nr", {8, 16, 32, 48}},
          {"kc", {64, 128, 256, 512}},
          {"mc", {48, 96, 192}},
          {"prefetch", {0, 32, 64, 128}}};
}

proto::Config MakeConfig(const std::vector<int>& levels, bool packed,
                         const std::string& hostile) {
  const std::vector<SampleKnob> knobs = Knobs();
  proto::Config config;
  proto::KnobValue* algorithm = config.add_set();
  algorithm->set_knob("algorithm");
  algorithm->set_variant(hostile.empty() ? packed ? "packed" : "plain"
                                         : hostile);
  for (size_t k = 0; k < knobs.size(); ++k) {
    proto::KnobValue* value = config.add_set();
    value->set_knob(knobs[k].name);
    value->set_int_(knobs[k].values[levels[k]]);
  }
  std::sort(config.mutable_set()->begin(), config.mutable_set()->end(),
            [](const proto::KnobValue& a, const proto::KnobValue& b) {
              return a.knob() < b.knob();
            });
  return config;
}

// The true time of a config: mr x nr is what matters, prefetch hardly.
double ModelTime(const std::vector<int>& levels, bool packed, double base) {
  const std::vector<SampleKnob> knobs = Knobs();
  const double mr = knobs[0].values[levels[0]];
  const double nr = knobs[1].values[levels[1]];
  const double registers = mr * nr / 16;
  const double tile = std::fabs(std::log2(registers / 12));
  const double kc = std::fabs(std::log2(knobs[2].values[levels[2]] / 256.0));
  const double mc = std::fabs(std::log2(knobs[3].values[levels[3]] / 96.0));
  return base *
         (1 + 0.42 * tile + 0.11 * kc + 0.05 * mc + 0.01 * (levels[4] == 0)) *
         (packed ? 1 : 1.35);
}

// The algorithm that a session over schedules of softmax tunes.
tuning::Algorithm SoftmaxAlgorithm() {
  return *tuning::ParseAlgorithm(
      "input x 4 1024 4096\n"
      "stage max 4 4096\n"
      "def 0 0\n"
      "def 1 1 1024\n"
      "read input 0 0,1 1,0\n"
      "stage power 4 1024 4096\n"
      "def 0 11\n"
      "read input 0 1,0 0,1\n"
      "read stage 0 0,1\n"
      "stage sum 4 4096\n"
      "def 0 0\n"
      "def 1 1 1024\n"
      "read stage 1 0,1 1,0\n"
      "stage softmax 4 1024 4096\n"
      "def 0 4\n"
      "read stage 1 1,0 0,1\n"
      "read stage 2 0,1\n");
}

// A drawn program, and how much slower it is than the best: inlined
// exponentials cost most, tasks that are many next.
proto::Config DrawSchedule(Rng& rng, double* slowdown) {
  for (;;) {
    tuning::Decisions decisions = tuning::Decisions::Draw(rng);
    if (!tuning::Derive(SoftmaxAlgorithm(), tuning::Machine(), decisions)
             .ok()) {
      continue;
    }
    *slowdown = 1;
    for (const auto& [name, value] : decisions.trace()) {
      if (name == "s1_inline" && value == 1) *slowdown += 0.6;
      if (name == "s3_parallel") {
        *slowdown += 0.1 * static_cast<double>(value);
      }
    }
    return tuning::ConfigOf(decisions.trace());
  }
}

// Adds a proof: the winner gains `gain` over the default.
void AddProof(const char* metric, double gain, proto::Session* session) {
  proto::Proof* proof = session->mutable_proof();
  proof->set_metric(metric);
  proof->set_gain(gain);
  proof->set_gain_low(gain - .012);
  proof->set_gain_high(gain + .011);
  proof->set_confidence(.99);
  proof->set_rounds(14);
  proof->set_claimed(true);
  *proof->mutable_candidate() = session->winner();
}

// Reads the best of `by_time` (and their trials) again, and proves the winner.
void AddFinalists(std::vector<std::pair<double, int>> by_time, double base,
                  const SampleOperator& op, Rng& rng, proto::Session* out) {
  proto::Session& session = *out;
  std::sort(by_time.begin(), by_time.end());
  const int finalists = std::min<int>(5, by_time.size());
  double winner_ns = 0;
  for (int f = 0; f < finalists; ++f) {
    proto::Finalist* finalist = session.add_finalists();
    *finalist->mutable_config() = session.trials(by_time[f].second).config();
    finalist->set_first_time_ns(by_time[f].first);
    const double verified = by_time[f].first * (1.015 + 0.012 * rng.Gaussian());
    finalist->set_time_ns(verified);
    finalist->set_outcome(proto::OK);
    if (winner_ns == 0 || verified < winner_ns) {
      winner_ns = verified;
      *session.mutable_winner() = finalist->config();
    }
  }
  proto::Finalist* fallback = session.add_finalists();
  *fallback->mutable_config() = MakeConfig({1, 1, 2, 1, 0}, false, "");
  fallback->set_first_time_ns(base * op.tuned_speedup);
  fallback->set_time_ns(base * op.tuned_speedup * 1.004);
  fallback->set_outcome(proto::OK);
  fallback->set_is_default(true);
  AddProof("time", 1 - winner_ns / fallback->time_ns(), &session);
}

}  // namespace

proto::Session MakeSession(const SampleOptions& options, int index) {
  const std::vector<SampleOperator> operators = SampleOperators();
  const SampleHardware& sample = kSampleHardware[index % kSampleHardwareCount];
  const SampleOperator& op = operators[(index / kSampleHardwareCount) % 7];
  Rng rng(options.seed * 104729 + index);
  const int64_t unix_ns = CommitTime(options, 21 + index);
  proto::Session session;
  session.set_session_id(SampleRecordId(unix_ns, 900000 + index));
  session.mutable_task()->set_operator_name(op.name);
  session.mutable_task()->set_device_kind(sample.device);
  *session.mutable_task()->mutable_shape() = MakeShape(op, 0);
  session.mutable_task()->set_hardware_id(sample.id);
  session.mutable_task()->set_threads(1);
  session.mutable_task()->set_cache_mode(proto::HOT);
  *session.mutable_hardware() = MakeHardware(sample);
  *session.mutable_toolchain() = MakeToolchain(false);
  *session.mutable_commit() = MakeCommit(options, 21);
  const bool over_schedules = index % 6 == 4;
  if (over_schedules) {
    session.mutable_schedule()->set_algorithm(SoftmaxAlgorithm().ToText());
    session.mutable_schedule()->set_rules(tuning::SketchRulesText());
  } else {
    session.set_valid_config_count(1824);
  }
  session.set_strategy(index % 2 == 0 ? "bayesian" : "random");
  session.set_seed(42 + index);
  session.set_stop_reason(proto::TRIALS_SPENT);
  session.set_started_unix_ns(unix_ns);
  session.set_sittings(1);

  const std::vector<SampleKnob> knobs = Knobs();
  const double base = op.time_ns / sample.speed / op.tuned_speedup;
  const auto hostile = [&](int i) {
    return options.hostile_names && i % 40 == 7 ? HostileNames()[0]
                                                : std::string();
  };
  std::vector<std::pair<double, int>> by_time;
  int64_t elapsed_ns = 0;
  std::vector<int> best_levels;
  double best = 0;
  for (int t = 0; t < options.trials_per_session; ++t) {
    std::vector<int> levels;
    for (size_t k = 0; k < knobs.size(); ++k) {
      // Later trials stay near the best: a search, not a lottery.
      const bool near = !best_levels.empty() && index % 2 == 0 &&
                        rng.UniformReal() < std::min(0.75, 0.01 * t);
      levels.push_back(near ? best_levels[k]
                            : rng.UniformInt(knobs[k].values.size()));
    }
    const bool packed = rng.UniformReal() < 0.7;
    proto::Trial* trial = session.add_trials();
    *trial->mutable_config() = MakeConfig(levels, packed, hostile(t));
    double slowdown = 1;
    if (over_schedules) *trial->mutable_config() = DrawSchedule(rng, &slowdown);
    trial->set_started_unix_ns(unix_ns + elapsed_ns);
    trial->set_elapsed_ns(300000000 + rng.UniformInt(900000000));
    elapsed_ns += trial->elapsed_ns();
    const double luck = rng.UniformReal();
    if (levels[0] == 4 && levels[1] == 3) {
      trial->set_outcome(proto::COMPILE_ERROR);
      trial->set_detail("register tile 12x48 does not fit 32 registers");
    } else if (luck < 0.012) {
      trial->set_outcome(proto::CRASHED);
      trial->set_detail("killed by signal 11 (Segmentation fault)");
    } else if (luck < 0.02) {
      trial->set_outcome(proto::WRONG_RESULT);
      trial->set_detail("largest error 41 tolerances at [3, 17]");
    } else {
      const double time =
          (over_schedules ? slowdown * base : ModelTime(levels, packed, base)) *
          std::exp(0.02 * rng.Gaussian());
      trial->set_outcome(best > 0 && time > 2.6 * best ? proto::CENSORED
                                                       : proto::OK);
      trial->set_time_ns(time);
      if (trial->outcome() == proto::OK) {
        by_time.emplace_back(time, t);
        if (best == 0 || time < best) {
          best = time;
          best_levels = levels;
        }
      }
    }
  }
  session.set_elapsed_ns(elapsed_ns);
  if (by_time.empty()) return session;

  AddFinalists(std::move(by_time), base, op, rng, &session);
  return session;
}

proto::Session MakeCommandSession(const SampleOptions& options) {
  Rng rng(options.seed * 7877);
  const int64_t unix_ns = CommitTime(options, 30);
  proto::Session session;
  session.set_session_id(SampleRecordId(unix_ns, 990000));
  session.mutable_task()->set_operator_name("command_server");
  session.mutable_task()->set_device_kind(proto::CPU);
  session.mutable_task()->set_hardware_id(kSampleHardware[0].id);
  *session.mutable_hardware() = MakeHardware(kSampleHardware[0]);
  *session.mutable_commit() = MakeCommit(options, 30);
  session.mutable_command()->set_command(
      "./server --threads={threads} --batch={batch}");
  proto::Objective* objective = session.add_objectives();
  objective->set_metric("requests");
  objective->set_unit("per s");
  objective->set_direction(proto::HIGHER_IS_BETTER);
  session.set_strategy("bayesian");
  session.set_stop_reason(proto::SPACE_EXHAUSTED);
  session.set_started_unix_ns(unix_ns);
  session.set_sittings(1);
  const auto add_value = [](double value, proto::MetricSamples* samples) {
    samples->set_metric("requests");
    samples->set_unit("per s");
    samples->set_direction(proto::HIGHER_IS_BETTER);
    samples->add_values(value);
  };
  const auto value_of = [&](int threads, int batch) {
    return 2.1e4 * (1 - .9 / (1 + threads)) / (1 + .05 * std::abs(batch - 16)) *
           std::exp(.01 * rng.Gaussian());
  };
  for (const int threads : {1, 2, 4, 8}) {
    for (const int batch : {1, 4, 16, 64}) {
      proto::Trial* trial = session.add_trials();
      for (const auto& [name, value] :
           {std::make_pair("batch", batch), {"threads", threads}}) {
        proto::KnobValue* knob = trial->mutable_config()->add_set();
        knob->set_knob(name);
        knob->set_int_(value);
      }
      trial->set_elapsed_ns(2100000000);
      session.set_elapsed_ns(session.elapsed_ns() + trial->elapsed_ns());
      if (threads == 8 && batch == 64) {
        trial->set_outcome(proto::TIMED_OUT);
        trial->set_detail("no answer within 30 s");
        continue;
      }
      trial->set_outcome(proto::OK);
      add_value(value_of(threads, batch), trial->add_objectives());
    }
  }
  for (const int place : {14, 10, 0}) {  // 8, 4 and 1 threads
    proto::Finalist* finalist = session.add_finalists();
    *finalist->mutable_config() = session.trials(place).config();
    finalist->set_outcome(proto::OK);
    finalist->set_is_default(place == 0);
    const double first = session.trials(place).objectives(0).values(0);
    add_value(first * .99, finalist->add_objectives());
  }
  *session.mutable_winner() = session.trials(14).config();
  const auto verified = [&](int place) {
    return session.finalists(place).objectives(0).values(0);
  };
  AddProof("requests", verified(0) / verified(2) - 1, &session);
  return session;
}

}  // namespace optrail::reports

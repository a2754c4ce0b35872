#ifndef OPTRAIL_TUNING_SESSION_SESSION_TEST_FIXTURE_H_
#define OPTRAIL_TUNING_SESSION_SESSION_TEST_FIXTURE_H_

// A task whose times are a formula, which the tests of sessions share.

#include <map>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "base/file/file.h"
#include "base/random.h"
#include "gtest/gtest.h"
#include "tuning/proto/canonical.h"
#include "tuning/session/session.h"

namespace optrail::tuning {

inline constexpr char kSpace[] = R"(
knob { name: "tile"   pow2 { min: 1 max: 128 } }
knob { name: "unroll" ints: [1, 2, 3, 4, 5, 6, 7, 8] }
default {
  set { knob: "tile" int: 1 }
  set { knob: "unroll" int: 1 }
}
)";

// Stands for kill -9: nothing after it runs.
struct Killed {};

// A task whose times are a formula and whose failures are a table.
// `stop_after` evaluations it throws.
class FakeEvaluator : public OneAtATime {
 public:
  Evaluation Evaluate(const Request& request) override {
    if (stop_after == 0) throw Killed();
    --stop_after;
    const std::string text = CanonicalText(request.config());
    evaluated.push_back(text);
    const bool again = request.purpose() != Request::SEARCH;
    if (again) ++fresh;
    Evaluation answer;
    proto::Trial& trial = *answer.mutable_trial();
    trial.set_elapsed_ns(1'000'000);
    trial.mutable_effort()->set_open_ns(open_ns);
    const auto failure = failures.find(text);
    if (failure != failures.end()) {
      trial.set_outcome(failure->second);
      return answer;
    }
    // Noise is fixed per config (and round), so that a resumed session sees
    // what an uninterrupted one saw.
    const double noise = again ? again_noise : search_noise;
    Rng rng(std::hash<std::string>()(absl::StrCat(
        text,
        again ? absl::StrCat("@", request.purpose() - 1, "/", request.round())
              : "")));
    const double time_ns =
        TimeNs(request.config()) * (1 + noise * (2 * rng.UniformReal() - 1));
    trial.set_outcome(request.has_hopeless_above() &&
                              time_ns > request.hopeless_above()
                          ? proto::CENSORED
                          : proto::OK);
    SetTime(time_ns, trial);
    return answer;
  }

  static void SetTime(double time_ns, proto::Trial& trial) {
    trial.set_time_ns(time_ns);
    trial.clear_measurements();
    proto::Measurement& measurement = *trial.add_measurements();
    measurement.set_calls_per_sample(1);
    measurement.add_sample_ns(static_cast<int64_t>(time_ns));
    measurement.set_median_ns(time_ns);
    measurement.set_clean_sample_count(1);
  }

  static double TimeNs(const proto::Config& config) {
    double tile = 0, unroll = 0;
    for (const proto::KnobValue& value : config.set()) {
      (value.knob() == "tile" ? tile : unroll) =
          static_cast<double>(value.int_());
    }
    // Best at tile 16, unroll 5.
    return 1e5 + 1e3 * (tile - 16) * (tile - 16) +
           2e3 * (unroll - 5) * (unroll - 5);
  }

  std::map<std::string, proto::Outcome> failures;
  double search_noise = 0, again_noise = 0;
  int stop_after = -1;
  int fresh = 0;
  int64_t open_ns = 0;
  std::vector<std::string> evaluated;
};

class SessionTest : public ::testing::Test {
 protected:
  SessionTest() {
    auto space = Space::Parse(kSpace, "test.space.textproto");
    EXPECT_TRUE(space.ok()) << space.status();
    space_ = std::make_unique<Space>(*std::move(space));
    setup_.header.set_session_id("20261120T000000Z-1");
    setup_.header.mutable_task()->set_operator_name("fake");
    setup_.header.set_space_hash(space_->hash());
    proto::Shape shape = *ParseShape("n=8/f32");
    auto bound = space_->Bind(shape, proto::Hardware());
    EXPECT_TRUE(bound.ok()) << bound.status();
    bound_ = *std::move(bound);
    setup_.default_config = bound_->default_config();
    setup_.header.set_strategy("random");
    setup_.header.set_seed(1);
    setup_.header.mutable_budget()->set_trials(40);
    setup_.propose = [this](const proto::Session& begun, int batch) {
      ProposerOptions options;
      options.batch = batch;
      if (load_sources) options.sources = load_sources(begun);
      return MakeProposer(*bound_, begun, options);
    };
    setup_.journal_directory = JoinPath(
        ::testing::TempDir(),
        ::testing::UnitTest::GetInstance()->current_test_info()->name());
  }

  absl::StatusOr<proto::Session> Run(FakeEvaluator& evaluator) {
    return RunSession(setup_, evaluator, clock_);
  }

  static std::vector<std::string> Tried(const proto::Session& session) {
    std::vector<std::string> configs;
    for (const proto::Trial& trial : session.trials()) {
      configs.push_back(CanonicalText(trial.config()));
    }
    return configs;
  }

  std::unique_ptr<Space> space_;
  std::unique_ptr<BoundSpace> bound_;
  SessionSetup setup_;
  std::function<std::vector<TransferSource>(const proto::Session&)>
      load_sources;
  FakeClock clock_;
};

// What sessions were before this engine: written by the last version that had
// its own in suites/, with the answers below (testdata/README.md).
class ScriptedEvaluator : public OneAtATime {
 public:
  static void Time(const proto::Config& config, uint64_t input_seed,
                   const Request& request, proto::Trial& trial) {
    double tile = 0, unroll = 0;
    for (const proto::KnobValue& value : config.set()) {
      (value.knob() == "tile" ? tile : unroll) =
          static_cast<double>(value.int_());
    }
    double time_ns = 1e5 + 1e3 * (tile - 16) * (tile - 16) +
                     2e3 * (unroll - 5) * (unroll - 5);
    trial.set_elapsed_ns(1'000'000 + static_cast<int64_t>(time_ns));
    const bool crashes = tile == 16 && unroll == 5;
    if (crashes || (tile == 8 && unroll == 8)) {
      trial.set_outcome(crashes ? proto::CRASHED : proto::INVALID);
      trial.set_detail("scripted");
      return;
    }
    uint64_t hash = 1469598103934665603u;
    for (const char c : CanonicalText(config)) {
      hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211u;
    }
    Rng rng(hash + 1000003 * input_seed);
    time_ns *= 1 + .03 * (2 * rng.UniformReal() - 1);
    trial.set_outcome(request.has_hopeless_above() &&
                              time_ns > request.hopeless_above()
                          ? proto::CENSORED
                          : proto::OK);
    FakeEvaluator::SetTime(time_ns, trial);
    trial.set_compile_ns(17);
    trial.set_error_in_tolerances(.25);
  }
  Evaluation Evaluate(const Request& request) override {
    ++evaluated;
    Evaluation answer;
    Time(request.config(),
         request.purpose() == Request::SEARCH ? request.round() % 3
                                              : 1000 + request.round(),
         request, *answer.mutable_trial());
    return answer;
  }
  int evaluated = 0;
};

}  // namespace optrail::tuning

#endif  // OPTRAIL_TUNING_SESSION_SESSION_TEST_FIXTURE_H_

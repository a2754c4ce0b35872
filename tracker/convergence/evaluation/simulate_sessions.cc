#include "tracker/convergence/evaluation/simulate_sessions.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/random.h"
#include "base/stats/statistics.h"

namespace optrail::tracker {
namespace {

constexpr double kBestNs = 1e6;
constexpr int kMaxB = 64;
constexpr int kMaxC = 8;
constexpr int kFinalists = 4;
constexpr int kProcesses = 5;
constexpr int64_t kDayNs = int64_t{86400} * 1'000'000'000;
constexpr int64_t kYearStartNs = int64_t{1767225600} * 1'000'000'000;

struct Point {
  int a = 1, b = 1, c = 1;
  bool operator<(const Point& other) const {
    return std::array<int, 3>{a, b, c} <
           std::array<int, 3>{other.a, other.b, other.c};
  }
};

void SetInt(const std::string& knob, int64_t value, proto::Config* config) {
  proto::KnobValue* set = config->add_set();
  set->set_knob(knob);
  set->set_int_(value);
}

proto::Config ConfigOf(const Point& point) {
  proto::Config config;
  SetInt("a", point.a, &config);
  SetInt("b", point.b, &config);
  SetInt("c", point.c, &config);
  return config;
}

class Simulation {
 public:
  Simulation(const SessionPlan& plan, uint64_t seed)
      : plan_(plan), rng_(seed) {}

  proto::Session Run() {
    FillHeader();
    std::set<Point> tried;
    absl::optional<Point> best;
    double best_ns = HUGE_VAL;
    std::vector<std::pair<double, Point>> readings;
    while (session_.trials_size() < plan_.trials) {
      const absl::optional<Point> point =
          Next(tried, best, session_.trials_size());
      if (!point) break;
      tried.insert(*point);
      const absl::optional<double> time_ns = Try(*point);
      if (!time_ns) continue;
      readings.push_back({*time_ns, *point});
      if (*time_ns < best_ns) {
        best_ns = *time_ns;
        best = point;
      }
    }
    session_.set_stop_reason(session_.trials_size() < plan_.trials
                                 ? proto::SPACE_EXHAUSTED
                                 : proto::TRIALS_SPENT);
    Verify(std::move(readings));
    return std::move(session_);
  }

 private:
  void FillHeader() {
    session_.set_started_unix_ns(kYearStartNs + plan_.day * kDayNs);
    session_.set_session_id(absl::StrFormat("2026%04dT000000Z-%012x", plan_.day,
                                            rng_() & 0xffffffffffff));
    proto::Task* task = session_.mutable_task();
    task->set_operator_name("simulated");
    task->set_device_kind(proto::CPU);
    task->set_kernel_id("k");
    task->set_hardware_id(plan_.hardware_id);
    task->set_threads(1);
    task->set_cache_mode(proto::HOT);
    proto::Dim* dim = task->mutable_shape()->add_dims();
    dim->set_name("n");
    dim->set_value(plan_.n);
    task->mutable_shape()->add_data_types(proto::F32);
    session_.mutable_hardware()->set_id(plan_.hardware_id);
    session_.mutable_hardware()->set_device_kind(proto::CPU);
    session_.mutable_commit()->set_id(plan_.commit_id);
    session_.set_strategy(plan_.search == Search::kLocal ? "local" : "other");
    session_.mutable_budget()->set_trials(plan_.trials);
    session_.set_sittings(1);
    std::string values;
    for (int a = 1; a <= plan_.max_a; ++a) {
      absl::StrAppend(&values, a > 1 ? ", " : "", a);
    }
    session_.set_space_textproto(absl::StrCat(
        "knob { name: \"a\" ints: [", values,
        "] }\n"
        "knob { name: \"b\" ints: [1, 2, 4, 8, 16, 32, 64] }\n"
        "knob { name: \"c\" ints: [1, 2, 3, 4, 5, 6, 7, 8] }\n",
        plan_.prior.empty()
            ? ""
            : absl::StrCat("prior { expr: \"", plan_.prior, "\" }\n"),
        "default { set { knob: \"a\" int: 1 } set { knob: \"b\" int: 1 } set "
        "{ knob: \"c\" int: 1 } }\n"));
  }

  double TrueNs(const Point& p) const {
    const double distance = std::abs(std::log2(p.a) - plan_.best_a) +
                            std::abs(std::log2(p.b) - plan_.best_b) +
                            .3 * std::abs(p.c - 3);
    return kBestNs * std::exp(plan_.steepness * distance);
  }

  Point Random() {
    return {1 + static_cast<int>(rng_.UniformInt(plan_.max_a)),
            1 << rng_.UniformInt(7),
            1 + static_cast<int>(rng_.UniformInt(kMaxC))};
  }

  Point Neighbour(Point p) {
    const int step = rng_.UniformInt(2) == 0 ? 1 : -1;
    switch (rng_.UniformInt(3)) {
      case 0:
        p.a = std::clamp(p.a + step * (1 + p.a / 8), 1, plan_.max_a);
        break;
      case 1:
        p.b = std::clamp(step > 0 ? p.b * 2 : p.b / 2, 1, kMaxB);
        break;
      default:
        p.c = std::clamp(p.c + step, 1, kMaxC);
    }
    return p;
  }

  absl::optional<Point> Next(const std::set<Point>& tried,
                             const absl::optional<Point>& best, int trial) {
    if (plan_.search == Search::kExhaustive) {
      // From the worst end: a falls from its maximum.
      const int per_a = 7 * kMaxC;
      if (trial >= plan_.max_a * per_a) return absl::nullopt;
      return Point{plan_.max_a - trial / per_a, 1 << (trial / kMaxC % 7),
                   1 + trial % kMaxC};
    }
    for (int attempt = 0; attempt < 1000; ++attempt) {
      Point point;
      if (plan_.search == Search::kStuck) {
        // The 32 configs about the default, the nearest first.
        if (trial >= 32) return absl::nullopt;
        return Point{1 + trial / 4, 1 + trial / 2 % 2, 1 + trial % 2};
      }
      if (plan_.warm_start && trial == 0) {
        point = {static_cast<int>(std::lround(std::exp2(plan_.best_a))),
                 1 << static_cast<int>(plan_.best_b), 2};
      } else if (plan_.search == Search::kLocal && best && trial >= 10 &&
                 rng_.UniformReal() < .7) {
        point = Neighbour(*best);
      } else {
        point = Random();
      }
      if (tried.count(point) == 0) return point;
    }
    return absl::nullopt;
  }

  // The reading, if the config works.
  absl::optional<double> Try(const Point& point) {
    proto::Trial* trial = session_.add_trials();
    *trial->mutable_config() = ConfigOf(point);
    const auto compile_ns = static_cast<int64_t>(plan_.compile_ms * 1e6);
    trial->set_compile_ns(compile_ns);
    trial->set_elapsed_ns(compile_ns + 20'000'000);
    session_.set_elapsed_ns(session_.elapsed_ns() + trial->elapsed_ns());
    if (plan_.memory_limit > 0 &&
        int64_t{point.a} * point.b > plan_.memory_limit) {
      trial->set_outcome(proto::OUT_OF_MEMORY);
      return absl::nullopt;
    }
    if (rng_.UniformReal() < plan_.contended_share) {
      trial->set_outcome(proto::CONTENDED);
      return absl::nullopt;
    }
    const double time_ns = TrueNs(point) * plan_.first_over_true *
                           std::exp(plan_.noise * rng_.Gaussian());
    trial->set_outcome(proto::OK);
    trial->set_time_ns(time_ns);
    return time_ns;
  }

  void Verify(std::vector<std::pair<double, Point>> readings) {
    std::sort(readings.begin(), readings.end());
    if (readings.size() > kFinalists) readings.resize(kFinalists);
    readings.push_back({TrueNs({}), {}});
    double winner_ns = HUGE_VAL;
    for (size_t i = 0; i < readings.size(); ++i) {
      proto::Finalist* finalist = session_.add_finalists();
      *finalist->mutable_config() = ConfigOf(readings[i].second);
      finalist->set_first_time_ns(readings[i].first);
      finalist->set_is_default(i + 1 == readings.size());
      finalist->set_outcome(proto::OK);
      std::vector<double> medians_ns;
      for (int process = 0; process < kProcesses; ++process) {
        medians_ns.push_back(TrueNs(readings[i].second) *
                             std::exp(plan_.process_noise * rng_.Gaussian()));
        finalist->add_measurements()->set_median_ns(medians_ns.back());
      }
      finalist->set_time_ns(Median(medians_ns));
      if (finalist->time_ns() < winner_ns) {
        winner_ns = finalist->time_ns();
        *session_.mutable_winner() = finalist->config();
      }
    }
  }

  const SessionPlan& plan_;
  Rng rng_;
  proto::Session session_;
};

}  // namespace

proto::Session SimulateSession(const SessionPlan& plan, uint64_t seed) {
  return Simulation(plan, seed).Run();
}

std::vector<proto::Session> SimulateHealthy(int count, uint64_t seed) {
  std::vector<proto::Session> sessions;
  for (int i = 0; i < count; ++i) {
    SessionPlan plan;
    plan.n = int64_t{256} << (i % 4);
    plan.best_a = 2 + i % 4;
    plan.day = i / 4;
    plan.commit_id = absl::StrCat("c", i / 8);
    sessions.push_back(SimulateSession(plan, seed * 100003 + i));
  }
  return sessions;
}

std::vector<proto::Session> SimulateFault(FindingKind kind, uint64_t seed) {
  std::vector<proto::Session> sessions;
  const auto add = [&](const SessionPlan& plan) {
    sessions.push_back(SimulateSession(plan, seed * 100003 + sessions.size()));
  };
  SessionPlan plan;
  switch (kind) {
    case FindingKind::kDoesNotConverge:
      // The budget ends while the search still walks towards the best.
      plan.search = Search::kExhaustive;
      plan.best_a = 0;
      plan.steepness = 1;
      plan.trials = 56 * 60;
      add(plan);
      break;
    case FindingKind::kOscillates:
      plan.process_noise = .12;
      plan.noise = .12;
      add(plan);
      break;
    case FindingKind::kConvergedTooEarly:
      plan.search = Search::kStuck;
      plan.trials = 30;
      plan.best_a = 0;
      plan.best_b = 0;
      add(plan);
      break;
    case FindingKind::kMostTrialsFail:
      plan.search = Search::kRandom;
      plan.memory_limit = 40;
      add(plan);
      break;
    case FindingKind::kMostTrialsContended:
      plan.contended_share = .75;
      add(plan);
      break;
    case FindingKind::kWinnersCurse:
      plan.first_over_true = .85;
      add(plan);
      break;
    case FindingKind::kTimeExploded:
      for (plan.day = 0; plan.day < 6; ++plan.day) {
        plan.compile_ms = plan.day == 5 ? 2000 : 5;
        add(plan);
      }
      break;
    case FindingKind::kLosesOnOtherShapes:
      // All configs are tried for each shape, so the winner's time elsewhere is
      // known. It is best at one end, the default at the other.
      plan.search = Search::kExhaustive;
      plan.max_a = 16;
      plan.trials = 16 * 56 + 1;
      for (int i = 0; i < 3; ++i) {
        plan.n = int64_t{256} << i;
        plan.best_a = i == 0 ? 4 : 0;
        plan.best_b = i == 0 ? 6 : 0;
        plan.day = i;
        add(plan);
      }
      break;
    case FindingKind::kPriorMisleads:
      plan.search = Search::kRandom;
      plan.prior = "a";
      plan.best_a = 0;
      plan.steepness = .3;
      plan.trials = 80;
      add(plan);
      break;
    case FindingKind::kSlowerToConverge:
      for (plan.day = 0; plan.day < 20; ++plan.day) {
        plan.warm_start = plan.day < 10;
        add(plan);
      }
      break;
    case FindingKind::kConvergedToWorse:
      for (plan.day = 0; plan.day < 6; ++plan.day) {
        plan.best_a = 5;
        plan.steepness = .2;
        // The last session's space ends before the best config.
        plan.max_a = plan.day == 5 ? 8 : 64;
        add(plan);
      }
      break;
    case FindingKind::kTunerWorse:
      for (int i = 0; i < 40; ++i) {
        plan.day = i / 4;
        plan.n = int64_t{256} << (i % 4);
        plan.best_a = 2 + i % 4;
        plan.commit_id = absl::StrCat("c", i / 8);
        plan.warm_start = i < 24;
        add(plan);
      }
      break;
    case FindingKind::kTunerWorseOnHardware:
      for (int i = 0; i < 48; ++i) {
        plan.day = i / 8;
        plan.n = int64_t{256} << (i % 4);
        plan.best_a = 2 + i % 4;
        const bool slow = i % 8 >= 4;
        plan.hardware_id = slow ? "simulated-64c" : "simulated-2c";
        plan.warm_start = !slow;
        add(plan);
      }
      break;
  }
  return sessions;
}

Lever RemedyOf(FindingKind kind) {
  switch (kind) {
    case FindingKind::kDoesNotConverge:
    case FindingKind::kLosesOnOtherShapes:
    case FindingKind::kConvergedToWorse:
      return Lever::kBudget;
    case FindingKind::kConvergedTooEarly:
    case FindingKind::kSlowerToConverge:
      return Lever::kStrategy;
    case FindingKind::kMostTrialsFail:
      return Lever::kConstraint;
    case FindingKind::kTimeExploded:
      return Lever::kKnobRange;
    case FindingKind::kPriorMisleads:
    case FindingKind::kTunerWorseOnHardware:
      return Lever::kPrior;
    case FindingKind::kTunerWorse:
      return Lever::kBisect;
    case FindingKind::kOscillates:
    case FindingKind::kMostTrialsContended:
    case FindingKind::kWinnersCurse:
      return Lever::kMeasurement;
  }
  return Lever::kBudget;
}

}  // namespace optrail::tracker

#include "reports/sample/sample_history.h"

#include <algorithm>
#include <cmath>
#include <iterator>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/time.h"
#include "base/random.h"
#include "reports/report_data.h"
#include "tuning/proto/canonical.h"
#include "tuning/schedule/rule.h"
#include "tuning/schedule/trace_source.h"

namespace optrail::reports {
namespace {

constexpr int64_t kHourNs = int64_t{3600} * 1000000000;
constexpr int64_t kCommitEveryNs = 9 * kHourNs;

struct SampleHardware {
  const char* id;
  const char* model;
  proto::DeviceKind device;
  int cores;
  double speed;  // relative to the first
  double noise;  // standard deviation between processes, relative
};

constexpr SampleHardware kHardware[] = {
    {"amd-epyc-zen4-8c", "AMD EPYC 9V74", proto::CPU, 8, 1, 0.008},
    {"intel-xeon-spr-4c", "Intel Xeon Platinum 8481C", proto::CPU, 4, 0.7,
     0.016},
    {"nvidia-h200", "NVIDIA H200", proto::CUDA, 132, 22, 0.005},
};
constexpr int kHardwareCount = 3;

struct SampleOperator {
  const char* name;
  std::vector<std::pair<const char*, int64_t>> dims;
  double time_ns;  // default config, first shape, first hardware
  double tuned_speedup;
  double roofline;
};

std::vector<SampleOperator> Operators() {
  return {
      {"matmul", {{"m", 512}, {"n", 512}, {"k", 512}}, 5.1e6, 3.4, 0.78},
      {"softmax", {{"rows", 4096}, {"cols", 1024}}, 2.3e6, 1.6, 0.83},
      {"layer_norm", {{"rows", 4096}, {"cols", 1024}}, 1.9e6, 1.35, 0.71},
      {"attention",
       {{"heads", 16}, {"seq", 512}, {"dim", 64}},
       9.6e6,
       2.6,
       0.52},
      {"conv2d",
       {{"c", 64}, {"h", 56}, {"w", 56}, {"k", 64}},
       7.4e6,
       2.1,
       0.61},
      {"add", {{"n", 1 << 22}}, 1.2e6, 1.02, 0.94},
      {"embedding_bag",
       {{"rows", 200000}, {"dim", 64}, {"bags", 2048}},
       8.1e5,
       1.22,
       0.48},
  };
}

// Planted is a change of some level, and how far along the history it came.
struct Planted {
  double at;
  const char* subject;
};
constexpr Planted kPlanted[] = {
    {0.35, "matmul: pack B panels once per block"},
    {0.5, "build: newer compiler"},
    {0.55, "layer_norm: fuse scale and shift"},
    {0.7, "softmax: check that rows are finite"},
    {0.86, "attention: compute the mask on the fly"},
    {0.955, "embedding_bag: check indices"},
};

const char* const kSubjects[] = {
    "thread pool: claim rows in batches",
    "docs: how the gate decides",
    "conv2d: direct path for 1x1 kernels",
    "store: verify entries again",
    "tests: more shapes",
    "device: huge pages where they can be had",
};

std::string SubjectAt(int position, int commits) {
  for (const Planted& planted : kPlanted) {
    const double first = planted.at * commits;
    if (position >= first && position - 1 < first) return planted.subject;
  }
  return kSubjects[position % std::size(kSubjects)];
}

std::string HexId(uint64_t seed, int digits) {
  Rng rng(seed);
  std::string id;
  while (static_cast<int>(id.size()) < digits) {
    absl::StrAppendFormat(&id, "%016x", rng());
  }
  return id.substr(0, digits);
}

std::string RecordId(int64_t unix_ns, uint64_t seed) {
  return absl::StrCat(
      absl::FormatTime("%Y%m%dT%H%M%SZ", absl::FromUnixNanos(unix_ns),
                       absl::UTCTimeZone()),
      "-", HexId(seed, 12));
}

int64_t CommitTime(const SampleOptions& options, int position) {
  return options.end_unix_ns -
         (options.commits - 1 - position) * kCommitEveryNs;
}

proto::Commit MakeCommit(const SampleOptions& options, int position) {
  proto::Commit commit;
  commit.set_id(HexId(1000 + position, 40));
  commit.set_branch("main");
  commit.set_first_parent_position(400 + position);
  commit.set_commit_unix_ns(CommitTime(options, position));
  commit.set_subject(SubjectAt(position, options.commits));
  if (options.hostile_names && position % 7 == 3) {
    const std::vector<std::string> names = HostileNames();
    commit.set_subject(names[position % names.size()]);
  }
  return commit;
}

proto::Hardware MakeHardware(const SampleHardware& sample) {
  proto::Hardware hardware;
  hardware.set_id(sample.id);
  hardware.set_device_kind(sample.device);
  hardware.set_model(sample.model);
  hardware.set_cores(sample.cores);
  hardware.set_memory_bytes(int64_t{64} << 30);
  hardware.set_virtual_machine(sample.device == proto::CPU);
  return hardware;
}

proto::Toolchain MakeToolchain(bool newer) {
  proto::Toolchain toolchain;
  toolchain.set_compiler(newer ? "g++ 13.2.0" : "g++ 12.2.0");
  toolchain.set_flags("-O2");
  toolchain.set_compilation_mode("opt");
  toolchain.set_os("Debian GNU/Linux 12 (bookworm)");
  return toolchain;
}

proto::Shape MakeShape(const SampleOperator& op, int index) {
  proto::Shape shape;
  for (size_t d = 0; d < op.dims.size(); ++d) {
    proto::Dim* dim = shape.add_dims();
    dim->set_name(op.dims[d].first);
    dim->set_value(d == 0 ? op.dims[d].second * (index + 1)
                          : op.dims[d].second);
  }
  shape.add_data_types(proto::F32);
  return shape;
}

// What was planted: the level of a series at a commit, relative to its first.
double PlantedLevel(int op, int shape, int hardware, bool tuned, double at) {
  double level = 1;
  if (op == 0 && tuned && at >= 0.35) level *= 0.88;         // packing
  if (op == 1 && hardware != 2 && at >= 0.7) level *= 1.09;  // a regression
  if (op == 3 && shape == 0 && at >= 0.86) level *= 1.14;    // another
  if (op == 4 && hardware == 1 && at >= 0.55) level *= 0.93;
  if (op == 6 && hardware == 0 && shape == 1 && at >= 0.955) level *= 1.08;
  return level;
}

void AddMeasurements(double median_ns, const SampleOptions& options,
                     double noise, int64_t unix_ns, Rng& rng,
                     proto::BenchmarkResult* result) {
  // What a run's processes share (placement, clocks) and what each has alone.
  const double shared = std::exp(noise * 0.4 * rng.Gaussian());
  for (int p = 0; p < options.processes; ++p) {
    proto::Measurement* measurement = result->add_measurements();
    measurement->set_started_unix_ns(unix_ns + p * 100000000);
    measurement->set_calls_per_sample(1);
    // Skewed as times are: disturbances only ever add.
    const double late =
        rng.UniformReal() < 0.08 ? 4 * noise * rng.UniformReal() : 0;
    measurement->set_median_ns(median_ns * shared *
                               std::exp(noise * rng.Gaussian()) * (1 + late));
    measurement->set_clean_sample_count(40);
  }
}

std::string TunedConfigText(int op, int hardware, bool retuned) {
  return absl::StrFormat("algorithm=%s,prefetch=%d,tile=%d,unroll=%d",
                         op % 2 == 0 ? "packed" : "online",
                         hardware == 1 ? 0 : 64, retuned ? 128 : 64,
                         1 << (op % 3));
}

// The first shape of each operator is a layer of a model; that of add stands
// beside layer_norm as another way to do the same.
void AddWorkload(const SampleOptions& options, proto::Run& run) {
  run.set_workload(options.hostile_names ? HostileNames()[0] : "sample_model");
  int calls = 12;
  for (const SampleOperator& op : Operators()) {
    proto::WorkloadLayer* layer = run.add_workload_layers();
    layer->set_operator_name(op.name);
    layer->set_shape(tuning::CanonicalText(MakeShape(op, 0)));
    layer->set_count(calls++);
    const bool norm = std::string(op.name) == "layer_norm";
    if (norm || std::string(op.name) == "add") {
      layer->set_part(options.hostile_names ? HostileNames()[0] : "norm");
      layer->set_way(norm ? "fused" : "separate");
    }
  }
}

proto::Run MakeRun(const SampleOptions& options, int position, int hardware) {
  const SampleHardware& sample = kHardware[hardware];
  const int64_t unix_ns =
      CommitTime(options, position) + (1 + hardware) * kHourNs / 6;
  const double at = static_cast<double>(position) / options.commits;
  proto::Run run;
  run.set_run_id(RecordId(unix_ns, position * 10 + hardware));
  run.set_started_unix_ns(unix_ns);
  run.set_elapsed_ns(90 * int64_t{1000000000});
  run.set_suite("smoke");
  run.set_source(kMadeUpSource);
  *run.mutable_commit() = MakeCommit(options, position);
  *run.mutable_hardware() = MakeHardware(sample);
  *run.mutable_toolchain() = MakeToolchain(hardware == 1 && at >= 0.5);
  run.mutable_ceilings()->set_flop_per_s_all_threads(4.1e11 * sample.speed);
  run.mutable_ceilings()->set_memory_read_bytes_per_s_all_threads(1.9e11 *
                                                                  sample.speed);

  const std::vector<SampleOperator> operators = Operators();
  for (int op = 0; op < operators.size(); ++op) {
    for (int shape = 0; shape < options.shapes_per_operator; ++shape) {
      for (const bool tuned : {false, true}) {
        // An operator that came later, and a benchmark that went away.
        if (op == 6 && at < 0.3) continue;
        const bool last = position == options.commits - 1;
        if (op == 2 && shape == 1 && hardware == 1 && tuned && last) continue;

        Rng rng(options.seed * 7919 + ((position * 64 + op) * 512 + shape) * 8 +
                hardware * 2 + tuned);
        proto::BenchmarkResult* result = run.add_results();
        proto::BenchmarkKey* key = result->mutable_key();
        key->set_operator_name(operators[op].name);
        key->set_device_kind(sample.device);
        *key->mutable_shape() = MakeShape(operators[op], shape);
        key->set_selection(tuned ? proto::TUNED : proto::DEFAULT);
        key->set_threads(sample.device == proto::CPU ? sample.cores : 1);
        key->set_cache_mode(proto::HOT);

        const double spread = 1 + 0.15 * ((op * 3 + hardware) % 4 - 1.5) / 1.5;
        const double speedup = 1 + (operators[op].tuned_speedup - 1) * spread;
        const double level = operators[op].time_ns * (shape + 1) /
                             sample.speed / (tuned ? speedup : 1) *
                             PlantedLevel(op, shape, hardware, tuned, at);
        result->set_config(tuned ? TunedConfigText(op, hardware, at >= 0.35)
                                 : "algorithm=plain,prefetch=0,tile=32,"
                                   "unroll=1");
        const bool crashed = op == 4 && hardware == 2 && shape == 1 && tuned &&
                             (last || position == options.commits / 3);
        const bool contended = hardware == 1 && position % 23 == 11 && op == 0;
        if (crashed || contended) {
          result->set_outcome(crashed ? proto::CRASHED : proto::CONTENDED);
          result->set_detail(crashed
                                 ? "killed by signal 11 (Segmentation fault)"
                                 : "3 of 40 samples were undisturbed");
          continue;
        }
        result->set_outcome(proto::OK);
        result->set_roofline_fraction(
            operators[op].roofline * (tuned ? 1 : 1 / speedup) /
            PlantedLevel(op, shape, hardware, tuned, at) *
            (hardware == 1 ? 0.9 : 1));
        AddMeasurements(level, options, sample.noise, unix_ns, rng, result);
      }
    }
  }
  AddWorkload(options, run);
  if (options.hostile_names) {
    Rng rng(position + 17);
    for (const std::string& name : HostileNames()) {
      proto::BenchmarkResult* result = run.add_results();
      result->mutable_key()->set_operator_name(name);
      result->set_outcome(proto::OK);
      result->set_config(name);
      AddMeasurements(1e4, options, sample.noise, unix_ns, rng, result);
    }
  }
  return run;
}

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

// What a session over schedules of softmax is about.
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

proto::Session MakeSession(const SampleOptions& options, int index) {
  const std::vector<SampleOperator> operators = Operators();
  const SampleHardware& sample = kHardware[index % kHardwareCount];
  const SampleOperator& op = operators[(index / kHardwareCount) % 7];
  Rng rng(options.seed * 104729 + index);
  const int64_t unix_ns = CommitTime(options, 21 + index);
  proto::Session session;
  session.set_session_id(RecordId(unix_ns, 900000 + index));
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
  return session;
}

}  // namespace

std::vector<std::string> HostileNames() {
  return {
      "</script><script>document.title='owned'</script>",
      "<img src=x onerror=\"document.title='owned'\">",
      "<!--<script>",
      "\"quoted' & <b>bold</b> {{data}} \\ end",
      "\xe2\x80\xaegnp.exe \xe2\x81\xa6rtl\xe2\x80\xac",
      std::string("nul\0bell\x07tab\tnewline\n", 22),
      "line\xe2\x80\xa8separator \xff\xfe invalid",
      "__proto__",
      std::string(400, 'w'),
  };
}

SampleHistory MakeSampleHistory(const SampleOptions& options) {
  SampleHistory sample;
  for (int position = 0; position < options.commits; ++position) {
    for (int hardware = 0; hardware < kHardwareCount; ++hardware) {
      sample.runs.push_back(MakeRun(options, position, hardware));
    }
  }
  for (int i = 0; i < options.sessions; ++i) {
    sample.sessions.push_back(MakeSession(options, i));
  }
  return sample;
}

}  // namespace optrail::reports

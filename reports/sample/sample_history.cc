#include "reports/sample/sample_history.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "absl/strings/str_format.h"
#include "base/random.h"
#include "reports/sample/sample_sessions.h"
#include "reports/sample/sample_states.h"
#include "tuning/proto/canonical.h"

namespace optrail::reports {
namespace {

// The planted level of a series at a commit, relative to its first.
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
  for (const SampleOperator& op : SampleOperators()) {
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

void SetCeilings(const SampleHardware& sample, proto::Run& run) {
  const bool cpu = sample.device == proto::CPU;
  const double parts = cpu ? sample.cores : 1;
  const double peak = kSamplePeak * sample.speed;
  const double bandwidth = kSampleBandwidth * sample.speed;
  proto::Ceilings& ceilings = *run.mutable_ceilings();
  ceilings.set_flop_per_s_all_threads(peak);
  ceilings.set_flop_per_s_one_thread(peak / parts);
  ceilings.set_memory_read_bytes_per_s_all_threads(bandwidth);
  ceilings.set_memory_read_bytes_per_s_one_thread(bandwidth / parts);
  if (!cpu) return;
  ceilings.set_l1_read_bytes_per_s(8 * bandwidth / parts);
  ceilings.set_l2_read_bytes_per_s(3 * bandwidth / parts);
}

// Counts that the tuned config of the first hardware reaches its share with.
void SetWork(const SampleOperator& op, int shape,
             proto::BenchmarkResult* result) {
  if (op.flop_per_byte == 0) return;
  const double seconds = op.time_ns * (shape + 1) / op.tuned_speedup / 1e9;
  const double flop_per_s =
      std::min(kSamplePeak, op.flop_per_byte * kSampleBandwidth);
  result->set_flop(std::round(op.roofline * flop_per_s * seconds));
  result->set_moved_bytes(std::round(result->flop() / op.flop_per_byte));
}

proto::Run MakeRun(const SampleOptions& options, int position, int hardware) {
  const SampleHardware& sample = kSampleHardware[hardware];
  proto::Run run = MakeRunHeader(options, position, hardware);
  const int64_t unix_ns = run.started_unix_ns();
  const double at = static_cast<double>(position) / options.commits;
  SetCeilings(sample, run);
  const std::vector<SampleOperator> operators = SampleOperators();
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
        SetWork(operators[op], shape, result);
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

proto::Diagnosis MakeDiagnosis(const SampleOptions& options) {
  const SampleOperator op = SampleOperators()[1];
  const SampleHardware& hardware = kSampleHardware[0];
  proto::Diagnosis diagnosis;
  const int64_t unix_ns = options.end_unix_ns + kHourNs;
  diagnosis.set_diagnosis_id(SampleRecordId(unix_ns, 77));
  diagnosis.set_created_unix_ns(unix_ns);
  proto::Task& task = *diagnosis.mutable_task();
  task.set_operator_name(op.name);
  task.set_device_kind(hardware.device);
  *task.mutable_shape() = MakeShape(op, 0);
  task.set_hardware_id(hardware.id);
  task.set_threads(hardware.cores);
  task.set_cache_mode(proto::HOT);
  diagnosis.set_time_ns(op.time_ns);
  diagnosis.set_roofline_share(op.roofline / op.tuned_speedup);
  const std::string name = options.hostile_names ? HostileNames()[1] : "passes";
  diagnosis.set_verdict(
      absl::StrFormat("%s: 38%% of the time is recoverable", name));
  proto::DiagnosisNumber& number = *diagnosis.add_numbers();
  number.set_name("memory_gain");
  number.set_value(0.41);
  number.set_low(0.38);
  number.set_high(0.44);
  number.set_how("operands and workspace in one small block");
  diagnosis.add_numbers()->set_name("instructions");
  diagnosis.mutable_numbers(1)->set_unsupported("counters are not permitted");
  proto::DiagnosisCause& cause = *diagnosis.add_causes();
  cause.set_recoverable(0.38);
  proto::DiagnosisLink* link = cause.add_chain();
  link->set_class_name("memory");
  link->set_says("41% of the time goes when operands need not travel");
  link->add_evidence(number.name());
  link = cause.add_chain();
  link->set_class_name(name);
  link->set_says("each operand travels 3.0 times");
  proto::DiagnosisAdvice& advice = *diagnosis.add_advice();
  advice.set_kind(proto::TUNE_KNOBS);
  advice.set_text("tune the knobs algorithm and tile");
  advice.set_class_name(name);
  advice.set_predicted_gain(0.38);
  advice.set_confidence("inferred");
  advice.set_realised_gain(0.36);
  advice.set_outcome("a search of 60 trials");
  return diagnosis;
}

}  // namespace

SampleHistory MakeSampleHistory(const SampleOptions& options) {
  SampleHistory sample;
  for (int position = 0; position < options.commits; ++position) {
    for (int hardware = 0; hardware < kSampleHardwareCount; ++hardware) {
      sample.runs.push_back(MakeRun(options, position, hardware));
    }
  }
  for (int i = 0; i < options.sessions; ++i) {
    sample.sessions.push_back(MakeSession(options, i));
  }
  if (options.commits > 0) sample.diagnoses = {MakeDiagnosis(options)};
  if (options.states) {
    sample.sessions.push_back(MakeCommandSession(options));
    sample.sessions.push_back(MakeEnergySession(options));
    for (proto::Run& run : MakeStateRuns(options)) {
      sample.runs.push_back(std::move(run));
    }
    sample.triage = MakeAnswers(options);
  }
  return sample;
}

}  // namespace optrail::reports

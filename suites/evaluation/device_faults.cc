// Injects faults into a device's workers and looks whether anything else
// notices: each fault must become its outcome, and the sound config measured
// after it must be as fast as one that was measured after a sound one.
//
//   bazel run //suites/evaluation:device_faults -- --device=cuda --faults=200
//
// Prints a table of outcomes and the ratio of the two medians. Exit code 1: a
// fault went unnoticed, or a sound config failed after it.

#include <algorithm>
#include <iostream>
#include <map>
#include <string>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "base/file/file.h"
#include "base/random.h"
#include "base/stats/statistics.h"
#include "base/status_macros.h"
#include "ops/core/device_type.h"
#include "suites/evaluation/evaluation.h"
#include "suites/stopwatch/stopwatch.h"
#include "suites/worker/worker_evaluator.h"
#include "tuning/proto/canonical.h"

ABSL_FLAG(std::string, device, "cuda", "kind of device");
ABSL_FLAG(int, faults, 200, "how many");
ABSL_FLAG(uint64_t, seed, 1, "of their order");
ABSL_FLAG(absl::Duration, config_deadline, absl::Seconds(2),
          "a config that has not answered by then hangs");
ABSL_FLAG(std::string, state, "/tmp/optrail-device-faults",
          "folder of compiled code");

namespace optrail::suites {
namespace {

// Returns what each behaviour of ops/testing/faulty must become.
const std::map<std::string, std::vector<proto::Outcome>>& Expected() {
  using proto::CRASHED, proto::LAUNCH_ERROR, proto::OUT_OF_MEMORY,
      proto::TIMED_OUT, proto::WRONG_RESULT;
  static const auto& expected =
      *new std::map<std::string, std::vector<proto::Outcome>>{
          {"illegal_address", {LAUNCH_ERROR}},
          {"misaligned_address", {LAUNCH_ERROR}},
          {"trap", {LAUNCH_ERROR}},
          {"hang", {TIMED_OUT}},
          {"write_nothing", {WRONG_RESULT}},
          {"write_nan", {WRONG_RESULT}},
          {"write_out_of_bounds", {WRONG_RESULT}},
          {"change_input", {WRONG_RESULT}},
          {"allocate", {OUT_OF_MEMORY}},
      };
  return expected;
}

absl::StatusOr<ExitCode> Run() {
  OPTRAIL_ASSIGN_OR_RETURN(
      const ops::DeviceType* type,
      ops::FindDeviceTypeNamed(absl::GetFlag(FLAGS_device)));
  OPTRAIL_ASSIGN_OR_RETURN(const proto::Hardware hardware, type->Hardware());
  proto::Task task;
  task.set_operator_name("faulty");
  task.set_device_kind(type->kind());
  OPTRAIL_ASSIGN_OR_RETURN(*task.mutable_shape(),
                           tuning::ParseShape("n=1048576/f32"));
  task.set_hardware_id(hardware.id());
  task.set_threads(1);
  task.set_cache_mode(proto::HOT);
  WorkerOptions worker;
  worker.config_deadline = absl::GetFlag(FLAGS_config_deadline);
  worker.shared_folder = absl::GetFlag(FLAGS_state);
  OPTRAIL_RETURN_IF_ERROR(CreateDirectories(worker.shared_folder));
  WorkerEvaluator evaluator(task, worker);

  // Each fault has a process of its own, which it usually ends. Where that
  // disturbs nobody, those of the next few are open before the fault happens.
  const auto measure = [&](const std::string& behaviour, int process) {
    EvaluationOptions options;
    options.sampling = DefaultSamplingOptions();
    options.process_of_round = process;
    const auto config =
        tuning::ParseConfig(absl::StrCat("behaviour=", behaviour, ",work=4"));
    return evaluator.Evaluate(*config, options);
  };
  std::map<std::string, std::map<std::string, int>> outcomes;
  std::vector<double> after_sound, after_fault;
  int unnoticed = 0, failed_after = 0;
  std::vector<std::string> behaviours;
  for (const auto& [name, outcome] : Expected()) behaviours.push_back(name);
  Rng rng(absl::GetFlag(FLAGS_seed));
  for (int i = 0; i < absl::GetFlag(FLAGS_faults); ++i) {
    const std::string& fault =
        behaviours[rng.UniformInt(static_cast<int64_t>(behaviours.size()))];
    for (int next = 1; next <= evaluator.policy().processes_ahead; ++next) {
      evaluator.OpenAhead({i + next, {0}});
    }
    if (measure("ok", i).trial().outcome() != proto::OK) ++failed_after;
    const Evaluation before = measure("ok", i);
    const Evaluation broken = measure(fault, i);
    const Evaluation after = measure("ok", i + 1);
    ++outcomes[fault][tuning::OutcomeName(broken.trial().outcome())];
    const auto& expected = Expected().at(fault);
    if (std::find(expected.begin(), expected.end(), broken.trial().outcome()) ==
        expected.end()) {
      ++unnoticed;
      std::cout << fault << ": "
                << tuning::OutcomeName(broken.trial().outcome()) << " "
                << broken.trial().detail() << "\n";
    }
    if (!before.trial().has_time_ns() || !after.trial().has_time_ns()) {
      ++failed_after;
      std::cout << "after " << fault << ": "
                << tuning::OutcomeName(after.trial().outcome()) << " "
                << after.trial().detail() << "\n";
      continue;
    }
    after_sound.push_back(before.trial().time_ns());
    after_fault.push_back(after.trial().time_ns());
  }
  for (const auto& [fault, counts] : outcomes) {
    std::cout << fault << ":";
    for (const auto& [outcome, count] : counts) {
      std::cout << " " << outcome << " x" << count;
    }
    std::cout << "\n";
  }
  if (!after_fault.empty()) {
    std::vector<double> ratios;
    for (size_t i = 0; i < after_fault.size(); ++i) {
      ratios.push_back(after_fault[i] / after_sound[i]);
    }
    std::cout << "sound config after a fault / after a sound one: median "
              << Median(ratios) << ", worst "
              << *std::max_element(ratios.begin(), ratios.end()) << " ("
              << Median(after_sound) << " ns)\n";
  }
  std::cout << unnoticed << " faults became something else, " << failed_after
            << " sound configs failed\n";
  return unnoticed + failed_after == 0 ? ExitCode::kOk : ExitCode::kCheckFailed;
}

}  // namespace
}  // namespace optrail::suites

int main(int argc, char** argv) {
  return optrail::suites::EvaluationMain(argc, argv, optrail::suites::Run);
}

// How often the first cause that a diagnosis names is the planted one, and how
// many healthy kernels are left alone. No hardware counter is read.
//
//   bazel run //diagnosis/evaluation:score -- --seed=1
//   bazel run //diagnosis/evaluation:score -- --seed=2 --cases='passes.*'
//   bazel run //diagnosis/evaluation:score -- --set=channel_mix --seed=3
//   bazel run //diagnosis/evaluation:score -- --device=cuda --seed=1
//   bazel run //diagnosis/evaluation:score -- --numbers=FILE

#include <cmath>
#include <iostream>
#include <string>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/flags/parse.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/clock.h"
#include "base/file/file.h"
#include "base/stats/statistics.h"
#include "base/status_macros.h"
#include "diagnosis/classes.h"
#include "diagnosis/derived.h"
#include "diagnosis/evaluation/case_counts.h"
#include "diagnosis/evaluation/planted_cases.h"
#include "diagnosis/evaluators.h"
#include "diagnosis/experiments.h"
#include "diagnosis/pairs.h"
#include "ops/core/device_type.h"
#include "re2/re2.h"
#include "suites/worker/worker.h"
#include "suites/workload/tasks.h"
#include "tuning/proto/canonical.h"

ABSL_FLAG(uint64_t, seed, 1, "Draws sizes and amounts.");
ABSL_FLAG(std::string, cases, ".*", "Cases whose name this matches.");
ABSL_FLAG(std::string, set, "planted",
          "Whose kernels, on a CPU: planted, held_back or channel_mix.");
ABSL_FLAG(std::string, device, "cpu",
          "cpu or cuda: whose kernels. Those of cuda need a GPU and NVRTC.");
ABSL_FLAG(std::string, numbers, "",
          "Measure nothing: judge the numbers that --verbose printed into this "
          "file, by today's rules.");
ABSL_FLAG(bool, verbose, false,
          "Print the numbers of every case, not only of wrong ones.");

namespace optrail::diagnosis {
namespace {

// Without those of the machine: they are not the kernel's.
std::vector<std::string> CausesOf(const Numbers& numbers) {
  std::vector<std::string> names;
  for (const proto::DiagnosisCause& cause : Judge(numbers)) {
    const std::string& name = cause.chain().rbegin()->class_name();
    if (name != "contention" && name != "throttling") names.push_back(name);
  }
  return names;
}

void PrintNumbers(const Numbers& numbers) {
  for (const proto::DiagnosisNumber& number : numbers.ToProto()) {
    std::cout << "    " << number.name() << " ";
    if (number.has_value()) {
      std::cout << absl::StreamFormat("%.3g (%.3g to %.3g)\n", number.value(),
                                      number.low(), number.high());
    } else {
      std::cout << number.unsupported() << "\n";
    }
  }
}

absl::StatusOr<Subject> SubjectOf(const PlantedCase& one,
                                  const proto::Hardware& hardware) {
  suites::TaskSelection selection;
  selection.op_regex = one.op;
  selection.shape_regex = one.shape;
  selection.backend = one.backend;
  selection.device = hardware.device_kind();
  if (selection.device == proto::CUDA) {
    selection.launch_mode = proto::GRAPH;
  } else {
    selection.threads = {one.threads};
  }
  selection.with_test_only = true;
  OPTRAIL_ASSIGN_OR_RETURN(const std::vector<suites::TaskEntry> tasks,
                           suites::SelectTasks(selection, hardware));
  OPTRAIL_ASSIGN_OR_RETURN(const suites::TaskSpace space,
                           suites::BindTask(tasks[0], hardware));
  Subject subject{tasks[0], space.bound->default_config()};
  if (!one.config.empty()) {
    OPTRAIL_ASSIGN_OR_RETURN(subject.config, tuning::ParseConfig(one.config));
  }
  OPTRAIL_RETURN_IF_ERROR(space.Validate(subject.config));
  return subject;
}

// Results are not compared with the reference again.
suites::Contender Unchanged(const Subject& subject) {
  suites::Contender contender =
      suites::ContenderOf(subject.entry.task.backend(), subject.config);
  contender.mutable_perturbation();
  return contender;
}

// The share of the time that goes without the planted bottleneck, measured
// beside the kernel that has it.
void AddPlantedLoss(const PlantedCase& one, const Subject& subject,
                    suites::Evaluator& evaluator, Numbers* numbers) {
  if (one.unplanted.empty()) return;
  const auto config = tuning::ParseConfig(one.unplanted);
  if (!config.ok()) {
    numbers->SetUnsupported(kPlantedLoss, config.status().message());
    return;
  }
  Subject without = subject;
  without.config = *config;
  suites::EvaluationOptions options;
  options.sampling = PairSampling();
  const auto both = evaluator.EvaluatePerturbed(
      {Unchanged(subject), Unchanged(without)}, options);
  if (!both.ok()) {
    numbers->SetUnsupported(kPlantedLoss, both.status().message());
    return;
  }
  if (DisturbedShare((*both)[0]) > .5 || DisturbedShare((*both)[1]) > .5) {
    numbers->SetUnsupported(kPlantedLoss, "others had the cores meanwhile");
    return;
  }
  numbers->Set(kPlantedLoss, GainOf((*both)[0], (*both)[1]),
               "the kernel without the bottleneck");
}

void PrintAnswer(const std::vector<std::string>& causes,
                 const std::string& expected, bool right,
                 const Numbers& numbers) {
  const bool inconclusive = causes.empty() && IsInconclusive(numbers);
  std::cout << absl::StreamFormat(
      "  %s: %s; expected %s",
      inconclusive ? "INCONCLUSIVE"
      : right      ? "right"
                   : "WRONG",
      causes.empty() ? "no cause" : absl::StrJoin(causes, ", "),
      expected.empty() ? "none" : expected);
  if (const Number* const loss = numbers.Find(kPlantedLoss)) {
    std::cout << absl::StreamFormat(", which costs %.0f%% (%.0f to %.0f%%)%s",
                                    100 * loss->value, 100 * loss->low,
                                    100 * loss->high,
                                    IsNoLoss(numbers) ? ", no loss here" : "");
  }
  std::cout << absl::StreamFormat("; it reaches %.0f%%",
                                  100 * ReachedShare(numbers));
}

// Compares what the right cause promised with what the kernel without the
// bottleneck brings: advice to change code is held to account here.
struct Promises {
  std::vector<double> errors;  // relative
  int kept = 0;                // half or more came

  void Add(const std::string& expected, const Numbers& numbers) {
    const Number* const loss = numbers.Find(kPlantedLoss);
    if (loss == nullptr || IsNoLoss(numbers)) return;
    for (const proto::DiagnosisCause& cause : Judge(numbers)) {
      if (cause.chain().rbegin()->class_name() != expected) continue;
      const double promised = cause.recoverable();
      errors.push_back(std::abs(loss->value - promised) / promised);
      kept += loss->value >= promised / 2;
    }
  }
  std::string Text() const {
    if (errors.empty()) return "";
    return absl::StrFormat(
        "what right causes promised: half or more came for %d of %d, median "
        "error %.0f%%\n",
        kept, static_cast<int>(errors.size()), 100 * Median(errors));
  }
};

absl::Status DiagnoseCase(const PlantedCase& one,
                          const suites::RunContext& context,
                          const Machine& machine, CaseCounts* counts,
                          Promises* promises) {
  std::cout << absl::StreamFormat("%-22s %-44s %s\n", one.name, one.shape,
                                  one.config)
            << std::flush;
  Evaluators evaluators(suites::WorkerOptions(), context);
  OPTRAIL_ASSIGN_OR_RETURN(const Subject subject,
                           SubjectOf(one, context.hardware));
  const int64_t start_ns = Clock::Real()->NowNs();
  auto numbers = RunExperiments(
      subject, machine, [&](const proto::Task& task) -> suites::Evaluator& {
        return evaluators.Of(task);
      });
  if (!numbers.ok()) {
    ++counts->failed;
    std::cout << "  " << numbers.status().message() << std::endl;
    return absl::OkStatus();
  }
  const int64_t elapsed_ns = Clock::Real()->NowNs() - start_ns;
  const std::vector<std::string> causes = CausesOf(*numbers);
  AddPlantedLoss(one, subject, evaluators.Of(subject.entry.task), &*numbers);
  const bool right = counts->Add(one.expected, *numbers, causes);
  promises->Add(one.expected, *numbers);
  PrintAnswer(causes, one.expected, right, *numbers);
  std::cout << absl::StreamFormat("; %.0f%% of samples disturbed, %.1f s\n",
                                  100 * numbers->ValueOr("disturbed_share", 0),
                                  static_cast<double>(elapsed_ns) * 1e-9);
  if (absl::GetFlag(FLAGS_verbose) || !right) PrintNumbers(*numbers);
  std::cout << std::flush;
  return absl::OkStatus();
}

// Derived numbers are computed again.
absl::Status Rejudge(const std::string& path, const proto::Hardware& hardware) {
  OPTRAIL_ASSIGN_OR_RETURN(const std::string text, ReadFile(path));
  static const LazyRE2 kAnswer = {
      "  (?:right|WRONG|INCONCLUSIVE): .*; expected (\\w+)[;,].*"};
  static const LazyRE2 kNumber = {"    (\\S+) (\\S+) \\((\\S+) to (\\S+)\\)"};
  CaseCounts counts;
  PlantedCase one;
  Numbers numbers;
  const auto finish = [&] {
    if (one.name.empty() || numbers.Find("time_ns") == nullptr) return;
    AddDerived(hardware, static_cast<int>(numbers.ValueOr("threads", 1)),
               &numbers);
    const std::vector<std::string> causes = CausesOf(numbers);
    const bool right = counts.Add(one.expected, numbers, causes);
    std::cout << absl::StreamFormat("%-22s", one.name);
    PrintAnswer(causes, one.expected, right, numbers);
    std::cout << "\n";
  };
  for (const absl::string_view line : absl::StrSplit(text, '\n')) {
    const re2::StringPiece piece(line.data(), line.size());
    std::string name, expected;
    double value = 0, low = 0, high = 0;
    if (!line.empty() && line[0] != ' ') {
      finish();
      one = PlantedCase();
      one.name = std::string(line.substr(0, line.find(' ')));
      numbers = Numbers();
    } else if (RE2::FullMatch(piece, *kAnswer, &expected)) {
      one.expected = expected == "none" ? "" : expected;
    } else if (RE2::FullMatch(piece, *kNumber, &name, &value, &low, &high)) {
      numbers.Set(name, low < high ? Number(value, low, high) : Number(value),
                  "recorded");
    }
  }
  finish();
  std::cout << counts.Text();
  return absl::OkStatus();
}

absl::StatusOr<std::vector<PlantedCase>> CasesOfFlags(
    const proto::Hardware& hardware) {
  const uint64_t seed = absl::GetFlag(FLAGS_seed);
  const std::string name = absl::GetFlag(FLAGS_set);
  if (hardware.device_kind() == proto::CUDA) {
    if (name == "planted") return DrawCudaCases(seed);
    return absl::InvalidArgumentError(absl::StrCat(
        "flag --set=", name, ": on cuda there are only those of planted"));
  }
  std::vector<std::string> names;
  for (const CaseSet& set : CaseSets()) {
    if (set.name == name) return set.draw(seed, hardware.cores());
    names.push_back(set.name);
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "flag --set=", name, ": expected ", absl::StrJoin(names, ", ")));
}

absl::StatusOr<proto::DeviceKind> DeviceOfFlag() {
  const std::string device = absl::GetFlag(FLAGS_device);
  if (device == "cpu") return proto::CPU;
  if (device == "cuda") return proto::CUDA;
  return absl::InvalidArgumentError(
      absl::StrCat("flag --device=", device, ": expected cpu or cuda"));
}

// Numbers of a GPU are judged where there is none, too: for the hardware that
// its kind declares.
absl::StatusOr<proto::Hardware> HardwareOfNumbers(proto::DeviceKind device) {
  OPTRAIL_ASSIGN_OR_RETURN(const ops::DeviceType* type,
                           ops::FindDeviceType(device));
  return device == proto::CUDA ? type->Declared() : type->Hardware();
}

absl::StatusOr<int> Run() {
  OPTRAIL_ASSIGN_OR_RETURN(const proto::DeviceKind device, DeviceOfFlag());
  if (const std::string path = absl::GetFlag(FLAGS_numbers); !path.empty()) {
    OPTRAIL_ASSIGN_OR_RETURN(const proto::Hardware hardware,
                             HardwareOfNumbers(device));
    OPTRAIL_RETURN_IF_ERROR(Rejudge(path, hardware));
    return 0;
  }
  OPTRAIL_ASSIGN_OR_RETURN(const suites::RunContext context,
                           suites::FindRunContext(device, "", ""));
  const RE2 pattern(absl::GetFlag(FLAGS_cases), RE2::Quiet);
  if (!pattern.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat("flag --cases: ", pattern.error()));
  }
  OPTRAIL_ASSIGN_OR_RETURN(const std::vector<PlantedCase> cases,
                           CasesOfFlags(context.hardware));
  const Machine machine = MachineOf(context);
  CaseCounts counts;
  Promises promises;
  for (const PlantedCase& one : cases) {
    if (!RE2::FullMatch(one.name, pattern)) continue;
    OPTRAIL_RETURN_IF_ERROR(
        DiagnoseCase(one, context, machine, &counts, &promises));
  }
  std::cout << counts.Text() << promises.Text();
  return 0;
}

}  // namespace
}  // namespace optrail::diagnosis

int main(int argc, char** argv) {
  if (optrail::suites::IsWorker(argc, argv)) {
    return optrail::suites::RunWorker(argc, argv);
  }
  absl::ParseCommandLine(argc, argv);
  const auto code = optrail::diagnosis::Run();
  if (code.ok()) return *code;
  std::cerr << code.status().message() << "\n";
  return 2;
}

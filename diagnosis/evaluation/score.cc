// How often the first cause that a diagnosis names is the planted one, and how
// many healthy kernels are left alone. No hardware counter is read.
//
//   bazel run //diagnosis/evaluation:score -- --seed=1
//   bazel run //diagnosis/evaluation:score -- --seed=2 --cases='passes.*'

#include <algorithm>
#include <cmath>
#include <iostream>
#include <string>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/flags/parse.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"
#include "base/table.h"
#include "base/units.h"
#include "diagnosis/diagnose.h"
#include "diagnosis/evaluation/planted_cases.h"
#include "diagnosis/evaluators.h"
#include "diagnosis/report.h"
#include "re2/re2.h"
#include "suites/worker/worker.h"
#include "suites/workload/tasks.h"
#include "tuning/proto/canonical.h"

ABSL_FLAG(uint64_t, seed, 1, "Draws sizes and amounts.");
ABSL_FLAG(std::string, cases, ".*", "Cases whose name this matches.");
ABSL_FLAG(bool, verbose, false, "Print each diagnosis.");

namespace optrail::diagnosis {
namespace {

// Without those of the machine: they are not the kernel's.
std::vector<std::string> CausesOf(const proto::Diagnosis& diagnosis) {
  std::vector<std::string> causes;
  for (const proto::DiagnosisCause& cause : diagnosis.causes()) {
    const std::string& name = cause.chain().rbegin()->class_name();
    if (name != "contention" && name != "throttling") causes.push_back(name);
  }
  return causes;
}

absl::StatusOr<Subject> SubjectOf(const PlantedCase& one,
                                  const proto::Hardware& hardware) {
  suites::TaskSelection selection;
  selection.op_regex = one.op;
  selection.shape_regex = one.shape;
  selection.backend = one.backend;
  selection.threads = {one.threads};
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

struct Score {
  int planted = 0, first = 0, among_two = 0, healthy = 0, left_alone = 0;
  int failed = 0;

  std::string Text() const {
    return absl::StrFormat(
        "first cause right: %d of %d; among the first two: %d; healthy "
        "kernels left alone: %d of %d; not measured: %d\n",
        first, planted, among_two, left_alone, healthy, failed);
  }
};

absl::StatusOr<int> Run() {
  OPTRAIL_ASSIGN_OR_RETURN(const suites::RunContext context,
                           suites::FindRunContext(proto::CPU, "", ""));
  const RE2 pattern(absl::GetFlag(FLAGS_cases), RE2::Quiet);
  if (!pattern.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat("flag --cases: ", pattern.error()));
  }
  const Machine machine = {context.hardware, suites::CeilingsOf(context)};
  Table table({{"case"},
               {"shape"},
               {"expected"},
               {"causes"},
               {"right"},
               {"seconds", Align::kRight}});
  Score score;
  for (const PlantedCase& one :
       DrawCases(absl::GetFlag(FLAGS_seed), context.hardware.cores())) {
    if (!RE2::FullMatch(one.name, pattern)) continue;
    std::cerr << one.name << " " << one.shape << " " << one.config << "\n";
    Evaluators evaluators(suites::WorkerOptions(), context);
    AdviceTools tools;
    tools.evaluator_for = [&](const proto::Task& task) -> suites::Evaluator& {
      return evaluators.Of(task);
    };
    tools.hardware = context.hardware;
    OPTRAIL_ASSIGN_OR_RETURN(const Subject subject,
                             SubjectOf(one, context.hardware));
    const auto diagnosis = Diagnose(subject, machine, tools, {});
    if (!diagnosis.ok()) {
      ++score.failed;
      table.AddRow({one.name, one.shape, one.expected,
                    std::string(diagnosis.status().message()), "", ""});
      continue;
    }
    if (absl::GetFlag(FLAGS_verbose)) {
      std::cout << DiagnosisText(*diagnosis, /*markdown=*/false) << "\n";
    }
    const std::vector<std::string> causes = CausesOf(*diagnosis);
    bool right = false;
    if (one.expected.empty()) {
      ++score.healthy;
      right = causes.empty();
      score.left_alone += right;
    } else {
      ++score.planted;
      right = !causes.empty() && causes[0] == one.expected;
      score.first += right;
      score.among_two +=
          right || (causes.size() > 1 && causes[1] == one.expected);
    }
    table.AddRow({one.name, one.shape, one.expected, absl::StrJoin(causes, " "),
                  right ? "yes" : "NO",
                  absl::StrFormat("%.1f", diagnosis->elapsed_seconds())});
  }
  std::cout << table.ToText() << score.Text();
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

// How well a smaller problem tells what need not be called on the whole
// (suites/tune/screen.h): every config that a search asks for is read on the
// whole and on smaller problems of several sizes, and what a screen would have
// refused is compared with what the whole says.
//
//   bazel run //suites/evaluation:screening -- --op=matmul
//       --shape=m=2048,n=2048,k=2048/f32 --configs=60
//
// Prints a table: for each size and threshold, how many of the configs are
// refused, how many of those would have been better than the best so far, and
// by how much the best of all that pass is slower than the best of all.

#include <algorithm>
#include <cstdio>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/strings/numbers.h"
#include "base/status_macros.h"
#include "ops/core/smaller_shape.h"
#include "suites/evaluation/evaluation.h"
#include "suites/stopwatch/stopwatch.h"
#include "suites/worker/run_context.h"
#include "suites/worker/worker_evaluator.h"
#include "suites/workload/tasks.h"
#include "tuning/proto/canonical.h"
#include "tuning/search/strategies.h"

ABSL_FLAG(std::string, op, "", "operators, a regular expression");
ABSL_FLAG(std::string, shape, "", "shapes, a regular expression");
ABSL_FLAG(int, configs, 60, "of each shape");
ABSL_FLAG(uint64_t, seed, 1, "of the search");
ABSL_FLAG(std::vector<std::string>, fractions,
          (std::vector<std::string>{".25", ".06", ".03"}),
          "sizes of the smaller problems");
ABSL_FLAG(std::string, state, "/tmp/optrail-screening", "folder for all of it");

namespace optrail::suites {
namespace {

// Times of one config on the whole, then on each smaller problem; 0: none.
using Times = std::vector<double>;

double Read(const proto::Config& config, WorkerEvaluator& evaluator) {
  EvaluationOptions options;
  options.sampling = DefaultSamplingOptions();
  options.sampling.set_warm_up_ns(0);
  options.sampling.set_max_time_ns(1);
  const Evaluation evaluation = evaluator.Evaluate(config, options);
  return evaluation.trial().outcome() == proto::OK
             ? evaluation.trial().time_ns()
             : 0;
}

absl::Status Report(const TaskEntry& task, const RunContext& context) {
  OPTRAIL_ASSIGN_OR_RETURN(const TaskSpace space,
                           BindTask(task, context.hardware));
  WorkerOptions worker;
  worker.shared_folder = context.state;
  std::vector<std::string> names = {tuning::CanonicalText(task.task.shape())};
  std::vector<std::unique_ptr<WorkerEvaluator>> evaluators;
  evaluators.push_back(std::make_unique<WorkerEvaluator>(task.task, worker));
  for (const std::string& text : absl::GetFlag(FLAGS_fractions)) {
    double fraction = 0;
    if (!absl::SimpleAtod(text, &fraction)) {
      return absl::InvalidArgumentError("flag --fractions: " + text);
    }
    const auto shape =
        ops::SmallerShape(*task.entry->op, task.task.shape(), fraction);
    if (!shape) continue;
    proto::Task smaller = task.task;
    *smaller.mutable_shape() = *shape;
    names.push_back(tuning::CanonicalText(*shape));
    evaluators.push_back(std::make_unique<WorkerEvaluator>(smaller, worker));
  }

  tuning::StrategyOptions options;
  options.seed = absl::GetFlag(FLAGS_seed);
  options.top_k = static_cast<int>(space.bound->top_k());
  OPTRAIL_ASSIGN_OR_RETURN(
      const std::unique_ptr<tuning::Strategy> strategy,
      tuning::MakeStrategy(tuning::kDefaultStrategy, *space.bound, options));
  std::vector<Times> read;
  for (int i = 0; i < absl::GetFlag(FLAGS_configs); ++i) {
    const std::vector<tuning::Levels> asked = strategy->Ask(1);
    if (asked.empty()) break;
    const proto::Config config = space.bound->ToConfig(asked[0]);
    Times times;
    for (const auto& evaluator : evaluators) {
      times.push_back(Read(config, *evaluator));
    }
    tuning::Trial trial;
    trial.levels = asked[0];
    trial.outcome = times[0] > 0 ? proto::OK : proto::CONTENDED;
    trial.objectives = {times[0]};
    strategy->Tell(absl::MakeConstSpan(&trial, 1));
    if (std::all_of(times.begin(), times.end(),
                    [](double time) { return time > 0; })) {
      read.push_back(std::move(times));
    }
  }
  if (read.empty()) return absl::UnavailableError("nothing could be read");

  const auto by_whole = [](const Times& a, const Times& b) {
    return a[0] < b[0];
  };
  const Times& best = *std::min_element(read.begin(), read.end(), by_whole);
  std::printf("%s: %zu configs, the best in %.4g ms\n", names[0].c_str(),
              read.size(), best[0] * 1e-6);
  std::printf(
      "| smaller problem | of the time | refused beyond | refused | better "
      "ones among them | best that passed |\n|---|--:|--:|--:|--:|--:|\n");
  for (size_t size = 1; size < names.size(); ++size) {
    for (const double limit : {1.02, 1.05, 1.1, 1.2}) {
      // Compares each with the best of those that passed, like a search.
      const Times* so_far = &read[0];
      int refused = 0, wrongly = 0;
      for (const Times& times : read) {
        if (times[size] > limit * (*so_far)[size]) {
          ++refused;
          wrongly += times[0] < (*so_far)[0];
        } else if (times[0] < (*so_far)[0]) {
          so_far = &times;
        }
      }
      std::printf("| %s | %.1f%% | %.2f | %d | %d | %.3f |\n",
                  names[size].c_str(), 100 * best[size] / best[0], limit,
                  refused, wrongly, (*so_far)[0] / best[0]);
    }
  }
  std::fflush(stdout);
  return absl::OkStatus();
}

absl::StatusOr<ExitCode> Run() {
  TaskSelection selection;
  selection.op_regex = absl::GetFlag(FLAGS_op);
  selection.shape_regex = absl::GetFlag(FLAGS_shape);
  OPTRAIL_ASSIGN_OR_RETURN(
      const RunContext context,
      ContextIn(absl::GetFlag(FLAGS_state), selection.device));
  OPTRAIL_ASSIGN_OR_RETURN(const std::vector<TaskEntry> tasks,
                           SelectTasks(selection, context.hardware));
  for (const TaskEntry& task : tasks) {
    OPTRAIL_RETURN_IF_ERROR(Report(task, context));
  }
  return ExitCode::kOk;
}

}  // namespace
}  // namespace optrail::suites

int main(int argc, char** argv) {
  return optrail::suites::EvaluationMain(argc, argv, optrail::suites::Run);
}

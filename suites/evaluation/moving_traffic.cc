// Plants a service whose traffic moves between shapes in three phases. In each
// the service counts what it calls, and `optrail observe`, `tune --workload`
// and `coverage` follow; the service is never changed. Printed is how near its
// calls are to the best config that is found for each shape, before and after.
//
//   ./bazelw build //lib/evaluation:service
//   ./bazelw run //suites/evaluation:moving_traffic -- --seed=1
//       --service=$PWD/bazel-bin/lib/evaluation/service

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <iostream>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "base/file/file.h"
#include "base/process/subprocess.h"
#include "base/random.h"
#include "base/status_macros.h"
#include "suites/evaluation/evaluation.h"
#include "suites/evaluation/store_answer.h"
#include "suites/observed/observed.h"
#include "suites/stopwatch/stopwatch.h"
#include "suites/tune/tune_driver.h"
#include "suites/workload/tasks.h"
#include "tuning/proto/canonical.h"
#include "tuning/search/strategies.h"
#include "tuning/store/bucket.h"

ABSL_FLAG(uint64_t, seed, 1, "Seed of traffic and searches.");
ABSL_FLAG(std::string, service, "", "path of //lib/evaluation:service");
ABSL_FLAG(int, shapes, 3, "New shapes of each operator in each phase.");
ABSL_FLAG(int, calls, 4000, "Calls of a phase before it is tuned, and after.");
ABSL_FLAG(int, trials, 16, "Trials of a phase for each shape observed.");
ABSL_FLAG(int, check_trials, 24, "Trials that look for a shape's best config.");
ABSL_FLAG(std::string, state, "/tmp/optrail-traffic", "folder for all of it");

namespace optrail::suites {
namespace {

constexpr int kPhases = 3;

// The range in which the traffic of an operator moves.
struct Stream {
  const char *op, *range;
};
constexpr Stream kStreams[] = {{"matmul", "m=1..512,n=64..512,k=64..512/f32"},
                               {"softmax", "rows=1..512,cols=16..4096/f32"},
                               {"layer_norm", "rows=1..512,cols=16..4096/f32"}};

struct Request {
  std::string op, shape;
  double weight = 0;
};

// The shapes of a phase: new ones, the first of which are called most, and what
// is left of the phase before.
absl::StatusOr<std::vector<Request>> NextPhase(
    const std::vector<Request>& before, Rng& rng) {
  std::vector<Request> requests;
  for (const Request& request : before) {
    if (request.weight < 1) continue;
    requests.push_back(request);
    requests.back().weight = .1;
  }
  for (const Stream& stream : kStreams) {
    OPTRAIL_ASSIGN_OR_RETURN(const tuning::Bucket range,
                             tuning::Bucket::Parse(stream.range));
    for (int i = 0; i < absl::GetFlag(FLAGS_shapes); ++i) {
      requests.push_back({stream.op,
                          tuning::CanonicalText(range.RandomShape(rng)),
                          1.0 / (1 + i)});
    }
  }
  return requests;
}

// So many requests, by weight, as lines.
std::string DrawTraffic(const std::vector<Request>& requests, Rng& rng) {
  double all = 0;
  for (const Request& request : requests) all += request.weight;
  std::string lines;
  for (int i = 0; i < absl::GetFlag(FLAGS_calls); ++i) {
    double left = rng.UniformReal() * all;
    size_t drawn = 0;
    while (drawn + 1 < requests.size() && left >= requests[drawn].weight) {
      left -= requests[drawn++].weight;
    }
    absl::StrAppend(&lines, requests[drawn].op, " ", requests[drawn].shape,
                    "\n");
  }
  return lines;
}

class MovingTraffic {
 public:
  explicit MovingTraffic(RunContext context) : context_(std::move(context)) {}

  absl::Status Run() {
    OPTRAIL_RETURN_IF_ERROR(CreateDirectories(context_.store));
    Rng rng(absl::GetFlag(FLAGS_seed));
    std::vector<Request> requests;
    for (int phase = 1; phase <= kPhases; ++phase) {
      OPTRAIL_ASSIGN_OR_RETURN(requests, NextPhase(requests, rng));
      std::cout << "\nphase " << phase << ", untuned\n";
      const std::string before = Folder(absl::StrCat("calls_", phase));
      OPTRAIL_RETURN_IF_ERROR(Serve(DrawTraffic(requests, rng), before));
      OPTRAIL_RETURN_IF_ERROR(PrintShare(phase, "untuned", before));
      OPTRAIL_RETURN_IF_ERROR(Tune(phase, before));
      std::cout << "\nphase " << phase << ", tuned\n";
      const std::string after = Folder(absl::StrCat("tuned_calls_", phase));
      OPTRAIL_RETURN_IF_ERROR(Serve(DrawTraffic(requests, rng), after));
      OPTRAIL_RETURN_IF_ERROR(Cover(after));
      OPTRAIL_RETURN_IF_ERROR(PrintShare(phase, "tuned", after));
    }
    return absl::OkStatus();
  }

 private:
  std::string Folder(const std::string& name) const {
    return JoinPath(absl::GetFlag(FLAGS_state), name);
  }

  absl::Status Serve(const std::string& requests, const std::string& calls) {
    CommandOptions options;
    options.stdin_text = requests;
    options.environment = {{"OPTRAIL_OBSERVE", calls},
                           {"OPTRAIL_OBSERVE_TIME", "1"}};
    options.timeout = absl::Minutes(5);
    OPTRAIL_ASSIGN_OR_RETURN(
        const CommandResult result,
        RunCommand({absl::GetFlag(FLAGS_service), context_.store}, options));
    std::cout << result.stdout_text << result.stderr_text;
    return result.exit.ok() ? absl::OkStatus()
                            : absl::InternalError(result.exit.ToString());
  }

  // Tunes what was counted, as `optrail observe` and `optrail tune --workload`.
  absl::Status Tune(int phase, const std::string& calls) {
    ObserveCommand observe;
    observe.files = {calls};
    observe.out = Folder(absl::StrCat("phase_", phase, ".workload.textproto"));
    OPTRAIL_RETURN_IF_ERROR(RunObserve(observe, std::cout, std::cout).status());
    TaskSelection selection;
    selection.workload = observe.out;
    OPTRAIL_ASSIGN_OR_RETURN(const std::vector<TaskEntry> tasks,
                             SelectTasks(selection, context_.hardware));
    TuneDriverOptions options = Options(absl::GetFlag(FLAGS_trials));
    options.total_trials =
        absl::GetFlag(FLAGS_trials) * static_cast<int64_t>(tasks.size());
    OPTRAIL_ASSIGN_OR_RETURN(const std::vector<TuneSummary> summaries,
                             TuneTasks(tasks, context_, options));
    std::cout << FormatTuneSummaries(summaries, OutputFormat::kTable);
    return absl::OkStatus();
  }

  absl::Status Cover(const std::string& calls) {
    CoverageCommand coverage;
    coverage.files = {calls};
    coverage.context = context_;
    return RunCoverage(coverage, std::cout, std::cout).status();
  }

  TuneDriverOptions Options(int trials) const {
    TuneDriverOptions options;
    options.quiet = true;
    options.worker.shared_folder = context_.state;
    options.tune.strategy = tuning::kDefaultStrategy;
    options.tune.sampling = DefaultSamplingOptions();
    options.tune.seed = absl::GetFlag(FLAGS_seed);
    options.tune.budget.set_trials(trials);
    options.tune.proof.max_time = absl::Seconds(3);
    return options;
  }

  // The store's answer for one shape beside the best that a longer search
  // finds, which learns from the tuning and is not kept.
  absl::StatusOr<double> ShareOf(const tuning::ObservedKey& key) {
    TaskSelection selection;
    selection.op_regex = key.op;
    selection.shape_regex = key.shape;
    OPTRAIL_ASSIGN_OR_RETURN(const std::vector<TaskEntry> tasks,
                             SelectTasks(selection, context_.hardware));
    const auto task =
        std::find_if(tasks.begin(), tasks.end(), [&](const TaskEntry& entry) {
          return tuning::CanonicalText(entry.task.shape()) == key.shape;
        });
    if (task == tasks.end()) return absl::NotFoundError(key.shape);
    OPTRAIL_ASSIGN_OR_RETURN(
        const StoreAnswer answer,
        AnswerOf(context_.store, task->task, context_.hardware));
    const std::string asked = absl::StrCat(
        key.op, " ", key.shape, " ",
        answer.config ? tuning::CanonicalText(*answer.config) : "default");
    const auto known = shares_.find(asked);
    if (known != shares_.end()) return known->second;
    OPTRAIL_ASSIGN_OR_RETURN(const tuning::Bucket range,
                             tuning::Bucket::Parse(key.shape));
    TuneBucketsCommand command{context_, selection, range,
                               Options(absl::GetFlag(FLAGS_check_trials))};
    command.tune.keep = false;
    command.tune.tune.seed += 1;
    OPTRAIL_ASSIGN_OR_RETURN(const double share,
                             ShareOfBest(command, *task, answer));
    std::printf("  %-10s %-28s %-8s %.3f\n", key.op.c_str(), key.shape.c_str(),
                answer.how.c_str(), share);
    return shares_[asked] = share;
  }

  // Over all calls of a folder, by number and by the time that they took.
  absl::Status PrintShare(int phase, const char* when,
                          const std::string& calls) {
    OPTRAIL_ASSIGN_OR_RETURN(const std::vector<ObservedShape> shapes,
                             ReadObservedShapes({calls}, ""));
    double all_calls = 0, all_ns = 0, best_calls = 0, best_ns = 0, worst = 1;
    for (const ObservedShape& shape : shapes) {
      OPTRAIL_ASSIGN_OR_RETURN(const double share, ShareOf(shape.key));
      const auto count = static_cast<double>(shape.calls);
      all_calls += count;
      best_calls += share * count;
      all_ns += shape.TotalNs();
      best_ns += share * shape.TotalNs();
      worst = std::min(worst, share);
    }
    std::printf(
        "phase %d, %s: %.3f of the best over %.0f calls of %zu shapes, %.3f of "
        "their time; worst shape %.3f\n",
        phase, when, best_calls / all_calls, all_calls, shapes.size(),
        best_ns / all_ns, worst);
    std::fflush(stdout);
    return absl::OkStatus();
  }

  const RunContext context_;
  // By operator, shape and config.
  std::map<std::string, double> shares_;
};

absl::StatusOr<ExitCode> Evaluate() {
  if (absl::GetFlag(FLAGS_service).empty()) {
    return absl::InvalidArgumentError(
        "flag --service is empty; expected the path of "
        "//lib/evaluation:service");
  }
  OPTRAIL_ASSIGN_OR_RETURN(const RunContext context,
                           ContextIn(absl::GetFlag(FLAGS_state), proto::CPU));
  OPTRAIL_RETURN_IF_ERROR(MovingTraffic(context).Run());
  return ExitCode::kOk;
}

}  // namespace
}  // namespace optrail::suites

int main(int argc, char** argv) {
  return optrail::suites::EvaluationMain(argc, argv, optrail::suites::Evaluate);
}

// Prints what buckets are worth (docs/reference/tuned_configs.md): a range of
// shapes of each operator is tuned on this machine's CPU, then random shapes
// inside and up to one doubling beyond it are tuned as well. The share is the
// time of the best config found there over the time of the config that a lookup
// answers: by buckets, and by the rule of the nearest shape on the same entries
// without their buckets. "Inside" is by buckets, for the shapes of the range.
//
//   ./bazelw run //suites/evaluation:bucket_evaluation -- --seed=1

#include <algorithm>
#include <cstdio>
#include <iostream>
#include <string>
#include <utility>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/time/time.h"
#include "base/random.h"
#include "base/status_macros.h"
#include "suites/evaluation/evaluation.h"
#include "suites/evaluation/store_answer.h"
#include "suites/stopwatch/stopwatch.h"
#include "suites/tune/tune_buckets.h"
#include "suites/workload/tasks.h"
#include "tuning/proto/canonical.h"
#include "tuning/search/strategies.h"
#include "tuning/store/bucket.h"
#include "tuning/store/store_files.h"

ABSL_FLAG(uint64_t, seed, 1, "Seed of searches and of drawn shapes.");
ABSL_FLAG(int, shapes, 20, "Random shapes of each operator.");
ABSL_FLAG(int, trials, 20, "Trials of each session.");
ABSL_FLAG(std::string, state, "/tmp/optrail-buckets", "folder for all of it");

namespace optrail::suites {
namespace {

using tuning::Bucket;
using tuning::CanonicalText;

struct Case {
  const char *op, *tuned, *drawn;
};
constexpr Case kCases[] = {
    {"matmul", "m=8..256,n=256,k=128/f32", "m=4..512,n=256,k=128/f32"},
    {"softmax", "rows=64,cols=32..1024/f32", "rows=64,cols=16..2048/f32"},
    {"layer_norm", "rows=64,cols=32..1024/f32", "rows=64,cols=16..2048/f32"}};

// The entries of the store, as they were without buckets.
absl::Status CopyWithoutBuckets(const std::string& from,
                                const std::string& to) {
  OPTRAIL_ASSIGN_OR_RETURN(const auto files, tuning::ReadOverlay(from));
  for (const proto::TunedConfigs& file : files) {
    for (proto::TunedConfig tuned : file.tuned()) {
      tuned.clear_bucket();
      OPTRAIL_RETURN_IF_ERROR(tuning::WriteOverlay(to, file.operator_name(),
                                                   file.hardware_id(),
                                                   file.device_kind(), tuned));
    }
  }
  return absl::OkStatus();
}

absl::Status Evaluate(const Case& c, TuneBucketsCommand command, Rng& rng) {
  command.selection.op_regex = c.op;
  OPTRAIL_ASSIGN_OR_RETURN(command.range, Bucket::Parse(c.tuned));
  std::cout << "\n" << c.op << " " << c.tuned << "\n";
  OPTRAIL_ASSIGN_OR_RETURN(const int code,
                           RunTuneBuckets(command, std::cout, std::cerr));
  if (code != 0) std::cout << "(in part)\n";
  const std::string buckets = command.context.store;
  const std::string nearest = buckets + "_without_buckets";
  OPTRAIL_RETURN_IF_ERROR(CopyWithoutBuckets(buckets, nearest));
  command.context.store = buckets + "_checked";

  OPTRAIL_ASSIGN_OR_RETURN(const Bucket drawn, Bucket::Parse(c.drawn));
  TaskSelection selection;
  selection.op_regex = c.op;
  std::vector<double> by_bucket, by_nearest, inside;
  for (int i = 0; i < absl::GetFlag(FLAGS_shapes); ++i) {
    selection.shape_regex = CanonicalText(drawn.RandomShape(rng));
    OPTRAIL_ASSIGN_OR_RETURN(const std::vector<TaskEntry> tasks,
                             SelectTasks(selection, command.context.hardware));
    const TaskEntry& task = tasks[0];
    OPTRAIL_ASSIGN_OR_RETURN(
        const StoreAnswer bucket,
        AnswerOf(buckets, task.task, command.context.hardware));
    OPTRAIL_ASSIGN_OR_RETURN(
        const StoreAnswer near,
        AnswerOf(nearest, task.task, command.context.hardware));
    OPTRAIL_ASSIGN_OR_RETURN(const double share,
                             ShareOfBest(command, task, bucket));
    const auto text = [](const StoreAnswer& answer) {
      return answer.config ? CanonicalText(*answer.config) : "";
    };
    double near_share = share;
    if (text(near) != text(bucket)) {
      OPTRAIL_ASSIGN_OR_RETURN(near_share, ShareOfBest(command, task, near));
    }
    by_bucket.push_back(share);
    if (command.range.Contains(task.task.shape())) inside.push_back(share);
    by_nearest.push_back(near_share);
    std::printf("%-12s %-32s %-8s %.3f   %-8s %.3f\n", c.op,
                selection.shape_regex.c_str(), bucket.how.c_str(), share,
                near.how.c_str(), near_share);
    std::fflush(stdout);
  }
  const auto print = [&](const char* rule, const std::vector<double>& shares) {
    if (shares.empty()) return;
    double sum = 0;
    for (const double share : shares) sum += share;
    std::printf("%-12s %-10s mean %.3f, worst %.3f of %zu shapes\n", c.op, rule,
                sum / static_cast<double>(shares.size()),
                *std::min_element(shares.begin(), shares.end()), shares.size());
  };
  print("buckets", by_bucket);
  print("inside", inside);
  print("nearest", by_nearest);
  return absl::OkStatus();
}

absl::StatusOr<ExitCode> EvaluateAll() {
  OPTRAIL_ASSIGN_OR_RETURN(const RunContext context,
                           ContextIn(absl::GetFlag(FLAGS_state), proto::CPU));
  Rng rng(absl::GetFlag(FLAGS_seed));
  for (const Case& c : kCases) {
    OPTRAIL_ASSIGN_OR_RETURN(const Bucket range, Bucket::Parse(c.tuned));
    TuneBucketsCommand command{context, {}, range, {}};
    command.tune.quiet = true;
    command.tune.worker.shared_folder = context.state;
    TuneOptions& tune = command.tune.tune;
    tune.strategy = tuning::kDefaultStrategy;
    tune.sampling = DefaultSamplingOptions();
    tune.seed = absl::GetFlag(FLAGS_seed);
    tune.budget.set_trials(absl::GetFlag(FLAGS_trials));
    tune.proof.max_time = absl::Seconds(3);
    OPTRAIL_RETURN_IF_ERROR(Evaluate(c, std::move(command), rng));
  }
  return ExitCode::kOk;
}

}  // namespace
}  // namespace optrail::suites

int main(int argc, char** argv) {
  return optrail::suites::EvaluationMain(argc, argv,
                                         optrail::suites::EvaluateAll);
}

// Prints what buckets are worth (docs/reference/tuned_configs.md): a range of
// shapes of each operator is tuned on this machine, then random shapes inside
// and up to one doubling beyond it are tuned as well. The share is the
// time of the best config found there over the time of the config that a lookup
// answers: by buckets, and by the rule of the nearest shape on the same entries
// without their buckets. "Inside" is by buckets, for the shapes of the range.
//
//   ./bazelw run //suites/evaluation:bucket_evaluation -- --seed=1
//
// With --nearest=false the rule of the nearest shape is left out, which takes
// sessions of its own where the two rules differ.

#include <algorithm>
#include <array>
#include <cstdio>
#include <iostream>
#include <string>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/flags/flag.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
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
ABSL_FLAG(std::string, device, "cpu", "Kind of device: cpu or cuda.");
ABSL_FLAG(std::vector<std::string>, op, {},
          "Which of matmul, softmax and layer_norm; empty: all three.");
ABSL_FLAG(int, shapes, 20, "Random shapes of each operator.");
ABSL_FLAG(int, trials, 20, "Trials of each session.");
ABSL_FLAG(absl::Duration, proof_time, absl::Seconds(3),
          "Longest proof of each session.");
ABSL_FLAG(absl::Duration, total_time, absl::ZeroDuration(),
          "Time to tune a range in; 0: until it is done.");
ABSL_FLAG(bool, nearest, true, "Measure the rule of the nearest shape, too.");
ABSL_FLAG(std::string, state, "/tmp/optrail-buckets", "folder for all of it");

namespace optrail::suites {
namespace {

using tuning::Bucket;
using tuning::CanonicalText;

struct Case {
  const char *op, *tuned, *drawn;
};
using Cases = std::array<Case, 3>;
constexpr Cases kCpuCases = {{
    {"matmul", "m=8..256,n=256,k=128/f32", "m=4..512,n=256,k=128/f32"},
    {"softmax", "rows=64,cols=32..1024/f32", "rows=64,cols=16..2048/f32"},
    {"layer_norm", "rows=64,cols=32..1024/f32", "rows=64,cols=16..2048/f32"},
}};
constexpr Cases kCudaCases = {{
    {"matmul", "m=16..2048,n=2048,k=1024/bf16", "m=8..4096,n=2048,k=1024/bf16"},
    {"softmax", "rows=512,cols=64..8192/bf16", "rows=512,cols=32..16384/bf16"},
    {"layer_norm", "rows=512,cols=64..8192/bf16",
     "rows=512,cols=32..16384/bf16"},
}};

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
  command.selection.device = command.context.hardware.device_kind();
  OPTRAIL_ASSIGN_OR_RETURN(command.range, Bucket::Parse(c.tuned));
  std::cout << "\n" << c.op << " " << c.tuned << "\n";
  const absl::Time start = absl::Now();
  OPTRAIL_ASSIGN_OR_RETURN(const int code,
                           RunTuneBuckets(command, std::cout, std::cerr));
  std::cout << (code == 0 ? "done" : "in part") << " after "
            << absl::ToInt64Seconds(absl::Now() - start) << " s\n";
  const std::string buckets = command.context.store;
  const std::string nearest = buckets + "_without_buckets";
  OPTRAIL_RETURN_IF_ERROR(CopyWithoutBuckets(buckets, nearest));
  command.context.store = buckets + "_checked";

  OPTRAIL_ASSIGN_OR_RETURN(const Bucket drawn, Bucket::Parse(c.drawn));
  TaskSelection selection = command.selection;
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
    if (absl::GetFlag(FLAGS_nearest) && text(near) != text(bucket)) {
      OPTRAIL_ASSIGN_OR_RETURN(near_share, ShareOfBest(command, task, near));
    }
    by_bucket.push_back(share);
    if (command.range.Contains(task.task.shape())) inside.push_back(share);
    std::printf("%-12s %-32s %-8s %.3f", c.op, selection.shape_regex.c_str(),
                bucket.how.c_str(), share);
    if (absl::GetFlag(FLAGS_nearest)) {
      by_nearest.push_back(near_share);
      std::printf("   %-8s %.3f", near.how.c_str(), near_share);
    }
    std::printf("\n");
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
  OPTRAIL_ASSIGN_OR_RETURN(const proto::DeviceKind device,
                           tuning::ParseDevice(absl::GetFlag(FLAGS_device)));
  OPTRAIL_ASSIGN_OR_RETURN(const RunContext context,
                           ContextIn(absl::GetFlag(FLAGS_state), device));
  Rng rng(absl::GetFlag(FLAGS_seed));
  const Cases& cases = device == proto::CUDA ? kCudaCases : kCpuCases;
  const std::vector<std::string> ops = absl::GetFlag(FLAGS_op);
  for (const std::string& op : ops) {
    if (absl::c_none_of(cases, [&](const Case& c) { return c.op == op; })) {
      return absl::InvalidArgumentError(absl::StrCat(
          "flag --op: no \"", op, "\", but matmul, softmax or layer_norm"));
    }
  }
  for (const Case& c : cases) {
    if (!ops.empty() && !absl::c_linear_search(ops, c.op)) continue;
    OPTRAIL_ASSIGN_OR_RETURN(const Bucket range, Bucket::Parse(c.tuned));
    TuneBucketsCommand command{context, {}, range, {}};
    command.tune.quiet = true;
    command.tune.worker.shared_folder = context.state;
    TuneOptions& tune = command.tune.tune;
    tune.strategy = tuning::kDefaultStrategy;
    tune.sampling = DefaultSamplingOptions();
    tune.seed = absl::GetFlag(FLAGS_seed);
    tune.budget.set_trials(absl::GetFlag(FLAGS_trials));
    tune.proof.max_time = absl::GetFlag(FLAGS_proof_time);
    command.tune.total_time_ns =
        absl::ToInt64Nanoseconds(absl::GetFlag(FLAGS_total_time));
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

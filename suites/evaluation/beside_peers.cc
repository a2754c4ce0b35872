// Our tuned kernels beside what another program computes the same with, in one
// interleaved run: every round measures every side once, in shuffled order, so
// that clocks and temperature are the same for all. Where the device can
// (Evaluator::EvaluateInTurns), sides are sampled in turns, a millisecond each.
//
//   bazel run //suites:beside_peers -- --device=cuda --op=matmul --launch=graph
//       --cache=cold,hot --peer="python3 ops/evaluation/torch_peers.py --serve"
//
// Ours are the backends named, with the config that the store has for the
// shape, else for the other cache mode, else the default: it is said which. The
// peer reads lines "OP SHAPE CACHE SIDE" and answers each with microseconds a
// call, or "error: ..."; "once" behind it asks for a single sample of about a
// millisecond. --sides are the names it knows. Prints one JSON object a shape
// and cache mode: medians over rounds, and for each side the median of the
// rounds' ratios to ours.

#include <algorithm>
#include <iostream>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/time.h"
#include "base/file.h"
#include "base/random.h"
#include "base/statistics.h"
#include "base/status_macros.h"
#include "ops/core/device_type.h"
#include "suites/evaluation/evaluation.h"
#include "suites/evaluation/line_peer.h"
#include "suites/stopwatch/stopwatch.h"
#include "suites/tune/tune_driver.h"
#include "suites/worker/run_context.h"
#include "suites/worker/worker_evaluator.h"
#include "suites/workload/tasks.h"
#include "tuning/proto/canonical.h"

ABSL_FLAG(std::string, device, "cpu", "kind of device");
ABSL_FLAG(std::string, op, "", "operators, a regular expression");
ABSL_FLAG(std::string, shape, "", "shapes, a regular expression");
ABSL_FLAG(std::string, workload, "", "where shapes are listed");
ABSL_FLAG(std::vector<std::string>, cache, {"cold"}, "hot, cold or both");
ABSL_FLAG(std::string, launch, "", "stream or graph");
ABSL_FLAG(std::vector<std::string>, backends, {""},
          "ours; \"\": the kind's own");
ABSL_FLAG(std::string, peer, "", "command that answers for the other sides");
ABSL_FLAG(std::vector<std::string>, sides, {}, "names that the peer knows");
ABSL_FLAG(int, rounds, 7, "of each shape and cache mode");
ABSL_FLAG(absl::Duration, reading, absl::Milliseconds(50),
          "sampling of one side in one round");
ABSL_FLAG(absl::Duration, patience, absl::Minutes(4),
          "with one answer of the peer");
ABSL_FLAG(std::string, store, "", "folder of tuned configs");
ABSL_FLAG(std::string, history, "", "folder of the history");

namespace optrail::suites {
namespace {

// Of a side alone: what a launch of a graph costs shows neither in ours nor in
// the peer's. In turns, samples are compared one by one, and shorter ones do.
constexpr int64_t kSampleNs = 2'000'000, kSampleInTurnsNs = 1'000'000;

// One of the things that are compared.
struct Side {
  std::string name;
  std::string backend, config;             // of ours
  std::unique_ptr<WorkerEvaluator> ours;   // null: the peer's
  std::vector<absl::optional<double>> us;  // by round
  std::string trouble;                     // the first
};

absl::StatusOr<Side> OurSide(const TaskEntry& task, const RunContext& context,
                             const tuning::TunedConfigStore& store) {
  OPTRAIL_ASSIGN_OR_RETURN(const TaskSpace space,
                           BindTask(task, context.hardware));
  const proto::TunedConfig* tuned = FindTuned(store, task.task, "", space);
  std::string how = ":tuned";
  if (tuned == nullptr) {
    // One that was tuned for the other cache mode, then.
    proto::Task other = task.task;
    const bool cold = other.cache_mode() == proto::COLD;
    other.set_cache_mode(cold ? proto::HOT : proto::COLD);
    tuned = FindTuned(store, other, "", space);
    how = tuned == nullptr ? ":default" : cold ? ":tuned hot" : ":tuned cold";
  }
  Side side;
  side.name = absl::StrCat(task.backend->name(), how);
  side.backend = task.task.backend();
  side.config = tuned != nullptr
                    ? tuned->config()
                    : tuning::CanonicalText(space.bound->default_config());
  WorkerOptions worker;
  worker.shared_folder = context.state;
  worker.configs_per_worker = 1 << 20;
  side.ours = std::make_unique<WorkerEvaluator>(task.task, worker);
  return side;
}

std::string QuestionOf(const proto::Task& task, const Side& side) {
  return absl::StrCat(
      task.operator_name(), " ", tuning::CanonicalText(task.shape()), " ",
      task.cache_mode() == proto::COLD ? "cold" : "hot", " ", side.name);
}

EvaluationOptions OptionsOf(int64_t sample_ns) {
  EvaluationOptions options;
  options.sampling = DefaultSamplingOptions();
  options.sampling.set_min_sample_ns(sample_ns);
  options.sampling.set_max_time_ns(
      absl::ToInt64Nanoseconds(absl::GetFlag(FLAGS_reading)));
  return options;
}

void Measure(const proto::Task& task, Side& side, LinePeer* peer) {
  side.us.emplace_back();
  if (side.ours == nullptr) {
    const absl::StatusOr<double> us = peer->Ask(QuestionOf(task, side));
    if (us.ok()) {
      side.us.back() = *us;
    } else if (side.trouble.empty()) {
      side.trouble = std::string(us.status().message());
    }
    return;
  }
  const auto config = tuning::ParseConfig(side.config);
  const Evaluation one = side.ours->Evaluate(*config, OptionsOf(kSampleNs));
  if (one.outcome == proto::OK && one.time_ns) {
    side.us.back() = *one.time_ns * 1e-3;
  } else if (side.trouble.empty()) {
    side.trouble =
        absl::StrCat(tuning::OutcomeName(one.outcome), " ", one.detail);
  }
}

// One round of those without trouble. False where they cannot be sampled in
// turns.
bool MeasureInTurns(const proto::Task& task, const std::vector<size_t>& order,
                    std::vector<Side>& sides, LinePeer* peer) {
  std::vector<size_t> measured;
  std::vector<Contender> contenders;
  for (const size_t i : order) {
    const Side& side = sides[i];
    if (!side.trouble.empty()) continue;
    measured.push_back(i);
    Contender& contender = contenders.emplace_back();
    if (side.ours != nullptr) {
      contender.backend = side.backend;
      contender.config = *tuning::ParseConfig(side.config);
      continue;
    }
    contender.elsewhere =
        [peer, question = absl::StrCat(QuestionOf(task, side), " once")](
            int64_t calls) -> absl::StatusOr<int64_t> {
      OPTRAIL_ASSIGN_OR_RETURN(const double us, peer->Ask(question));
      return static_cast<int64_t>(us * 1e3 * static_cast<double>(calls));
    };
  }
  const auto evaluations =
      sides[0].ours->EvaluateInTurns(contenders, OptionsOf(kSampleInTurnsNs));
  if (!evaluations) return false;
  for (Side& side : sides) side.us.emplace_back();
  for (size_t i = 0; i < measured.size(); ++i) {
    const Evaluation& one = (*evaluations)[i];
    if (one.outcome != proto::OK || !one.time_ns) continue;
    sides[measured[i]].us.back() = *one.time_ns * 1e-3;
  }
  return true;
}

// Of what a JSON string may not hold.
std::string Quoted(std::string text) {
  for (char& c : text) {
    if (c == '"' || c == '\\' || static_cast<unsigned char>(c) < ' ') c = ' ';
  }
  return absl::StrCat("\"", text, "\"");
}

void Report(const proto::Task& task, const std::vector<Side>& sides) {
  std::cout << "{\"task\": " << Quoted(ShortTaskText(task))
            << ", \"config\": " << Quoted(sides[0].config) << ", \"sides\": {";
  for (size_t i = 0; i < sides.size(); ++i) {
    const Side& side = sides[i];
    std::vector<double> us, ratios;
    for (size_t round = 0; round < side.us.size(); ++round) {
      if (!side.us[round]) continue;
      us.push_back(*side.us[round]);
      if (sides[0].us[round]) ratios.push_back(us.back() / *sides[0].us[round]);
    }
    std::cout << (i > 0 ? ", " : "") << Quoted(side.name)
              << ": {\"rounds\": " << us.size();
    if (!us.empty()) std::cout << ", \"us\": " << Median(us);
    if (!ratios.empty()) std::cout << ", \"over_ours\": " << Median(ratios);
    if (!side.trouble.empty()) {
      std::cout << ", \"trouble\": " << Quoted(side.trouble);
    }
    std::cout << "}";
  }
  std::cout << "}}" << std::endl;
}

absl::Status Compare(const std::vector<TaskEntry>& tasks,
                     const RunContext& context,
                     const tuning::TunedConfigStore& store, LinePeer* peer) {
  std::vector<Side> sides;
  for (const TaskEntry& task : tasks) {
    OPTRAIL_ASSIGN_OR_RETURN(Side side, OurSide(task, context, store));
    sides.push_back(std::move(side));
  }
  if (peer != nullptr) {
    for (const std::string& name : absl::GetFlag(FLAGS_sides)) {
      sides.emplace_back().name = name;
    }
  }
  std::vector<size_t> order;
  for (size_t i = 0; i < sides.size(); ++i) order.push_back(i);
  Rng rng(1);
  // The first round opens, compiles and captures.
  for (const size_t i : order) Measure(tasks[0].task, sides[i], peer);
  for (Side& side : sides) side.us.clear();
  for (int round = 0; round < absl::GetFlag(FLAGS_rounds); ++round) {
    rng.Shuffle(order);
    if (MeasureInTurns(tasks[0].task, order, sides, peer)) continue;
    for (const size_t i : order) Measure(tasks[0].task, sides[i], peer);
  }
  Report(tasks[0].task, sides);
  return absl::OkStatus();
}

absl::StatusOr<ExitCode> Run() {
  TaskSelection selection;
  OPTRAIL_ASSIGN_OR_RETURN(
      const ops::DeviceType* type,
      ops::FindDeviceTypeNamed(absl::GetFlag(FLAGS_device)));
  selection.device = type->kind();
  selection.workload = absl::GetFlag(FLAGS_workload);
  selection.op_regex = absl::GetFlag(FLAGS_op);
  selection.shape_regex = absl::GetFlag(FLAGS_shape);
  if (const std::string launch = absl::GetFlag(FLAGS_launch); !launch.empty()) {
    OPTRAIL_ASSIGN_OR_RETURN(selection.launch_mode,
                             tuning::ParseLaunchMode(launch));
  }
  OPTRAIL_ASSIGN_OR_RETURN(
      const RunContext context,
      FindRunContext(selection.device, absl::GetFlag(FLAGS_history),
                     absl::GetFlag(FLAGS_store)));
  OPTRAIL_RETURN_IF_ERROR(CreateDirectories(context.state));
  std::unique_ptr<LinePeer> peer;
  if (!absl::GetFlag(FLAGS_peer).empty()) {
    OPTRAIL_ASSIGN_OR_RETURN(peer,
                             LinePeer::Start(absl::GetFlag(FLAGS_peer),
                                             absl::GetFlag(FLAGS_patience)));
  }
  // By shape and cache mode: one task for each of our backends.
  std::vector<std::pair<std::string, std::vector<TaskEntry>>> groups;
  for (const std::string& cache : absl::GetFlag(FLAGS_cache)) {
    OPTRAIL_ASSIGN_OR_RETURN(selection.cache_mode,
                             tuning::ParseCacheMode(cache));
    for (const std::string& backend : absl::GetFlag(FLAGS_backends)) {
      selection.backend = backend;
      OPTRAIL_ASSIGN_OR_RETURN(const std::vector<TaskEntry> tasks,
                               SelectTasks(selection, context.hardware));
      for (const TaskEntry& task : tasks) {
        const std::string key =
            absl::StrCat(cache, " ", task.task.operator_name(), " ",
                         tuning::CanonicalText(task.task.shape()));
        auto group =
            std::find_if(groups.begin(), groups.end(),
                         [&](const auto& g) { return g.first == key; });
        if (group == groups.end()) {
          groups.emplace_back(key, std::vector<TaskEntry>());
          group = std::prev(groups.end());
        }
        group->second.push_back(task);
      }
    }
  }
  for (const auto& [key, tasks] : groups) {
    OPTRAIL_ASSIGN_OR_RETURN(const tuning::TunedConfigStore store,
                             LoadStore(context, tasks));
    if (const absl::Status done = Compare(tasks, context, store, peer.get());
        !done.ok()) {
      std::cerr << key << ": " << done.message() << "\n";
    }
  }
  return ExitCode::kOk;
}

}  // namespace
}  // namespace optrail::suites

int main(int argc, char** argv) {
  return optrail::suites::EvaluationMain(argc, argv, optrail::suites::Run);
}

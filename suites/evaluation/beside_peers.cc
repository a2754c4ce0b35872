// Our tuned kernels beside what another program computes the same with, in one
// interleaved run (side_by_side.h). //suites:any_shape draws its shapes.
//
//   bazel run //suites:beside_peers -- --device=cuda --op=matmul --launch=graph
//       --cache=cold,hot --peer="python3 ops/evaluation/torch_peers.py --serve"
//
// Ours are the backends named, with the config that the store has for the
// shape, else for the other cache mode, else the default: the output says
// which.
// --sides are the names that the peer knows. Prints one JSON object a shape
// and cache mode: medians over rounds, and for each side the median of the
// rounds' ratios to ours.

#include <algorithm>
#include <iostream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "base/file/file.h"
#include "base/status_macros.h"
#include "base/text/table.h"
#include "ops/core/device_type.h"
#include "suites/evaluation/evaluation.h"
#include "suites/evaluation/line_peer.h"
#include "suites/evaluation/side_by_side.h"
#include "suites/tune/task_store.h"
#include "suites/worker/run_context.h"
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

// With the config that the store has for the shape, else for the other cache
// mode, else the default: the side's name says which.
absl::StatusOr<Side> StoredSide(const TaskEntry& task,
                                const RunContext& context,
                                const tuning::TunedConfigStore& store) {
  OPTRAIL_ASSIGN_OR_RETURN(const TaskSpace space,
                           BindTask(task, context.hardware));
  const proto::TunedConfig* tuned = FindTuned(store, task, "", space);
  std::string how = ":tuned";
  if (tuned == nullptr) {
    TaskEntry other = task;
    const bool cold = task.task.cache_mode() == proto::COLD;
    other.task.set_cache_mode(cold ? proto::HOT : proto::COLD);
    tuned = FindTuned(store, other, "", space);
    how = tuned == nullptr ? ":default" : cold ? ":tuned hot" : ":tuned cold";
  }
  return OurSide(absl::StrCat(task.backend->name(), how), task,
                 tuned != nullptr
                     ? tuned->config()
                     : tuning::CanonicalText(space.bound->default_config()),
                 context);
}

void Report(const proto::Task& task, const std::vector<Side>& sides) {
  std::cout << "{\"task\": " << QuoteForJson(ShortTaskText(task))
            << ", \"config\": " << QuoteForJson(sides[0].config)
            << ", \"sides\": {";
  for (size_t i = 0; i < sides.size(); ++i) {
    const Side& side = sides[i];
    const auto rounds =
        std::count_if(side.us.begin(), side.us.end(),
                      [](const auto& one) { return one.has_value(); });
    std::cout << (i > 0 ? ", " : "") << QuoteForJson(side.name)
              << ": {\"rounds\": " << rounds;
    if (const auto us = side.Median()) std::cout << ", \"us\": " << *us;
    if (const auto ratio = side.MedianOver(sides[0])) {
      std::cout << ", \"over_ours\": " << *ratio;
    }
    if (!side.trouble.empty()) {
      std::cout << ", \"trouble\": " << QuoteForJson(side.trouble);
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
    OPTRAIL_ASSIGN_OR_RETURN(Side side, StoredSide(task, context, store));
    sides.push_back(std::move(side));
  }
  if (peer != nullptr) {
    for (const std::string& name : absl::GetFlag(FLAGS_sides)) {
      sides.push_back(PeerSide(name));
    }
  }
  SideOptions options;
  options.rounds = absl::GetFlag(FLAGS_rounds);
  options.reading = absl::GetFlag(FLAGS_reading);
  MeasureSides(tasks[0].task, options, peer, sides);
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

#include "suites/workload/tasks.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"
#include "re2/re2.h"
#include "suites/workload/workload.h"
#include "tuning/proto/canonical.h"
#include "tuning/space/shapes.h"

namespace optrail::suites {
namespace {

struct Candidate {
  const ops::OperatorEntry* entry;
  proto::Shape shape;
  int count;
  std::string doc;
};

absl::StatusOr<std::vector<Candidate>> FromWorkload(
    const proto::Workload& workload) {
  std::vector<Candidate> candidates;
  for (const proto::Workload::Layer& layer : workload.layer()) {
    OPTRAIL_ASSIGN_OR_RETURN(proto::Shape shape,
                             tuning::ParseShape(layer.shape()));
    candidates.push_back({ops::Registry::Get().Find(layer.operator_name()),
                          std::move(shape), layer.count(), layer.doc()});
  }
  return candidates;
}

absl::StatusOr<std::vector<Candidate>> FromShapesFiles(bool with_test_only) {
  std::vector<Candidate> candidates;
  for (const ops::OperatorEntry* entry :
       ops::Registry::Get().List(with_test_only)) {
    OPTRAIL_ASSIGN_OR_RETURN(
        const std::vector<tuning::NamedShape> shapes,
        tuning::ParseShapes(entry->shapes.contents, entry->shapes.path));
    for (const tuning::NamedShape& shape : shapes) {
      candidates.push_back({entry, shape.shape, 1, shape.doc});
    }
  }
  return candidates;
}

absl::Status CheckRegex(absl::string_view flag, const RE2& regex) {
  if (regex.ok()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("flag --", flag, "=", regex.pattern(), ": ", regex.error()));
}

}  // namespace

absl::StatusOr<std::vector<TaskEntry>> SelectTasks(
    const TaskSelection& selection, const proto::Hardware& hardware) {
  const RE2 op_regex(selection.op_regex.empty() ? ".*" : selection.op_regex,
                     RE2::Quiet);
  const RE2 shape_regex(selection.shape_regex, RE2::Quiet);
  OPTRAIL_RETURN_IF_ERROR(CheckRegex("op", op_regex));
  OPTRAIL_RETURN_IF_ERROR(CheckRegex("shape", shape_regex));

  std::vector<Candidate> candidates;
  std::vector<int> threads = selection.threads;
  if (selection.workload.empty()) {
    OPTRAIL_ASSIGN_OR_RETURN(candidates,
                             FromShapesFiles(selection.with_test_only));
  } else {
    OPTRAIL_ASSIGN_OR_RETURN(const proto::Workload workload,
                             FindWorkload(selection.workload));
    OPTRAIL_ASSIGN_OR_RETURN(candidates, FromWorkload(workload));
    if (threads.empty()) {
      threads.assign(workload.threads().begin(), workload.threads().end());
    }
  }
  if (threads.empty()) threads = {1};
  // "1,0" on one core names one task, not two.
  for (int& count : threads) {
    if (count == 0) count = hardware.cores();
  }
  std::sort(threads.begin(), threads.end());
  threads.erase(std::unique(threads.begin(), threads.end()), threads.end());

  std::vector<TaskEntry> tasks;
  bool op_matched = false;
  for (const Candidate& candidate : candidates) {
    const std::string name = candidate.entry->op->name();
    if (!RE2::FullMatch(name, op_regex)) continue;
    op_matched = true;
    if (!RE2::PartialMatch(tuning::CanonicalText(candidate.shape),
                           shape_regex)) {
      continue;
    }
    const auto kernel = candidate.entry->kernels.find(selection.device);
    if (kernel == candidate.entry->kernels.end()) continue;
    for (int count : threads) {
      TaskEntry task;
      task.entry = candidate.entry;
      task.count = candidate.count;
      task.doc = candidate.doc;
      task.task.set_operator_name(name);
      task.task.set_device_kind(selection.device);
      task.task.set_kernel_id(kernel->second.id);
      *task.task.mutable_shape() = candidate.shape;
      task.task.set_hardware_id(hardware.id());
      task.task.set_threads(count);
      task.task.set_cache_mode(selection.cache_mode);
      tasks.push_back(std::move(task));
    }
  }
  if (!tasks.empty()) return tasks;

  std::vector<std::string> names;
  for (const ops::OperatorEntry* entry :
       ops::Registry::Get().List(selection.with_test_only)) {
    names.push_back(entry->op->name());
  }
  if (!op_matched) {
    return absl::NotFoundError(
        absl::StrCat("no operator matches --op=", selection.op_regex,
                     "; there are: ", absl::StrJoin(names, ", ")));
  }
  return absl::NotFoundError(absl::StrCat(
      "no shape of ",
      selection.op_regex.empty() ? "any operator" : selection.op_regex,
      " matches --shape=", selection.shape_regex, " on ",
      tuning::DeviceName(selection.device)));
}

absl::StatusOr<TaskSpace> BindTask(const TaskEntry& task,
                                   const proto::Hardware& hardware) {
  TaskSpace result;
  OPTRAIL_ASSIGN_OR_RETURN(
      tuning::Space space,
      tuning::Space::Parse(task.entry->space.contents, task.entry->space.path));
  const absl::Status attributes =
      ops::CheckDeclaredAttributes(*task.entry->op, space.proto().attribute());
  if (!attributes.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat(space.filename(), ": ", attributes.message()));
  }
  result.space = std::make_unique<tuning::Space>(std::move(space));
  tuning::BindOptions options;
  options.threads = task.task.threads();
  OPTRAIL_ASSIGN_OR_RETURN(
      result.bound, result.space->Bind(task.task.shape(), hardware, options));
  return result;
}

std::string ShortTaskText(const proto::Task& task) {
  std::string text = absl::StrCat(task.operator_name(), " ",
                                  tuning::CanonicalText(task.shape()));
  if (task.device_kind() == proto::CPU && task.threads() != 1) {
    absl::StrAppend(&text, " x", task.threads());
  }
  if (task.cache_mode() == proto::COLD) absl::StrAppend(&text, " cold");
  if (!task.backend().empty()) absl::StrAppend(&text, " by ", task.backend());
  if (task.launch_mode() != proto::LAUNCH_MODE_UNSPECIFIED) {
    absl::StrAppend(&text, " ", tuning::LaunchModeName(task.launch_mode()));
  }
  if (task.devices() > 1) {
    absl::StrAppend(&text, " on ", task.devices(), " devices");
  }
  return text;
}

}  // namespace optrail::suites

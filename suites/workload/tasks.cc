#include "suites/workload/tasks.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/status_macros.h"
#include "base/text/closest.h"
#include "ops/core/device_type.h"
#include "re2/re2.h"
#include "suites/workload/named_only.h"
#include "suites/workload/workload.h"
#include "tuning/proto/canonical.h"
#include "tuning/space/shapes.h"
#include "tuning/space/space.h"

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
  for (const proto::WorkloadLayer& layer : workload.layer()) {
    OPTRAIL_ASSIGN_OR_RETURN(proto::Shape shape,
                             tuning::ParseShape(layer.shape()));
    candidates.push_back({ops::Registry::Get().Find(layer.operator_name()),
                          std::move(shape), layer.count(), layer.doc()});
  }
  return candidates;
}

absl::StatusOr<std::vector<Candidate>> FromShapesFiles(const RE2& op_regex,
                                                       bool with_test_only) {
  std::vector<Candidate> candidates;
  for (const ops::OperatorEntry* entry :
       ops::Registry::Get().List(with_test_only)) {
    if (!RE2::FullMatch(entry->op->name(), op_regex)) continue;
    OPTRAIL_ASSIGN_OR_RETURN(
        const std::vector<tuning::NamedShape> shapes,
        tuning::ParseShapes(entry->shapes.contents, entry->shapes.path));
    for (const tuning::NamedShape& shape : shapes) {
      candidates.push_back({entry, shape.shape, 1, shape.doc});
    }
  }
  return candidates;
}

// A shape that is written in full, of the operators whose shape it may be.
// Where there is none, `refused` is why, as far as one reason can be named.
std::vector<Candidate> AsWritten(const std::string& text, const RE2& op_regex,
                                 bool with_test_only, absl::Status* refused) {
  std::vector<Candidate> candidates;
  const absl::StatusOr<proto::Shape> shape = tuning::ParseShape(text);
  *refused = shape.status();
  if (!shape.ok()) return candidates;
  std::vector<absl::Status> refusals;
  for (const ops::OperatorEntry* entry :
       ops::Registry::Get().List(with_test_only)) {
    if (!RE2::FullMatch(entry->op->name(), op_regex)) continue;
    const absl::Status fits = ops::CheckShape(*entry->op, *shape);
    if (fits.ok()) {
      candidates.push_back({entry, *shape, 1, ""});
    } else {
      refusals.push_back(fits);
    }
  }
  if (refusals.size() == 1) *refused = refusals[0];
  return candidates;
}

absl::Status CheckRegex(absl::string_view flag, const RE2& regex) {
  if (regex.ok()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("flag --", flag, "=", regex.pattern(), ": ", regex.error()));
}

// The names between commas that `op` is to be computed by: those of
// "OPERATOR:NAME" where it is that operator, else those without an operator, ""
// if there are none.
std::vector<std::string> BackendNames(const std::string& backends,
                                      absl::string_view op) {
  std::vector<std::string> own, others;
  for (const absl::string_view name : absl::StrSplit(backends, ',')) {
    const std::pair<absl::string_view, absl::string_view> parts =
        absl::StrSplit(name, absl::MaxSplits(':', 1));
    if (!absl::StrContains(name, ':')) {
      others.emplace_back(name);
    } else if (parts.first == op) {
      own.emplace_back(parts.second);
    }
  }
  if (!own.empty()) return own;
  if (others.empty()) others.emplace_back();
  return others;
}

std::vector<const ops::Backend*> BackendsFor(const ops::OperatorEntry& entry,
                                             const TaskSelection& selection) {
  std::vector<std::string> names =
      BackendNames(selection.backend, entry.op->name());
  if (names == std::vector<std::string>{""}) {
    names.insert(names.end(), selection.peers.begin(), selection.peers.end());
  }
  std::vector<const ops::Backend*> backends;
  const auto add = [&](const ops::Backend* backend) {
    if (std::find(backends.begin(), backends.end(), backend) ==
        backends.end()) {
      backends.push_back(backend);
    }
  };
  for (const std::string& name : names) {
    if (name == kAllBackends) {
      for (const ops::Backend* one : entry.BackendsOf(selection.device)) {
        if (!IsOnlyByName(*one)) add(one);
      }
    } else if (const auto one = entry.FindBackend(selection.device, name);
               one.ok()) {
      add(*one);
    }
  }
  return backends;
}

// Ids of backends, each asked for once: some start a compiler to find out.
class BackendIds {
 public:
  BackendIds(proto::DeviceKind kind, std::string isa,
             const proto::Hardware& hardware) {
    target_.kind = kind;
    target_.isa = std::move(isa);
    target_.hardware = hardware;
  }
  const absl::StatusOr<std::string>& Of(const ops::Backend& backend) {
    const auto found = ids_.find(&backend);
    if (found != ids_.end()) return found->second;
    return ids_.emplace(&backend, backend.Id(target_)).first->second;
  }

 private:
  ops::Target target_;
  std::map<const ops::Backend*, absl::StatusOr<std::string>> ids_;
};

// Beforehand, not once for every task.
absl::Status CheckLaunchMode(proto::LaunchMode mode,
                             const ops::DeviceType& device) {
  if (mode == proto::LAUNCH_MODE_UNSPECIFIED) return absl::OkStatus();
  std::vector<std::string> names;
  for (const proto::LaunchMode known : device.launch_modes()) {
    if (known == mode) return absl::OkStatus();
    names.push_back(tuning::LaunchModeName(known));
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "--launch=", tuning::LaunchModeName(mode), ": ",
      names.empty() ? absl::StrCat("there is one way to call what runs on ",
                                   device.name())
                    : absl::StrCat("expected ", absl::StrJoin(names, " or "),
                                   " on ", device.name())));
}

// NotFound for a backend that none of the operators has.
absl::Status CheckBackends(const TaskSelection& selection, const RE2& op_regex,
                           const std::string& device) {
  std::set<std::string> known = {kAllBackends, kBestBackend};
  for (const ops::OperatorEntry* entry :
       ops::Registry::Get().List(selection.with_test_only)) {
    if (!RE2::FullMatch(entry->op->name(), op_regex)) continue;
    for (const ops::Backend* backend : entry->BackendsOf(selection.device)) {
      known.insert(backend->name());
    }
  }
  if (selection.backend.empty()) return absl::OkStatus();
  for (const absl::string_view view : absl::StrSplit(selection.backend, ',')) {
    const std::string name(view);
    if (absl::StrContains(view, ':')) {
      const std::pair<std::string, std::string> parts =
          absl::StrSplit(view, absl::MaxSplits(':', 1));
      const ops::OperatorEntry* const entry =
          ops::Registry::Get().Find(parts.first);
      if (entry == nullptr) {
        return ops::Registry::Get().UnknownOperator(parts.first);
      }
      OPTRAIL_RETURN_IF_ERROR(
          entry->FindBackend(selection.device, parts.second).status());
      continue;
    }
    if (known.count(name) > 0) continue;
    const bool any_op = selection.op_regex.empty();
    return absl::NotFoundError(absl::StrCat(
        any_op ? "no operator" : selection.op_regex, " has ",
        any_op ? "a" : "no", " backend ", name, " for ", device,
        "; there are: ", absl::StrJoin(known, ", "),
        DidYouMean(name, {known.begin(), known.end()}, "--backend=")));
  }
  return absl::OkStatus();
}

// The numbers of threads of the tasks, in order, without doubles; 0 stands for
// all that the device has.
absl::StatusOr<std::vector<int>> ThreadCounts(const TaskSelection& selection,
                                              std::vector<int> threads,
                                              const ops::DeviceType& device,
                                              const proto::Hardware& hardware) {
  const int most_threads = device.max_threads(hardware);
  if (threads.empty()) threads = {1};
  if (selection.threads.empty()) {
    // What a workload asks for is meant for machines that have it.
    threads.erase(
        std::remove_if(threads.begin(), threads.end(),
                       [&](int count) { return count > most_threads; }),
        threads.end());
    if (threads.empty()) threads = {0};
  }
  // "1,0" on one core names one task, not two.
  for (int& count : threads) {
    if (count == 0) count = most_threads;
  }
  std::sort(threads.begin(), threads.end());
  threads.erase(std::unique(threads.begin(), threads.end()), threads.end());
  for (const int count : threads) {
    ops::DeviceOptions options;
    options.threads = count;
    const absl::Status possible = device.CheckOptions(options, hardware);
    if (!possible.ok()) {
      return absl::Status(possible.code(),
                          absl::StrCat("--threads: ", possible.message()));
    }
  }
  return threads;
}

TaskEntry TaskOf(const Candidate& candidate, const ops::Backend& backend,
                 const absl::StatusOr<std::string>& id,
                 const TaskSelection& selection,
                 const proto::Hardware& hardware, int threads) {
  TaskEntry entry;
  entry.entry = candidate.entry;
  entry.backend = &backend;
  entry.available = id.status();
  entry.count = candidate.count;
  entry.doc = candidate.doc;
  proto::Task& task = entry.task;
  task.set_operator_name(candidate.entry->op->name());
  task.set_device_kind(selection.device);
  if (backend.name() != ops::OwnBackendName(selection.device)) {
    task.set_backend(backend.name());
  }
  if (id.ok()) task.set_kernel_id(*id);
  *task.mutable_shape() = candidate.shape;
  task.set_hardware_id(hardware.id());
  task.set_threads(threads);
  task.set_cache_mode(selection.cache_mode);
  task.set_launch_mode(selection.launch_mode);
  return entry;
}

// `refused`: why what was written in place of a shape is none.
absl::Status NothingSelected(const TaskSelection& selection,
                             const ops::DeviceType& device, bool op_matched,
                             const absl::Status& refused) {
  std::vector<std::string> names;
  for (const ops::OperatorEntry* entry :
       ops::Registry::Get().List(selection.with_test_only)) {
    names.push_back(entry->op->name());
  }
  const RE2 op_regex(selection.op_regex, RE2::Quiet);
  const bool is_operator = std::any_of(
      names.begin(), names.end(),
      [&](const std::string& name) { return RE2::FullMatch(name, op_regex); });
  if (!op_matched && !selection.workload.empty() && is_operator) {
    return absl::NotFoundError(absl::StrCat(
        "workload ", selection.workload, " has no layer of ",
        selection.op_regex, "; expected an operator of --workload=",
        selection.workload, ", or another workload"));
  }
  if (!op_matched) {
    return absl::NotFoundError(
        absl::StrCat("no operator matches --op=", selection.op_regex,
                     "; this binary has: ", absl::StrJoin(names, ", "),
                     DidYouMean(selection.op_regex, names, "--op=")));
  }
  return absl::NotFoundError(absl::StrCat(
      "no shape of ",
      selection.op_regex.empty() ? "any operator" : selection.op_regex,
      " matches --shape=", selection.shape_regex, " on ", device.name(),
      !selection.workload.empty()
          ? absl::StrCat(" in --workload=", selection.workload)
          : "; one that no file lists is taken when it is written in full, "
            "with its data type, such as m=64,n=64,k=64/f32",
      refused.ok() ? "" : "; this is none: ", refused.message()));
}

}  // namespace

bool WantsAllBackends(const std::string& backend) {
  const std::vector<std::string> names = absl::StrSplit(backend, ',');
  return std::find(names.begin(), names.end(), kAllBackends) != names.end();
}

absl::StatusOr<std::vector<TaskEntry>> SelectTasks(
    const TaskSelection& selection, const proto::Hardware& hardware,
    std::vector<LeftOutTask>* left_out) {
  const RE2 op_regex(selection.op_regex.empty() ? ".*" : selection.op_regex,
                     RE2::Quiet);
  const RE2 shape_regex(selection.shape_regex, RE2::Quiet);
  OPTRAIL_RETURN_IF_ERROR(CheckRegex("op", op_regex));
  OPTRAIL_RETURN_IF_ERROR(CheckRegex("shape", shape_regex));

  std::vector<Candidate> candidates;
  std::vector<int> threads = selection.threads;
  if (selection.workload.empty()) {
    OPTRAIL_ASSIGN_OR_RETURN(
        candidates, FromShapesFiles(op_regex, selection.with_test_only));
  } else {
    OPTRAIL_ASSIGN_OR_RETURN(const proto::Workload workload,
                             FindWorkload(selection.workload));
    OPTRAIL_ASSIGN_OR_RETURN(candidates, FromWorkload(workload));
    if (threads.empty()) {
      threads.assign(workload.threads().begin(), workload.threads().end());
    }
  }
  OPTRAIL_ASSIGN_OR_RETURN(const ops::DeviceType* device,
                           ops::FindDeviceType(selection.device));
  OPTRAIL_ASSIGN_OR_RETURN(
      threads, ThreadCounts(selection, std::move(threads), *device, hardware));
  OPTRAIL_RETURN_IF_ERROR(CheckLaunchMode(selection.launch_mode, *device));
  BackendIds ids(selection.device, device->isa(), hardware);

  std::vector<TaskEntry> tasks;
  absl::Status
      not_computed;  // the first shape that a backend has no kernel for
  bool op_matched = false;
  std::vector<Candidate> chosen;
  for (const Candidate& candidate : candidates) {
    if (!RE2::FullMatch(candidate.entry->op->name(), op_regex)) continue;
    op_matched = true;
    if (RE2::PartialMatch(tuning::CanonicalText(candidate.shape),
                          shape_regex)) {
      chosen.push_back(candidate);
    }
  }
  if (op_matched) {
    OPTRAIL_RETURN_IF_ERROR(CheckBackends(selection, op_regex, device->name()));
  }
  absl::Status refused;  // what was meant as a shape
  if (chosen.empty() && selection.workload.empty()) {
    chosen = AsWritten(selection.shape_regex, op_regex,
                       selection.with_test_only, &refused);
  }
  const auto leave_out = [&](const Candidate& candidate,
                             const absl::Status& why) {
    // A shapes file is for all devices, and a backend computes its part of it.
    if (left_out == nullptr || selection.workload.empty()) return;
    LeftOutTask& left = left_out->emplace_back();
    left.task.set_operator_name(candidate.entry->op->name());
    left.task.set_device_kind(selection.device);
    *left.task.mutable_shape() = candidate.shape;
    left.task.set_threads(1);
    left.task.set_cache_mode(selection.cache_mode);
    left.why = why;
  };
  for (const Candidate& candidate : chosen) {
    const auto backends = BackendsFor(*candidate.entry, selection);
    if (backends.empty()) {
      leave_out(candidate,
                absl::NotFoundError(absl::StrCat(
                    candidate.entry->op->name(), " has no kernel for ",
                    device->name(), selection.backend.empty() ? "" : " of ",
                    selection.backend)));
    }
    for (const ops::Backend* backend : backends) {
      const absl::Status computes =
          ops::Computes(*candidate.entry->op, *backend, candidate.shape);
      if (!computes.ok()) {
        not_computed.Update(computes);
        leave_out(candidate, computes);
        continue;
      }
      for (const int count : threads) {
        tasks.push_back(TaskOf(candidate, *backend, ids.Of(*backend), selection,
                               hardware, count));
      }
    }
  }
  if (!tasks.empty()) return tasks;
  if (!not_computed.ok()) return not_computed;
  return NothingSelected(selection, *device, op_matched, refused);
}

absl::StatusOr<TaskSpace> BindTask(const TaskEntry& task,
                                   const proto::Hardware& hardware) {
  TaskSpace result;
  const ops::EmbeddedFile& file = ops::SpaceFileOf(*task.backend);
  OPTRAIL_ASSIGN_OR_RETURN(tuning::Space space,
                           tuning::Space::Parse(file.contents, file.path));
  // The binder takes the attributes that a space declares for the operator's.
  const absl::Status attributes =
      ops::CheckDeclaredAttributes(*task.entry->op, space.proto().attribute(),
                                   !space.proto().dimension().empty());
  if (!attributes.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat(file.path, ": ", attributes.message()));
  }
  OPTRAIL_ASSIGN_OR_RETURN(static_cast<ops::BackendConfigs&>(result),
                           ops::BindSpace(std::move(space), task.task.shape(),
                                          task.task.threads(), hardware));
  if (task.available.ok()) {
    OPTRAIL_ASSIGN_OR_RETURN(
        result.configs,
        task.backend->Configs(task.task.shape(), task.task.threads()));
  }
  result.has_choice =
      task.backend->space() != nullptr || result.configs != nullptr;
  return result;
}

std::string ShortTaskText(const proto::Task& task) {
  std::string text =
      absl::StrCat(task.operator_name(), task.backend().empty() ? "" : ":",
                   task.backend(), " ", tuning::CanonicalText(task.shape()));
  if (task.threads() > 1) {
    absl::StrAppend(&text, " x", task.threads());
  }
  if (task.cache_mode() == proto::COLD) absl::StrAppend(&text, " cold");
  if (task.launch_mode() != proto::LAUNCH_MODE_UNSPECIFIED) {
    absl::StrAppend(&text, " ", tuning::LaunchModeName(task.launch_mode()));
  }
  if (task.devices() > 1) {
    absl::StrAppend(&text, " on ", task.devices(), " devices");
  }
  return text;
}

}  // namespace optrail::suites

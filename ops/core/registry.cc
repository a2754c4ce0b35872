#include "ops/core/registry.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/check.h"
#include "base/hash.h"
#include "tuning/proto/canonical.h"

namespace optrail::ops {

std::string KernelId(absl::string_view sources_hash,
                     absl::string_view compiler) {
  return Fingerprint(absl::StrCat(sources_hash, "\n", compiler));
}

Registry& Registry::Get() {
  // Never destroyed: threads of a worker may still look at it during exit.
  static Registry* const registry = new Registry;
  return *registry;
}

const OperatorEntry* Registry::Find(absl::string_view name) const {
  const auto found = entries_.find(name);
  if (found == entries_.end() || found->second.op == nullptr) return nullptr;
  return &found->second;
}

std::vector<const OperatorEntry*> Registry::List(bool with_test_only) const {
  std::vector<const OperatorEntry*> list;
  for (const auto& [name, entry] : entries_) {
    if (entry.op == nullptr) continue;
    if (entry.test_only && !with_test_only) continue;
    list.push_back(&entry);
  }
  return list;
}

absl::Status Registry::UnknownOperator(absl::string_view name) const {
  return absl::NotFoundError(absl::StrCat(
      "there is no operator \"", name, "\"; this binary has: ",
      absl::StrJoin(List(), ", ",
                    [](std::string* out, const OperatorEntry* entry) {
                      absl::StrAppend(out, entry->op->name());
                    })));
}

void Registry::AddOperator(std::shared_ptr<const Operator> op) {
  const std::string name = op->name();
  OperatorEntry& entry = entries_[name];
  OPTRAIL_CHECK(entry.op == nullptr)
      << "operator \"" << name
      << "\" is registered twice: two OPTRAIL_REGISTER_OPERATOR use this name";
  entry.op = std::move(op);
}

void Registry::AddKernel(absl::string_view op, proto::DeviceKind device,
                         std::shared_ptr<const Kernel> kernel) {
  KernelEntry& entry = entries_[std::string(op)].kernels[device];
  OPTRAIL_CHECK(entry.kernel == nullptr)
      << "operator \"" << op << "\" has two kernels for device "
      << tuning::DeviceName(device);
  entry.kernel = std::move(kernel);
}

void Registry::AddFiles(absl::string_view op, MacroFiles files) {
  OperatorEntry& entry = entries_[std::string(op)];
  OPTRAIL_CHECK(entry.space.path.empty())
      << "two `operator` macros are named \"" << op << "\": in packages \""
      << entry.package << "\" and \"" << files.package << "\"";
  entry.package = std::move(files.package);
  entry.space = std::move(files.space);
  entry.shapes = std::move(files.shapes);
  entry.tuned = std::move(files.tuned);
  entry.test_only = files.test_only;
  for (auto& [device, id] : files.kernel_ids) {
    entry.kernels[device].id = std::move(id);
  }
}

}  // namespace optrail::ops

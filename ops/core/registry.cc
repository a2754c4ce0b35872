#include "ops/core/registry.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/check.h"
#include "base/hash/hash.h"
#include "tuning/proto/canonical.h"

namespace optrail::ops {

std::string KernelId(absl::string_view sources_hash,
                     absl::string_view compiler) {
  return Fingerprint(absl::StrCat(sources_hash, "\n", compiler));
}

std::string OwnBackendName(proto::DeviceKind kind) {
  // A kind that context.proto does not name has a number in place of a name.
  return proto::DeviceKind_IsValid(kind) ? tuning::DeviceName(kind) : "own";
}

absl::Status Computes(const Operator& op, const Backend& backend,
                      const proto::Shape& shape) {
  std::vector<std::vector<proto::DataType>> computed = backend.data_types();
  if (computed.empty()) computed = {op.data_types().front()};
  const auto& types = shape.data_types();
  std::vector<std::string> texts;
  for (const std::vector<proto::DataType>& one : computed) {
    if (std::equal(one.begin(), one.end(), types.begin(), types.end())) {
      return absl::OkStatus();
    }
    texts.push_back(TypesText(one));
  }
  return absl::UnimplementedError(
      absl::StrCat("backend ", backend.name(), " of ", op.name(),
                   " has no kernel for ", tuning::CanonicalText(shape),
                   "; it computes: ", absl::StrJoin(texts, ", ")));
}

std::vector<const Backend*> OperatorEntry::BackendsOf(
    proto::DeviceKind kind) const {
  std::vector<const Backend*> list;
  for (const auto& [name, backend] : backends) {
    if (backend->kind() == kind) list.push_back(backend.get());
  }
  const std::string own = OwnBackendName(kind);
  std::stable_partition(list.begin(), list.end(), [&](const Backend* backend) {
    return backend->name() == own;
  });
  return list;
}

absl::StatusOr<const Backend*> OperatorEntry::FindBackend(
    proto::DeviceKind kind, absl::string_view name) const {
  const std::string wanted =
      name.empty() ? OwnBackendName(kind) : std::string(name);
  const auto found = backends.find(wanted);
  if (found != backends.end() && found->second->kind() == kind) {
    return found->second.get();
  }
  const std::vector<const Backend*> list = BackendsOf(kind);
  return absl::UnimplementedError(absl::StrCat(
      "operator ", op->name(), " has no backend ", wanted, " for ",
      tuning::DeviceName(kind), "; it has: ",
      list.empty()
          ? "none"
          : absl::StrJoin(list, ", ", [](std::string* out, const Backend* b) {
              absl::StrAppend(out, b->name());
            })));
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

void Registry::AddBackend(absl::string_view op,
                          std::shared_ptr<Backend> backend) {
  const std::string name = backend->name();
  OPTRAIL_CHECK(IsBackendName(name))
      << "operator \"" << op << "\" has a backend named \"" << name
      << "\", expected [a-z][a-z0-9_]* and neither \"best\" nor \"all\"";
  auto& declared = declared_[std::string(op)];
  if (const auto files = declared.find(name); files != declared.end()) {
    backend->SetFiles(files->second);
  }
  OPTRAIL_CHECK(entries_[std::string(op)]
                    .backends.emplace(name, std::move(backend))
                    .second)
      << "operator \"" << op << "\" has two backends named \"" << name << "\"";
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
  for (const auto& [name, backend_files] : files.backends) {
    const auto backend = entry.backends.find(name);
    if (backend != entry.backends.end()) {
      backend->second->SetFiles(backend_files);
    }
  }
  declared_[std::string(op)] = std::move(files.backends);
}

std::vector<std::string> Registry::DeclaredOnly(absl::string_view op) const {
  std::vector<std::string> names;
  const auto declared = declared_.find(op);
  if (declared == declared_.end()) return names;
  const auto entry = entries_.find(op);
  for (const auto& [name, files] : declared->second) {
    if (entry->second.backends.count(name) == 0) names.push_back(name);
  }
  return names;
}

std::vector<std::string> Registry::RegisteredOnly(absl::string_view op) const {
  std::vector<std::string> names;
  const auto entry = entries_.find(op);
  if (entry == entries_.end()) return names;
  const auto declared = declared_.find(op);
  for (const auto& [name, backend] : entry->second.backends) {
    if (declared == declared_.end() || declared->second.count(name) == 0) {
      names.push_back(name);
    }
  }
  return names;
}

}  // namespace optrail::ops

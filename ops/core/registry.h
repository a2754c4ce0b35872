#ifndef OPTRAIL_OPS_CORE_REGISTRY_H_
#define OPTRAIL_OPS_CORE_REGISTRY_H_

// Registry holds the operators that are linked into this binary. Operators,
// backends and the data files of the `operator` macro register themselves
// before main; afterwards the registry is read-only.
//
//   const OperatorEntry* softmax = Registry::Get().Find("softmax");

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "ops/core/backend.h"
#include "ops/core/operator.h"
#include "tuning/proto/context.pb.h"

namespace optrail::ops {

struct OperatorEntry {
  std::shared_ptr<const Operator> op;
  // By name.
  std::map<std::string, std::shared_ptr<Backend>> backends;
  EmbeddedFile space;  // of the macro's own kernels
  EmbeddedFile shapes;
  std::vector<EmbeddedFile> tuned;  // one per hardware
  std::string package;              // "ops/softmax", where tuned files go
  bool test_only = false;           // left out of listings and workloads

  // The backend called `name` on devices of `kind`; without a name, the kind's
  // own. Unimplemented names those there are.
  absl::StatusOr<const Backend*> FindBackend(proto::DeviceKind kind,
                                             absl::string_view name) const;
  // Of `kind`, its own first and the others by name.
  std::vector<const Backend*> BackendsOf(proto::DeviceKind kind) const;
};

// The name of the backend that is the device kind's own; it is never stored.
std::string OwnBackendName(proto::DeviceKind kind);

// Checks that `backend`, one of the operator's, has a kernel for the data types
// of `shape`: Unimplemented says which it has.
absl::Status Computes(const Operator& op, const Backend& backend,
                      const proto::Shape& shape);

// The id of a kernel that this build compiled: 16 hexadecimal digits over the
// hash of its sources, options and version, which the macro computes
// (kernel_sources.h), and the compiler.
std::string KernelId(absl::string_view sources_hash,
                     absl::string_view compiler);

class Registry {
 public:
  static Registry& Get();

  // nullptr if there is none.
  const OperatorEntry* Find(absl::string_view name) const;

  // Sorted by name. Test-only operators only on request.
  std::vector<const OperatorEntry*> List(bool with_test_only = false) const;

  // NotFound that names the operators there are.
  absl::Status UnknownOperator(absl::string_view name) const;

  // Each part may register first; a part given twice stops the process.
  void AddOperator(std::shared_ptr<const Operator> op);
  void AddBackend(absl::string_view op, std::shared_ptr<Backend> backend);

  struct MacroFiles {
    std::string package;
    EmbeddedFile space;
    EmbeddedFile shapes;
    std::vector<EmbeddedFile> tuned;
    std::map<std::string, BackendFiles> backends;
    bool test_only = false;
  };
  void AddFiles(absl::string_view op, MacroFiles files);

  // Backends that the macro of `op` declares and no source registers, or the
  // other way round; what an operator's test asks.
  std::vector<std::string> DeclaredOnly(absl::string_view op) const;
  std::vector<std::string> RegisteredOnly(absl::string_view op) const;

 private:
  // What the macro said of backends; those that have not registered yet, or
  // never do, are found here.
  std::map<std::string, std::map<std::string, BackendFiles>, std::less<>>
      declared_;
  std::map<std::string, OperatorEntry, std::less<>> entries_;
};

}  // namespace optrail::ops

#define OPTRAIL_OPS_CONCAT_INNER_(a, b) a##b
#define OPTRAIL_OPS_CONCAT_(a, b) OPTRAIL_OPS_CONCAT_INNER_(a, b)

#define OPTRAIL_REGISTER_OPERATOR(Class)                                    \
  [[maybe_unused]] static const bool OPTRAIL_OPS_CONCAT_(                   \
      optrail_operator_registered_, __LINE__) = [] {                        \
    ::optrail::ops::Registry::Get().AddOperator(std::make_shared<Class>()); \
    return true;                                                            \
  }();

#define OPTRAIL_REGISTER_BACKEND(op, Class)                                    \
  [[maybe_unused]] static const bool OPTRAIL_OPS_CONCAT_(                      \
      optrail_backend_registered_, __LINE__) = [] {                            \
    ::optrail::ops::Registry::Get().AddBackend(op, std::make_shared<Class>()); \
    return true;                                                               \
  }();

#endif  // OPTRAIL_OPS_CORE_REGISTRY_H_

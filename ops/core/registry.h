#ifndef OPTRAIL_OPS_CORE_REGISTRY_H_
#define OPTRAIL_OPS_CORE_REGISTRY_H_

// Registry holds the operators that are linked into this binary. Operators,
// kernels and the data files of the `operator` macro register themselves before
// main; afterwards the registry is read-only.
//
//   const OperatorEntry* softmax = Registry::Get().Find("softmax");

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "ops/core/operator.h"
#include "tuning/proto/context.pb.h"

namespace optrail::ops {

// A file that the macro embedded: its path in the workspace and its contents.
struct EmbeddedFile {
  std::string path;
  std::string contents;
};

struct KernelEntry {
  std::shared_ptr<const Kernel> kernel;
  std::string id;  // KernelId() of what it is compiled from
};

struct OperatorEntry {
  std::shared_ptr<const Operator> op;
  std::map<proto::DeviceKind, KernelEntry> kernels;
  EmbeddedFile space;
  EmbeddedFile shapes;
  std::vector<EmbeddedFile> tuned;  // one per hardware
  std::string package;              // "ops/softmax", where tuned files go
  bool test_only = false;           // left out of listings and workloads
};

// The id of a kernel: 16 hexadecimal digits over the hash of its sources,
// options and version, which the macro computes (kernel_sources.h), and the
// compiler.
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
  void AddKernel(absl::string_view op, proto::DeviceKind device,
                 std::shared_ptr<const Kernel> kernel);

  struct MacroFiles {
    std::string package;
    EmbeddedFile space;
    EmbeddedFile shapes;
    std::vector<EmbeddedFile> tuned;
    std::map<proto::DeviceKind, std::string> kernel_ids;
    bool test_only = false;
  };
  void AddFiles(absl::string_view op, MacroFiles files);

 private:
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

#define OPTRAIL_REGISTER_KERNEL(op, device, Class)                        \
  [[maybe_unused]] static const bool OPTRAIL_OPS_CONCAT_(                 \
      optrail_kernel_registered_, __LINE__) = [] {                        \
    ::optrail::ops::Registry::Get().AddKernel(op, device,                 \
                                              std::make_shared<Class>()); \
    return true;                                                          \
  }();

#endif  // OPTRAIL_OPS_CORE_REGISTRY_H_

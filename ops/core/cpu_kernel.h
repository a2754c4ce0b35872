#ifndef OPTRAIL_OPS_CORE_CPU_KERNEL_H_
#define OPTRAIL_OPS_CORE_CPU_KERNEL_H_

// An operator's own backend for CPUs: C++ templates that the macro compiles
// when Optrail is built, once per instantiation of the space's `compile_time`
// knobs.
//
//   class SoftmaxCpu : public CpuKernel { ... };
//   OPTRAIL_REGISTER_CPU_KERNEL("softmax", SoftmaxCpu)
//
// Every kernel chooses among its instantiations in the same way: by the index
// that the generated knobs have for a config, through a switch made of
// OPTRAIL_<NAME>_INSTANTIATIONS. See docs/guide/add_operator.md.

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "ops/core/backend.h"
#include "ops/core/cpu_device.h"
#include "ops/core/invocation.h"
#include "ops/core/registry.h"
#include "tuning/proto/config.pb.h"

namespace optrail::ops {

class CpuKernel {
 public:
  virtual ~CpuKernel() = default;

  // The index of the instantiation that serves `config`
  // (Knobs::InstantiationIndex()); -1: it was not compiled.
  virtual absl::StatusOr<int> Instantiation(
      const proto::Config& config) const = 0;

  // Errors as Backend::Load.
  virtual absl::StatusOr<std::unique_ptr<Invocation>> Prepare(
      const proto::Shape& shape, const proto::Config& config,
      CpuDevice& device) const = 0;

  // Implements Backend::data_types.
  virtual std::vector<std::vector<proto::DataType>> data_types() const {
    return {};
  }

  // Implements Backend::Blocks.
  virtual std::vector<std::pair<std::string, int64_t>> Blocks(
      const proto::Config& config) const {
    return {};
  }
};

// The backend "cpu" around a kernel.
std::shared_ptr<Backend> MakeTemplateBackend(
    std::unique_ptr<const CpuKernel> kernel);

}  // namespace optrail::ops

#define OPTRAIL_REGISTER_CPU_KERNEL(op, Class)                                 \
  [[maybe_unused]] static const bool OPTRAIL_OPS_CONCAT_(                      \
      optrail_kernel_registered_, __LINE__) = [] {                             \
    ::optrail::ops::Registry::Get().AddBackend(                                \
        op,                                                                    \
        ::optrail::ops::MakeTemplateBackend(std::make_unique<const Class>())); \
    return true;                                                               \
  }();

#endif  // OPTRAIL_OPS_CORE_CPU_KERNEL_H_

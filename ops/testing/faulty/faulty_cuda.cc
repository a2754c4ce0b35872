// The misbehaving kernel on CUDA: each behaviour is one way in which a config
// can spoil a GPU for those after it.

#include <algorithm>
#include <iterator>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "ops/core/registry.h"
#include "ops/device/cuda/backend.h"

namespace optrail::ops {
namespace {

// By number in faulty_cuda.cu; the last one never gets so far.
constexpr const char* kBehaviours[] = {"ok",
                                       "illegal_address",
                                       "misaligned_address",
                                       "trap",
                                       "hang",
                                       "write_nothing",
                                       "write_nan",
                                       "write_out_of_bounds",
                                       "change_input",
                                       "allocate"};

class FaultyCuda : public cuda::CudaBackend {
 public:
  absl::StatusOr<cuda::CudaPlan> Plan(
      const proto::Shape& shape, const proto::Config& config,
      const proto::Hardware& hardware) const override {
    constexpr int64_t kThreads = 128;
    const std::string behaviour = cuda::VariantKnob(config, "behaviour");
    const auto* const found =
        std::find(std::begin(kBehaviours), std::end(kBehaviours), behaviour);
    cuda::CudaPlan plan;
    plan.source = "faulty_cuda.cu";
    plan.function = "faulty";
    plan.defines = {absl::StrCat("BEHAVIOUR=", found - std::begin(kBehaviours)),
                    absl::StrCat("WORK=", cuda::Knob(config, "work"))};
    plan.grid_x = static_cast<unsigned>((shape.dims(0).value() + kThreads - 1) /
                                        kThreads);
    plan.block_x = kThreads;
    // More than any GPU has.
    if (behaviour == "allocate") plan.workspace_bytes = size_t{1} << 42;
    return plan;
  }

  absl::Status Arguments(const cuda::CudaPlan& plan, const proto::Shape& shape,
                         const proto::Config& config,
                         absl::Span<void* const> operands, void* workspace,
                         const cuda::Driver& driver,
                         cuda::CudaArguments* arguments) const override {
    for (void* operand : operands) arguments->Add(operand);
    arguments->Add(static_cast<int>(shape.dims(0).value()));
    return absl::OkStatus();
  }
};

OPTRAIL_REGISTER_BACKEND("faulty", FaultyCuda)

}  // namespace
}  // namespace optrail::ops

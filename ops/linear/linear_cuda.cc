// The CUDA kernels of linear: which of them a config stands for, what to
// compile and how to launch it.
//
//   mma     mma.sync, any shape, from sm_80 on    linear_mma.cu
//   hopper  wgmma fed by the bulk copy engine     linear_hopper.cu

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "base/status_macros.h"
#include "ops/core/registry.h"
#include "ops/device/cuda/backend.h"
#include "ops/lib/cuda_frame.h"

namespace optrail::ops {
namespace {

using cuda::CudaPlan;
using cuda::Knob;

struct Size {
  int64_t m, n, k;
};
Size SizeOf(const proto::Shape& shape) {
  return {shape.dims(0).value(), shape.dims(1).value(), shape.dims(2).value()};
}

class LinearCuda : public cuda::CudaBackend {
 public:
  std::vector<std::vector<proto::DataType>> data_types() const override {
    return {{proto::BF16}, {proto::F16}};
  }

  absl::StatusOr<CudaPlan> Plan(
      const proto::Shape& shape, const proto::Config& config,
      const proto::Hardware& hardware) const override {
    const Size size = SizeOf(shape);
    OPTRAIL_ASSIGN_OR_RETURN(const cuda::Element element,
                             cuda::ElementOf(shape.data_types(0)));
    CudaPlan plan = cuda::VariantKnob(config, "kernel") == "hopper"
                        ? Hopper(size, config, hardware)
                        : Mma(size, config);
    const std::string activation = NamedVariant(shape, "activation");
    for (const std::string& define :
         {absl::StrCat("ACTIVATION=", activation == "relu"   ? 1
                                      : activation == "gelu" ? 2
                                                             : 0),
          absl::StrCat("STAGES=", Knob(config, "stages")),
          absl::StrCat("GROUP=", Knob(config, "group")),
          absl::StrCat("ELEMENT=", element.code),
          absl::StrCat("INPUT=\"", element.code == 2 ? "bf16" : "f16", "\"")}) {
      plan.defines.push_back(define);
    }
    return plan;
  }

  absl::Status Arguments(const CudaPlan& plan, const proto::Shape& shape,
                         const proto::Config& config,
                         absl::Span<void* const> operands, void* workspace,
                         const cuda::Driver& driver,
                         cuda::CudaArguments* arguments) const override {
    const Size size = SizeOf(shape);
    if (plan.function == "linear_mma") {
      for (void* operand : operands) arguments->Add(operand);
    } else {
      const proto::DataType type = shape.data_types(0);
      const auto add_map = [&](void* address, int64_t rows, int64_t columns,
                               int64_t box_rows) -> absl::Status {
        cuda::TensorMap map;
        OPTRAIL_RETURN_IF_ERROR(
            cuda::EncodeMatrix(driver, address, rows, columns, type,
                               static_cast<uint32_t>(box_rows), &map));
        arguments->Add(map);
        return absl::OkStatus();
      };
      OPTRAIL_RETURN_IF_ERROR(
          add_map(operands[0], size.m, size.k, Knob(config, "tile_m")));
      OPTRAIL_RETURN_IF_ERROR(add_map(operands[1], size.k, size.n, kTileK));
      OPTRAIL_RETURN_IF_ERROR(add_map(operands[3], size.m, size.n, 64));
      arguments->Add(operands[2]);
    }
    for (const int64_t value : {size.m, size.n, size.k}) {
      arguments->Add(static_cast<int>(value));
    }
    return absl::OkStatus();
  }

 private:
  static constexpr int64_t kTileK = 64;

  static CudaPlan Hopper(const Size& size, const proto::Config& config,
                         const proto::Hardware& hardware) {
    const int64_t tile_m = Knob(config, "tile_m");
    const int64_t tile_n = Knob(config, "tile_n");
    const int64_t consumers = tile_m / 64;
    CudaPlan plan;
    plan.source = "linear_hopper.cu";
    plan.function = "linear";
    plan.architecture_specific = true;
    plan.defines = {absl::StrCat("CONSUMERS=", consumers),
                    absl::StrCat("BN=", tile_n)};
    plan.grid_x = static_cast<unsigned>(
        std::min<int64_t>(std::max(1, hardware.cores()),
                          CeilDiv(size.m, tile_m) * CeilDiv(size.n, tile_n)));
    plan.block_x = static_cast<unsigned>(128 * (consumers + 1));
    // Tiles begin at multiples of 1024; two of results for each consumer.
    plan.dynamic_shared_bytes = static_cast<unsigned>(
        Knob(config, "stages") * (tile_m + tile_n) * kTileK * 2 +
        consumers * 2 * 8192 + 1024);
    return plan;
  }

  static CudaPlan Mma(const Size& size, const proto::Config& config) {
    constexpr int64_t kMmaTileK = 32;
    const int64_t tile_m = Knob(config, "tile_m");
    const int64_t tile_n = Knob(config, "tile_n");
    // Warps of 64 x 64 results at most.
    const int64_t warps_m = std::max<int64_t>(1, tile_m / 64);
    const int64_t warps_n = std::max<int64_t>(1, tile_n / 64);
    CudaPlan plan;
    plan.source = "linear_mma.cu";
    plan.function = "linear_mma";
    plan.defines = {absl::StrCat("TILE_M=", tile_m),
                    absl::StrCat("TILE_N=", tile_n),
                    absl::StrCat("TILE_K=", kMmaTileK),
                    absl::StrCat("WARPS_M=", warps_m),
                    absl::StrCat("WARPS_N=", warps_n),
                    absl::StrCat("VECTOR_A=", cuda::VectorOf(size.k, 2)),
                    absl::StrCat("VECTOR_B=", cuda::VectorOf(size.n, 2))};
    plan.grid_x = static_cast<unsigned>(CeilDiv(size.m, tile_m) *
                                        CeilDiv(size.n, tile_n));
    plan.block_x = static_cast<unsigned>(warps_m * warps_n * 32);
    plan.dynamic_shared_bytes = static_cast<unsigned>(
        Knob(config, "stages") * 2 *
        (tile_m * (kMmaTileK + 8) + kMmaTileK * (tile_n + 8)));
    return plan;
  }
};

OPTRAIL_REGISTER_BACKEND("linear", LinearCuda)

}  // namespace
}  // namespace optrail::ops

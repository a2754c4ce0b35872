// The CUDA kernels of batched_matmul: which of them a config stands for, what
// to compile and how to launch it.
//
//   mma     mma.sync, any shape, from sm_80 on    batched_matmul_mma.cu
//   hopper  wgmma fed by the bulk copy engine     batched_matmul_hopper.cu

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
#include "ops/lib/product_cuda.h"

namespace optrail::ops {
namespace {

// Of blocks in the second dimension of a launch.
constexpr int64_t kMaxBatch = 65535;

class BatchedMatmulCuda : public ProductCuda {
 public:
  BatchedMatmulCuda() : ProductCuda("batched_matmul") {}

  absl::StatusOr<cuda::CudaPlan> Plan(
      const proto::Shape& shape, const proto::Config& config,
      const proto::Hardware& hardware) const override {
    OPTRAIL_ASSIGN_OR_RETURN(cuda::CudaPlan plan,
                             ProductCuda::Plan(shape, config, hardware));
    const int64_t batch = Batch(shape);
    if (!IsHopper(config)) {
      if (batch > kMaxBatch) {
        return absl::InvalidArgumentError(
            absl::StrCat(batch, " products, expected at most ", kMaxBatch));
      }
      plan.grid_y = static_cast<unsigned>(batch);
      return plan;
    }
    OPTRAIL_ASSIGN_OR_RETURN(const Size size, SizeOf(shape));
    plan.defines.push_back(
        absl::StrCat("FLAT=", IsFlat(batch, size, config) ? 1 : 0));
    const int64_t blocks = batch * Cluster(config) *
                           CeilDiv(size.m, TileRows(config)) *
                           CeilDiv(size.n, cuda::Knob(config, "tile_n"));
    plan.grid_x = static_cast<unsigned>(
        Cluster(config) > 1
            ? blocks
            : std::min<int64_t>(std::max(1, hardware.cores()), blocks));
    return plan;
  }

  absl::Status Arguments(const cuda::CudaPlan& plan, const proto::Shape& shape,
                         const proto::Config& config,
                         absl::Span<void* const> operands, void* workspace,
                         const cuda::Driver& driver,
                         cuda::CudaArguments* arguments) const override {
    OPTRAIL_ASSIGN_OR_RETURN(const Size size, SizeOf(shape));
    const int64_t batch = Batch(shape);
    if (IsHopper(config)) {
      const auto add = [&](void* address, int64_t rows, int64_t columns,
                           uint32_t box_rows) {
        cuda::TensorMap map;
        const absl::Status encoded =
            IsFlat(batch, size, config)
                ? cuda::EncodeMatrix(driver, address, batch * rows, columns,
                                     shape.data_types(0), box_rows, &map)
                : cuda::EncodeMatrices(driver, address, batch, rows, columns,
                                       shape.data_types(0), box_rows, &map);
        arguments->Add(map);
        return encoded;
      };
      const std::string transposed = NamedVariant(shape, "transposed");
      OPTRAIL_RETURN_IF_ERROR(
          transposed == "a"
              ? add(operands[0], size.k, size.m, kTileK)
              : add(operands[0], size.m, size.k, TileRows(config)));
      OPTRAIL_RETURN_IF_ERROR(transposed == "b"
                                  ? add(operands[1], size.n, size.k, 64)
                                  : add(operands[1], size.k, size.n, kTileK));
      OPTRAIL_RETURN_IF_ERROR(add(operands[2], size.m, size.n, 64));
    } else {
      for (void* operand : operands) arguments->Add(operand);
    }
    for (const int64_t value : {batch, size.m, size.n, size.k}) {
      arguments->Add(static_cast<int>(value));
    }
    AddWalk(size, config, workspace, arguments);
    return absl::OkStatus();
  }

 protected:
  // Of one of them.
  absl::StatusOr<Size> SizeOf(const proto::Shape& shape) const override {
    const int64_t k = shape.dims(3).value();
    const bool transposed = NamedVariant(shape, "transposed") == "a";
    return Size{shape.dims(1).value(), shape.dims(2).value(), k,
                transposed ? 1 : cuda::VectorOf(k, 2)};
  }
  int64_t VectorOfW(const proto::Shape& shape,
                    const Size& size) const override {
    return NamedVariant(shape, "transposed") == "b"
               ? 1
               : ProductCuda::VectorOfW(shape, size);
  }
  int64_t Cluster(const proto::Config& config) const override {
    return cuda::Knob(config, "cluster");
  }
  void AddDefines(const proto::Shape& shape,
                  std::vector<std::string>* defines) const override {
    const std::string transposed = NamedVariant(shape, "transposed");
    defines->push_back(
        absl::StrCat("TRANSPOSED_X=", transposed == "a" ? 1 : 0));
    defines->push_back(
        absl::StrCat("TRANSPOSED_W=", transposed == "b" ? 1 : 0));
  }

 private:
  // Whether no tile has rows of two matrices that lie one below the other.
  static bool IsFlat(int64_t batch, const Size& size,
                     const proto::Config& config) {
    return batch == 1 || (size.m % TileRows(config) == 0 && size.n % 64 == 0 &&
                          size.k % kTileK == 0);
  }
  static int64_t Batch(const proto::Shape& shape) {
    return shape.dims(0).value();
  }
};

OPTRAIL_REGISTER_BACKEND("batched_matmul", BatchedMatmulCuda)

}  // namespace
}  // namespace optrail::ops

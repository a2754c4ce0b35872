// The CUDA kernels of matmul: which of them a config stands for, what to
// compile and how to launch it.
//
//   hopper         wgmma fed by the bulk copy engine     matmul_hopper.cu
//   hopper_skinny  the same turned round, for few rows matmul_hopper_skinny.cu
//   mma            mma.sync, any shape, from sm_80 on    matmul_mma.cu

#include <algorithm>
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

// Swizzled tiles begin at multiples of this.
constexpr int64_t kAlign = 1024;
constexpr int64_t kTileK = 64;

// How a tile of rows is divided: 64 rows a product, two products of a consumer
// where there are 256.
int64_t Consumers(int64_t tile_m) { return tile_m == 256 ? 2 : tile_m / 64; }

int64_t Multiprocessors(const proto::Hardware& hardware) {
  return std::max(1, hardware.cores());
}

class MatmulCuda : public cuda::CudaBackend {
 public:
  std::vector<std::vector<proto::DataType>> data_types() const override {
    return HalfTypes();
  }

  absl::StatusOr<CudaPlan> Plan(
      const proto::Shape& shape, const proto::Config& config,
      const proto::Hardware& hardware) const override {
    OPTRAIL_ASSIGN_OR_RETURN(const cuda::Element element,
                             cuda::ElementOf(shape.data_types(0)));
    const std::string kernel = cuda::VariantKnob(config, "kernel");
    CudaPlan plan;
    if (kernel == "hopper") {
      plan = Hopper(shape, config, hardware);
    } else if (kernel == "hopper_skinny") {
      plan = Skinny(shape, config);
    } else {
      plan = Mma(shape, config);
    }
    plan.defines.push_back(InputOf(element));
    plan.defines.push_back(absl::StrCat("ELEMENT=", element.code));
    return plan;
  }

  absl::Status Arguments(const CudaPlan& plan, const proto::Shape& shape,
                         const proto::Config& config,
                         absl::Span<void* const> operands, void* workspace,
                         const cuda::Driver& driver,
                         cuda::CudaArguments* arguments) const override {
    const Size size = SizeOf(shape);
    const proto::DataType type = shape.data_types(0);
    const int64_t tile_m = Knob(config, "tile_m");
    const auto stages = static_cast<int>(Knob(config, "stages"));
    const auto group = static_cast<int>(Knob(config, "group"));
    if (plan.function == "matmul_mma") {
      for (void* operand : operands) arguments->Add(operand);
      AddSizes(size, arguments);
      arguments->Add(group);
      return absl::OkStatus();
    }
    const bool skinny = plan.function == "matmul_skinny";
    const int64_t rows_a = skinny ? tile_m : tile_m / Knob(config, "cluster_n");
    cuda::TensorMap map_a, map_b, map_c;
    OPTRAIL_RETURN_IF_ERROR(
        cuda::EncodeMatrix(driver, operands[0], size.m, size.k, type,
                           static_cast<uint32_t>(rows_a), &map_a));
    OPTRAIL_RETURN_IF_ERROR(cuda::EncodeMatrix(driver, operands[1], size.k,
                                               size.n, type, kTileK, &map_b));
    arguments->Add(map_a);
    arguments->Add(map_b);
    if (skinny) {
      arguments->Add(operands[2]);
      AddSizes(size, arguments);
      arguments->Add(stages);
      return absl::OkStatus();
    }
    OPTRAIL_RETURN_IF_ERROR(cuda::EncodeMatrix(driver, operands[2], size.m,
                                               size.n, type, 64, &map_c));
    arguments->Add(map_c);
    AddSizes(size, arguments);
    arguments->Add(stages);
    arguments->Add(group);
    arguments->Add(static_cast<int>(Knob(config, "split_k")));
    // Counters first, then partial sums.
    auto* const counters = static_cast<int*>(workspace);
    arguments->Add(workspace == nullptr
                       ? nullptr
                       : static_cast<char*>(workspace) +
                             CounterBytes(Tiles(size, config)));
    arguments->Add(counters);
    return absl::OkStatus();
  }

 private:
  static void AddSizes(const Size& size, cuda::CudaArguments* arguments) {
    arguments->Add(static_cast<int>(size.m));
    arguments->Add(static_cast<int>(size.n));
    arguments->Add(static_cast<int>(size.k));
  }

  // Tiles of c, those that clusters add beyond its edges included.
  static int64_t Tiles(const Size& size, const proto::Config& config) {
    const int64_t cluster_m = Knob(config, "cluster_m");
    const int64_t cluster_n = Knob(config, "cluster_n");
    return CeilDiv(size.m, Knob(config, "tile_m") * cluster_m) *
           CeilDiv(size.n, Knob(config, "tile_n") * cluster_n) * cluster_m *
           cluster_n;
  }
  static int64_t CounterBytes(int64_t tiles) {
    return CeilDiv(tiles * 3 * static_cast<int64_t>(sizeof(int)), kAlign) *
           kAlign;
  }

  // Of tiles of sums that are shared, by blocks of a grid.
  static int64_t Places(int64_t tiles, int64_t split_k, int64_t blocks) {
    return split_k == 1 ? 0 : split_k == 0 ? 2 * blocks : tiles * split_k;
  }

  static CudaPlan Hopper(const proto::Shape& shape, const proto::Config& config,
                         const proto::Hardware& hardware) {
    const Size size = SizeOf(shape);
    const int64_t tile_m = Knob(config, "tile_m");
    const int64_t tile_n = Knob(config, "tile_n");
    const int64_t stages = Knob(config, "stages");
    const int64_t split_k = Knob(config, "split_k");
    const int64_t cluster =
        Knob(config, "cluster_m") * Knob(config, "cluster_n");
    const int64_t consumers = Consumers(tile_m);
    CudaPlan plan;
    plan.source = "matmul_hopper.cu";
    plan.function = "matmul";
    plan.architecture_specific = true;
    plan.defines = {absl::StrCat("CONSUMERS=", consumers),
                    absl::StrCat("M_TILES=", tile_m / 64 / consumers),
                    absl::StrCat("BN=", tile_n),
                    absl::StrCat("CLUSTER_M=", Knob(config, "cluster_m")),
                    absl::StrCat("CLUSTER_N=", Knob(config, "cluster_n")),
                    absl::StrCat("SPLIT=", split_k == 1 ? 0 : 1)};
    plan.cluster = static_cast<int>(cluster);
    const int64_t tiles = Tiles(size, config);
    // Where sums are shared evenly, no more clusters than there are steps.
    const int64_t parts = split_k == 0 ? CeilDiv(size.k, kTileK) : split_k;
    plan.grid_x = static_cast<unsigned>(
        std::min(Multiprocessors(hardware) / cluster * cluster, tiles * parts));
    plan.block_x = static_cast<unsigned>(128 * (consumers + 1));
    plan.dynamic_shared_bytes =
        static_cast<unsigned>(stages * (tile_m + tile_n) * kTileK * 2 +
                              consumers * 2 * 8192 + kAlign);
    if (const int64_t places = Places(tiles, split_k, plan.grid_x)) {
      plan.workspace_bytes = static_cast<size_t>(CounterBytes(tiles) +
                                                 places * tile_m * tile_n * 4);
    }
    return plan;
  }

  static CudaPlan Skinny(const proto::Shape& shape,
                         const proto::Config& config) {
    const Size size = SizeOf(shape);
    const int64_t tile_m = Knob(config, "tile_m");
    const int64_t tile_n = Knob(config, "tile_n");
    const int64_t stages = Knob(config, "stages");
    const int64_t split_k = Knob(config, "split_k");
    CudaPlan plan;
    plan.source = "matmul_hopper_skinny.cu";
    plan.function = "matmul_skinny";
    plan.architecture_specific = true;
    plan.defines = {absl::StrCat("CONSUMERS=", tile_n / 64),
                    absl::StrCat("BM=", tile_m),
                    absl::StrCat("SPLIT_K=", split_k)};
    plan.cluster = static_cast<int>(split_k);
    plan.grid_x = static_cast<unsigned>(CeilDiv(size.n, tile_n) *
                                        CeilDiv(size.m, tile_m) * split_k);
    plan.block_x = static_cast<unsigned>(128 * (tile_n / 64 + 1));
    const int64_t ring =
        stages *
        (kTileK * tile_n * 2 + CeilDiv(tile_m * kTileK * 2, kAlign) * kAlign);
    plan.dynamic_shared_bytes =
        static_cast<unsigned>(std::max(ring, tile_m * tile_n * 4) + kAlign);
    return plan;
  }

  static CudaPlan Mma(const proto::Shape& shape, const proto::Config& config) {
    constexpr int64_t kMmaTileK = 32;
    const Size size = SizeOf(shape);
    const int64_t tile_m = Knob(config, "tile_m");
    const int64_t tile_n = Knob(config, "tile_n");
    const int64_t stages = Knob(config, "stages");
    // Warps of 64 x 64 results at most.
    const int64_t warps_m = std::max<int64_t>(1, tile_m / 64);
    const int64_t warps_n = std::max<int64_t>(1, tile_n / 64);
    CudaPlan plan;
    plan.source = "matmul_mma.cu";
    plan.function = "matmul_mma";
    plan.defines = {absl::StrCat("TILE_M=", tile_m),
                    absl::StrCat("TILE_N=", tile_n),
                    absl::StrCat("TILE_K=", kMmaTileK),
                    absl::StrCat("WARPS_M=", warps_m),
                    absl::StrCat("WARPS_N=", warps_n),
                    absl::StrCat("STAGES=", stages),
                    absl::StrCat("VECTOR_A=", cuda::VectorOf(size.k, 2)),
                    absl::StrCat("VECTOR_B=", cuda::VectorOf(size.n, 2))};
    plan.grid_x = static_cast<unsigned>(CeilDiv(size.m, tile_m) *
                                        CeilDiv(size.n, tile_n));
    plan.block_x = static_cast<unsigned>(warps_m * warps_n * 32);
    plan.dynamic_shared_bytes = static_cast<unsigned>(
        stages * 2 * (tile_m * (kMmaTileK + 8) + kMmaTileK * (tile_n + 8)));
    return plan;
  }
};

OPTRAIL_REGISTER_BACKEND("matmul", MatmulCuda)

}  // namespace
}  // namespace optrail::ops

// The CUDA kernels of matmul: which of them a config stands for, what to
// compile and how to launch it.
//
//   hopper             wgmma fed by the bulk copy engine  matmul_hopper.cu
//   hopper_transposed  the same, of the transposed product
//   hopper_skinny      of few rows, transposed      matmul_hopper_skinny.cu
//   mma                mma.sync, from sm_80 on          matmul_mma.cu

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

// How the side of a tile that products have 64 of is divided: two products of a
// consumer where it is 256.
int64_t Consumers(int64_t side) { return side == 256 ? 2 : side / 64; }

bool IsTransposed(const proto::Config& config) {
  return cuda::VariantKnob(config, "kernel") == "hopper_transposed";
}

// Which rows are no multiples of 16 bytes, as the macro UNALIGNED has it.
bool UnalignedA(const Size& size) { return size.k % 8 != 0; }
bool UnalignedB(const Size& size) { return size.n % 8 != 0; }  // and c
std::string UnalignedDefine(const Size& size) {
  return absl::StrCat("UNALIGNED=",
                      (UnalignedA(size) ? 1 : 0) + (UnalignedB(size) ? 2 : 0));
}

// How the bulk copy engine sees a matrix; nothing where it cannot.
absl::Status AddMap(const cuda::Driver& driver, bool unaligned, void* address,
                    int64_t rows, int64_t columns, proto::DataType type,
                    int64_t box_rows, cuda::CudaArguments* arguments) {
  cuda::TensorMap map{};
  if (!unaligned) {
    OPTRAIL_RETURN_IF_ERROR(
        cuda::EncodeMatrix(driver, address, rows, columns, type,
                           static_cast<uint32_t>(box_rows), &map));
  }
  arguments->Add(map);
  return absl::OkStatus();
}

// Bytes of what unaligned tiles of one step are fetched into: a word of 16
// bytes more for each row.
int64_t FetchedBytes(const Size& size, int64_t tile_m, int64_t tile_n) {
  return (UnalignedA(size) ? tile_m * (kTileK + 8) * 2 : 0) +
         (UnalignedB(size) ? kTileK * (tile_n + 8) * 2 : 0);
}

int64_t Multiprocessors(const proto::Hardware& hardware) {
  return std::max(1, hardware.cores());
}

// The blocks of a persistent kernel that run at once: of clusters of four some
// multiprocessors of each group of 16 or 18 are left over.
int64_t ResidentBlocks(const proto::Hardware& hardware, int64_t cluster) {
  const int64_t all = Multiprocessors(hardware);
  const int64_t most = cluster <= 2 ? all : all * 10 / 11;
  return std::max<int64_t>(1, most / cluster) * cluster;
}

// Warpgroups that load, as in the sources.
int64_t Producers(const Size& size, int64_t consumers, int64_t sums) {
  const bool unaligned = UnalignedA(size) || UnalignedB(size);
  return unaligned && 128 * (consumers + 2) * (sums + 40) <= 65536 ? 2 : 1;
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
    if (kernel == "hopper" || kernel == "hopper_transposed") {
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
    OPTRAIL_RETURN_IF_ERROR(AddMap(driver, UnalignedA(size), operands[0],
                                   size.m, size.k, type, rows_a, arguments));
    OPTRAIL_RETURN_IF_ERROR(AddMap(driver, UnalignedB(size), operands[1],
                                   size.k, size.n, type, kTileK, arguments));
    if (!skinny) {
      const int64_t rows_c = IsTransposed(config) ? 8 : 64;
      OPTRAIL_RETURN_IF_ERROR(AddMap(driver, UnalignedB(size), operands[2],
                                     size.m, size.n, type, rows_c, arguments));
    }
    for (void* operand : operands) arguments->Add(operand);
    if (skinny) {
      AddSizes(size, arguments);
      arguments->Add(stages);
      return absl::OkStatus();
    }
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
    const bool transposed = IsTransposed(config);
    // Products have 64 of this side of a tile and all of the other one.
    const int64_t side = transposed ? tile_n : tile_m;
    const int64_t consumers = Consumers(side);
    CudaPlan plan;
    plan.source = "matmul_hopper.cu";
    plan.function = "matmul";
    plan.architecture_specific = true;
    plan.defines = {absl::StrCat("CONSUMERS=", consumers),
                    absl::StrCat("M_TILES=", side / 64 / consumers),
                    absl::StrCat("COLUMNS=", transposed ? tile_m : tile_n),
                    absl::StrCat("TRANSPOSED=", transposed ? 1 : 0),
                    UnalignedDefine(size),
                    absl::StrCat("CLUSTER_M=", Knob(config, "cluster_m")),
                    absl::StrCat("CLUSTER_N=", Knob(config, "cluster_n")),
                    absl::StrCat("SPLIT=", split_k == 1 ? 0 : 1)};
    plan.cluster = static_cast<int>(cluster);
    const int64_t tiles = Tiles(size, config);
    // Where sums are shared evenly, no more clusters than there are steps.
    const int64_t parts = split_k == 0 ? CeilDiv(size.k, kTileK) : split_k;
    plan.grid_x = static_cast<unsigned>(
        std::min(ResidentBlocks(hardware, cluster), tiles * parts));
    const int64_t sums =
        side / 64 / consumers * (transposed ? tile_m : tile_n) / 2;
    plan.block_x = static_cast<unsigned>(
        128 * (consumers + Producers(size, consumers, sums)));
    // As in the source: steps that are fetched ahead.
    constexpr int64_t kFetched = 3;
    plan.dynamic_shared_bytes = static_cast<unsigned>(
        stages * (tile_m + tile_n) * kTileK * 2 +
        consumers * (UnalignedB(size) ? 1 : 2) * 8192 +
        kFetched * FetchedBytes(size, tile_m, tile_n) + kAlign);
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
                    absl::StrCat("SPLIT_K=", split_k), UnalignedDefine(size)};
    plan.cluster = static_cast<int>(split_k);
    plan.grid_x = static_cast<unsigned>(CeilDiv(size.n, tile_n) *
                                        CeilDiv(size.m, tile_m) * split_k);
    plan.block_x = static_cast<unsigned>(
        128 * (tile_n / 64 + Producers(size, tile_n / 64, tile_m / 2)));
    constexpr int64_t kFetched = 4;  // steps
    const int64_t ring =
        stages * (kTileK * tile_n * 2 +
                  CeilDiv(tile_m * kTileK * 2, kAlign) * kAlign) +
        kFetched * FetchedBytes(size, tile_m, tile_n);
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

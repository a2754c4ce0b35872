#ifndef OPTRAIL_OPS_LIB_PRODUCT_CUDA_H_
#define OPTRAIL_OPS_LIB_PRODUCT_CUDA_H_

// The CUDA backends of operators around a matrix product, f(x * w): what
// product_hopper.cuh and product_mma.cuh are compiled with and how they are
// launched. matmul has kernels of its own.
//
//   class LinearCuda : public ProductCuda {
//    public:
//     LinearCuda() : ProductCuda("linear") {}
//     ...
//   };
//
// The sources are STEM_hopper.cu and STEM_mma.cu, the space has the knobs
//   kernel (mma, hopper), tile_m, tile_n, stages, group, split_k.

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "base/status_macros.h"
#include "ops/device/cuda/backend.h"
#include "ops/lib/cuda_frame.h"

namespace optrail::ops {

class ProductCuda : public cuda::CudaBackend {
 public:
  // Of y[m, n] = x[m, k] * w[k, n].
  struct Size {
    int64_t m, n, k;
    int64_t vector;  // elements of x that lie together: they divide k
  };

  explicit ProductCuda(std::string stem) : stem_(std::move(stem)) {}

  std::vector<std::vector<proto::DataType>> data_types() const override {
    return HalfTypes();
  }

  absl::StatusOr<cuda::CudaPlan> Plan(
      const proto::Shape& shape, const proto::Config& config,
      const proto::Hardware& hardware) const override {
    OPTRAIL_ASSIGN_OR_RETURN(const cuda::Element element,
                             cuda::ElementOf(shape.data_types(0)));
    OPTRAIL_ASSIGN_OR_RETURN(const Size size, SizeOf(shape));
    cuda::CudaPlan plan = cuda::VariantKnob(config, "kernel") == "hopper"
                              ? Hopper(size, config, hardware)
                              : Mma(size, VectorOfW(shape, size), config);
    plan.defines.push_back(absl::StrCat("ELEMENT=", element.code));
    plan.defines.push_back(InputOf(element));
    AddDefines(shape, &plan.defines);
    return plan;
  }

 protected:
  // A step of the hopper kernel.
  static constexpr int64_t kTileK = 64;

  // InvalidArgument for what is no shape of the operator.
  virtual absl::StatusOr<Size> SizeOf(const proto::Shape& shape) const = 0;
  // Elements of w that lie together: they divide n.
  virtual int64_t VectorOfW(const proto::Shape& shape, const Size& size) const {
    return cuda::VectorOf(size.n, 2);
  }
  // Blocks of a cluster that share the steps of a tile, for sources that are
  // OPTRAIL_CLUSTER (product_hopper.cuh).
  virtual int64_t Cluster(const proto::Config& config) const { return 1; }
  // What the sources need beside the knobs.
  virtual void AddDefines(const proto::Shape& shape,
                          std::vector<std::string>* defines) const = 0;

  static bool IsHopper(const proto::Config& config) {
    return cuda::VariantKnob(config, "kernel") == "hopper";
  }
  static uint32_t TileRows(const proto::Config& config) {
    return static_cast<uint32_t>(cuda::Knob(config, "tile_m"));
  }

  // How the copy engine writes y.
  static absl::Status AddResult(const Size& size, void* y, proto::DataType type,
                                const cuda::Driver& driver,
                                cuda::CudaArguments* arguments) {
    cuda::TensorMap map;
    OPTRAIL_RETURN_IF_ERROR(cuda::EncodeMatrix(driver, y, size.m, size.n, type,
                                               /*box_rows=*/64, &map));
    arguments->Add(map);
    return absl::OkStatus();
  }

  // How tiles are walked; for Hopper where parts of sums meet, behind counters,
  // which come second.
  static void AddWalk(const Size& size, const proto::Config& config,
                      void* workspace, cuda::CudaArguments* arguments) {
    const auto group = static_cast<int>(cuda::Knob(config, "group"));
    if (!IsHopper(config)) {
      arguments->Add(group);
      return;
    }
    struct Walk {
      int stages, group, parts;
    };
    arguments->Add(Walk{static_cast<int>(cuda::Knob(config, "stages")), group,
                        static_cast<int>(cuda::Knob(config, "split_k"))});
    arguments->Add(workspace == nullptr
                       ? nullptr
                       : static_cast<char*>(workspace) +
                             CounterBytes(Tiles(size, config), config));
    arguments->Add(workspace);
  }

 private:
  // Tiles in shared memory begin at multiples of this.
  static constexpr int64_t kAlign = 1024;

  static int64_t Tiles(const Size& size, const proto::Config& config) {
    return CeilDiv(size.m, cuda::Knob(config, "tile_m")) *
           CeilDiv(size.n, cuda::Knob(config, "tile_n"));
  }
  // One for each consumer.
  static int64_t CounterBytes(int64_t tiles, const proto::Config& config) {
    return CeilDiv(tiles * cuda::Knob(config, "tile_m") / 64 * 4, kAlign) *
           kAlign;
  }

  cuda::CudaPlan Hopper(const Size& size, const proto::Config& config,
                        const proto::Hardware& hardware) const {
    const int64_t tile_m = cuda::Knob(config, "tile_m");
    const int64_t tile_n = cuda::Knob(config, "tile_n");
    const int64_t split_k = cuda::Knob(config, "split_k");
    const int64_t consumers = tile_m / 64;
    const int64_t tiles = Tiles(size, config);
    const int64_t cluster = Cluster(config);
    cuda::CudaPlan plan;
    plan.source = absl::StrCat(stem_, "_hopper.cu");
    plan.function = stem_;
    plan.architecture_specific = true;
    plan.defines = {absl::StrCat("CONSUMERS=", consumers),
                    absl::StrCat("BN=", tile_n),
                    absl::StrCat("SPLIT=", split_k > 1 ? 1 : 0),
                    absl::StrCat("CLUSTER=", cluster)};
    plan.cluster = static_cast<int>(cluster);
    plan.grid_x = static_cast<unsigned>(
        cluster > 1 ? tiles * cluster
                    : std::min<int64_t>(std::max(1, hardware.cores()),
                                        tiles * split_k));
    plan.block_x = static_cast<unsigned>(128 * (consumers + 1));
    // Two tiles of results for each consumer.
    plan.dynamic_shared_bytes = static_cast<unsigned>(
        cuda::Knob(config, "stages") * (tile_m + tile_n) * kTileK * 2 +
        consumers * 2 * 8192 + kAlign);
    if (split_k > 1) {
      plan.workspace_bytes = static_cast<size_t>(
          CounterBytes(tiles, config) + tiles * split_k * tile_m * tile_n * 4);
    }
    return plan;
  }

  cuda::CudaPlan Mma(const Size& size, int64_t vector_w,
                     const proto::Config& config) const {
    constexpr int64_t kMmaTileK = 32;
    const int64_t tile_m = cuda::Knob(config, "tile_m");
    const int64_t tile_n = cuda::Knob(config, "tile_n");
    // Warps of 64 x 64 results at most.
    const int64_t warps_m = std::max<int64_t>(1, tile_m / 64);
    const int64_t warps_n = std::max<int64_t>(1, tile_n / 64);
    cuda::CudaPlan plan;
    plan.source = absl::StrCat(stem_, "_mma.cu");
    plan.function = absl::StrCat(stem_, "_mma");
    plan.defines = {absl::StrCat("TILE_M=", tile_m),
                    absl::StrCat("TILE_N=", tile_n),
                    absl::StrCat("TILE_K=", kMmaTileK),
                    absl::StrCat("WARPS_M=", warps_m),
                    absl::StrCat("WARPS_N=", warps_n),
                    absl::StrCat("STAGES=", cuda::Knob(config, "stages")),
                    absl::StrCat("VECTOR_A=", size.vector),
                    absl::StrCat("VECTOR_B=", vector_w)};
    plan.grid_x = static_cast<unsigned>(Tiles(size, config));
    plan.block_x = static_cast<unsigned>(warps_m * warps_n * 32);
    plan.dynamic_shared_bytes = static_cast<unsigned>(
        cuda::Knob(config, "stages") * 2 *
        (tile_m * (kMmaTileK + 8) + kMmaTileK * (tile_n + 8)));
    return plan;
  }

  const std::string stem_;
};

}  // namespace optrail::ops

#endif  // OPTRAIL_OPS_LIB_PRODUCT_CUDA_H_

#include "ops/product/cuda/product_cuda.h"

#include <algorithm>
#include <cstddef>

#include "absl/strings/str_cat.h"
#include "ops/lib/cuda_frame.h"

namespace optrail::ops {
namespace {

using cuda::CudaPlan;
using cuda::Knob;

// Tiles in shared memory begin at multiples of this.
constexpr int64_t kAlign = 1024;
constexpr int64_t kBoxBytes = 64 * 64 * 2;  // results on their way out

int64_t KnobOr(const proto::Config& config, absl::string_view name,
               int64_t absent) {
  for (const proto::KnobValue& value : config.set())
    if (value.knob() == name) return value.int_();
  return absent;
}

// Blocks of clusters that load together and run at once: of clusters of four
// some multiprocessors of each group of 16 or 18 are left over.
int64_t ResidentBlocks(const proto::Hardware& hardware, int64_t cluster) {
  const int64_t all = std::max(1, hardware.cores());
  const int64_t most = cluster <= 2 ? all : all * 10 / 11;
  return std::max<int64_t>(1, most / cluster) * cluster;
}

}  // namespace

int64_t HopperProducers(int unaligned, int64_t consumers, int64_t sums) {
  const bool two =
      (unaligned & 3) != 0 && 128 * (consumers + 2) * (sums + 40) <= 65536;
  return two ? 2 : 1;
}

int64_t FetchedBytes(int unaligned, int64_t tile_m, int64_t tile_n) {
  constexpr int64_t kTileK = HopperProduct::kTileK;
  return (unaligned & 1 ? tile_m * (kTileK + 8) * 2 : 0) +
         (unaligned & 2 ? kTileK * (tile_n + 8) * 2 : 0);
}

HopperProduct::HopperProduct(const BatchedSize& size,
                             const proto::Config& config, int unaligned)
    : size_(size),
      transposed_(cuda::VariantKnob(config, "kernel") == "hopper_transposed"),
      tile_m_(Knob(config, "tile_m")),
      tile_n_(Knob(config, "tile_n")),
      stages_(Knob(config, "stages")),
      group_(Knob(config, "group")),
      split_k_(Knob(config, "split_k")),
      cluster_m_(KnobOr(config, "cluster_m", 1)),
      cluster_n_(KnobOr(config, "cluster_n", 1)),
      shares_(KnobOr(config, "cluster", 1)),
      side_(transposed_ ? tile_n_ : tile_m_),
      unaligned_(unaligned) {}

// Those that clusters add beyond the edges of c included.
int64_t HopperProduct::Tiles() const {
  return size_.batch * CeilDiv(size_.m, tile_m_ * cluster_m_) *
         CeilDiv(size_.n, tile_n_ * cluster_n_) * cluster_m_ * cluster_n_;
}

// One for each of at most three consumers.
int64_t HopperProduct::CounterBytes() const {
  return CeilDiv(Tiles() * 3 * static_cast<int64_t>(sizeof(int)), kAlign) *
         kAlign;
}

int64_t HopperProduct::Places(int64_t blocks) const {
  if (split_k_ == 1) return 0;
  return split_k_ == 0 ? 2 * blocks : Tiles() * split_k_;
}

int64_t HopperProduct::Blocks(const proto::Hardware& hardware) const {
  // Blocks that share the steps of a tile have one tile each.
  if (shares_ > 1) return Tiles() * shares_;
  // Stream-K has no more clusters than there are steps.
  const int64_t parts = split_k_ == 0 ? CeilDiv(size_.k, kTileK) : split_k_;
  return std::min(ResidentBlocks(hardware, cluster()), Tiles() * parts);
}

CudaPlan HopperProduct::Plan(absl::string_view source,
                             absl::string_view function,
                             const proto::Hardware& hardware) const {
  CudaPlan plan;
  plan.source = std::string(source);
  plan.function = std::string(function);
  plan.architecture_specific = true;
  plan.defines = {absl::StrCat("CONSUMERS=", consumers()),
                  absl::StrCat("M_TILES=", m_tiles()),
                  absl::StrCat("COLUMNS=", columns()),
                  absl::StrCat("TRANSPOSED=", transposed_ ? 1 : 0),
                  absl::StrCat("UNALIGNED=", unaligned_),
                  absl::StrCat("CLUSTER_M=", cluster_m_),
                  absl::StrCat("CLUSTER_N=", cluster_n_),
                  absl::StrCat("SHARES=", shares_),
                  absl::StrCat("SPLIT=", split_k_ == 1 ? 0 : 1)};
  plan.cluster = static_cast<int>(cluster());
  plan.grid_x = static_cast<unsigned>(Blocks(hardware));
  const int64_t producers =
      HopperProducers(unaligned_, consumers(), m_tiles() * columns() / 2);
  plan.block_x = static_cast<unsigned>(128 * (consumers() + producers));
  // Steps of unaligned rows are fetched this far ahead, as in
  // unaligned_steps.cuh.
  constexpr int64_t kFetchedSteps = 3;
  plan.dynamic_shared_bytes = static_cast<unsigned>(
      stages_ * (tile_m_ + tile_n_) * kTileK * 2 +
      consumers() * (unaligned_ & 4 ? 1 : 2) * kBoxBytes +
      kFetchedSteps * FetchedBytes(unaligned_, tile_m_, tile_n_) + kAlign);
  if (const int64_t places = Places(plan.grid_x)) {
    plan.workspace_bytes =
        static_cast<size_t>(CounterBytes() + places * tile_m_ * tile_n_ * 4);
  }
  return plan;
}

void HopperProduct::AddWalk(void* workspace,
                            cuda::CudaArguments* arguments) const {
  struct Walk {
    int stages, group, parts;
  };
  arguments->Add(Walk{static_cast<int>(stages_), static_cast<int>(group_),
                      static_cast<int>(split_k_)});
  // Counters come first in the workspace, then partial sums.
  arguments->Add(workspace == nullptr
                     ? nullptr
                     : static_cast<char*>(workspace) + CounterBytes());
  arguments->Add(workspace);
}

CudaPlan MmaProductPlan(absl::string_view source, absl::string_view function,
                        const BatchedSize& size, int64_t vector_a,
                        int64_t vector_b, const proto::Config& config) {
  constexpr int64_t kMmaTileK = 32;
  const int64_t tile_m = Knob(config, "tile_m");
  const int64_t tile_n = Knob(config, "tile_n");
  const int64_t stages = Knob(config, "stages");
  // Results of a warp: 64 x 64 at most, less where single elements pass through
  // registers, and where fewer than four warps would share a tile.
  const int64_t side = vector_a == 1 || vector_b == 1 ? 32 : 64;
  int64_t warp_m = std::min(tile_m, side), warp_n = std::min(tile_n, side);
  const auto warps = [&] { return tile_m / warp_m * (tile_n / warp_n); };
  while (warps() < 4 && warp_n > 32) warp_n /= 2;
  while (warps() < 4 && warp_m > 16) warp_m /= 2;
  CudaPlan plan;
  plan.source = std::string(source);
  plan.function = std::string(function);
  plan.defines = {absl::StrCat("TILE_M=", tile_m),
                  absl::StrCat("TILE_N=", tile_n),
                  absl::StrCat("TILE_K=", kMmaTileK),
                  absl::StrCat("WARPS_M=", tile_m / warp_m),
                  absl::StrCat("WARPS_N=", tile_n / warp_n),
                  absl::StrCat("STAGES=", stages),
                  absl::StrCat("VECTOR_A=", vector_a),
                  absl::StrCat("VECTOR_B=", vector_b)};
  plan.grid_x =
      static_cast<unsigned>(CeilDiv(size.m, tile_m) * CeilDiv(size.n, tile_n));
  plan.grid_y = static_cast<unsigned>(size.batch);
  plan.block_x = static_cast<unsigned>(warps() * 32);
  plan.dynamic_shared_bytes = static_cast<unsigned>(
      stages * 2 * (tile_m * (kMmaTileK + 8) + kMmaTileK * (tile_n + 8)));
  return plan;
}

}  // namespace optrail::ops

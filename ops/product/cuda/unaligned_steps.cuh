#ifndef OPTRAIL_OPS_PRODUCT_CUDA_UNALIGNED_STEPS_CUH_
#define OPTRAIL_OPS_PRODUCT_CUDA_UNALIGNED_STEPS_CUH_

// How the producers of hopper_product.cuh load steps whose rows of a or of b
// are no multiples of 16 bytes. A tile of such a source has
//
//   engine            loads the aligned operand: Load(slot, step)
//   a, row_a, k       a's matrix, the tile's first row, its columns
//   B(step), RowOfB(step), n0   the same of b, whose columns begin at n0
//
// of which only those of unaligned operands are read.

#include "hopper_product.cuh"
#include "unaligned.cuh"

#if UNALIGNED_LOADS
constexpr int kLoadingThreads = 128 * kProducers;
typedef UnalignedTile<kLoadingThreads, kUnalignedA ? kBm : 0, kBk / 8,
                      kBk * 128>
    TileA;
typedef UnalignedTile<kLoadingThreads, kUnalignedB ? kBk : 0, kBn / 8,
                      kBk * 128>
    TileB;

constexpr int kFetchedSteps = 3;

// The steps of one tile, by all threads of the producer.
template <class TileSource>
__device__ __forceinline__ void LoadSteps(const Block& block,
                                          const TileSource& tile,
                                          const Work& work, Place& place) {
  const int thread = threadIdx.x;
  const auto of_a = [&](int i) {
    return block.Fetched() + i * (TileA::kBytes + TileB::kBytes);
  };
  const auto of_b = [&](int i) { return of_a(i) + TileA::kBytes; };
  const auto fetch = [&](int step, int i) {
    if constexpr (kUnalignedA)
      TileA::Fetch(tile.a, thread, tile.row_a, step * kBk, of_a(i));
    if constexpr (kUnalignedB)
      TileB::Fetch(tile.B(step), thread, tile.RowOfB(step), tile.n0, of_b(i));
  };
  const auto write = [&](int step, int i) {
    const Slot slot = block.SlotAt(place.slot);
    BarrierWait(block.empty + 8 * place.slot, place.phase ^ 1);
    if (UNALIGNED_LOADS != 3 && threadIdx.x == 0) {
      BarrierExpect(slot.barrier,
                    (kUnalignedA ? 0 : kBytesA) + (kUnalignedB ? 0 : kBytesB));
      tile.engine.Load(slot, step);
    }
    if constexpr (kUnalignedA) {
      // Beyond the last k there are zeros.
      if ((step + 1) * kBk <= tile.k) {
        TileA::template Write<false>(tile.a, thread, tile.row_a, step * kBk,
                                     of_a(i), slot.a);
      } else {
        TileA::template Write<true>(tile.a, thread, tile.row_a, step * kBk,
                                    of_a(i), slot.a);
      }
    }
    if constexpr (kUnalignedB)
      TileB::template Write<false>(tile.B(step), thread, tile.RowOfB(step),
                                   tile.n0, of_b(i), slot.b);
    FenceAsync();
    __syncwarp();
    if (threadIdx.x % 32 == 0) BarrierArrive(slot.barrier);
    place.Advance(block.stages);
  };
  FetchAhead<kFetchedSteps, kLoadingThreads>(1 + CONSUMERS, work.step, work.end,
                                             fetch, write);
}
#endif

#endif  // OPTRAIL_OPS_PRODUCT_CUDA_UNALIGNED_STEPS_CUH_

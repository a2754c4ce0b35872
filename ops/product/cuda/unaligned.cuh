#ifndef OPTRAIL_OPS_PRODUCT_CUDA_UNALIGNED_CUH_
#define OPTRAIL_OPS_PRODUCT_CUDA_UNALIGNED_CUH_

// Tiles of matrices of 16-bit elements whose rows are no multiples of 16 bytes,
// which the bulk copy engine cannot load: not even a coordinate along a row may
// be off by less. The threads of a warpgroup fetch aligned words of 16 bytes
// ahead, asynchronously; once they are there, each is shifted by what its row
// is off, and the tile written as the engine would have: rows of 128 bytes with
// the 128-byte swizzle, 64 columns a slab. Matrices begin at multiples of 16
// bytes.

#include "hopper.cuh"
#include "global_words.cuh"

// A row-major matrix; what is beyond its rows reads as zero.
struct UnalignedMatrix {
  const uint16_t* begin;
  int rows, columns;
};

__device__ __forceinline__ Words4 LoadWord(uint32_t from) {
  Words4 word;
  asm volatile("ld.shared.v4.b32 {%0, %1, %2, %3}, [%4];"
               : "=r"(word.v[0]), "=r"(word.v[1]), "=r"(word.v[2]),
                 "=r"(word.v[3])
               : "r"(from)
               : "memory");
  return word;
}

__device__ __forceinline__ void StoreWord(uint32_t to, const Words4& word) {
  asm volatile("st.shared.v4.b32 [%0], {%1, %2, %3, %4};" ::"r"(to),
               "r"(word.v[0]), "r"(word.v[1]), "r"(word.v[2]), "r"(word.v[3])
               : "memory");
}

// Tiles of kTileRows x (8 * kChunks), whose slabs are kSlabBytes apart, for
// kThreads threads. A row is in one word more than it has chunks.
template <int kThreads, int kTileRows, int kChunks, int kSlabBytes>
struct UnalignedTile {
  static constexpr int kInRow = kChunks + 1;
  static constexpr int kWords = kTileRows * kInRow;
  static constexpr int kBytes = kWords * 16;  // as fetched

  // Begins to fetch the tile at `row0` and `column0`, a multiple of 8.
  static __device__ __forceinline__ void Fetch(const UnalignedMatrix& matrix,
                                               int thread, int row0,
                                               int column0, uint32_t words) {
    const long long end = (long long)matrix.rows * matrix.columns;
    int row = row0 + thread / kInRow, at = thread % kInRow;
    long long begin = (long long)row * matrix.columns;  // of the row
#pragma unroll 4
    for (int word = thread; word < kWords; word += kThreads) {
      const long long first = (begin & ~7ll) + column0 + at * 8;
      const long long left = row < matrix.rows ? end - first : 0;
      if (left >= 8) {
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(
                         words + word * 16),
                     "l"(matrix.begin + first)
                     : "memory");
      } else {
        StoreWord(words + word * 16, LastWord(matrix.begin + first, (int)left));
      }
      // The next one, without a division.
      const int more = at + kThreads % kInRow >= kInRow;
      at += kThreads % kInRow - (more ? kInRow : 0);
      row += kThreads / kInRow + more;
      begin += (long long)(kThreads / kInRow + more) * matrix.columns;
    }
  }

  // Writes the tile once all its words are there; with `kCut`, zeros beyond the
  // last column.
  template <bool kCut>
  static __device__ __forceinline__ void Write(const UnalignedMatrix& matrix,
                                               int thread, int row0,
                                               int column0, uint32_t words,
                                               uint32_t tile) {
    // Several at a time, since each takes a round trip to shared memory.
    constexpr int kTotal = kTileRows * kChunks;
    constexpr int kBatch = kTotal % (4 * kThreads) == 0   ? 4
                           : kTotal % (2 * kThreads) == 0 ? 2
                                                          : 1;
#pragma unroll 1
    for (int first = thread; first < kTotal; first += kBatch * kThreads) {
      Words4 low[kBatch], high[kBatch];
#pragma unroll
      for (int j = 0; j < kBatch; ++j) {
        const int i = first + j * kThreads;
        const uint32_t from = words + (i / kChunks * kInRow + i % kChunks) * 16;
        low[j] = LoadWord(from);
        high[j] = LoadWord(from + 16);
      }
#pragma unroll
      for (int j = 0; j < kBatch; ++j) {
        const int i = first + j * kThreads;
        const int row = i / kChunks, chunk = i % kChunks;
        const int shift = (row0 + row) % 8 * (matrix.columns % 8) % 8;
        const Words4 out = Shifted<kCut>(low[j], high[j], shift,
                                         matrix.columns - column0 - chunk * 8);
        StoreWord(tile + chunk / 8 * kSlabBytes + row * 128 +
                      ((chunk % 8 ^ row % 8) * 16),
                  out);
      }
    }
  }
};

// Runs fetch(step, slot) kSlots - 1 steps ahead of write(step, slot), by all of
// kThreads threads, which have the barrier `id` for themselves. What was
// fetched for a step is in its slot, of kSlots.
template <int kSlots, int kThreads, class Fetch, class Write>
__device__ __forceinline__ void FetchAhead(int id, int begin, int end,
                                           const Fetch& fetch,
                                           const Write& write) {
  const auto meet = [&] {
    asm volatile("bar.sync %0, %1;" ::"r"(id), "n"(kThreads) : "memory");
  };
  int ahead = begin, to = 0, from = 0;
  const auto next = [&] {
    if (ahead < end) fetch(ahead, to);
    asm volatile("cp.async.commit_group;" ::: "memory");
    ++ahead;
    if (++to == kSlots) to = 0;
  };
  meet();  // nobody writes what was fetched before any more
  for (int i = 0; i < kSlots - 1; ++i) next();
#pragma unroll 1
  for (int step = begin; step < end; ++step) {
    asm volatile("cp.async.wait_group %0;" ::"n"(kSlots - 2) : "memory");
    // All words are there, and the slot of the step before is free.
    meet();
    next();
    write(step, from);
    if (++from == kSlots) from = 0;
  }
}

// 16 rows of 64 columns of a swizzled tile, a warp's, written to a row-major
// matrix.
__device__ __forceinline__ void StoreUnaligned(uint32_t tile, int row0,
                                               uint16_t* matrix, int m, int n,
                                               int m0, int n0) {
  const auto place = [&](int row, int chunk) {
    return tile + (row0 + row) * 128 + ((chunk ^ (row0 + row) % 8) * 16);
  };
  StoreRows<16, 64, 32>(
      threadIdx.x % 32, matrix, m, n, m0 + row0, n0,
      [&](int row, int chunk) { return LoadWord(place(row, chunk)); },
      [&](int row, int column) {
        uint16_t element;
        asm volatile("ld.shared.b16 %0, [%1];"
                     : "=h"(element)
                     : "r"(place(row, column / 8) + column % 8 * 2)
                     : "memory");
        return element;
      },
      StoreGlobalWord);
}

#endif  // OPTRAIL_OPS_PRODUCT_CUDA_UNALIGNED_CUH_

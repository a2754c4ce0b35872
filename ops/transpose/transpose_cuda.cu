// y[c, r] = x[r, c] on CUDA: tiles through shared memory, accesses of 16 bytes
// on both sides.
//
// Elements are moved in words of 4 bytes: with 16-bit elements two rows of x
// are woven into words that are contiguous in y. A thread reads 16 bytes of
// each row of a word and scatters its words to columns; words of a column lie
// together, in pieces of 16 bytes whose places are exchanged (the swizzle
// below) so that neither side meets itself in a bank.
//
// Compiled at run time with these knobs as macros, beside elements.cuh's:
//   TILE_ROWS, TILE_COLUMNS: of x; powers of two times 8 words and 2 accesses.
//   THREADS; ALIGNED_X, ALIGNED_Y 1: all accesses can have 16 bytes;
//   ROWS_FIRST 1: blocks walk down the rows of x before its columns;
//   STREAMING 1: y is evicted first.

#include "elements.cuh"

constexpr int kPerWord = 4 / kElementBytes;
constexpr int kVector = 16 / kElementBytes;
typedef Elements<kVector> Vector;

constexpr int kWords = TILE_ROWS / kPerWord;     // of a column
constexpr int kAcross = TILE_COLUMNS / kVector;  // accesses of a row
// Lanes that read side by side, 128 bytes unless the tile is narrower.
constexpr int kLanes = kAcross < 8 ? kAcross : 8;
constexpr int kUnits = kWords * kAcross / THREADS;
static_assert(kUnits * THREADS == kWords * kAcross, "every thread has as many");

// Where in the tile word `w` of column `c` lies. Pieces of 16 bytes change
// places within 128 bytes, in another way for each access of a row.
__device__ __forceinline__ int Place(int c, int w) {
  const int piece = c * (kWords / 4) + w / 4;
  return (piece ^ (c / kVector % kLanes * (8 / kLanes))) * 4 + w % 4;
}

// Where in the tile a thread reads its unit-th access of x.
struct Access {
  int across, word;
  __device__ explicit Access(int unit)
      : across(unit / (kWords * kLanes) * kLanes + unit % kLanes),
        word(unit / kLanes % kWords) {}
};

extern "C" __global__ void __launch_bounds__(THREADS, 1)
    transpose(const Element* x, Element* y, long long rows, long long columns) {
  extern __shared__ __align__(16) uint32_t tile[];
#if ROWS_FIRST
  const long long tiles_r = (rows + TILE_ROWS - 1) / TILE_ROWS;
  const long long row0 = blockIdx.x % tiles_r * TILE_ROWS;
  const long long column0 = blockIdx.x / tiles_r * TILE_COLUMNS;
#else
  const long long tiles_c = (columns + TILE_COLUMNS - 1) / TILE_COLUMNS;
  const long long row0 = blockIdx.x / tiles_c * TILE_ROWS;
  const long long column0 = blockIdx.x % tiles_c * TILE_COLUMNS;
#endif
  Vector v[kUnits][kPerWord];
#pragma unroll
  for (int u = 0; u < kUnits; ++u) {
    const Access at(u * THREADS + threadIdx.x);
    const long long column = column0 + at.across * kVector;
#pragma unroll
    for (int i = 0; i < kPerWord; ++i) {
      const long long row = row0 + at.word * kPerWord + i;
      const Element* const from = x + row * columns + column;
#if ALIGNED_X
      if (row < rows && column < columns)
        v[u][i] = Load((const Vector*)from);
#else
#pragma unroll
      for (int j = 0; j < kVector; ++j) {
        if (row < rows && column + j < columns) v[u][i].at[j] = from[j];
      }
#endif
    }
  }
#pragma unroll
  for (int u = 0; u < kUnits; ++u) {
    const Access at(u * THREADS + threadIdx.x);
    const uint32_t* const first = (const uint32_t*)v[u][0].at;
#if ELEMENT == 0
#pragma unroll
    for (int j = 0; j < 4; ++j)
      tile[Place(at.across * 4 + j, at.word)] = first[j];
#else
    const uint32_t* const second = (const uint32_t*)v[u][1].at;
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      tile[Place(at.across * 8 + 2 * j, at.word)] =
          __byte_perm(first[j], second[j], 0x5410);
      tile[Place(at.across * 8 + 2 * j + 1, at.word)] =
          __byte_perm(first[j], second[j], 0x7632);
    }
#endif
  }
  __syncthreads();
#pragma unroll
  for (int u = 0; u < kUnits * kPerWord; ++u) {
    const int unit = u * THREADS + threadIdx.x;
    const int piece = unit % (kWords / 4);
    const int c = unit / (kWords / 4);
    const long long row = row0 + piece * kVector, column = column0 + c;
    if (column >= columns) continue;
    const Vector out = *(const Vector*)&tile[Place(c, piece * 4)];
    Element* const to = y + column * rows + row;
#if ALIGNED_Y
    if (row < rows) Store<STREAMING>((Vector*)to, out);
#else
#pragma unroll
    for (int j = 0; j < kVector; ++j) {
      if (row + j < rows) to[j] = out.at[j];
    }
#endif
  }
}

// y[c, r] = x[r, c] on CUDA: tiles through shared memory, accesses of 16 bytes
// on both sides.
//
// Elements are moved in words of 4 bytes: with 16-bit elements two rows of x
// are woven into words that are contiguous in y. A thread reads 16 bytes of
// each row of a word and scatters its words to columns; words of a column lie
// together, in pieces of 16 bytes whose places are exchanged (the swizzle
// below) so that neither side meets itself in a bank.
//
// Rows of x that are no multiple of 16 bytes start in the middle of an access,
// and so do those of y where x has such columns (ODD_X, ODD_Y). Then words are
// read and written where they are aligned, whatever else they hold, and shared
// memory holds single elements: what is read goes to the columns that it
// belongs to, and an access of y collects what its aligned words hold. Where a
// word of y is only partly this tile's, elements are stored one by one. A row
// takes one access more than its columns, so that a tile has one access fewer.
// Tiles as high as x (FLAT) are consecutive in y, and are written without regard
// to where its rows begin.
//
// Small matrices need no tiles: DIRECT 1 collects accesses of y from x itself,
// which one round trip to memory does.
//
// Compiled at run time with these knobs as macros, beside elements.cuh's:
//   DIRECT 0|1; THREADS; STREAMING 1: y is evicted first. Of tiles:
//   TILE_ROWS, TILE_COLUMNS: of x; powers of two times 8 words and 2 accesses.
//   ODD_X, ODD_Y: 0 or 1; FLAT 1: x has at most TILE_ROWS rows, ODD_Y;
//   ROWS_FIRST 1: blocks walk down the rows of x before its columns.

#include "elements.cuh"
#include "predecessors.cuh"

constexpr int kVector = 16 / kElementBytes;
typedef Elements<kVector> Vector;

// Elements [first, first + kVector) of `y`, where columns of x, `rows` long,
// follow each other: those from 0 on and below `end`. `read` gives the element
// of row r and column c. `first` is -kVector + 1 at least.
template <typename Read>
__device__ __forceinline__ void StoreFlat(Element* y, int first, int end,
                                          int rows, Read read) {
  const uint32_t ahead = (uint32_t)(first + kVector * rows);
  int c = (int)(ahead / (uint32_t)rows) - kVector;
  int r = (int)(ahead % (uint32_t)rows);
  Vector out = {};
#pragma unroll
  for (int j = 0; j < kVector; ++j) {
    if (first + j >= 0 && first + j < end) out.at[j] = read(r, c);
    if (++r == rows) r = 0, ++c;
  }
  if (first >= 0 && first + kVector <= end) {
    Store<STREAMING>((Vector*)(y + first), out);
    return;
  }
#pragma unroll
  for (int j = 0; j < kVector; ++j) {
    if (first + j >= 0 && first + j < end) y[first + j] = out.at[j];
  }
}

#if DIRECT

extern "C" __global__ void __launch_bounds__(THREADS)
    transpose(const Element* x, Element* y, long long rows, long long columns) {
  AwaitPredecessors();
  const int first = (blockIdx.x * THREADS + threadIdx.x) * kVector;
  const int end = (int)(rows * columns);
  if (first >= end) return;
  StoreFlat(y, first, end, (int)rows,
            [&](int r, int c) { return x[r * (int)columns + c]; });
}

#else

constexpr int kPerWord = 4 / kElementBytes;
constexpr int kWords = TILE_ROWS / kPerWord;     // of a column
constexpr int kAcross = TILE_COLUMNS / kVector;  // accesses of a row
constexpr int kColumns = (kAcross - ODD_X) * kVector;  // that a tile has
// Lanes that read side by side, 128 bytes unless the tile is narrower.
constexpr int kLanes = kAcross < 8 ? kAcross : 8;

// The first row and column of a block's tile.
struct Tile {
  long long row, column;
};

#if !ODD_X && !ODD_Y

constexpr int kUnits = kWords * kAcross / THREADS;
static_assert(kUnits * THREADS == kWords * kAcross, "every thread has as many");

// Returns the place of word `w` of column `c` in the tile. Pieces of 16 bytes
// change places within 128 bytes, in another way for each access of a row.
__device__ __forceinline__ int Place(int c, int w) {
  const int piece = c * (kWords / 4) + w / 4;
  return (piece ^ (c / kVector % kLanes * (8 / kLanes))) * 4 + w % 4;
}

// The place in the tile of a thread's unit-th access of x.
struct Access {
  int across, word;
  __device__ explicit Access(int unit)
      : across(unit / (kWords * kLanes) * kLanes + unit % kLanes),
        word(unit / kLanes % kWords) {}
};

__device__ __forceinline__ void Transpose(const Element* x, Element* y,
                                          long long rows, long long columns,
                                          const Tile& at) {
  extern __shared__ __align__(16) uint32_t tile[];
  Vector v[kUnits][kPerWord];
#pragma unroll
  for (int u = 0; u < kUnits; ++u) {
    const Access unit_at(u * THREADS + threadIdx.x);
    const long long column = at.column + unit_at.across * kVector;
#pragma unroll
    for (int i = 0; i < kPerWord; ++i) {
      const long long row = at.row + unit_at.word * kPerWord + i;
      const Element* const from = x + row * columns + column;
      if (row < rows && column < columns) v[u][i] = Load((const Vector*)from);
    }
  }
#pragma unroll
  for (int u = 0; u < kUnits; ++u) {
    const Access unit_at(u * THREADS + threadIdx.x);
    const uint32_t* const first = (const uint32_t*)v[u][0].at;
#if ELEMENT == 0
#pragma unroll
    for (int j = 0; j < 4; ++j)
      tile[Place(unit_at.across * 4 + j, unit_at.word)] = first[j];
#else
    const uint32_t* const second = (const uint32_t*)v[u][1].at;
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      tile[Place(unit_at.across * 8 + 2 * j, unit_at.word)] =
          __byte_perm(first[j], second[j], 0x5410);
      tile[Place(unit_at.across * 8 + 2 * j + 1, unit_at.word)] =
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
    const long long row = at.row + piece * kVector, column = at.column + c;
    if (column >= columns) continue;
    const Vector out = *(const Vector*)&tile[Place(c, piece * 4)];
    Element* const to = y + column * rows + row;
    if (row < rows) Store<STREAMING>((Vector*)to, out);
  }
}

#else

// The stride of a column in shared memory, in elements. Neither lanes that read 8 accesses
// of 4 rows nor those that write 8 accesses of 4 columns meet in a bank.
constexpr int kStride = TILE_ROWS + 5;
constexpr int kReads = TILE_ROWS * kAcross / THREADS;
static_assert(kReads * THREADS == TILE_ROWS * kAcross,
              "every thread has as many");
constexpr int kDown = TILE_ROWS / kVector + ODD_Y;  // accesses of a column

__device__ __forceinline__ void Transpose(const Element* x, Element* y,
                                          long long rows, long long columns,
                                          const Tile& at) {
  // Columns from at.column - kVector on, which words may reach back to.
  extern __shared__ __align__(16) Element tile[];
  const int in_columns = (int)min(columns - at.column, (long long)kColumns);
  const int in_rows = (int)min(rows - at.row, (long long)TILE_ROWS);
  Vector v[kReads];
  const auto row_of = [](int unit) { return unit / kLanes % TILE_ROWS; };
  const auto across_of = [](int unit) {
    return unit / (TILE_ROWS * kLanes) * kLanes + unit % kLanes;
  };
  // How far in front of the tile the words of a row begin.
  const auto shift_of = [&](int row) {
    return ODD_X ? (int)((at.row + row) * columns % kVector) : 0;
  };
#pragma unroll
  for (int u = 0; u < kReads; ++u) {
    const int unit = u * THREADS + threadIdx.x;
    const int row = row_of(unit);
    const int column = across_of(unit) * kVector - shift_of(row);
    if (row >= in_rows || column >= in_columns) continue;
    const long long first = (at.row + row) * columns + at.column + column;
    if (!ODD_X || first + kVector <= rows * columns) {
      v[u] = Load((const Vector*)(x + first));
    } else {
#pragma unroll
      for (int j = 0; j < kVector; ++j) {
        if (first + j < rows * columns) v[u].at[j] = x[first + j];
      }
    }
  }
#pragma unroll
  for (int u = 0; u < kReads; ++u) {
    const int unit = u * THREADS + threadIdx.x;
    const int row = row_of(unit);
    const int column = across_of(unit) * kVector - shift_of(row);
    if (row >= in_rows || column >= in_columns) continue;
    Element* const to = tile + (column + kVector) * kStride + row;
#pragma unroll
    for (int j = 0; j < kVector; ++j) to[j * kStride] = v[u].at[j];
  }
  __syncthreads();
#if FLAT
  // From the whole word on that holds the tile's first element.
  const long long begin = at.column * rows;
  const int end = in_columns * (int)rows;
  for (int first = (int)threadIdx.x * kVector - (int)(begin % kVector);
       first < end; first += THREADS * kVector) {
    StoreFlat(y + begin, first, end, (int)rows, [&](int r, int c) {
      return tile[(c + kVector) * kStride + r];
    });
  }
#else
#pragma unroll 2
  for (int unit = threadIdx.x; unit < kColumns * kDown; unit += THREADS) {
    const int c = unit / kDown;
    if (c >= in_columns) break;
    const long long row_of_y = (at.column + c) * rows + at.row;
    const int shift = ODD_Y ? (int)(row_of_y % kVector) : 0;
    const int first = unit % kDown * kVector - shift;
    if (first >= in_rows) continue;
    const Element* const from = tile + (c + kVector) * kStride + first;
    Element* const to = y + row_of_y + first;
    if (!ODD_Y || (first >= 0 && first + kVector <= in_rows)) {
      Vector out;
#pragma unroll
      for (int j = 0; j < kVector; ++j) out.at[j] = from[j];
      Store<STREAMING>((Vector*)to, out);
    } else {
#pragma unroll
      for (int j = 0; j < kVector; ++j) {
        if (first + j >= 0 && first + j < in_rows) to[j] = from[j];
      }
    }
  }
#endif
}

#endif

extern "C" __global__ void __launch_bounds__(THREADS, 1)
    transpose(const Element* x, Element* y, long long rows, long long columns) {
  AwaitPredecessors();
#if ROWS_FIRST
  const long long tiles_r = (rows + TILE_ROWS - 1) / TILE_ROWS;
  const Tile at = {blockIdx.x % tiles_r * TILE_ROWS,
                   blockIdx.x / tiles_r * kColumns};
#else
  const long long tiles_c = (columns + kColumns - 1) / kColumns;
  const Tile at = {blockIdx.x / tiles_c * TILE_ROWS,
                   blockIdx.x % tiles_c * kColumns};
#endif
  Transpose(x, y, rows, columns, at);
}

#endif

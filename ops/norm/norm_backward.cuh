// The gradients of layer_norm and rms_norm on CUDA (norm.h has the formulas) in
// one launch: dx needs sums over rows, dgamma and dbeta need sums over columns.
//
// BY_ROWS 1: a block goes through rows, whose elements lie in the registers of
// its threads as in norm.cuh, and its threads keep sums of their columns. Then
// blocks meet, and each adds up everybody's sums of some columns. x and dy are
// read once.
// BY_ROWS 0: a block has all rows of some columns, so that dgamma and dbeta are
// its own; blocks leave their parts of the sums over rows, meet, and add those
// up. For few long rows: with RESIDENT 1 what a block read is still in its
// registers when it comes back, else x and dy are read twice.
//
// All sums are added in a fixed order. Blocks meet, so that all of the grid
// must be resident: BLOCKS on every multiprocessor.
//
// Compiled at run time with these knobs as macros, beside elements.cuh's:
//   CENTRED 1 layer_norm, 0 rms_norm; THREADS_PER_ROW (a power of two from 32);
//   GROUPS (rows side by side in a block); BLOCKS; VECTOR and ODD (rows.cuh, by
//   rows; the rows of a group then start alike: the host sees to it);
//   ITEMS (by rows: accesses per thread and row; by columns: rows per thread
//   that are resident); PREFETCH: by rows, how many are loaded before the sums
//   of this one are there: 1 waits in registers, 2 and more in shared memory;
//   AT_ONCE: by rows, columns that a block adds up at once in the end, a power of
//   two.

#include "elements.cuh"
#include "predecessors.cuh"
#include "rows.cuh"

typedef Words<int> RowWords;

constexpr int kThreads = THREADS_PER_ROW * GROUPS;
constexpr int kWarpsPerRow = THREADS_PER_ROW / 32;
constexpr int kResults = CENTRED ? 2 : 1;  // dgamma and dbeta

// Sums of g and of g h.
struct Sums {
  float g, gh;
};
__device__ __forceinline__ Sums OfWarp(Sums s) {
  return {CENTRED ? SumOfLanes<32>(s.g) : 0, SumOfLanes<32>(s.gh)};
}

// Whether h is x * rstd + shift, one multiplication and addition, and computed
// twice: where there are no registers that keep it. Elements of 16 bits whose
// mean is so far from 0 that this loses digits have none to lose; of 32 bits the
// difference is taken first.
constexpr bool kFolded =
    ELEMENT != 0 && BY_ROWS && (!CENTRED || ITEMS > 2);

struct Row {
  float mean, rstd, shift;

  __device__ __forceinline__ float Normalized(float x) const {
    if (!kFolded) return (x - mean) * rstd;
    return CENTRED ? fmaf(x, rstd, shift) : x * rstd;
  }
};

struct Operands {
  const Element *dy, *x, *gamma;
  const float *mean, *rstd;
  Element *dx, *dgamma, *dbeta;
  long long rows;
  int columns;

  // dgamma and dbeta.
  __device__ __forceinline__ Element* Result(int i) const {
    return i == 0 ? dgamma : dbeta;
  }
  __device__ __forceinline__ Row At(long long row) const {
    const float m = CENTRED ? __ldg(mean + row) : 0, r = __ldg(rstd + row);
    return {m, r, -m * r};
  }
};

// Word i of a row: adds to the sums of the row.
__device__ __forceinline__ void AddSums(const Vector& dy, const Vector& x,
                                        const Vector& gamma, const Row& row,
                                        const RowWords& words, int i,
                                        Sums* of_row) {
  float d[VECTOR], h[VECTOR], scale[VECTOR];
  Values(dy, words, i, 0, d);
  Values(x, words, i, 0, h);
  ToFloats(gamma, scale);
#pragma unroll
  for (int j = 0; j < VECTOR; ++j) {
    const float g = d[j] * scale[j];
    if (CENTRED) of_row->g += g;
    of_row->gh = fmaf(g, row.Normalized(h[j]), of_row->gh);
  }
}

__device__ __forceinline__ void AddColumns(const Vector& dy, const Vector& x,
                                           const Row& row,
                                           float (&sums)[kResults][VECTOR]) {
  float d[VECTOR], h[VECTOR];
  ToFloats(dy, d);
  ToFloats(x, h);
#pragma unroll
  for (int j = 0; j < VECTOR; ++j) {
    sums[0][j] = fmaf(d[j], row.Normalized(h[j]), sums[0][j]);
    if (CENTRED) sums[kResults - 1][j] += d[j];
  }
}

// `means`: the sums of the whole row over its length. rstd (g - mean of g - h
// times mean of g h), or g rstd + (x factor + constant).
__device__ __forceinline__ Vector Gradient(const Vector& dy, const Vector& x,
                                           const Vector& gamma, const Row& row,
                                           const Sums& means) {
  float d[VECTOR], h[VECTOR], scale[VECTOR];
  ToFloats(dy, d);
  ToFloats(x, h);
  ToFloats(gamma, scale);
  const float factor = -row.rstd * means.gh * row.rstd;
  const float constant = -row.rstd * fmaf(means.gh, row.shift, means.g);
#pragma unroll
  for (int j = 0; j < VECTOR; ++j) {
    const float g = d[j] * scale[j];
    if (!kFolded) {
      d[j] = row.rstd * (fmaf(d[j], scale[j], -means.g) -
                         row.Normalized(h[j]) * means.gh);
    } else {
      const float rest = CENTRED ? fmaf(h[j], factor, constant) : h[j] * factor;
      d[j] = fmaf(g, row.rstd, rest);
    }
  }
  return FromFloats(d);
}

#if BY_ROWS

// The sums over the threads of this group's row, in all of them. `turn` differs
// from that of the call before.
__device__ __forceinline__ Sums OfRow(Sums s, int turn) {
  s = OfWarp(s);
  if (THREADS_PER_ROW == 32) return s;
  __shared__ Sums parts[2][GROUPS][kWarpsPerRow];
  const int in_row = threadIdx.x % THREADS_PER_ROW;
  const int group = threadIdx.x / THREADS_PER_ROW;
  if (in_row % 32 == 0) parts[turn][group][in_row / 32] = s;
  asm volatile("bar.sync %0, %1;" ::"r"(1 + group), "n"(THREADS_PER_ROW)
               : "memory");
  s = {};
#pragma unroll
  for (int i = 0; i < kWarpsPerRow; ++i) {
    s.g += parts[turn][group][i].g;
    s.gh += parts[turn][group][i].gh;
  }
  return s;
}

__device__ __forceinline__ void LoadRow(const Element* x,
                                        const RowWords& row, int in_row,
                                        Vector (&v)[ITEMS]) {
#pragma unroll
  for (int i = 0; i < ITEMS; ++i) {
    const int index = in_row + i * THREADS_PER_ROW;
    if (index < row.count) v[i] = LoadWord(x, row, index);
  }
}

#if PREFETCH > 1
// Rows on their way, in shared memory: [slot][dy, x][group][columns]. A thread
// copies what it is going to read itself, so that nobody waits for anybody; the
// slot of the row before is free.
constexpr int kSlots = PREFETCH + 1;

// The last word of a matrix may end behind it: `bytes` of it are there, and the
// rest becomes 0.
__device__ __forceinline__ void CopyAsync(void* to, const void* from,
                                          int bytes) {
  const auto at = (unsigned)__cvta_generic_to_shared(to);
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(at),
               "l"(from), "r"(bytes)
               : "memory");
}

struct Ring {
  Element* at;  // this group's, of slot 0
  int padded;   // elements of the words of a row

  __device__ __forceinline__ Vector* Of(int slot, int operand) const {
    return (Vector*)(at + (long long)(2 * slot + operand) * GROUPS * padded);
  }
  // `row` may be behind the last one: every row is a group of copies.
  __device__ __forceinline__ void Begin(const Operands& o, long long row,
                                        int slot, int in_row) const {
    if (row < o.rows) {
      const RowWords words = WordsOfRow<int>(row, o.rows, o.columns);
#pragma unroll
      for (int i = 0; i < ITEMS; ++i) {
        const int index = in_row + i * THREADS_PER_ROW;
        if (index >= words.count) continue;
        const int bytes =
            !ODD || index < words.loadable
                ? 16
                : (words.columns + words.shift - index * VECTOR) *
                      kElementBytes;
        CopyAsync(Of(slot, 0) + index,
                  (const Vector*)o.dy + words.first + index, bytes);
        CopyAsync(Of(slot, 1) + index,
                  (const Vector*)o.x + words.first + index, bytes);
      }
    }
    asm volatile("cp.async.commit_group;" ::: "memory");
  }
};
// Until at most so many rows are on their way.
template <int kPending>
__device__ __forceinline__ void RingWait() {
  asm volatile("cp.async.wait_group %0;" ::"n"(kPending) : "memory");
}
#endif

// Adds up the sums of all blocks, partial[block][result][column].
__device__ __forceinline__ void AddBlocks(const float* partial,
                                          const Operands& o) {
  constexpr int kParts = kThreads / AT_ONCE;
  __shared__ float parts[kParts][AT_ONCE];
  const int in_turn = threadIdx.x % AT_ONCE, part = threadIdx.x / AT_ONCE;
  const long long all = (long long)kResults * o.columns;
  for (long long first = (long long)blockIdx.x * AT_ONCE; first < all;
       first += (long long)gridDim.x * AT_ONCE) {
    const long long at = first + in_turn;
    float sum = 0;
    if (at < all) {
#pragma unroll 8
      for (int block = part; block < gridDim.x; block += kParts) {
        sum += __ldcg(partial + block * all + at);
      }
    }
    parts[part][in_turn] = sum;
#pragma unroll
    for (int half = kParts / 2; half > 0; half /= 2) {
      __syncthreads();
      if (part < half) {
        parts[part][in_turn] += parts[part + half][in_turn];
      }
    }
    if (part == 0 && at < all) {
      const int result = at >= o.columns;
      o.Result(result)[at - result * o.columns] =
          FromFloat(parts[0][in_turn]);
    }
    __syncthreads();
  }
}

__device__ __forceinline__ void Backward(const Operands& o, int* workspace) {
  // First the ring, then [GROUPS][columns].
  extern __shared__ __align__(16) float of_groups[];
  const int in_row = threadIdx.x % THREADS_PER_ROW;
  const int group = threadIdx.x / THREADS_PER_ROW;
  const long long step = (long long)gridDim.x * GROUPS;
  long long row = (long long)blockIdx.x * GROUPS + group;
  // Of the first row: all that follow start alike.
  const RowWords mine_at =
      WordsOfRow<int>(row < o.rows ? row : 0, o.rows, o.columns);
  const auto words_of = [&](long long of) {
    RowWords words = mine_at;
    words.first = (of * o.columns - mine_at.shift) / VECTOR;
    if (ODD) {
      words.loadable = words.count - ((words.first + words.count) * VECTOR >
                                      o.rows * o.columns);
    }
    return words;
  };
  Vector scale[ITEMS];
#pragma unroll
  for (int i = 0; i < ITEMS; ++i) {
    const int index = in_row + i * THREADS_PER_ROW;
    if (index < mine_at.count) scale[i] = LoadBeside(o.gamma, mine_at, index);
  }
  float sums[ITEMS][kResults][VECTOR] = {};
  const float inverse = 1.0f / o.columns;
  Vector dy[ITEMS], x[ITEMS];
  Row of_row = {};
#if PREFETCH > 1
  const int padded =
      ODD ? (o.columns + 2 * VECTOR - 2) / VECTOR * VECTOR : o.columns;
  const Ring ring = {(Element*)of_groups + group * padded, padded};
  int slot = 0;
#pragma unroll
  for (int ahead = 0; ahead < PREFETCH; ++ahead) {
    ring.Begin(o, row + ahead * step, ahead, in_row);
  }
  if (row < o.rows) of_row = o.At(row);
#elif PREFETCH
  if (row < o.rows) {
    LoadRow(o.dy, mine_at, in_row, dy);
    LoadRow(o.x, mine_at, in_row, x);
    of_row = o.At(row);
  }
#endif
  for (int turn = 0; row < o.rows; row += step, turn ^= 1) {
    const RowWords words = words_of(row);
#if PREFETCH > 1
    RingWait<PREFETCH - 1>();
    ring.Begin(o, row + PREFETCH * step, slot == 0 ? PREFETCH : slot - 1,
               in_row);
    const Row of_next = row + step < o.rows ? o.At(row + step) : Row{};
    // Read again for the gradients: registers have sums to keep.
    const auto read = [&](int i) {
      dy[i] = ring.Of(slot, 0)[in_row + i * THREADS_PER_ROW];
      x[i] = ring.Of(slot, 1)[in_row + i * THREADS_PER_ROW];
    };
#elif PREFETCH
    Vector next_dy[ITEMS], next_x[ITEMS];
    Row of_next = {};
    const long long next = row + step;
    if (next < o.rows) {
      const RowWords next_words = words_of(next);
      LoadRow(o.dy, next_words, in_row, next_dy);
      LoadRow(o.x, next_words, in_row, next_x);
      of_next = o.At(next);
    }
#else
    LoadRow(o.dy, words, in_row, dy);
    LoadRow(o.x, words, in_row, x);
    of_row = o.At(row);
#endif
    Sums mine = {};
#pragma unroll
    for (int i = 0; i < ITEMS; ++i) {
      const int index = in_row + i * THREADS_PER_ROW;
      if (index >= words.count) continue;
#if PREFETCH > 1
      read(i);
#endif
      AddSums(dy[i], x[i], scale[i], of_row, words, index, &mine);
      AddColumns(dy[i], x[i], of_row, sums[i]);
    }
    mine = OfRow(mine, turn);
    const Sums means = {mine.g * inverse, mine.gh * inverse};
#pragma unroll
    for (int i = 0; i < ITEMS; ++i) {
      const int index = in_row + i * THREADS_PER_ROW;
      if (index >= words.count) continue;
#if PREFETCH > 1
      read(i);
#endif
      StoreWord<false>(o.dx, words, index,
                       Gradient(dy[i], x[i], scale[i], of_row, means));
    }
#if PREFETCH > 1
    slot = slot == PREFETCH ? 0 : slot + 1;
    of_row = of_next;
#elif PREFETCH
#pragma unroll
    for (int i = 0; i < ITEMS; ++i) dy[i] = next_dy[i], x[i] = next_x[i];
    of_row = of_next;
#endif
  }
  // Two counters come first.
  float* const partial = (float*)(workspace + 64);
  float* const mine =
      partial + (long long)blockIdx.x * kResults * o.columns;
#pragma unroll
  for (int result = 0; result < kResults; ++result) {
    float* const to =
        GROUPS == 1 ? mine + result * o.columns : of_groups + group * o.columns;
    if (GROUPS > 1) __syncthreads();
#pragma unroll
    for (int i = 0; i < ITEMS; ++i) {
      const int index = in_row + i * THREADS_PER_ROW;
      if (index >= mine_at.count) continue;
#pragma unroll
      for (int j = 0; j < VECTOR; ++j) {
        if (mine_at.Has(index, j)) {
          to[index * VECTOR + j - mine_at.shift] = sums[i][result][j];
        }
      }
    }
    if (GROUPS == 1) continue;
    __syncthreads();
    for (int c = threadIdx.x; c < o.columns; c += kThreads) {
      float sum = 0;
#pragma unroll
      for (int g = 0; g < GROUPS; ++g) sum += of_groups[g * o.columns + c];
      mine[result * o.columns + c] = sum;
    }
  }
  MeetAllBlocks(workspace);
  AddBlocks(partial, o);
}

#else

// Sums on their way to other blocks.
#if CENTRED
typedef float2 Part;
__device__ __forceinline__ Part PartOf(const Sums& s) { return {s.g, s.gh}; }
__device__ __forceinline__ void Add(const Part& part, Sums* s) {
  s->g += part.x;
  s->gh += part.y;
}
#else
typedef float Part;
__device__ __forceinline__ Part PartOf(const Sums& s) { return s.gh; }
__device__ __forceinline__ void Add(Part part, Sums* s) { s->gh += part; }
#endif

// Rows group, group + GROUPS... of the columns that a thread has in one slice.
__device__ __forceinline__ void Backward(const Operands& o, int* workspace) {
  __shared__ float of_groups[GROUPS][THREADS_PER_ROW * VECTOR];
  const int in_row = threadIdx.x % THREADS_PER_ROW;
  const int group = threadIdx.x / THREADS_PER_ROW;
  const int lane = threadIdx.x % 32;
  const int vectors = o.columns / VECTOR;
  const RowWords words = WordsOfRow<int>(0, o.rows, o.columns);
  const int step = gridDim.x * THREADS_PER_ROW;
  const int first = blockIdx.x * THREADS_PER_ROW + in_row;
  // Two counters come first, then parts[row][part], a part of every warp of a
  // row.
  Part* const parts = (Part*)(workspace + 64);
  const int count = gridDim.x * kWarpsPerRow;
  Part* const my_part = parts + blockIdx.x * kWarpsPerRow + in_row / 32;

#if RESIDENT
  // Of all rows, which come while dy and x are on their way: each would be
  // waited for.
  __shared__ Row of_rows[ITEMS * GROUPS];
  static_assert(ITEMS * GROUPS <= kThreads, "a thread loads one at most");
  Row of_row = {};
  if (threadIdx.x < o.rows) of_row = o.At(threadIdx.x);
  Vector dy[ITEMS], x[ITEMS], scale = {};
  if (first < vectors) scale = ((const Vector*)o.gamma)[first];
#pragma unroll
  for (int k = 0; k < ITEMS; ++k) {
    const long long row = group + k * GROUPS;
    if (row >= o.rows || first >= vectors) continue;
    dy[k] = Load((const Vector*)(o.dy + row * o.columns) + first);
    x[k] = Load((const Vector*)(o.x + row * o.columns) + first);
  }
  if (threadIdx.x < o.rows) of_rows[threadIdx.x] = of_row;
  __syncthreads();
#pragma unroll
  for (int k = 0; k < ITEMS; ++k) {
    const int row = group + k * GROUPS;
    if (row >= o.rows) break;
    Sums mine = {};
    if (first < vectors) {
      AddSums(dy[k], x[k], scale, of_rows[row], words, first, &mine);
    }
    mine = OfWarp(mine);
    if (lane == 0) my_part[row * count] = PartOf(mine);
  }
#else
  for (long long row = group; row < o.rows; row += GROUPS) {
    const Row of_row = o.At(row);
    Sums mine = {};
    for (int index = first; index < vectors; index += step) {
      AddSums(((const Vector*)(o.dy + row * o.columns))[index],
              ((const Vector*)(o.x + row * o.columns))[index],
              ((const Vector*)o.gamma)[index], of_row, words, index, &mine);
    }
    mine = OfWarp(mine);
    if (lane == 0) my_part[row * count] = PartOf(mine);
  }
#endif

  MeetAllBlocks(workspace);
  // Of rows group, group + GROUPS..., from the k-th on: parts of several are in
  // flight together.
  const auto means_of = [&](long long k, auto& means) {
    constexpr int kRows = sizeof(means) / sizeof(means[0]);
    constexpr int kInFlight = 4;
#pragma unroll
    for (int j = 0; j < kRows; ++j) means[j] = {};
    for (int at = lane; at < count; at += 32 * kInFlight) {
#pragma unroll
      for (int i = 0; i < kInFlight; ++i) {
#pragma unroll
        for (int j = 0; j < kRows; ++j) {
          const long long row = group + (k + j) * GROUPS;
          if (row >= o.rows || at + i * 32 >= count) continue;
          Add(__ldcg(parts + row * count + at + i * 32), &means[j]);
        }
      }
    }
#pragma unroll
    for (int j = 0; j < kRows; ++j) {
      means[j] = OfWarp(means[j]);
      means[j].g /= o.columns;
      means[j].gh /= o.columns;
    }
  };

  // All threads go through all slices of the block together.
  for (int slice = blockIdx.x * THREADS_PER_ROW; slice < vectors;
       slice += step) {
    const int index = slice + in_row;
    float sums[kResults][VECTOR] = {};
#if RESIDENT  // one slice
    constexpr int kAtOnce = ITEMS < 4 ? ITEMS : 4;
    Sums means[kAtOnce];
#pragma unroll
    for (int k = 0; k < ITEMS; ++k) {
      const long long row = group + k * GROUPS;
      if (row >= o.rows) break;
      if (k % kAtOnce == 0) means_of(k, means);
      if (index >= vectors) continue;
      AddColumns(dy[k], x[k], of_rows[row], sums);
      ((Vector*)(o.dx + row * o.columns))[index] =
          Gradient(dy[k], x[k], scale, of_rows[row], means[k % kAtOnce]);
    }
#else
    for (int k = 0; group + (long long)k * GROUPS < o.rows; ++k) {
      const long long row = group + (long long)k * GROUPS;
      Sums of_one[1];
      means_of(k, of_one);
      const Sums means = of_one[0];
      if (index >= vectors) continue;
      const Row of_row = o.At(row);
      const Vector dy = ((const Vector*)(o.dy + row * o.columns))[index];
      const Vector x = ((const Vector*)(o.x + row * o.columns))[index];
      AddColumns(dy, x, of_row, sums);
      ((Vector*)(o.dx + row * o.columns))[index] =
          Gradient(dy, x, ((const Vector*)o.gamma)[index], of_row, means);
    }
#endif
#pragma unroll
    for (int result = 0; result < kResults; ++result) {
      __syncthreads();
#pragma unroll
      for (int j = 0; j < VECTOR; ++j) {
        of_groups[group][j * THREADS_PER_ROW + in_row] = sums[result][j];
      }
      __syncthreads();
      for (int i = threadIdx.x; i < THREADS_PER_ROW * VECTOR; i += kThreads) {
        const int column =
            (slice + i % THREADS_PER_ROW) * VECTOR + i / THREADS_PER_ROW;
        if (column >= o.columns) continue;
        float sum = 0;
#pragma unroll
        for (int g = 0; g < GROUPS; ++g) sum += of_groups[g][i];
        o.Result(result)[column] = FromFloat(sum);
      }
    }
    if (RESIDENT) break;
  }
}

#endif

extern "C" __global__ void __launch_bounds__(kThreads, BLOCKS)
    backward(const Element* dy, const Element* x, const Element* gamma,
#if CENTRED
             const float* mean,
#endif
             const float* rstd, Element* dx, Element* dgamma,
#if CENTRED
             Element* dbeta,
#endif
             long long rows, int columns, int* workspace) {
  AwaitPredecessors();
#if !CENTRED
  const float* const mean = nullptr;
  Element* const dbeta = nullptr;
#endif
  Backward({dy, x, gamma, mean, rstd, dx, dgamma, dbeta, rows, columns},
           workspace);
}

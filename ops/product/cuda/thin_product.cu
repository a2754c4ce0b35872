// c[i] = f(a[i] * b[i]) where one side is so short that tensor cores would
// multiply mostly zeros, and memory is what takes time: sums of at most 32
// steps, and at most 8 columns or rows of c. Matrices have any alignment; what
// is read or written of the long one is 16 bytes at a time.
//
// FORM says what is long:
//   SUMS_OF_FEW  c, of few steps: a thread has eight columns of b in registers
//                and walks down rows of c that start alike within words
//   LONG_ROWS    rows of steps: LANES threads share the sums of ROWS rows
//   LONG_COLUMNS columns of steps: a thread has eight of them, the warps of a
//                block share the steps
// In the last two, x is the long matrix and y the short one: a and b, or, with
// FLIPPED, b and a.
//
// Compiled at run time with epilogue.cuh's macros and
//   FORM; FLIPPED 0|1; TRANSPOSED_A, TRANSPOSED_B 0|1 (a[i] is stored as
//   [k][m], b[i] as [n][k]);
//   FEW   the steps of SUMS_OF_FEW, up to 32; else columns or rows, up to 8
//   LANES 1 to 32 or 256, ROWS 1|2|4   of LONG_ROWS
//   ALIGNED 0|1  rows of x, or of b, are multiples of 16 bytes

#include "epilogue.cuh"
#include "global_words.cuh"
#include "predecessors.cuh"

#define SUMS_OF_FEW 0
#define LONG_ROWS 1
#define LONG_COLUMNS 2

__device__ __forceinline__ void WordToFloats(const Words4& word,
                                             float (&to)[8]) {
  Elements<8> elements;
  uint32_t* const pairs = (uint32_t*)elements.at;
#pragma unroll
  for (int i = 0; i < 4; ++i) pairs[i] = word.v[i];
  ToFloats(elements, to);
}

// Eight elements that are on their way: two words.
struct Pending {
  Words4 low, high;
  int shift;

  // From `at` on, if 16 elements from its word on are inside the matrix.
  __device__ __forceinline__ void Fetch(const uint16_t* matrix, long long at) {
    shift = (int)(at & 7);
    low = WholeWord(matrix + at - shift);
    if constexpr (!ALIGNED) high = WholeWord(matrix + at - shift + 8);
  }
  // From any place; words that are not wholly inside the matrix of at least
  // eight elements are wrong.
  __device__ __forceinline__ void FetchNear(const uint16_t* matrix,
                                            long long at, long long count) {
    const long long last = count - 8 - (count & 7);
    const long long word = at & ~7ll;
    shift = (int)(at & 7);
    low = WholeWord(matrix + max(min(word, last), 0ll));
    if constexpr (!ALIGNED)
      high = WholeWord(matrix + max(min(word + 8, last), 0ll));
  }
  __device__ __forceinline__ void Set(const Words4& word) {
    low = word, shift = 0;
  }
  __device__ __forceinline__ Words4 Get() const {
    return ALIGNED ? low : Shifted<false>(low, high, shift, 8);
  }
};

#if FORM == SUMS_OF_FEW
constexpr int kThreads = 128;
constexpr int kMostRows = 64;

// Eight columns of a step of b: registers hold 16 steps as floats, and 32 as
// they are in memory.
#if FEW <= 16
struct Columns {
  float v[8];
  __device__ __forceinline__ void Set(const Words4& word) {
    WordToFloats(word, v);
  }
  __device__ __forceinline__ void Get(float (&to)[8]) const {
#pragma unroll
    for (int j = 0; j < 8; ++j) to[j] = v[j];
  }
};
#else
struct Columns {
  Words4 word;
  __device__ __forceinline__ void Set(const Words4& from) { word = from; }
  __device__ __forceinline__ void Get(float (&to)[8]) const {
    WordToFloats(word, to);
  }
};
#endif

// `period`: rows of c so far apart start alike. A block has `rows` of these;
// `side` of its threads stand side by side, with a word of a row each, and the
// next ones have the next two rows.
extern "C" __global__ void __launch_bounds__(kThreads)
    thin_product(const uint16_t* a, const uint16_t* b, const uint16_t* bias,
                 uint16_t* c, int m, int n, int k, int batch, int period,
                 int rows, int side) {
  AwaitPredecessors();
  // Rows of whole words, which are loaded four floats at a time.
  // With an odd number of rows the last is computed beside one of no use.
  __shared__ __align__(16) float of_a[kMostRows][(FEW + 3) / 4 * 4];
  const int words = n % 8 == 0 ? n / 8 : (n + 14) / 8;
  const int tiles = (words + side - 1) / side;
  const int start = blockIdx.x / tiles % period;
  const int first = blockIdx.x / tiles / period * rows * period + start;
  const long long product = blockIdx.y;
  const int shift = (int)((product * m + first) * n % 8);
  const int column =
      ((int)(blockIdx.x % tiles) * side + (int)threadIdx.x % side) * 8 - shift;
  // Elements of other rows belong to columns that are not stored.
  Columns of_b[FEW];
  const long long base = product * n * FEW;
  if constexpr (TRANSPOSED_B) {
#pragma unroll
    for (int step = 0; step < FEW; ++step) {
      Words4 word = {};
#pragma unroll
      for (int j = 0; j < 8; ++j) {
        const long long at = min(max(column + j, 0), n - 1);
        word.v[j / 2] |= (uint32_t)__ldg(b + base + at * FEW + step)
                         << j % 2 * 16;
      }
      of_b[step].Set(word);
    }
  } else {
    const long long count = (long long)batch * n * FEW;
    const long long begin = base + min(column, n);
    constexpr int kTogether = 8;  // steps in flight
#pragma unroll
    for (int first = 0; first < FEW; first += kTogether) {
      Pending words[kTogether];
      if (count >= 8) {
#pragma unroll
        for (int i = 0; i < kTogether && first + i < FEW; ++i)
          words[i].FetchNear(b, begin + (first + i) * (long long)n, count);
      }
#pragma unroll
      for (int i = 0; i < kTogether && first + i < FEW; ++i) {
        const long long at = begin + (first + i) * (long long)n;
        if (at < 0 || at + 16 > count)
          words[i].Set(WordAt<false>(b, at, count, 8));
        of_b[first + i].Set(words[i].Get());
      }
    }
  }
#pragma unroll 4
  for (int i = threadIdx.x; i < rows * FEW; i += kThreads) {
    const int row = first + i / FEW * period, step = i % FEW;
    const long long at =
        product * m * FEW + (TRANSPOSED_A ? (long long)step * m + row
                                          : (long long)row * FEW + step);
    of_a[i / FEW][step] = row < m ? ToFloat(__ldg(a + at)) : 0;
  }
  __syncthreads();
  if (column >= n) return;
  const MatrixEpilogue epilogue(bias, n);
  MatrixEpilogue::Column of_column[8];
#pragma unroll
  for (int j = 0; j < 8; ++j) epilogue.Load(max(column + j, 0), of_column[j]);
  const bool whole = column >= 0 && column + 8 <= n;
  // Two rows share what a step of b takes to read.
#pragma unroll 1
  for (int i = threadIdx.x / side * 2; i < rows; i += kThreads / side * 2) {
    float sums[2][8] = {};
#pragma unroll
    for (int first_step = 0; first_step < FEW; first_step += 4) {
      float of_rows[2][4];
#pragma unroll
      for (int r = 0; r < 2; ++r) {
        const float4 four = *(const float4*)&of_a[i + r][first_step];
        of_rows[r][0] = four.x, of_rows[r][1] = four.y;
        of_rows[r][2] = four.z, of_rows[r][3] = four.w;
      }
#pragma unroll
      for (int step = first_step; step < first_step + 4 && step < FEW; ++step) {
        float columns[8];
        of_b[step].Get(columns);
#pragma unroll
        for (int r = 0; r < 2; ++r) {
#pragma unroll
          for (int j = 0; j < 8; ++j) {
            sums[r][j] =
                fmaf(of_rows[r][step - first_step], columns[j], sums[r][j]);
          }
        }
      }
    }
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      const int row = first + (i + r) * period;
      if (i + r >= rows || row >= m) return;
#pragma unroll
      for (int j = 0; j < 8; ++j)
        sums[r][j] = epilogue.Finish(sums[r][j], of_column[j]);
      uint16_t* const to = c + (product * m + row) * n + column;
      const Elements<8> result = FromFloats(sums[r]);
      if (whole) {
        const uint32_t* const pairs = (const uint32_t*)result.at;
        StoreGlobalWord(to, {{pairs[0], pairs[1], pairs[2], pairs[3]}});
        continue;
      }
#pragma unroll
      for (int j = 0; j < 8; ++j) {
        if (column + j >= 0 && column + j < n) to[j] = result.at[j];
      }
    }
  }
}
#else

constexpr int kThreads = 256;

// y is stored as [column or row][step], not as [step][column or row].
constexpr bool kAlong = FLIPPED ? !TRANSPOSED_A : TRANSPOSED_B;

__device__ __forceinline__ uint16_t ElementOf(const Words4& word, int i) {
  return (uint16_t)(word.v[i / 2] >> i % 2 * 16);
}

// Calls put(step, j, element) for the elements of the `steps` steps of a
// product's y from `begin` on, and for zeros up to a multiple of 8 steps; by
// all threads.
template <class Put>
__device__ __forceinline__ void ReadShort(const uint16_t* y, long long product,
                                          int batch, int k, int begin,
                                          int steps, const Put& put) {
  const int padded = (steps + 7) / 8 * 8;
  const long long base = product * FEW * k;
  const long long count = (long long)batch * FEW * k;
  if constexpr (kAlong) {
    const int words = padded / 8;  // of a row
    for (int i = threadIdx.x; i < FEW * words; i += kThreads) {
      const int j = i / words, step = i % words * 8;
      const Words4 word =
          WordAt<true>(y, base + (long long)j * k + begin + step, count,
                       min(8, steps - step));
#pragma unroll
      for (int e = 0; e < 8; ++e) put(step + e, j, ElementOf(word, e));
    }
  } else {
    for (int i = threadIdx.x * 8; i < padded * FEW; i += kThreads * 8) {
      const int left = min(8, steps * FEW - i);
      Words4 word = {};
      if (left > 0)
        word = WordAt<true>(y, base + (long long)begin * FEW + i, count, left);
#pragma unroll
      for (int e = 0; e < 8; ++e)
        put((i + e) / FEW, (i + e) % FEW, ElementOf(word, e));
    }
  }
}

// Writes the results of one row of x, `row`, of which column or row `j` of c.
__device__ __forceinline__ void WriteSum(const MatrixEpilogue& epilogue,
                                         uint16_t* c, int n, int row, int j,
                                         float sum) {
  const int column = FLIPPED ? row : j;
  MatrixEpilogue::Column of_column;
  epilogue.Load(column, of_column);
  c[(long long)(FLIPPED ? j : row) * n + column] =
      FromFloat(epilogue.Finish(sum, of_column));
}
#endif

#if FORM == LONG_ROWS
// Steps of y that are in shared memory.
constexpr int kSteps = FEW <= 1 ? 8192 : FEW <= 2 ? 4096 : 2048;
constexpr int kGroups = kThreads / LANES;

extern "C" __global__ void __launch_bounds__(kThreads)
    thin_product(const uint16_t* a, const uint16_t* b, const uint16_t* bias,
                 uint16_t* c, int m, int n, int k, int batch) {
  AwaitPredecessors();
  __shared__ __align__(16) uint16_t of_y[FEW][kSteps];
  const int length = FLIPPED ? n : m;
  const long long product = blockIdx.y;
  const uint16_t* const x = FLIPPED ? b : a;
  const long long count = (long long)batch * length * k;
  const int lane = threadIdx.x % LANES;
  const int row0 = (int)(blockIdx.x * kGroups + threadIdx.x / LANES) * ROWS;
  const long long first = (product * length + row0) * k;
  float sums[ROWS][FEW] = {};
  Pending words[ROWS];
  const auto fetch = [&](int step) {
    if (row0 + ROWS <= length && step + 8 <= k &&
        first + step + (ROWS - 1ll) * k + 16 <= count) {
#pragma unroll
      for (int r = 0; r < ROWS; ++r)
        words[r].Fetch(x, first + step + (long long)r * k);
    } else {
#pragma unroll
      for (int r = 0; r < ROWS; ++r) {
        words[r].Set(row0 + r < length && step < k
                         ? WordAt<true>(x, first + step + (long long)r * k,
                                        count, min(8, k - step))
                         : Words4{});
      }
    }
  };
#pragma unroll 1
  for (int begin = 0; begin < k; begin += kSteps) {
    const int steps = min(kSteps, k - begin);
    fetch(begin + lane * 8);
    ReadShort(
        FLIPPED ? a : b, product, batch, k, begin, steps,
        [&](int step, int j, uint16_t element) { of_y[j][step] = element; });
    __syncthreads();
#pragma unroll 1
    for (int step = lane * 8; step < steps; step += LANES * 8) {
      float of_x[ROWS][8];
#pragma unroll
      for (int r = 0; r < ROWS; ++r) WordToFloats(words[r].Get(), of_x[r]);
      if (step + LANES * 8 < steps) fetch(begin + step + LANES * 8);
#pragma unroll
      for (int j = 0; j < FEW; ++j) {
        float factors[8];
        const uint4 word = *(const uint4*)&of_y[j][step];
        WordToFloats({{word.x, word.y, word.z, word.w}}, factors);
#pragma unroll
        for (int r = 0; r < ROWS; ++r) {
#pragma unroll
          for (int i = 0; i < 8; ++i)
            sums[r][j] = fmaf(of_x[r][i], factors[i], sums[r][j]);
        }
      }
    }
    __syncthreads();
  }
#pragma unroll
  for (int r = 0; r < ROWS; ++r) {
#pragma unroll
    for (int j = 0; j < FEW; ++j) {
#pragma unroll
      for (int other = (LANES < 32 ? LANES : 32) / 2; other > 0; other /= 2)
        sums[r][j] += __shfl_xor_sync(0xffffffffu, sums[r][j], other);
    }
  }
  const MatrixEpilogue epilogue(bias, n);
  c += product * m * n;
#if LANES > 32
  __shared__ float of_warp[LANES / 32][ROWS * FEW];
  if (threadIdx.x % 32 == 0) {
#pragma unroll
    for (int i = 0; i < ROWS * FEW; ++i)
      of_warp[threadIdx.x / 32][i] = sums[i / FEW][i % FEW];
  }
  __syncthreads();
  if (threadIdx.x >= ROWS * FEW) return;
  float sum = 0;
#pragma unroll
  for (int i = 0; i < LANES / 32; ++i) sum += of_warp[i][threadIdx.x];
  const int row = row0 + (int)threadIdx.x / FEW;
  if (row < length) WriteSum(epilogue, c, n, row, threadIdx.x % FEW, sum);
#else
  if (lane != 0) return;
#pragma unroll
  for (int r = 0; r < ROWS; ++r) {
    if (row0 + r >= length) return;
#pragma unroll
    for (int j = 0; j < FEW; ++j)
      WriteSum(epilogue, c, n, row0 + r, j, sums[r][j]);
  }
#endif
}
#elif FORM == LONG_COLUMNS
constexpr int kSteps = 1024;  // of y that are in shared memory
constexpr int kWarps = kThreads / 32;
constexpr int kAhead = 4;  // loads of a thread in flight

extern "C" __global__ void __launch_bounds__(kThreads)
    thin_product(const uint16_t* a, const uint16_t* b, const uint16_t* bias,
                 uint16_t* c, int m, int n, int k, int batch) {
  AwaitPredecessors();
  // Then sums of half the warps: eight rows a thread.
  __shared__ __align__(16) float shared[kSteps * FEW];
  static_assert(kWarps / 2 * 8 * 32 <= kSteps);
  const int length = FLIPPED ? n : m;
  const long long product = blockIdx.y;
  const uint16_t* const x = FLIPPED ? b : a;
  const long long count = (long long)batch * length * k;
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const int row0 = (int)blockIdx.x * 256 + lane * 8;
  float sums[8][FEW] = {};
  // Rows beyond the last are sums of other rows' elements: they are not stored.
  Pending words[kAhead];
  const auto fetch = [&](int step) {
    const long long at = (product * k + step) * length + row0;
    if (row0 < length && step + kAhead <= k &&
        at + (kAhead - 1ll) * length + 16 <= count) {
#pragma unroll
      for (int i = 0; i < kAhead; ++i)
        words[i].Fetch(x, at + (long long)i * length);
    } else {
#pragma unroll
      for (int i = 0; i < kAhead; ++i) {
        words[i].Set(
            row0 < length && step + i < k
                ? WordAt<false>(x, at + (long long)i * length, count, 8)
                : Words4{});
      }
    }
  };
#pragma unroll 1
  for (int begin = 0; begin < k; begin += kSteps) {
    const int steps = min(kSteps, k - begin);
    fetch(begin + warp * kAhead);
    ReadShort(FLIPPED ? a : b, product, batch, k, begin, steps,
              [&](int step, int j, uint16_t element) {
                shared[step * FEW + j] = ToFloat(element);
              });
    __syncthreads();
    // Steps beyond the last are zeros in both.
#pragma unroll 1
    for (int step = warp * kAhead; step < steps; step += kWarps * kAhead) {
      float of_x[kAhead][8];
#pragma unroll
      for (int i = 0; i < kAhead; ++i) WordToFloats(words[i].Get(), of_x[i]);
      if (step + kWarps * kAhead < steps) fetch(begin + step + kWarps * kAhead);
#pragma unroll
      for (int i = 0; i < kAhead; ++i) {
#pragma unroll
        for (int j = 0; j < FEW; ++j) {
          const float factor = shared[(step + i) * FEW + j];
#pragma unroll
          for (int row = 0; row < 8; ++row)
            sums[row][j] = fmaf(of_x[i][row], factor, sums[row][j]);
        }
      }
    }
    __syncthreads();
  }
  // The sums of the second half of the warps are added to those of the first.
#pragma unroll
  for (int half = kWarps / 2; half > 0; half /= 2) {
    const auto at = [&](int of_warp, int i) {
      return (of_warp * 8 * FEW + i) * 32 + lane;
    };
    if (warp >= half && warp < 2 * half) {
#pragma unroll
      for (int i = 0; i < 8 * FEW; ++i)
        shared[at(warp - half, i)] = sums[i / FEW][i % FEW];
    }
    __syncthreads();
    if (warp < half) {
#pragma unroll
      for (int i = 0; i < 8 * FEW; ++i)
        sums[i / FEW][i % FEW] += shared[at(warp, i)];
    }
    __syncthreads();
  }
  // All threads write, neighbours beside each other.
  constexpr int kPitch = FEW + (FEW % 2 == 0);
  static_assert(256 * kPitch <= kSteps * FEW);
  if (warp == 0) {
#pragma unroll
    for (int i = 0; i < 8 * FEW; ++i)
      shared[(lane * 8 + i / FEW) * kPitch + i % FEW] = sums[i / FEW][i % FEW];
  }
  __syncthreads();
  const MatrixEpilogue epilogue(bias, n);
  c += product * m * n;
  for (int i = threadIdx.x; i < 256 * FEW; i += kThreads) {
    const int at = FLIPPED ? i % 256 : i / FEW;
    const int j = FLIPPED ? i / 256 : i % FEW;
    const int row = (int)blockIdx.x * 256 + at;
    if (row < length) WriteSum(epilogue, c, n, row, j, shared[at * kPitch + j]);
  }
}
#endif

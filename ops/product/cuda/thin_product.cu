// c[i] = f(a[i] * b[i]) where one side is so short that tensor cores would
// multiply mostly zeros, and memory is what takes time: sums of at most 16
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
//   FEW   the steps of SUMS_OF_FEW, up to 16; else columns or rows, up to 8
//   LANES 1 to 32 or 256, ROWS 1|2|4   of LONG_ROWS
//   ALIGNED 0|1  rows of x are multiples of 16 bytes

#include "epilogue.cuh"
#include "global_words.cuh"

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

#if FORM == SUMS_OF_FEW
constexpr int kThreads = 128;
constexpr int kMostRows = 64;

// `period`: rows of c so far apart start alike. A block has `rows` of these,
// and one word of each of them for each thread.
extern "C" __global__ void __launch_bounds__(kThreads)
    thin_product(const uint16_t* a, const uint16_t* b, const uint16_t* bias,
                 uint16_t* c, int m, int n, int k, int batch, int period,
                 int rows) {
  __shared__ float of_a[kMostRows][FEW];
  const int words = period == 1 ? n / 8 : (n + 14) / 8;
  const int tiles = (words + kThreads - 1) / kThreads;
  const int start = blockIdx.x / tiles % period;
  const int first = blockIdx.x / tiles / period * rows * period + start;
  const long long product = blockIdx.y;
  for (int i = threadIdx.x; i < rows * FEW; i += kThreads) {
    const int row = first + i / FEW * period, step = i % FEW;
    const long long at =
        product * m * FEW + (TRANSPOSED_A ? (long long)step * m + row
                                          : (long long)row * FEW + step);
    of_a[i / FEW][step] = row < m ? ToFloat(__ldg(a + at)) : 0;
  }
  const int shift = (int)((product * m + first) * n % 8);
  const int column =
      ((int)(blockIdx.x % tiles) * kThreads + (int)threadIdx.x) * 8 - shift;
  __syncthreads();
  if (column >= n) return;
  float of_b[FEW][8];
#pragma unroll
  for (int step = 0; step < FEW; ++step) {
    const long long base = product * n * FEW;
    if constexpr (TRANSPOSED_B) {
#pragma unroll
      for (int j = 0; j < 8; ++j) {
        const int at = min(max(column + j, 0), n - 1);
        of_b[step][j] = ToFloat(__ldg(b + base + (long long)at * FEW + step));
      }
    } else {
      // Elements of other rows belong to columns that are not stored.
      WordToFloats(WordAt<false>(b, base + (long long)step * n + column,
                                 (long long)batch * n * FEW, 8),
                   of_b[step]);
    }
  }
  const MatrixEpilogue epilogue(bias, n);
  MatrixEpilogue::Column of_column[8];
#pragma unroll
  for (int j = 0; j < 8; ++j) epilogue.Load(max(column + j, 0), of_column[j]);
  const bool whole = column >= 0 && column + 8 <= n;
#pragma unroll 2
  for (int i = 0; i < rows; ++i) {
    const int row = first + i * period;
    if (row >= m) return;
    float sums[8] = {};
#pragma unroll
    for (int step = 0; step < FEW; ++step) {
#pragma unroll
      for (int j = 0; j < 8; ++j)
        sums[j] = fmaf(of_a[i][step], of_b[step][j], sums[j]);
    }
#pragma unroll
    for (int j = 0; j < 8; ++j)
      sums[j] = epilogue.Finish(sums[j], of_column[j]);
    uint16_t* const to = c + (product * m + row) * n + column;
    const Elements<8> result = FromFloats(sums);
    if (whole) {
      *(Elements<8>*)to = result;
      continue;
    }
#pragma unroll
    for (int j = 0; j < 8; ++j) {
      if (column + j >= 0 && column + j < n) to[j] = result.at[j];
    }
  }
}
#else

constexpr int kThreads = 256;

// y[step][j] of one product.
struct Short {
  const uint16_t* y;
  int m, n, k;
  __device__ __forceinline__ uint16_t At(int step, int j) const {
    if (FLIPPED)
      return __ldg(y + (TRANSPOSED_A ? (long long)step * m + j
                                     : (long long)j * k + step));
    return __ldg(
        y + (TRANSPOSED_B ? (long long)j * k + step : (long long)step * n + j));
  }
};

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
constexpr int kSteps = 2048;  // of y that are in shared memory
constexpr int kGroups = kThreads / LANES;

extern "C" __global__ void __launch_bounds__(kThreads)
    thin_product(const uint16_t* a, const uint16_t* b, const uint16_t* bias,
                 uint16_t* c, int m, int n, int k, int batch) {
  __shared__ __align__(16) uint16_t of_y[FEW][kSteps];
  const int length = FLIPPED ? n : m;
  const long long product = blockIdx.y;
  const uint16_t* const x = FLIPPED ? b : a;
  const long long count = (long long)batch * length * k;
  const Short y = {FLIPPED ? a + product * m * k : b + product * n * k, m, n,
                   k};
  const int lane = threadIdx.x % LANES;
  const int row0 = (int)(blockIdx.x * kGroups + threadIdx.x / LANES) * ROWS;
  const long long first = (product * length + row0) * k;
  float sums[ROWS][FEW] = {};
#pragma unroll 1
  for (int begin = 0; begin < k; begin += kSteps) {
    const int steps = min(kSteps, k - begin);
    const int padded = (steps + 7) / 8 * 8;
    for (int i = threadIdx.x; i < padded * FEW; i += kThreads) {
      // Neighbours in y are read by neighbours.
      const bool along = FLIPPED ? !TRANSPOSED_A : TRANSPOSED_B;
      const int step = along ? i % padded : i / FEW;
      const int j = along ? i / padded : i % FEW;
      of_y[j][step] = step < steps ? y.At(begin + step, j) : 0;
    }
    __syncthreads();
#pragma unroll 1
    for (int step = lane * 8; step < steps; step += LANES * 8) {
      const long long at = first + begin + step;
      Words4 words[ROWS];
      // Words of all rows are whole, and inside the matrix.
      if (row0 + ROWS <= length && begin + step + 8 <= k &&
          at + (long long)(ROWS - 1) * k + 16 <= count) {
        Words4 low[ROWS], high[ROWS];
#pragma unroll
        for (int r = 0; r < ROWS; ++r) {
          const long long of_row = at + (long long)r * k;
          low[r] = WholeWord(x + (of_row & ~7ll));
          if (!ALIGNED) high[r] = WholeWord(x + (of_row & ~7ll) + 8);
        }
#pragma unroll
        for (int r = 0; r < ROWS; ++r) {
          words[r] =
              ALIGNED ? low[r]
                      : Shifted<false>(low[r], high[r],
                                       (int)((at + (long long)r * k) & 7), 8);
        }
      } else {
#pragma unroll
        for (int r = 0; r < ROWS; ++r) {
          words[r] = row0 + r < length
                         ? WordAt<true>(x, at + (long long)r * k, count,
                                        min(8, k - begin - step))
                         : Words4{};
        }
      }
      float of_x[ROWS][8];
#pragma unroll
      for (int r = 0; r < ROWS; ++r) WordToFloats(words[r], of_x[r]);
#pragma unroll
      for (int j = 0; j < FEW; ++j) {
        float factors[8];
        ToFloats(*(const Elements<8>*)&of_y[j][step], factors);
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
  __shared__ __align__(16) float of_y[kSteps][FEW];
  const int length = FLIPPED ? n : m;
  const long long product = blockIdx.y;
  const uint16_t* const x = FLIPPED ? b : a;
  const long long count = (long long)batch * length * k;
  const Short y = {FLIPPED ? a + product * m * k : b + product * n * k, m, n,
                   k};
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const int row0 = (int)blockIdx.x * 256 + lane * 8;
  float sums[8][FEW] = {};
  const auto add = [&](const Words4& word, int step) {
    float of_x[8];
    WordToFloats(word, of_x);
#pragma unroll
    for (int j = 0; j < FEW; ++j) {
      const float factor = of_y[step][j];
#pragma unroll
      for (int i = 0; i < 8; ++i)
        sums[i][j] = fmaf(of_x[i], factor, sums[i][j]);
    }
  };
#pragma unroll 1
  for (int begin = 0; begin < k; begin += kSteps) {
    const int steps = min(kSteps, k - begin);
    for (int i = threadIdx.x; i < steps * FEW; i += kThreads) {
      // Neighbours in y are read by neighbours.
      const bool along = FLIPPED ? !TRANSPOSED_A : TRANSPOSED_B;
      const int step = along ? i % steps : i / FEW;
      const int j = along ? i / steps : i % FEW;
      of_y[step][j] = ToFloat(y.At(begin + step, j));
    }
    __syncthreads();
    // Rows beyond the last are sums of other rows' elements: they are not
    // stored.
#pragma unroll 1
    for (int step = warp * kAhead; row0 < length && step < steps;
         step += kWarps * kAhead) {
      const long long at = (product * k + begin + step) * length + row0;
      const int left = min(kAhead, steps - step);
      if (left == kAhead && at + (kAhead - 1ll) * length + 16 <= count) {
        Words4 low[kAhead], high[kAhead];
#pragma unroll
        for (int i = 0; i < kAhead; ++i) {
          const long long of_step = at + (long long)i * length;
          low[i] = WholeWord(x + (of_step & ~7ll));
          if (!ALIGNED) high[i] = WholeWord(x + (of_step & ~7ll) + 8);
        }
#pragma unroll
        for (int i = 0; i < kAhead; ++i) {
          add(ALIGNED
                  ? low[i]
                  : Shifted<false>(low[i], high[i],
                                   (int)((at + (long long)i * length) & 7), 8),
              step + i);
        }
      } else {
        for (int i = 0; i < left; ++i) {
          add(WordAt<false>(x, at + (long long)i * length, count, 8), step + i);
        }
      }
    }
    __syncthreads();
  }
  // The warps add up their sums one after the other.
  __shared__ float of_rows[256][FEW];
  for (int turn = 0; turn < kWarps; ++turn) {
    if (turn == warp) {
#pragma unroll
      for (int i = 0; i < 8; ++i) {
#pragma unroll
        for (int j = 0; j < FEW; ++j) {
          float& sum = of_rows[lane * 8 + i][j];
          sum = turn == 0 ? sums[i][j] : sum + sums[i][j];
        }
      }
    }
    __syncthreads();
  }
  const MatrixEpilogue epilogue(bias, n);
  c += product * m * n;
  for (int i = threadIdx.x; i < 256 * FEW; i += kThreads) {
    const int at = FLIPPED ? i % 256 : i / FEW;
    const int j = FLIPPED ? i / 256 : i % FEW;
    const int row = (int)blockIdx.x * 256 + at;
    if (row < length) WriteSum(epilogue, c, n, row, j, of_rows[at][j]);
  }
}
#endif

// y[b] = the sum of table[indices[b, i]] on CUDA: rows of the table are read
// from wherever they lie, many at once.
//
// LANES neighbouring threads read a row, ITEMS accesses each; PARTS such groups
// share the lookups of a bag and add up their parts in order.
//
// Compiled at run time with these knobs as macros, beside elements.cuh's:
//   THREADS; LANES, PARTS (powers of two, LANES * PARTS divides THREADS);
//   VECTOR (elements per access, which divides the columns); ITEMS; UNROLL
//   (rows in flight per thread).

#include "elements.cuh"
#include "predecessors.cuh"

typedef Elements<VECTOR> Vector;

constexpr int kBags = THREADS / (LANES * PARTS);  // of a block

extern "C" __global__ void __launch_bounds__(THREADS, 1)
    embedding_bag(const Vector* table, const int* indices, Vector* y,
                  long long bags, int lookups, int vectors) {
  AwaitPredecessors();
  const int lane = threadIdx.x % LANES;
  const int part = threadIdx.x / LANES % PARTS;
  const int bag_in_block = threadIdx.x / (LANES * PARTS);
  const long long bag = (long long)blockIdx.x * kBags + bag_in_block;
  const bool live = bag < bags;
  const int begin = (int)((long long)lookups * part / PARTS);
  const int end = live ? (int)((long long)lookups * (part + 1) / PARTS) : begin;
  const int* const at = indices + bag * lookups;
  float sums[ITEMS][VECTOR] = {};

  const auto add = [&](const Vector& v, float(&to)[VECTOR]) {
    float values[VECTOR];
    ToFloats(v, values);
#pragma unroll
    for (int j = 0; j < VECTOR; ++j) to[j] += values[j];
  };
  int i = begin;
  for (; i + UNROLL <= end; i += UNROLL) {
    const Vector* rows[UNROLL];
#pragma unroll
    for (int u = 0; u < UNROLL; ++u) {
      rows[u] = table + (long long)__ldg(at + i + u) * vectors + lane;
    }
#pragma unroll
    for (int item = 0; item < ITEMS; ++item) {
      if (lane + item * LANES >= vectors) continue;
      Vector v[UNROLL];
#pragma unroll
      for (int u = 0; u < UNROLL; ++u) {
        v[u] = Load(rows[u] + item * LANES);
      }
#pragma unroll
      for (int u = 0; u < UNROLL; ++u) add(v[u], sums[item]);
    }
  }
  for (; i < end; ++i) {
    const Vector* const row = table + (long long)__ldg(at + i) * vectors + lane;
#pragma unroll
    for (int item = 0; item < ITEMS; ++item) {
      if (lane + item * LANES >= vectors) continue;
      add(Load(row + item * LANES), sums[item]);
    }
  }
#if PARTS > 1
  // Neighbouring threads write to neighbouring words.
  __shared__ float parts[PARTS][VECTOR][kBags][LANES];
#pragma unroll
  for (int item = 0; item < ITEMS; ++item) {
    if (item > 0) __syncthreads();
#pragma unroll
    for (int j = 0; j < VECTOR; ++j) {
      parts[part][j][bag_in_block][lane] = sums[item][j];
    }
    __syncthreads();
    if (part > 0) continue;
#pragma unroll
    for (int p = 1; p < PARTS; ++p) {
#pragma unroll
      for (int j = 0; j < VECTOR; ++j) {
        sums[item][j] += parts[p][j][bag_in_block][lane];
      }
    }
  }
#endif
  if (part > 0 || !live) return;
#pragma unroll
  for (int item = 0; item < ITEMS; ++item) {
    if (lane + item * LANES >= vectors) continue;
    y[bag * vectors + lane + item * LANES] = FromFloats(sums[item]);
  }
}

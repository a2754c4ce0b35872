// Sums over k that several blocks share, for hopper_product.cuh, which includes
// this file once its types are declared.

#if SPLIT
// Whether sum i of product t belongs to a row of c.
__device__ __forceinline__ bool IsInside(int m, int m0, int consumer, int t,
                                         int i) {
  if (TRANSPOSED) return m0 + i / 4 * 8 < m;
  const int thread = threadIdx.x % 128;
  const int row = (consumer * M_TILES + t) * 64 + thread / 32 * 16 +
                  thread % 32 / 4 + i / 2 % 2 * 8;
  return m0 + row < m;
}

// The last to arrive sums all parts in order, so that results repeat, and
// returns true. The others leave theirs in memory. So does the last, unless it
// finds itself alone and its own sums are the first of the order; of two parts
// either is the first.
__device__ __forceinline__ bool SumParts(const Block& block, const Work& work,
                                         const Schedule<SPLIT>& schedule,
                                         int consumer, float* partial,
                                         int* arrived, Sums& d) {
  __shared__ int is_alone[CONSUMERS], is_last[CONSUMERS];
  constexpr int kMine = M_TILES * kAccumulators;
  const int thread = threadIdx.x % 128;
  const int m0 = block.TileOf(work).m0;
  const long long piece =
      ((long long)work.tile * kClusterSize + block.rank) * CONSUMERS + consumer;
  const auto sums_of = [&](int part) {
    const long long place =
        (schedule.PlaceOf(work, part) * kClusterSize + block.rank) * CONSUMERS +
        consumer;
    return partial + place * kMine * 128 + thread;
  };
  if (thread == 0) {
    is_alone[consumer] = (work.part == 0 || work.parts == 2) &&
                         atomicAdd(&arrived[piece], 0) == work.parts - 1;
  }
  WarpgroupSync(1 + consumer);
  const bool alone = is_alone[consumer];
  if (!alone) {
    float* const mine = sums_of(work.part);
#pragma unroll
    for (int t = 0; t < M_TILES; ++t)
#pragma unroll
      for (int i = 0; i < kAccumulators; ++i)
        if (IsInside(block.m, m0, consumer, t, i))
          mine[(t * kAccumulators + i) * 128] = d[t][i];
    __threadfence();
    WarpgroupSync(1 + consumer);
    if (thread == 0)
      is_last[consumer] = atomicAdd(&arrived[piece], 1) == work.parts - 1;
    WarpgroupSync(1 + consumer);
    if (!is_last[consumer]) return false;
  }
  if (thread == 0) arrived[piece] = 0;
  __threadfence();
#pragma unroll 1
  for (int part = 0; part < work.parts; ++part) {
    if (alone && part == work.part) continue;
    const bool begins = !alone && part == 0;
    const float* const from = sums_of(part);
#pragma unroll
    for (int t = 0; t < M_TILES; ++t)
#pragma unroll
      for (int i = 0; i < kAccumulators; ++i)
        if (IsInside(block.m, m0, consumer, t, i))
          d[t][i] = __ldcg(&from[(t * kAccumulators + i) * 128]) +
                    (begins ? -0.f : d[t][i]);
  }
  return true;
}
#endif

#if SHARES > 1
// Each block of the cluster finishes an equal part of a tile's columns: it gets
// the others' sums of them and adds all up, in the order of the steps. The sums
// travel through the ring once no block needs it any more; block.sums counts
// what arrives.
constexpr int kShare = kAccumulators / SHARES;  // of a thread's sums
static_assert(COLUMNS % (64 * SHARES) == 0);
constexpr int kBytesOfShares =
    (SHARES - 1) * CONSUMERS * 128 * M_TILES * kShare * 4;

__device__ __forceinline__ void SumShares(const Block& block, int consumer,
                                          Sums& d) {
  const int part = block.rank;
  // Four sums of each thread of a consumer.
  const auto piece = [&](int from, int t, int i) {
    return block.ring +
           (((from * CONSUMERS + consumer) * M_TILES + t) * kShare + i) * 512 +
           threadIdx.x % 128 * 16;
  };
  ClusterSyncRelaxed();
#pragma unroll
  for (int to = 0; to < SHARES; ++to) {
    if (to == part) continue;
#pragma unroll
    for (int at = 0; at < M_TILES * kShare; at += 4) {
      const int t = at / kShare, i = at % kShare;
      const float* const v = d[t] + to * kShare + i;
      StoreAt(piece(part, t, i), block.sums, to, {v[0], v[1], v[2], v[3]});
    }
  }
  BarrierWait(block.sums, 0);
#pragma unroll
  for (int mine = 0; mine < SHARES; ++mine) {
    if (mine != part) continue;
#pragma unroll
    for (int at = 0; at < M_TILES * kShare; at += 4) {
      const int t = at / kShare, i = at % kShare;
      float* const own = d[t] + mine * kShare + i;
      float sum[4] = {};
#pragma unroll
      for (int from = 0; from < SHARES; ++from) {
        float v[4];
#pragma unroll
        for (int j = 0; j < 4; ++j) v[j] = own[j];
        if (from != mine) {
          asm volatile("ld.shared.v4.f32 {%0, %1, %2, %3}, [%4];"
                       : "=f"(v[0]), "=f"(v[1]), "=f"(v[2]), "=f"(v[3])
                       : "r"(piece(from, t, i))
                       : "memory");
        }
#pragma unroll
        for (int j = 0; j < 4; ++j) sum[j] += v[j];
      }
#pragma unroll
      for (int j = 0; j < 4; ++j) own[j] = sum[j];
    }
  }
}
#endif

// y = softmax(q k^T / sqrt(d)) v on Hopper: tensor cores (wgmma) fed by the bulk
// copy engine, scores and weights in registers.
//
// One warpgroup produces: its first thread loads q once and then blocks of KEYS
// keys and values into a ring of SLOTS. Each of the others has 64 queries and
// goes through the keys: the products with the next block of keys and of the
// weights with this block of values are under way together while the weights of
// the next block are computed (Shah et al., "FlashAttention-3", 2024). The
// softmax is the online one of online_softmax.h.
//
// Compiled at run time with these knobs as macros, beside hopper.cuh's:
//   D 64|128 (columns of a head, or more: the copy engine reads zeros beyond
//   the last and writes none); CONSUMERS 1|2|3; KEYS 64|128; SLOTS; BLOCKS (of
//   a multiprocessor); CAUSAL 0|1; GROUP (heads that share keys).

#include "functions.cuh"
#include "hopper.cuh"
#include "predecessors.cuh"

constexpr int kThreads = 128 * (CONSUMERS + 1);
constexpr int kQueries = 64 * CONSUMERS;
constexpr int kChunks = D / 64;
constexpr int kBytesQ = kQueries * D * 2;
constexpr int kBytesSlot = KEYS * D * 2;
constexpr float kNone = -3.402823466e38f;  // smaller than any score but -inf

// The softmax of the two rows of a thread.
struct Softmax {
  float max[2], sum[2];
};

// Scores become weights, and the states are brought up to date; `rescale` is
// for what was summed before.
__device__ __forceinline__ void Weigh(float (&s)[KEYS / 2], float scale,
                                      Softmax& state, float (&rescale)[2]) {
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    float max = state.max[half];
#pragma unroll
    for (int i = 0; i < KEYS / 8; ++i) {
      max = fmaxf(max, fmaxf(s[i * 4 + half * 2], s[i * 4 + half * 2 + 1]));
    }
    max = fmaxf(max, __shfl_xor_sync(~0u, max, 1));
    max = fmaxf(max, __shfl_xor_sync(~0u, max, 2));
    rescale[half] = Exp2((state.max[half] - max) * scale);
    state.max[half] = max;
    const float shift = max * scale;
    float sum = 0;
#pragma unroll
    for (int i = 0; i < KEYS / 8; ++i) {
#pragma unroll
      for (int j = 0; j < 2; ++j) {
        float& weight = s[i * 4 + half * 2 + j];
        weight = Exp2(fmaf(weight, scale, -shift));
        sum += weight;
      }
    }
    state.sum[half] = fmaf(state.sum[half], rescale[half], sum);
  }
}

extern "C" __global__ void __launch_bounds__(kThreads, BLOCKS)
    attention(const __grid_constant__ TensorMap map_q,
              const __grid_constant__ TensorMap map_k,
              const __grid_constant__ TensorMap map_v,
              const __grid_constant__ TensorMap map_y, int heads, int queries,
              int keys, float scale) {
  AwaitPredecessors();
  extern __shared__ char shared_raw[];
  __shared__ uint64_t barriers[1 + 2 * SLOTS];
  const uint32_t tile_q = (SharedAddress(shared_raw) + 1023) & ~1023u;
  const uint32_t ring = tile_q + kBytesQ;
  const uint32_t full_q = SharedAddress(barriers);
  const uint32_t full = full_q + 8, empty = full + 8 * SLOTS;

  // With CAUSAL, later queries see more keys: they come first, of all heads.
  const int tiles = gridDim.x / heads;
  const int query0 = (tiles - 1 - (int)blockIdx.x / heads) * kQueries;
  const int head = blockIdx.x % heads;
  const int first_seen = keys - queries + 1;  // of query 0
  const int last = min(query0 + kQueries, queries) - 1;
  const int seen = CAUSAL ? first_seen + last : keys;
  const int blocks = (seen + KEYS - 1) / KEYS;

  if (threadIdx.x == 0) {
    BarrierInit(full_q, 1);
    for (int i = 0; i < SLOTS; ++i) {
      BarrierInit(full + 8 * i, 1);
      BarrierInit(empty + 8 * i, CONSUMERS);
    }
    BarrierInitDone();
  }
  __syncthreads();
  const int warpgroup = threadIdx.x / 128;
  int slot = 0, phase = 0;
  const auto advance = [&] {
    if (++slot == SLOTS) slot = 0, phase ^= 1;
  };

  if (warpgroup == 0) {
    GiveRegisters<CONSUMERS, BLOCKS>();
    if (threadIdx.x == 0) {
      const int kv_head = head / GROUP;
      const auto load = [&](const TensorMap* map, int block) {
        BarrierWait(empty + 8 * slot, phase ^ 1);
        BarrierExpect(full + 8 * slot, kBytesSlot);
#pragma unroll
        for (int chunk = 0; chunk < kChunks; ++chunk) {
          LoadTile(ring + slot * kBytesSlot + chunk * KEYS * 128, map,
                   full + 8 * slot, chunk * 64, block * KEYS, kv_head);
        }
        advance();
      };
      BarrierExpect(full_q, kBytesQ);
#pragma unroll
      for (int chunk = 0; chunk < kChunks; ++chunk) {
        LoadTile(tile_q + chunk * kQueries * 128, &map_q, full_q, chunk * 64,
                 query0, head);
      }
      // In the order in which they are needed.
      load(&map_k, 0);
      for (int block = 0; block < blocks; ++block) {
        if (block + 1 < blocks) load(&map_k, block + 1);
        load(&map_v, block);
      }
    }
    return;
  }

  TakeRegisters<CONSUMERS, BLOCKS>();
  const int consumer = warpgroup - 1;
  const int thread = threadIdx.x % 128, lane = thread % 32;
  // The thread's rows are `row` and `row` + 8; its columns in each 8 begin at:
  const int row = query0 + consumer * 64 + thread / 32 * 16 + lane / 4;
  const int column = lane % 4 * 2;
  const uint32_t my_q = tile_q + consumer * 64 * 128;
  const auto release = [&](int which) {
    if (thread == 0) BarrierArrive(empty + 8 * which);
  };

  float s[KEYS / 2];
  float y[D / 2] = {};
  uint32_t weights[KEYS / 4];
  Softmax state = {{kNone, kNone}, {0, 0}};
  float rescale[2];

  const auto start_scores = [&] {
    const uint32_t tile_k = ring + slot * kBytesSlot;
    Pin(s);
    ProductFence();
#pragma unroll
    for (int at = 0; at < D / 16; ++at) {
      Multiply<KEYS, 0>(
          s, DescriptorOfRows(my_q + at / 4 * kQueries * 128, at % 4),
          DescriptorOfRows(tile_k + at / 4 * KEYS * 128, at % 4), at > 0);
    }
    ProductCommit();
  };
  const auto start_values = [&] {
    const uint32_t tile_v = ring + slot * kBytesSlot;
    Pin(y);
    Pin(weights);
    ProductFence();
#pragma unroll
    for (int at = 0; at < KEYS / 16; ++at) {
      Multiply<D, 1>(y, weights + at * 4, DescriptorOfColumns(tile_v, KEYS, at),
                     1);
    }
    ProductCommit();
  };
  // Keys that do not exist or are hidden get no weight.
  const auto mask = [&](int block) {
    const int base = block * KEYS;
    const int seen0 = CAUSAL ? first_seen + query0 + consumer * 64 : keys;
    if (base + KEYS <= min(seen0, keys)) return;
#pragma unroll
    for (int i = 0; i < KEYS / 2; ++i) {
      const int key = base + i / 4 * 8 + column + i % 2;
      const int limit =
          CAUSAL ? min(keys, first_seen + row + i / 2 % 2 * 8) : keys;
      if (key >= limit) s[i] = __int_as_float(0xff800000);
    }
  };
  const auto round_weights = [&] {
#pragma unroll
    for (int i = 0; i < KEYS / 4; ++i) weights[i] = Pack(s[2 * i], s[2 * i + 1]);
  };

  BarrierWait(full_q, 0);
  BarrierWait(full + 8 * slot, phase);
  start_scores();
  ProductWait<0>();
  Pin(s);
  release(slot);
  advance();
  mask(0);
  Weigh(s, scale, state, rescale);
  round_weights();
  for (int block = 1; block < blocks; ++block) {
    BarrierWait(full + 8 * slot, phase);
    start_scores();
    const int slot_k = slot;
    advance();
    BarrierWait(full + 8 * slot, phase);
    start_values();
    ProductWait<1>();
    Pin(s);
    release(slot_k);
    mask(block);
    Weigh(s, scale, state, rescale);
    ProductWait<0>();
    Pin(y);
    Pin(weights);
    release(slot);
    advance();
#pragma unroll
    for (int i = 0; i < D / 2; ++i) y[i] *= rescale[i / 2 % 2];
    round_weights();
  }
  BarrierWait(full + 8 * slot, phase);
  start_values();
  ProductWait<0>();
  Pin(y);

#pragma unroll
  for (int half = 0; half < 2; ++half) {
    float& sum = state.sum[half];
    sum += __shfl_xor_sync(~0u, sum, 1);
    sum += __shfl_xor_sync(~0u, sum, 2);
    sum = 1.0f / sum;
  }
#pragma unroll
  for (int i = 0; i < D / 2; ++i) y[i] *= state.sum[i / 2 % 2];
  // Through the place of this warpgroup's q, which nobody reads any more.
#pragma unroll
  for (int chunk = 0; chunk < kChunks; ++chunk) {
    StoreMatrix(my_q + chunk * kQueries * 128, y + chunk * 32);
  }
  FenceAsync();
  WarpgroupSync(1 + consumer);
  if (thread == 0) {
#pragma unroll
    for (int chunk = 0; chunk < kChunks; ++chunk) {
      StoreTile(&map_y, my_q + chunk * kQueries * 128, chunk * 64,
                query0 + consumer * 64, head);
    }
    StoreCommit();
    StoreWaitAll();
  }
}

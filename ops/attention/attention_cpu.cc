// The CPU kernel of attention. Many queries: blocks of queries meet blocks of
// keys, two products by matmul's loops with the online softmax between, so that
// scores never leave the caches. Few, as when decoding: keys and values are
// streamed once for all heads that share them, in parts that threads share out
// and whose results are merged. What is bfloat16 is widened to float block by
// block, or, of many queries where that pays (ops/product/cpu/pairs.h),
// multiplied in pairs, weights being rounded; results are rounded once.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "ops/attention/attention_knobs.h"
#include "ops/attention/online_softmax.h"
#include "ops/lib/blocks.h"
#include "ops/lib/cpu_frame.h"
#include "ops/product/cpu/blocked_product.h"
#include "ops/product/cpu/pairs.h"

namespace optrail::ops {
namespace {

// So many do not fill a register tile; nor are as many as kMoreQueries worth
// transposing keys that are long.
constexpr int64_t kFewQueries = 3, kMoreQueries = 8, kLongKeyBytes = 256;
// For few queries: a vector's sums across lanes.
constexpr int64_t kKeysAtOnce = 16;

struct Size {
  int64_t batch, heads, queries, keys, d;
  int64_t group = 1;
  bool causal = false;

  float scale() const { return 1 / std::sqrt(static_cast<float>(d)); }
  // Keys that a query sees, all others coming after them.
  int64_t seen(int64_t query) const {
    return causal ? keys - queries + query + 1 : keys;
  }
};

Size SizeOf(const proto::Shape& shape) {
  Size size = {shape.dims(0).value(), shape.dims(1).value(),
               shape.dims(2).value(), shape.dims(3).value(),
               shape.dims(4).value()};
  for (const proto::Attribute& attribute : shape.attributes()) {
    if (attribute.name() == "group") size.group = attribute.int_();
    if (attribute.name() == "causal")
      size.causal = attribute.variant() == "yes";
  }
  return size;
}

// `count` values of x, which are floats or become some in `space`.
const float* Floats(const float* x, int64_t count, float* space) { return x; }
const float* Floats(const uint16_t* x, int64_t count, float* space) {
  Widen(x, 1, count, count, space, count);
  return space;
}

constexpr int64_t kMostQueries = 256;  // of knob query_block

// The products of a task multiply floats or, with bfloat16, values that become
// floats block by block, or pairs.
enum class Factors { kFloats, kWidened, kPairs };

// Queries [begin, begin + count) of one head.
template <Factors kFactors>
class TiledTask {
 public:
  using T = std::conditional_t<kFactors == Factors::kFloats, float, uint16_t>;

  TiledTask(const Size& size, const AttentionKnobs& knobs, Blocking blocking)
      : size_(size),
        query_block_(std::min(knobs.query_block, size.queries)),
        key_block_(std::min(knobs.key_block, size.keys)),
        task_queries_(std::min(knobs.task_queries, size.queries)),
        score_stride_(kPairs ? WholeLines(key_block_) : key_block_) {
    // One block of each: the blocks of attention are those for the caches.
    blocking.mc =
        CeilDiv(query_block_, blocking.tile.rows) * blocking.tile.rows;
    const int64_t most = std::max(key_block_, size.d);
    const int64_t width = blocking.tile.columns;
    blocking.nc = CeilDiv(most, width) * width;
    blocking.kc = CeilDiv(most, 4) * 4;
    blocking.pack_a = false;
    blocking.pack_b = false;
    keys_ = {width, Steps(size.d)};
    values_ = {width, CeilDiv(key_block_, 2)};
    blocking.b_in_panels = true;
    by_keys_ =
        BlockedProduct(blocking, {query_block_, key_block_, Steps(size.d)});
    blocking.b_in_panels = kPairs;
    by_values_ =
        BlockedProduct(blocking, {query_block_, size.d, Steps(key_block_)});
    keys_at_ = WholeLines(
        std::max(by_keys_.workspace_floats(), by_values_.workspace_floats()));
    scores_at_ = keys_at_ + WholeLines(keys_.floats(key_block_));
    states_at_ = scores_at_ + WholeLines(query_block_ * score_stride_);
    queries_at_ = states_at_ + WholeLines(2 * task_queries_);
    const int64_t rows = task_queries_ * size.d;
    sums_at_ =
        queries_at_ + (kFactors == Factors::kWidened ? WholeLines(rows) : 0);
    values_at_ = sums_at_ + (kRounds ? WholeLines(rows) : 0);
    floats_ = values_at_;
    if (kFactors == Factors::kWidened)
      floats_ += WholeLines(key_block_ * size.d);
    if (kPairs) floats_ += values_.floats(size.d);
  }

  int64_t floats() const { return floats_; }
  int64_t task_queries() const { return task_queries_; }

  void Run(const T* q, const T* k, const T* v, int64_t begin, int64_t count,
           T* y, float* space) const {
    if constexpr (kRounds) {
      float* const sums = space + sums_at_;
      const float* const queries =
          kPairs ? reinterpret_cast<const float*>(q)
                 : Floats(q, count * size_.d, space + queries_at_);
      Sum(queries, k, v, begin, count, sums, space);
      RoundToBf16(sums, count, size_.d, size_.d, y, size_.d);
    } else {
      Sum(q, k, v, begin, count, y, space);
    }
  }

 private:
  static constexpr bool kPairs = kFactors == Factors::kPairs;
  static constexpr bool kRounds = kFactors != Factors::kFloats;

  // Steps of a product, of which a pair is one.
  static int64_t Steps(int64_t count) {
    return kPairs ? CeilDiv(count, 2) : count;
  }

  void Sum(const float* q, const T* k, const T* v, int64_t begin, int64_t count,
           float* y, float* space) const {
    auto* const states = reinterpret_cast<SoftmaxState*>(space + states_at_);
    std::fill_n(states, count, EmptySoftmax());
    const int64_t last = size_.seen(begin + count - 1);
    if (last <= 0) std::fill_n(y, count * size_.d, 0.0f);
    for (int64_t j = 0; j < last; j += key_block_) {
      const int64_t cols = std::min(key_block_, last - j);
      const MatrixView keys = Keys(k + j * size_.d, cols, space);
      const MatrixView values = Values(v + j * size_.d, cols, space);
      for (int64_t i = 0; i < count; i += query_block_) {
        const int64_t rows = std::min(query_block_, count - i);
        if (size_.seen(begin + i + rows - 1) <= j) {
          if (j == 0) std::fill_n(y + i * size_.d, rows * size_.d, 0.0f);
          continue;
        }
        Block(q + i * Steps(size_.d), keys, values, begin + i, rows, j, cols,
              states + i, y + i * size_.d, space);
      }
    }
    FinishRows(states, count, size_.d, y);
  }

  // The right factor of queries: columns are keys.
  MatrixView Keys(const T* k, int64_t count, float* space) const {
    float* const keys = space + keys_at_;
    const int64_t steps = Steps(size_.d);
    // Where they are widened, values take that place later.
    const float* from;
    if constexpr (kPairs) {
      from = reinterpret_cast<const float*>(k);
    } else {
      from = Floats(k, count * size_.d, space + values_at_);
    }
    const int64_t width = keys_.columns;
    for (int64_t j = 0; j < count; j += width) {
      TransposeInto(from + j * steps, std::min(width, count - j), steps, steps,
                    keys + j / width * keys_.panel_floats(), width);
    }
    return keys_.From(keys, 0);
  }

  // Returns the view of the values: its columns are those of y.
  MatrixView Values(const T* v, int64_t count, float* space) const {
    float* const values = space + values_at_;
    if constexpr (kPairs) {
      PackPairPanels(values_.columns, size_.d, count, v, size_.d,
                     values_.panel_floats(), values);
      return values_.From(values, 0);
    }
    return {Floats(v, count * size_.d, values), size_.d};
  }

  void Block(const float* q, const MatrixView& keys, const MatrixView& values,
             int64_t query, int64_t rows, int64_t key, int64_t cols,
             SoftmaxState* states, float* y, float* space) const {
    float* const scores = space + scores_at_;
    const int64_t d_steps = Steps(size_.d);
    Result products;
    products.data = scores;
    products.stride = score_stride_;
    by_keys_.Multiply({rows, cols, d_steps}, {{q, d_steps}}, {keys}, products,
                      space);
    int64_t seen[kMostQueries];
    for (int64_t r = 0; r < rows; ++r) seen[r] = size_.seen(query + r) - key;
    (kPairs ? SoftmaxPairBlock : SoftmaxBlock)(
        scores, rows, cols, score_stride_, seen, size_.scale(), states, y,
        size_.d);
    Result sums;
    sums.data = y;
    sums.stride = size_.d;
    sums.accumulate = key > 0;
    by_values_.Multiply({rows, size_.d, Steps(cols)}, {{scores, score_stride_}},
                        {values}, sums, space);
  }

  const Size size_;
  const int64_t query_block_;
  const int64_t key_block_;
  const int64_t task_queries_;
  const int64_t score_stride_;
  PackedB keys_, values_;
  BlockedProduct by_keys_, by_values_;
  int64_t keys_at_, scores_at_, states_at_, queries_at_, sums_at_, values_at_,
      floats_;
};

template <Factors kFactors>
absl::StatusOr<std::unique_ptr<Invocation>> BindTiled(
    const Size& size, const AttentionKnobs& knobs, const RegisterTile& tile,
    CpuDevice& device) {
  using Task = TiledTask<kFactors>;
  using T = typename Task::T;
  Blocking blocking;
  blocking.tile = tile;
  blocking.prefetch_c = false;  // scores and sums are near
  const auto task = std::make_shared<const Task>(size, knobs, blocking);
  const int64_t parts = CeilDiv(size.queries, task->task_queries());
  const int64_t heads = size.batch * size.heads;
  WorkspaceLayout layout;
  const Workspaces workspaces(
      layout, std::min<int64_t>(device.threads(), heads * parts),
      task->floats());
  return MakeInvocation(layout, [=](const Call& call) {
    Workspaces::Shared shared(workspaces, call);
    call.ParallelFor(heads * parts, [&](int64_t i) {
      const int64_t head = i / parts;
      const int64_t begin = i % parts * task->task_queries();
      const int64_t row = head * size.queries + begin;
      const int64_t kv = head / size.group * size.keys * size.d;
      const Workspaces::Lease lease(shared);
      task->Run(static_cast<const T*>(call.operands[0]) + row * size.d,
                static_cast<const T*>(call.operands[1]) + kv,
                static_cast<const T*>(call.operands[2]) + kv, begin,
                std::min(task->task_queries(), size.queries - begin),
                static_cast<T*>(call.operands[3]) + row * size.d, lease.data());
    });
  });
}

absl::StatusOr<std::unique_ptr<Invocation>> BindTiledOf(
    proto::DataType type, const Size& size, const AttentionKnobs& knobs,
    CpuDevice& device) {
  const auto rows = static_cast<int>(knobs.mr);
  const auto vectors = static_cast<int>(knobs.nr_vectors);
  const RegisterTile tile = FindRegisterTile(rows, vectors, 4);
  if (tile.plain_a == nullptr || knobs.query_block > kMostQueries) {
    return absl::InvalidArgumentError(absl::StrCat(
        "a register tile of mr=", knobs.mr, " by nr_vectors=", knobs.nr_vectors,
        " does not fit into the vector registers of this machine, or "
        "query_block=",
        knobs.query_block, " is beyond ", kMostQueries));
  }
  if (type == proto::F32) {
    return BindTiled<Factors::kFloats>(size, knobs, tile, device);
  }
  // Heads are read pair by pair as they lie.
  if (size.d % 2 == 0 && PairsPay()) {
    const RegisterTile of_pairs = FindPairTile(rows, vectors);
    if (of_pairs.plain_a != nullptr) {
      return BindTiled<Factors::kPairs>(size, knobs, of_pairs, device);
    }
  }
  return BindTiled<Factors::kWidened>(size, knobs, tile, device);
}

template <Factors kFactors>
absl::StatusOr<std::unique_ptr<Invocation>> BindFew(const Size& size,
                                                    const AttentionKnobs& knobs,
                                                    CpuDevice& device) {
  constexpr bool kPairs = kFactors == Factors::kPairs;
  constexpr bool kRounds = kFactors != Factors::kFloats;
  using T = std::conditional_t<kRounds, uint16_t, float>;
  // Of queries and weights, as they are multiplied.
  using Left = std::conditional_t<kPairs, uint16_t, float>;
  const int64_t kv_heads = size.batch * size.heads / size.group;
  const int64_t rows = size.group * size.queries;  // of one head of keys
  const int64_t block = std::min(knobs.key_block, size.keys);
  // Every thread gets some of so many parts.
  const int64_t wanted = CeilDiv(
      int64_t{device.threads()} * (device.threads() > 1 ? 2 : 1), kv_heads);
  const int64_t part_keys = CeilDiv(CeilDiv(size.keys, block), wanted) * block;
  const int64_t parts = CeilDiv(size.keys, part_keys);
  const int64_t results = kv_heads * rows * parts;
  WorkspaceLayout layout;
  const Workspaces partial(
      layout, 1,
      WholeLines(2 * results) + WholeLines(results * size.d) +
          (kFactors == Factors::kWidened ? kv_heads * rows * size.d : 0));
  const Workspaces scores(layout,
                          std::min<int64_t>(device.threads(), kv_heads * parts),
                          rows * block);
  return MakeInvocation(layout, [=](const Call& call) {
    auto* const states = reinterpret_cast<SoftmaxState*>(partial.at(call, 0));
    float* const sums = partial.at(call, 0) + WholeLines(2 * results);
    Workspaces::Shared shared(scores, call);
    const Left* q;
    if constexpr (kPairs) {
      q = static_cast<const uint16_t*>(call.operands[0]);
    } else {
      q = Floats(static_cast<const T*>(call.operands[0]),
                 kv_heads * rows * size.d, sums + WholeLines(results * size.d));
    }
    auto* const y = static_cast<T*>(call.operands[3]);
    call.ParallelFor(kv_heads * parts, [&](int64_t task) {
      const int64_t head = task / parts;
      const int64_t begin = task % parts * part_keys;
      const int64_t end = std::min(begin + part_keys, size.keys);
      const int64_t kv = head * size.keys * size.d;
      const auto* k = static_cast<const T*>(call.operands[1]) + kv;
      const auto* v = static_cast<const T*>(call.operands[2]) + kv;
      SoftmaxState* const state = states + task * rows;
      float* const sum = sums + task * rows * size.d;
      std::fill_n(state, rows, EmptySoftmax());
      std::fill_n(sum, rows * size.d, 0.0f);
      const Workspaces::Lease lease(shared);
      for (int64_t j = begin; j < end; j += block) {
        const int64_t keys = std::min(block, end - j);
        // Calls body(row, rows, first key, keys) for a few keys after the
        // other that stay in the L1 cache for all rows which see them.
        const auto for_each = [&](const auto& body) {
          for (int64_t i = 0; i < keys; i += kKeysAtOnce) {
            const int64_t most = std::min(kKeysAtOnce, keys - i);
            if (size.seen(0) - j - i >= most) {
              body(0, rows, i, most);
              continue;
            }
            for (int64_t r = 0; r < rows; ++r) {
              const int64_t count =
                  std::min(most, size.seen(r % size.queries) - j - i);
              if (count > 0) body(r, 1, i, count);
            }
          }
        };
        for_each([&](int64_t r, int64_t count, int64_t i, int64_t keys) {
          ScoreKeys(q + (head * rows + r) * size.d, count, k + (j + i) * size.d,
                    keys, size.d, lease.data() + r * block + i, block);
        });
        for (int64_t r = 0; r < rows; ++r) {
          const int64_t count = std::min(keys, size.seen(r % size.queries) - j);
          if (count <= 0) continue;
          (kPairs ? SoftmaxPairBlock : SoftmaxBlock)(
              lease.data() + r * block, 1, count, block, &count, size.scale(),
              state + r, sum + r * size.d, size.d);
        }
        for_each([&](int64_t r, int64_t count, int64_t i, int64_t keys) {
          const auto* const weights =
              reinterpret_cast<const Left*>(lease.data() + r * block);
          SumValues(weights + i, count, block * (sizeof(float) / sizeof(Left)),
                    v + (j + i) * size.d, keys, size.d, sum + r * size.d);
        });
      }
    });
    for (int64_t i = 0; i < kv_heads * rows; ++i) {
      const int64_t first = i / rows * parts * rows + i % rows;
      SoftmaxState all = states[first];
      float* const sum = sums + first * size.d;
      for (int64_t part = 1; part < parts; ++part) {
        const int64_t other = first + part * rows;
        MergeSoftmax(states[other], sums + other * size.d, size.d, &all, sum);
      }
      FinishRows(&all, 1, size.d, sum);
      if constexpr (kRounds) {
        RoundToBf16(sum, 1, size.d, size.d, y + i * size.d, size.d);
      } else {
        std::copy_n(sum, size.d, y + i * size.d);
      }
    }
  });
}

absl::StatusOr<std::unique_ptr<Invocation>> BindFewOf(
    proto::DataType type, const Size& size, const AttentionKnobs& knobs,
    CpuDevice& device) {
  if (type == proto::F32) return BindFew<Factors::kFloats>(size, knobs, device);
  return size.d % kPairsOfFew == 0 && PairsPay()
             ? BindFew<Factors::kPairs>(size, knobs, device)
             : BindFew<Factors::kWidened>(size, knobs, device);
}

class AttentionCpu : public KnobKernel<AttentionKnobs> {
 public:
  std::vector<std::vector<proto::DataType>> data_types() const override {
    return {{proto::F32}, {proto::BF16}};
  }

 protected:
  absl::StatusOr<std::unique_ptr<Invocation>> Bind(
      const proto::Shape& shape, const AttentionKnobs& knobs,
      CpuDevice& device) const override {
    const Size size = SizeOf(shape);
    const proto::DataType type = shape.data_types(0);
    const int64_t key_bytes =
        size.d * (type == proto::F32 ? sizeof(float) : sizeof(uint16_t));
    const bool few = size.queries <=
                     (key_bytes >= kLongKeyBytes ? kMoreQueries : kFewQueries);
    return few ? BindFewOf(type, size, knobs, device)
               : BindTiledOf(type, size, knobs, device);
  }

  std::vector<std::pair<std::string, int64_t>> BlocksOf(
      const AttentionKnobs& knobs) const override {
    return {{"queries", knobs.query_block},
            {"queries", kFewQueries},
            {"queries", kMoreQueries},
            {"queries", knobs.mr},
            {"keys", knobs.key_block},
            {"d", 16},
            {"d", 128}};
  }
};

OPTRAIL_REGISTER_CPU_KERNEL("attention", AttentionCpu)

}  // namespace
}  // namespace optrail::ops

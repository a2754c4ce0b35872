// The loops and the CPU kernels that layer_norm and rms_norm share, forward and
// backward; the formulas are in norm.h.
//
//   HWY_BEFORE_NAMESPACE();
//   namespace optrail::ops::HWY_NAMESPACE {
//   namespace {
//   NormFunction Choose(int64_t unroll) { return ChooseNorm<false>(unroll); }
//   }  // namespace
//   }  // namespace optrail::ops::HWY_NAMESPACE
//   HWY_AFTER_NAMESPACE();
//   OPTRAIL_NORM_CPU("rms_norm", RmsNormKnobs, /*centred=*/false)
//
// Forward, a row is read in chunks that stay in the L1 cache, each twice: its
// sum, then its squares about its own mean, which are joined as Chan, Golub and
// LeVeque do ("Algorithms for computing the sample variance", 1983). No digits
// are lost to squares that cancel, and a row that the caches cannot hold is
// read twice and not three times.
//
// Backward, a few rows go at a time, so that the sums down the columns are read
// and written once for all of them. Every task has sums of its own, added in a
// fixed order at the end.

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "ops/lib/cpu_frame.h"
#include "ops/lib/simd-inl.h"
#include "ops/norm/norm.h"

#ifndef OPTRAIL_OPS_LIB_NORM_ONCE
#define OPTRAIL_OPS_LIB_NORM_ONCE
namespace optrail::ops {

struct NormRows {
  const float* x = nullptr;
  const float* gamma = nullptr;
  const float* beta = nullptr;  // centred only
  float* y = nullptr;
  float* mean = nullptr;  // nullptr: not asked for
  float* rstd = nullptr;
  int64_t rows = 0;
  int64_t rows_left = 0;  // these and what other tasks have after them
  int64_t cols = 0;
  int64_t chunk = 0;    // columns at a time while statistics are taken
  int64_t ahead = 0;    // rows between a prefetch and its use; 0: none
  bool stream = false;  // writes whole cache lines past the caches
};

struct NormGradientRows {
  const float* dy = nullptr;
  const float* x = nullptr;
  const float* gamma = nullptr;
  const float* mean = nullptr;  // centred only
  const float* rstd = nullptr;
  float* dx = nullptr;
  float* dgamma = nullptr;  // added to
  float* dbeta = nullptr;   // added to; centred only
  int64_t rows = 0;
  int64_t cols = 0;
};

// Rows of so few columns are normalised as many at once as a vector has lanes.
inline constexpr int64_t kNarrowCols = 12;

using NormFunction = void (*)(const NormRows&);

struct NormGradientLoops {
  void (*rows)(const NormGradientRows&) = nullptr;
  // y[c] = the sum of column c.
  void (*columns)(const float* x, int64_t rows, int64_t cols, int64_t stride,
                  float* y) = nullptr;
};

template <class Knobs, bool kCentred>
class NormCpu : public KnobKernel<Knobs> {
 protected:
  virtual NormFunction Find(int64_t unroll) const = 0;

  absl::StatusOr<std::unique_ptr<Invocation>> Bind(
      const proto::Shape& shape, const Knobs& knobs,
      CpuDevice& device) const override {
    const NormFunction norm = Find(knobs.unroll);
    if (norm == nullptr) return this->NotCompiled();
    const int64_t rows = shape.dims(0).value();
    const int64_t cols = shape.dims(1).value();
    const bool writes = !shape.attributes().empty();  // there is but one
    return MakeInvocation([=](const Call& call) {
      int next = 0;
      auto operand = [&] { return static_cast<float*>(call.operands[next++]); };
      NormRows all;
      all.x = operand();
      all.gamma = operand();
      if (kCentred) all.beta = operand();
      all.y = operand();
      if (writes && kCentred) all.mean = operand();
      if (writes) all.rstd = operand();
      all.cols = cols;
      all.chunk = knobs.chunk_cols;
      all.ahead = knobs.prefetch_rows;
      all.stream = knobs.stores == Knobs::Stores::kStreaming;
      ForBlocks(call, rows, knobs.rows_per_task,
                [&](int64_t row, int64_t count) {
                  NormRows part = all;
                  part.x += row * cols;
                  part.y += row * cols;
                  if (part.mean != nullptr) part.mean += row;
                  if (part.rstd != nullptr) part.rstd += row;
                  part.rows = count;
                  part.rows_left = rows - row;
                  norm(part);
                });
    });
  }

  std::vector<std::pair<std::string, int64_t>> BlocksOf(
      const Knobs& knobs) const override {
    return {{"rows", knobs.rows_per_task},
            {"cols", knobs.unroll * 16},
            {"cols", knobs.unroll * 4},
            {"cols", kNarrowCols},
            {"cols", knobs.chunk_cols}};
  }
};

template <class Knobs, bool kCentred>
class NormGradientCpu : public KnobKernel<Knobs> {
 protected:
  virtual NormGradientLoops Find(int64_t rows_at_once) const = 0;

  absl::StatusOr<std::unique_ptr<Invocation>> Bind(
      const proto::Shape& shape, const Knobs& knobs,
      CpuDevice& device) const override {
    const NormGradientLoops loops = Find(knobs.rows_at_once);
    if (loops.rows == nullptr) return this->NotCompiled();
    const int64_t rows = shape.dims(0).value();
    const int64_t cols = shape.dims(1).value();
    const int64_t wanted =
        device.threads() == 1 ? 1 : device.threads() * knobs.tasks_per_thread;
    const int64_t rows_per_task = CeilDiv(rows, std::min(rows, wanted));
    const int64_t tasks = CeilDiv(rows, rows_per_task);
    constexpr int kSums = kCentred ? 2 : 1;
    WorkspaceLayout layout;
    const Workspaces partial(layout, 1, tasks > 1 ? tasks * kSums * cols : 1);
    return MakeInvocation(layout, [=](const Call& call) {
      int next = 0;
      auto operand = [&] { return static_cast<float*>(call.operands[next++]); };
      NormGradientRows all;
      all.dy = operand();
      all.x = operand();
      all.gamma = operand();
      if (kCentred) all.mean = operand();
      all.rstd = operand();
      all.dx = operand();
      float* const dgamma = operand();
      float* const dbeta = kCentred ? operand() : nullptr;
      all.cols = cols;
      float* const sums = partial.at(call, 0);
      ForBlocks(call, rows, rows_per_task, [&](int64_t row, int64_t count) {
        NormGradientRows part = all;
        part.dy += row * cols;
        part.x += row * cols;
        part.dx += row * cols;
        if (kCentred) part.mean += row;
        part.rstd += row;
        part.rows = count;
        const int64_t task = row / rows_per_task;
        part.dgamma = tasks > 1 ? sums + task * kSums * cols : dgamma;
        part.dbeta = !kCentred   ? nullptr
                     : tasks > 1 ? part.dgamma + cols
                                 : dbeta;
        std::fill_n(part.dgamma, cols, 0.0f);
        if (kCentred) std::fill_n(part.dbeta, cols, 0.0f);
        loops.rows(part);
      });
      if (tasks == 1) return;
      loops.columns(sums, tasks, cols, kSums * cols, dgamma);
      if (kCentred) {
        loops.columns(sums + cols, tasks, cols, kSums * cols, dbeta);
      }
    });
  }

  std::vector<std::pair<std::string, int64_t>> BlocksOf(
      const Knobs& knobs) const override {
    return {{"rows", knobs.rows_at_once}, {"cols", 16}, {"cols", 8}};
  }
};

}  // namespace optrail::ops
#endif  // OPTRAIL_OPS_LIB_NORM_ONCE

// The names of guards are part of kernel ids, and so keep the first folder.
#if defined(OPTRAIL_OPS_LIB_NORM_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef OPTRAIL_OPS_LIB_NORM_INL_H_
#undef OPTRAIL_OPS_LIB_NORM_INL_H_
#else
#define OPTRAIL_OPS_LIB_NORM_INL_H_
#endif

HWY_BEFORE_NAMESPACE();
namespace optrail::ops::HWY_NAMESPACE {

// Sum of (x - mean)^2. Meanwhile as many columns of `ahead` are prefetched,
// unless it is nullptr.
template <int kUnroll>
HWY_INLINE float Squares(const float* x, int64_t cols, float mean,
                         const float* ahead) {
  const D d;
  const V m = hn::Set(d, mean);
  V sum[kUnroll];
  OPTRAIL_UNROLL for (int u = 0; u < kUnroll; ++u) sum[u] = hn::Zero(d);
  auto add = [&](int u, V v) OPTRAIL_INLINE_LAMBDA {
    const V centred = hn::Sub(v, m);
    sum[u] = hn::MulAdd(centred, centred, sum[u]);
  };
  ForEachVector<kUnroll>(x, cols, m, add, ahead);
  OPTRAIL_UNROLL for (int u = 1; u < kUnroll; ++u) {
    sum[0] = hn::Add(sum[0], sum[u]);
  }
  return hn::GetLane(hn::SumOfLanes(d, sum[0]));
}

// Rows of at most kNarrowCols columns, while there are as many as lanes: a
// vector has one column of them. Returns how many rows that were.
template <bool kCentred>
HWY_INLINE int64_t NormaliseNarrowRows(const NormRows& work) {
  const D d;
  const hn::RebindToSigned<D> d_index;
  const int64_t lanes = hn::Lanes(d);
  const int64_t cols = work.cols;
  const auto rows = hn::Mul(hn::Iota(d_index, 0),
                            hn::Set(d_index, static_cast<int32_t>(cols)));
  const V n = hn::Set(d, static_cast<float>(cols));
  V values[kNarrowCols];
  int64_t r = 0;
  for (; r + lanes <= work.rows; r += lanes) {
    V mean = hn::Zero(d);
    for (int64_t c = 0; c < cols; ++c) {
      values[c] = hn::GatherIndex(d, work.x + r * cols + c, rows);
      if (kCentred) mean = hn::Add(mean, values[c]);
    }
    mean = hn::Div(mean, n);
    V squares = hn::Zero(d);
    for (int64_t c = 0; c < cols; ++c) {
      values[c] = hn::Sub(values[c], mean);
      squares = hn::MulAdd(values[c], values[c], squares);
    }
    const V epsilon = hn::Set(d, static_cast<float>(kNormEpsilon));
    const V rstd = hn::Div(hn::Set(d, 1.0f),
                           hn::Sqrt(hn::Add(hn::Div(squares, n), epsilon)));
    if (work.mean != nullptr) hn::StoreU(mean, d, work.mean + r);
    if (work.rstd != nullptr) hn::StoreU(rstd, d, work.rstd + r);
    for (int64_t c = 0; c < cols; ++c) {
      const V gamma = hn::Set(d, work.gamma[c]);
      const V h = hn::Mul(values[c], rstd);
      const V y = kCentred ? hn::MulAdd(h, gamma, hn::Set(d, work.beta[c]))
                           : hn::Mul(h, gamma);
      hn::ScatterIndex(y, d, work.y + r * cols + c, rows);
    }
  }
  return r;
}

template <bool kCentred, int kUnroll>
void NormaliseRows(const NormRows& work) {
  const D d;
  const int64_t lanes = hn::Lanes(d);
  const int64_t cols = work.cols;
  int64_t r = cols <= kNarrowCols ? NormaliseNarrowRows<kCentred>(work) : 0;
  for (; r < work.rows; ++r) {
    const float* const x = work.x + r * cols;
    float* const y = work.y + r * cols;
    // A row that is read in chunks leaves no room for the next one.
    const bool prefetch =
        work.ahead > 0 && cols <= work.chunk && r + work.ahead < work.rows_left;
    const float* const ahead = prefetch ? x + work.ahead * cols : nullptr;
    float mean = 0;
    float squares = 0;
    if (kCentred) {
      for (int64_t begin = 0; begin < cols; begin += work.chunk) {
        const int64_t count = std::min(work.chunk, cols - begin);
        const auto n = static_cast<float>(count);
        const float part_mean = SumRow<kUnroll>(x + begin, count) / n;
        const float part = Squares<kUnroll>(x + begin, count, part_mean, ahead);
        if (begin == 0) {
          mean = part_mean;
          squares = part;
          continue;
        }
        const auto before = static_cast<float>(begin);
        const float share = n / (before + n);
        const float apart = part_mean - mean;
        mean += apart * share;
        squares += part + apart * apart * before * share;
      }
    } else {
      for (int64_t begin = 0; begin < cols; begin += work.chunk) {
        squares += Squares<kUnroll>(
            x + begin, std::min(work.chunk, cols - begin), 0.0f, ahead);
      }
    }
    const float rstd = 1 / std::sqrt(squares / static_cast<float>(cols) +
                                     static_cast<float>(kNormEpsilon));
    if (work.mean != nullptr) work.mean[r] = mean;
    if (work.rstd != nullptr) work.rstd[r] = rstd;

    const V scale = hn::Set(d, rstd);
    const V shift = hn::Set(d, mean);
    auto apply = [&](V v, V gamma, V beta) OPTRAIL_INLINE_LAMBDA {
      if constexpr (kCentred) {
        return hn::MulAdd(hn::Mul(hn::Sub(v, shift), scale), gamma, beta);
      } else {
        return hn::Mul(hn::Mul(v, scale), gamma);
      }
    };
    const float* const beta = kCentred ? work.beta : work.gamma;
    const auto store_first = [&](int64_t c,
                                 int64_t count) OPTRAIL_INLINE_LAMBDA {
      const V zero = hn::Zero(d);
      StoreFirst(apply(LoadFirst(x + c, count, zero),
                       LoadFirst(work.gamma + c, count, zero),
                       LoadFirst(beta + c, count, zero)),
                 count, y + c);
    };
    const auto store = [&](int64_t c) OPTRAIL_INLINE_LAMBDA {
      const V v = apply(hn::LoadU(d, x + c), hn::LoadU(d, work.gamma + c),
                        hn::LoadU(d, beta + c));
      if (work.stream) {
        hn::Stream(v, d, y + c);
      } else {
        hn::StoreU(v, d, y + c);
      }
    };
    int64_t c = 0;
    if (work.stream) {
      // Streaming stores begin where a vector is aligned.
      const auto place =
          static_cast<int64_t>(reinterpret_cast<uintptr_t>(y) / sizeof(float));
      c = std::min((lanes - place % lanes) % lanes, cols);
      if (c > 0) store_first(0, c);
    }
    for (; c + kUnroll * lanes <= cols; c += kUnroll * lanes) {
      OPTRAIL_UNROLL for (int u = 0; u < kUnroll; ++u) store(c + u * lanes);
    }
    for (; c + lanes <= cols; c += lanes) store(c);
    if (c < cols) store_first(c, cols - c);
  }
  if (work.stream) hwy::FlushStream();
}

// kRows rows, or fewer.
template <bool kCentred, int kRows>
HWY_INLINE void NormGradientGroup(const NormGradientRows& work, int64_t row) {
  const D d;
  const int64_t lanes = hn::Lanes(d);
  const int64_t cols = work.cols;
  const float* const dy = work.dy + row * cols;
  const float* const x = work.x + row * cols;
  float* const dx = work.dx + row * cols;

  V mean[kRows], rstd[kRows], sum_g[kRows], sum_gh[kRows];
  OPTRAIL_UNROLL for (int i = 0; i < kRows; ++i) {
    mean[i] = kCentred ? hn::Set(d, work.mean[row + i]) : hn::Zero(d);
    rstd[i] = hn::Set(d, work.rstd[row + i]);
    sum_g[i] = hn::Zero(d);
    sum_gh[i] = hn::Zero(d);
  }
  auto normalised = [&](int i, V v) OPTRAIL_INLINE_LAMBDA {
    return hn::Mul(kCentred ? hn::Sub(v, mean[i]) : v, rstd[i]);
  };
  auto load = [&](const float* from, int64_t left) OPTRAIL_INLINE_LAMBDA {
    return left >= lanes ? hn::LoadU(d, from)
                         : LoadFirst(from, left, hn::Zero(d));
  };
  auto store = [&](V v, int64_t left, float* to) OPTRAIL_INLINE_LAMBDA {
    if (left >= lanes) {
      hn::StoreU(v, d, to);
    } else {
      StoreFirst(v, left, to);
    }
  };
  for (int64_t c = 0; c < cols; c += lanes) {
    const int64_t left = cols - c;
    const V gamma = load(work.gamma + c, left);
    V dgamma = load(work.dgamma + c, left);
    V dbeta = kCentred ? load(work.dbeta + c, left) : hn::Zero(d);
    OPTRAIL_UNROLL for (int i = 0; i < kRows; ++i) {
      const V v = load(dy + i * cols + c, left);
      const V h = normalised(i, load(x + i * cols + c, left));
      const V g = hn::Mul(v, gamma);
      if (kCentred) {
        sum_g[i] = hn::Add(sum_g[i], g);
        dbeta = hn::Add(dbeta, v);
      }
      sum_gh[i] = hn::MulAdd(g, h, sum_gh[i]);
      dgamma = hn::MulAdd(v, h, dgamma);
    }
    store(dgamma, left, work.dgamma + c);
    if (kCentred) store(dbeta, left, work.dbeta + c);
  }
  const V per_col = hn::Set(d, 1.0f / static_cast<float>(cols));
  OPTRAIL_UNROLL for (int i = 0; i < kRows; ++i) {
    sum_g[i] = hn::Mul(hn::SumOfLanes(d, sum_g[i]), per_col);
    sum_gh[i] = hn::Mul(hn::SumOfLanes(d, sum_gh[i]), per_col);
  }
  for (int64_t c = 0; c < cols; c += lanes) {
    const int64_t left = cols - c;
    const V gamma = load(work.gamma + c, left);
    OPTRAIL_UNROLL for (int i = 0; i < kRows; ++i) {
      const V h = normalised(i, load(x + i * cols + c, left));
      V g = hn::Mul(load(dy + i * cols + c, left), gamma);
      if (kCentred) g = hn::Sub(g, sum_g[i]);
      store(hn::Mul(rstd[i], hn::NegMulAdd(h, sum_gh[i], g)), left,
            dx + i * cols + c);
    }
  }
}

template <bool kCentred, int kRows>
void NormGradients(const NormGradientRows& work) {
  int64_t row = 0;
  for (; row + kRows <= work.rows; row += kRows) {
    NormGradientGroup<kCentred, kRows>(work, row);
  }
  for (; row < work.rows; ++row) NormGradientGroup<kCentred, 1>(work, row);
}

inline void NormColumns(const float* x, int64_t rows, int64_t cols,
                        int64_t stride, float* y) {
  SumColumns<4>(x, rows, cols, stride, y);
}

template <bool kCentred>
NormFunction ChooseNorm(int64_t unroll) {
  switch (unroll) {
    case 1:
      return &NormaliseRows<kCentred, 1>;
    case 2:
      return &NormaliseRows<kCentred, 2>;
    case 4:
      return &NormaliseRows<kCentred, 4>;
    default:
      return nullptr;
  }
}

template <bool kCentred>
NormGradientLoops ChooseNormGradient(int64_t rows_at_once) {
  switch (rows_at_once) {
    case 1:
      return {&NormGradients<kCentred, 1>, &NormColumns};
    case 2:
      return {&NormGradients<kCentred, 2>, &NormColumns};
    case 4:
      return {&NormGradients<kCentred, 4>, &NormColumns};
    default:
      return {};
  }
}

}  // namespace optrail::ops::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

// Register the kernel around the file's Choose().
#undef OPTRAIL_NORM_CPU
#undef OPTRAIL_NORM_BACKWARD_CPU
#undef OPTRAIL_NORM_KERNEL_
#if HWY_ONCE
#define OPTRAIL_NORM_KERNEL_(op, Frame, Knobs, centred, Result) \
  namespace optrail::ops {                                      \
  namespace {                                                   \
  HWY_EXPORT(Choose);                                           \
  class NormKernel : public Frame<Knobs, centred> {             \
   protected:                                                   \
    Result Find(int64_t value) const override {                 \
      return HWY_DYNAMIC_DISPATCH(Choose)(value);               \
    }                                                           \
  };                                                            \
  OPTRAIL_REGISTER_CPU_KERNEL(op, NormKernel)                   \
  }                                                             \
  }
#else
#define OPTRAIL_NORM_KERNEL_(op, Frame, Knobs, centred, Result)
#endif
#define OPTRAIL_NORM_CPU(op, Knobs, centred) \
  OPTRAIL_NORM_KERNEL_(op, NormCpu, Knobs, centred, NormFunction)
#define OPTRAIL_NORM_BACKWARD_CPU(op, Knobs, centred) \
  OPTRAIL_NORM_KERNEL_(op, NormGradientCpu, Knobs, centred, NormGradientLoops)

#endif  // OPTRAIL_OPS_LIB_NORM_INL_H_

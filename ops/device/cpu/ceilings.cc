#include "ops/device/cpu/ceilings.h"

#include <algorithm>
#include <cstdint>
#include <memory>

#include "absl/functional/function_ref.h"
#include "absl/time/clock.h"
#include "base/check.h"
#include "base/status_macros.h"

#undef HWY_DISABLED_TARGETS
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_SSE4)
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/device/cpu/ceilings.cc"
#include "hwy/cache_control.h"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace optrail::ops::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// Makes `turns` times twelve independent chains of fused multiply-adds advance
// by one: enough to hide a latency of six cycles on two units. Returns the FLOP
// done; the result goes to `sink`, or the compiler would drop it all.
double MultiplyAdd(int64_t turns, float* sink) {
  const hn::ScalableTag<float> d;
  const auto factor = hn::Set(d, 0.999f);
  const auto addend = hn::Set(d, 0.001f);
  auto x0 = hn::Iota(d, 0), x1 = hn::Iota(d, 1), x2 = hn::Iota(d, 2);
  auto x3 = hn::Iota(d, 3), x4 = hn::Iota(d, 4), x5 = hn::Iota(d, 5);
  auto x6 = hn::Iota(d, 6), x7 = hn::Iota(d, 7), x8 = hn::Iota(d, 8);
  auto x9 = hn::Iota(d, 9), x10 = hn::Iota(d, 10), x11 = hn::Iota(d, 11);
  for (int64_t turn = 0; turn < turns; ++turn) {
    x0 = hn::MulAdd(x0, factor, addend);
    x1 = hn::MulAdd(x1, factor, addend);
    x2 = hn::MulAdd(x2, factor, addend);
    x3 = hn::MulAdd(x3, factor, addend);
    x4 = hn::MulAdd(x4, factor, addend);
    x5 = hn::MulAdd(x5, factor, addend);
    x6 = hn::MulAdd(x6, factor, addend);
    x7 = hn::MulAdd(x7, factor, addend);
    x8 = hn::MulAdd(x8, factor, addend);
    x9 = hn::MulAdd(x9, factor, addend);
    x10 = hn::MulAdd(x10, factor, addend);
    x11 = hn::MulAdd(x11, factor, addend);
  }
  x0 = hn::Add(hn::Add(x0, x1), hn::Add(x2, x3));
  x4 = hn::Add(hn::Add(x4, x5), hn::Add(x6, x7));
  x8 = hn::Add(hn::Add(x8, x9), hn::Add(x10, x11));
  *sink = hn::GetLane(hn::SumOfLanes(d, hn::Add(x0, hn::Add(x4, x8))));
  return 2.0 * 12 * static_cast<double>(hn::Lanes(d)) *
         static_cast<double>(turns);
}

// `count` is a multiple of 256, `from` aligned to 64 bytes.
void ReadFloats(const float* from, int64_t count, float* sink) {
  const hn::ScalableTag<float> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  auto s0 = hn::Zero(d), s1 = hn::Zero(d), s2 = hn::Zero(d), s3 = hn::Zero(d);
  auto s4 = hn::Zero(d), s5 = hn::Zero(d), s6 = hn::Zero(d), s7 = hn::Zero(d);
  for (int64_t i = 0; i < count; i += 8 * lanes) {
    s0 = hn::Add(s0, hn::Load(d, from + i));
    s1 = hn::Add(s1, hn::Load(d, from + i + lanes));
    s2 = hn::Add(s2, hn::Load(d, from + i + 2 * lanes));
    s3 = hn::Add(s3, hn::Load(d, from + i + 3 * lanes));
    s4 = hn::Add(s4, hn::Load(d, from + i + 4 * lanes));
    s5 = hn::Add(s5, hn::Load(d, from + i + 5 * lanes));
    s6 = hn::Add(s6, hn::Load(d, from + i + 6 * lanes));
    s7 = hn::Add(s7, hn::Load(d, from + i + 7 * lanes));
  }
  s0 = hn::Add(hn::Add(s0, s1), hn::Add(s2, s3));
  s4 = hn::Add(hn::Add(s4, s5), hn::Add(s6, s7));
  *sink = hn::GetLane(hn::SumOfLanes(d, hn::Add(s0, s4)));
}

void CopyFloats(const float* from, int64_t count, float* to) {
  const hn::ScalableTag<float> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  for (int64_t i = 0; i < count; i += 4 * lanes) {
    hn::Stream(hn::Load(d, from + i), d, to + i);
    hn::Stream(hn::Load(d, from + i + lanes), d, to + i + lanes);
    hn::Stream(hn::Load(d, from + i + 2 * lanes), d, to + i + 2 * lanes);
    hn::Stream(hn::Load(d, from + i + 3 * lanes), d, to + i + 3 * lanes);
  }
  hwy::FlushStream();
}

}  // namespace optrail::ops::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE

namespace optrail::ops {
namespace {

HWY_EXPORT(MultiplyAdd);
HWY_EXPORT(ReadFloats);
HWY_EXPORT(CopyFloats);

// Results that nobody reads, a cache line per thread.
struct alignas(64) Sink {
  volatile float value = 0;
};

// The highest rate of `work`, which returns how much it did.
double BestRate(absl::Duration time, absl::FunctionRef<double()> work) {
  double best = 0;
  const int64_t end =
      absl::GetCurrentTimeNanos() + absl::ToInt64Nanoseconds(time);
  do {
    const int64_t start = absl::GetCurrentTimeNanos();
    const double done = work();
    const int64_t elapsed = absl::GetCurrentTimeNanos() - start;
    best = std::max(
        best, done * 1e9 / static_cast<double>(std::max<int64_t>(elapsed, 1)));
  } while (absl::GetCurrentTimeNanos() < end);
  return best;
}

}  // namespace

absl::StatusOr<proto::Ceilings> MeasureCeilings(Device& device,
                                                const CeilingOptions& options) {
  OPTRAIL_CHECK(device.kind() == proto::CPU);
  const proto::Hardware& hardware = device.hardware();
  const int threads = device.threads();
  // About 0.1 ms at the rates of today's cores.
  constexpr int64_t kTurns = 50000;
  constexpr int64_t kPieceFloats = 64 << 10;

  const int64_t l1_bytes =
      hardware.has_l1d_bytes() ? hardware.l1d_bytes() : 32 << 10;
  const int64_t l2_bytes =
      hardware.has_l2_bytes() ? hardware.l2_bytes() : 512 << 10;
  const int64_t memory_bytes =
      std::max<int64_t>(4 * l2_bytes * threads, 64 << 20);
  const int64_t pieces = memory_bytes / (kPieceFloats * 4);
  OPTRAIL_ASSIGN_OR_RETURN(
      const std::unique_ptr<Buffer> from,
      device.Allocate(pieces * kPieceFloats * sizeof(float)));
  OPTRAIL_ASSIGN_OR_RETURN(
      const std::unique_ptr<Buffer> to,
      device.Allocate(pieces * kPieceFloats * sizeof(float)));
  auto* const source = static_cast<float*>(from->data());
  auto* const target = static_cast<float*>(to->data());
  // Not zero: some machines treat lines of zeros specially.
  std::fill_n(source, pieces * kPieceFloats, 1.0f);

  Sink sink;
  // A third of a cache leaves room for what else lives there.
  const auto read_rate = [&](int64_t cache_bytes) {
    const int64_t floats =
        std::max<int64_t>(cache_bytes / 3 / 4 / 256 * 256, 256);
    const int64_t turns = std::max<int64_t>(1, (1 << 20) / floats);
    return BestRate(options.time_per_number, [&] {
      for (int64_t turn = 0; turn < turns; ++turn) {
        float result = 0;
        HWY_DYNAMIC_DISPATCH(ReadFloats)(source, floats, &result);
        sink.value = result;
      }
      return static_cast<double>(turns * floats) * 4;
    });
  };
  // One reading covers only a sixteenth of the buffers, wandering through them,
  // so that it is short enough to fit between two disturbances; what it reads
  // was pushed out of the caches by the other fifteen.
  const int64_t pieces_per_reading = std::max<int64_t>(pieces / 16, threads);
  int64_t next_piece = 0;
  const auto for_pieces = [&](bool all, absl::FunctionRef<void(int64_t)> body) {
    const int64_t first = next_piece;
    next_piece = (next_piece + pieces_per_reading) % pieces;
    const auto wandering = [&](int64_t i) { body((first + i) % pieces); };
    if (all) {
      device.ParallelFor(pieces_per_reading, wandering);
    } else {
      for (int64_t i = 0; i < pieces_per_reading; ++i) wandering(i);
    }
  };
  const auto flop_rate = [&](int parts) {
    return BestRate(options.time_per_number, [&] {
      double flop = 0;
      device.ParallelFor(parts, [&](int64_t part) {
        float result = 0;
        const double done = HWY_DYNAMIC_DISPATCH(MultiplyAdd)(kTurns, &result);
        Sink own;
        own.value = result;
        if (part == 0) flop = done * parts;
      });
      return flop;
    });
  };
  const auto memory_read_rate = [&](bool all) {
    return BestRate(options.time_per_number, [&] {
      for_pieces(all, [&](int64_t piece) {
        float result = 0;
        HWY_DYNAMIC_DISPATCH(ReadFloats)
        (source + piece * kPieceFloats, kPieceFloats, &result);
        Sink own;
        own.value = result;
      });
      return static_cast<double>(pieces_per_reading * kPieceFloats) * 4;
    });
  };
  const auto memory_copy_rate = [&](bool all) {
    return BestRate(options.time_per_number, [&] {
      for_pieces(all, [&](int64_t piece) {
        HWY_DYNAMIC_DISPATCH(CopyFloats)
        (source + piece * kPieceFloats, kPieceFloats,
         target + piece * kPieceFloats);
      });
      return static_cast<double>(pieces_per_reading * kPieceFloats) * 8;
    });
  };

  // On a busy machine the reading of all threads may be the lower one, although
  // they can do whatever one of them can.
  proto::Ceilings ceilings;
  const double flop = flop_rate(1);
  ceilings.set_flop_per_s_one_thread(flop);
  ceilings.set_flop_per_s_all_threads(std::max(flop, flop_rate(threads)));
  ceilings.set_l1_read_bytes_per_s(read_rate(l1_bytes));
  ceilings.set_l2_read_bytes_per_s(read_rate(l2_bytes));
  const double read = memory_read_rate(false);
  ceilings.set_memory_read_bytes_per_s_one_thread(read);
  ceilings.set_memory_read_bytes_per_s_all_threads(
      std::max(read, memory_read_rate(true)));
  const double copy = memory_copy_rate(false);
  ceilings.set_memory_copy_bytes_per_s_one_thread(copy);
  ceilings.set_memory_copy_bytes_per_s_all_threads(
      std::max(copy, memory_copy_rate(true)));
  ceilings.set_measured_unix_ns(absl::GetCurrentTimeNanos());
  return ceilings;
}

}  // namespace optrail::ops

#endif  // HWY_ONCE

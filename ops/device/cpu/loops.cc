#include "ops/device/cpu/loops.h"

#undef HWY_DISABLED_TARGETS
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_SSE4)
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/device/cpu/loops.cc"
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

// A result that nobody reads, out of the optimiser's sight.
void Drop(float value) { asm volatile("" : : "r"(value)); }

}  // namespace

double MultiplyAddLoop(int64_t turns) {
  float result = 0;
  const double flop = HWY_DYNAMIC_DISPATCH(MultiplyAdd)(turns, &result);
  Drop(result);
  return flop;
}

void DependentLoop(int64_t turns) {
  uint64_t x = 1;
  for (int64_t i = 0; i < turns; ++i) {
    x = x * 6364136223846793005u + 1442695040888963407u;
    asm volatile("" : "+r"(x));
  }
}

void ReadLoop(const float* from, int64_t floats) {
  float result = 0;
  HWY_DYNAMIC_DISPATCH(ReadFloats)(from, floats, &result);
  Drop(result);
}

void CopyLoop(const float* from, int64_t floats, float* to) {
  HWY_DYNAMIC_DISPATCH(CopyFloats)(from, floats, to);
}

}  // namespace optrail::ops

#endif  // HWY_ONCE

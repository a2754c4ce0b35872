#include "ops/device/cpu/calibration.h"

#include <algorithm>
#include <chrono>
#include <limits>
#include <utility>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "base/stats/statistics.h"
#include "ops/device/cpu/loops.h"

namespace optrail::ops {
namespace {

constexpr int64_t kMemoryBytes = 2 << 20;
constexpr int64_t kMaxL3Bytes = 8 << 20;
constexpr int64_t kArithmeticTurns = 2000;
constexpr int64_t kVectorTurns = 5000;

// The fastest of several short loops counts: an interrupt says nothing of the
// clock.
constexpr int kTries = 3;

int64_t TimeNs(int tries, absl::FunctionRef<void()> loop) {
  int64_t fastest = std::numeric_limits<int64_t>::max();
  for (int i = 0; i < tries; ++i) {
    const auto start = std::chrono::steady_clock::now();
    loop();
    fastest =
        std::min(fastest, std::chrono::duration_cast<std::chrono::nanoseconds>(
                              std::chrono::steady_clock::now() - start)
                              .count());
  }
  return fastest;
}

// Whole turns of ReadLoop.
int64_t Floats(int64_t bytes) {
  return std::max<int64_t>(256, bytes / 4 / 256 * 256);
}

}  // namespace

int64_t TimeArithmeticLoopNs() {
  return TimeNs(1, [] { DependentLoop(kArithmeticTurns); });
}

Calibration::Calibration(const proto::Hardware& hardware)
    : loops_{
          {"vector", {}}, {"l1", {}}, {"l2", {}}, {"l3", {}}, {"memory", {}}} {
  const int64_t l1_bytes =
      hardware.has_l1d_bytes() ? hardware.l1d_bytes() : 32 << 10;
  const int64_t l2_bytes =
      hardware.has_l2_bytes() ? hardware.l2_bytes() : 512 << 10;
  l1_floats_ = Floats(l1_bytes / 2);
  l2_floats_ = Floats(std::min(l2_bytes / 2, kMaxL3Bytes));
  if (hardware.l3_bytes() >= 2 * l2_bytes) {
    l3_floats_ = Floats(std::min(2 * l2_bytes, kMaxL3Bytes));
  }
  const int64_t bytes =
      std::max({kMemoryBytes, 4 * l2_floats_, 4 * l3_floats_});
  absl::StatusOr<GuardedMemory> memory =
      GuardedMemory::Allocate(bytes, /*stagger_bytes=*/0);
  if (!memory.ok()) return;
  memory_.emplace(*std::move(memory));
  // Not zero: some machines treat lines of zeros specially.
  std::fill_n(static_cast<float*>(memory_->data()), bytes / 4, 1.0f);
}

void Calibration::Run(int turns) {
  const auto read = [&](Name name, int tries, absl::FunctionRef<void()> loop) {
    loops_[name].readings_ns.push_back(
        static_cast<double>(TimeNs(tries, loop)));
  };
  for (int turn = 0; turn < turns; ++turn) {
    read(kVector, kTries, [] { MultiplyAddLoop(kVectorTurns); });
    if (!memory_.has_value()) continue;
    const auto* data = static_cast<const float*>(memory_->data());
    const auto pass = [&](int64_t floats, int64_t passes) {
      for (int64_t i = 0; i < passes; ++i) ReadLoop(data, floats);
    };
    pass(l1_floats_, 1);
    read(kL1, kTries, [&] { pass(l1_floats_, 128); });
    pass(l2_floats_, 1);
    read(kL2, kTries, [&] { pass(l2_floats_, 4); });
    if (l3_floats_ > 0) {
      pass(l3_floats_, 1);
      read(kL3, 1, [&] { pass(l3_floats_, 1); });
    }
    if (CanFlushLines()) {
      FlushLines(data, kMemoryBytes);
      read(kMemory, 1, [&] { pass(Floats(kMemoryBytes), 1); });
    }
  }
}

void Calibration::Fill(proto::Conditions* conditions) const {
  for (const Loop& loop : loops_) {
    if (loop.readings_ns.empty()) continue;
    proto::Calibration* calibration = conditions->add_calibrations();
    calibration->set_loop(loop.name);
    calibration->set_time_ns(Median(loop.readings_ns));
    calibration->set_readings(static_cast<int>(loop.readings_ns.size()));
    calibration->set_fastest_ns(
        *std::min_element(loop.readings_ns.begin(), loop.readings_ns.end()));
  }
}

void Calibration::Forget() {
  for (Loop& loop : loops_) loop.readings_ns.clear();
}

}  // namespace optrail::ops

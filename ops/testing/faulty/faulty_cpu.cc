// The misbehaving kernel. `work` repeats the computation, so that well-behaved
// configs differ in speed: less work is better.

#include <atomic>
#include <chrono>
#include <cmath>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <memory>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/random.h"
#include "base/status_macros.h"
#include "ops/core/cpu_kernel.h"
#include "ops/testing/faulty/faulty_knobs.h"

namespace optrail::ops {
namespace {

using Behaviour = FaultyKnobs::Behaviour;

// Even where a handler of SIGSEGV is installed, as sanitizers do.
[[noreturn]] void Crash() {
  std::signal(SIGSEGV, SIG_DFL);
  std::raise(SIGSEGV);
  std::abort();
}

[[noreturn]] void Hang() {
  while (true) std::this_thread::sleep_for(std::chrono::hours(1));
}

[[noreturn]] void Spin() {
  volatile int64_t turns = 0;
  while (true) turns = turns + 1;
}

// Touches every page: memory that is only reserved costs nothing. Where a cap
// makes an allocation fail, it stops the process as bad_alloc would.
[[noreturn]] void AllocateWithoutEnd() {
  constexpr size_t kPieceBytes = size_t{16} << 20;
  while (true) {
    auto* const piece = static_cast<volatile char*>(std::malloc(kPieceBytes));
    if (piece == nullptr) std::abort();
    for (size_t i = 0; i < kPieceBytes; i += 4096) piece[i] = 1;
  }
}

// A table that takes half of the cache that a core has for itself, and whose
// lines are read one after another: each says where the next one is. While the
// cache keeps the table, that is fast.
class Table {
 public:
  static absl::StatusOr<Table> Create(CpuDevice& device) {
    const proto::Hardware& hardware = device.hardware();
    const int64_t l2_bytes =
        hardware.has_l2_bytes() ? hardware.l2_bytes() : int64_t{1} << 20;
    Table table;
    table.count_ = l2_bytes / 2 / kLineBytes;
    OPTRAIL_ASSIGN_OR_RETURN(table.lines_,
                             device.Allocate(table.count_ * sizeof(Line)));
    auto* const lines = static_cast<Line*>(table.lines_->data());
    for (int64_t i = 0; i < table.count_; ++i) lines[i].next = &lines[i];
    // One cycle through all of them (Sattolo, "An algorithm to generate a
    // random cyclic permutation", 1986).
    Rng rng(/*seed=*/1);
    for (int64_t i = table.count_ - 1; i > 0; --i) {
      std::swap(lines[i].next, lines[rng.UniformInt(i)].next);
    }
    return table;
  }

  void Read() const {
    const auto* line = static_cast<const volatile Line*>(lines_->data());
    for (int64_t i = 0; i < count_; ++i) line = line->next;
  }

 private:
  static constexpr int64_t kLineBytes = 64;
  struct alignas(kLineBytes) Line {
    const Line* next;
  };

  std::unique_ptr<Buffer> lines_;
  int64_t count_ = 0;
};

class FaultyInvocation : public Invocation {
 public:
  FaultyInvocation(int64_t n, const FaultyKnobs& knobs,
                   std::optional<Table> table)
      : n_(n), knobs_(knobs), table_(std::move(table)) {}

  absl::Status Run(const Call& call) const override {
    auto* const x = static_cast<float*>(call.operands[0]);
    auto* const y = static_cast<float*>(call.operands[1]);
    switch (knobs_.behaviour) {
      case Behaviour::kOk:
        break;
      case Behaviour::kCrash:
        Crash();
      case Behaviour::kAbort:
        std::abort();
      case Behaviour::kExit:
        std::_Exit(3);
      case Behaviour::kHang:
        Hang();
      case Behaviour::kSpin:
        Spin();
      case Behaviour::kAllocate:
        AllocateWithoutEnd();
      case Behaviour::kWriteNothing:
        return absl::OkStatus();
      case Behaviour::kSlow:
        std::this_thread::sleep_for(std::chrono::milliseconds(50));
        break;
      case Behaviour::kRefuse:  // in Prepare()
      case Behaviour::kWriteNan:
      case Behaviour::kWriteOutOfBounds:
      case Behaviour::kWriteBefore:
      case Behaviour::kChangeInput:
      case Behaviour::kWrongLast:
      case Behaviour::kWrongBeyondOne:
      case Behaviour::kWrongDenormals:
      case Behaviour::kWrongTies:
      case Behaviour::kWrongLarge:
      case Behaviour::kCountRows:
        break;
      case Behaviour::kEvict:
        table_->Read();
        break;
      case Behaviour::kWrongLater:
        if (called_.exchange(true)) return absl::OkStatus();
        break;
    }
    Compute(x, y);
    for (int64_t i = 0; i < n_; ++i) {
      if (IsWrongAt(x, i)) y[i] = 7;
    }
    if (knobs_.behaviour == Behaviour::kWriteNan) {
      y[n_ / 2] = std::numeric_limits<float>::quiet_NaN();
    } else if (knobs_.behaviour == Behaviour::kWriteOutOfBounds) {
      static_cast<volatile float*>(y)[n_] = 1;
    } else if (knobs_.behaviour == Behaviour::kWriteBefore) {
      static_cast<volatile float*>(y)[-1] = 1;
    } else if (knobs_.behaviour == Behaviour::kChangeInput) {
      x[n_ - 1] = 7;
    } else if (knobs_.behaviour == Behaviour::kCountRows && n_ % 2 != 0) {
      for (int64_t i = 0; i < n_; ++i) y[i] *= 1 + 0x1p-23f;
    }
    return absl::OkStatus();
  }

 private:
  bool IsWrongAt(const float* x, int64_t i) const {
    const float size = std::fabs(x[i]);
    switch (knobs_.behaviour) {
      case Behaviour::kWrongLast:
        return i == n_ - 1;
      case Behaviour::kWrongBeyondOne:
        return size > 1;
      case Behaviour::kWrongDenormals:
        return size > 0 && size < std::numeric_limits<float>::min();
      case Behaviour::kWrongTies:
        return i > 0 && x[i] == x[i - 1] && size > 0;
      case Behaviour::kWrongLarge:
        return size >= 1e20f;
      default:
        return false;
    }
  }

  void Compute(const float* x, float* y) const {
    for (int64_t turn = 0; turn < knobs_.work; ++turn) {
      for (int64_t i = 0; i < n_; ++i) {
        // Volatile: every turn really happens.
        static_cast<volatile float*>(y)[i] = 2 * x[i];
      }
    }
  }

  const int64_t n_;
  const FaultyKnobs knobs_;
  const std::optional<Table> table_;
  // No well-behaved invocation has such a member.
  mutable std::atomic<bool> called_{false};
};

class FaultyCpu : public CpuKernel {
 public:
  absl::StatusOr<int> Instantiation(
      const proto::Config& config) const override {
    OPTRAIL_ASSIGN_OR_RETURN(const FaultyKnobs knobs,
                             FaultyKnobs::From(config));
    return knobs.InstantiationIndex();
  }

  absl::StatusOr<std::unique_ptr<Invocation>> Prepare(
      const proto::Shape& shape, const proto::Config& config,
      CpuDevice& device) const override {
    OPTRAIL_ASSIGN_OR_RETURN(const FaultyKnobs knobs,
                             FaultyKnobs::From(config));
    if (knobs.behaviour == Behaviour::kRefuse) {
      return absl::InvalidArgumentError("refused on request");
    }
    std::optional<Table> table;
    if (knobs.behaviour == Behaviour::kEvict) {
      OPTRAIL_ASSIGN_OR_RETURN(table, Table::Create(device));
    }
    return std::make_unique<FaultyInvocation>(shape.dims(0).value(), knobs,
                                              std::move(table));
  }
};

OPTRAIL_REGISTER_CPU_KERNEL("faulty", FaultyCpu)

}  // namespace
}  // namespace optrail::ops

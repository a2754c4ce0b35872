#ifndef OPTRAIL_OPS_CORE_MOVED_OPERANDS_H_
#define OPTRAIL_OPS_CORE_MOVED_OPERANDS_H_

// MovedOperands are the operands of a perturbed call: those of the original
// sets, some of them at other addresses. Devices share it; each brings memory
// of its own.
//
//   auto moved = std::make_unique<MovedOperands>(operands);
//   moved->Move(0, memory->data(), memory);
//   auto timer = MakeTimerOf(*moved);
//   return std::make_unique<MovedTimer>(std::move(moved), std::move(timer));
//
// The original sets must outlive it. Not thread-safe.

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/optional.h"
#include "absl/types/span.h"
#include "ops/core/device.h"
#include "ops/core/invocation.h"

namespace optrail::ops {

class MovedOperands : public OperandSets {
 public:
  explicit MovedOperands(OperandSets& original) : original_(original) {
    for (int set = 0; set < original.sets(); ++set) {
      const auto addresses = original.addresses(set);
      addresses_.emplace_back(addresses.begin(), addresses.end());
    }
  }

  // Operand `index` of every set is at `data`, which lives as long as `memory`.
  void Move(int index, void* data, std::shared_ptr<const void> memory) {
    for (auto& addresses : addresses_) addresses[index] = data;
    Keep(std::move(memory));
  }
  void Keep(std::shared_ptr<const void> memory) {
    kept_.push_back(std::move(memory));
  }

  absl::Span<void* const> addresses(int set) const override {
    return addresses_[set];
  }
  absl::Span<const int64_t> bytes() const override { return original_.bytes(); }
  int sets() const override { return original_.sets(); }
  bool has_in_out() const override { return original_.has_in_out(); }
  // The originals, not what was moved: results of perturbed calls mean nothing.
  absl::Status Restore() override { return original_.Restore(); }

 private:
  OperandSets& original_;
  std::vector<std::vector<void*>> addresses_;
  std::vector<std::shared_ptr<const void>> kept_;
};

// A timer that owns the operands of its calls.
class MovedTimer : public Timer {
 public:
  MovedTimer(std::unique_ptr<MovedOperands> operands,
             std::unique_ptr<Timer> timer)
      : operands_(std::move(operands)), timer_(std::move(timer)) {}

  absl::Status Prepare(int64_t calls) override {
    return timer_->Prepare(calls);
  }
  absl::StatusOr<int64_t> TimeNs() override { return timer_->TimeNs(); }
  absl::optional<int64_t> WorkedNs() const override {
    return timer_->WorkedNs();
  }
  int64_t max_calls() const override { return timer_->max_calls(); }
  void Fill(proto::Measurement* measurement) const override {
    timer_->Fill(measurement);
  }

 private:
  const std::unique_ptr<MovedOperands> operands_;
  const std::unique_ptr<Timer> timer_;
};

}  // namespace optrail::ops

#endif  // OPTRAIL_OPS_CORE_MOVED_OPERANDS_H_

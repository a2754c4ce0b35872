#ifndef OPTRAIL_OPS_DEVICE_CPU_TIMER_H_
#define OPTRAIL_OPS_DEVICE_CPU_TIMER_H_

// The steady clock around a batch of calls, which finds all threads awake. With
// cold caches a batch is one call, before which the operands are flushed from
// all caches; a kernel that works in place gets as many prefilled operand sets
// as there are, one a call.
//
//   OPTRAIL_ASSIGN_OR_RETURN(
//       const std::unique_ptr<Timer> timer,
//       CpuTimer::Create(runnable, operands, device, {proto::COLD}));

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "ops/core/cpu_device.h"
#include "ops/core/device.h"
#include "ops/core/invocation.h"
#include "ops/core/runnable.h"

namespace optrail::ops {

class CpuTimer : public Timer {
 public:
  // Prepares calls of every set, and changes them as `adjust` says, unless it
  // is empty; errors are those of Runnable::Prepare().
  static absl::StatusOr<std::unique_ptr<Timer>> Create(
      Runnable& runnable, OperandSets& operands, CpuDevice& device,
      TimingMode mode, const std::function<void(Call&)>& adjust = {});

  absl::Status Prepare(int64_t calls) override;
  absl::StatusOr<int64_t> TimeNs() override;
  // Unimplemented with cold caches: what a flush takes would be metered, too.
  absl::StatusOr<Ran> Run(int64_t calls) override;
  absl::optional<int64_t> WorkedNs() const override { return worked_ns_; }
  int64_t max_calls() const override;
  // "cpu_time": of all threads of the process, per call.
  void Fill(proto::Measurement* measurement) const override;

 private:
  CpuTimer(const Invocation& invocation, OperandSets& operands,
           CpuDevice& device, TimingMode mode)
      : invocation_(invocation),
        operands_(operands),
        device_(device),
        cold_(mode.cache == proto::COLD) {}

  const Invocation& invocation_;
  OperandSets& operands_;
  CpuDevice& device_;
  const bool cold_;
  std::vector<Call> prepared_;  // of every set
  int64_t next_calls_ = 0;
  int64_t worked_ns_ = 0;  // by the last batch
  int64_t cpu_ns_ = 0;
  int64_t calls_ = 0;
};

}  // namespace optrail::ops

#endif  // OPTRAIL_OPS_DEVICE_CPU_TIMER_H_

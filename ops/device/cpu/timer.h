#ifndef OPTRAIL_OPS_DEVICE_CPU_TIMER_H_
#define OPTRAIL_OPS_DEVICE_CPU_TIMER_H_

// The steady clock around a batch of calls, which finds all threads awake. With
// cold caches a batch is one call, before which the operands are flushed from
// all caches; a kernel that works in place gets as many prefilled operand sets
// as there are, one a call.
//
//   CpuTimer timer(invocation, operands, device, {proto::COLD});

#include <cstdint>

#include "ops/core/cpu_device.h"
#include "ops/core/device.h"

namespace optrail::ops {

class CpuTimer : public Timer {
 public:
  CpuTimer(Invocation& invocation, OperandSets& operands, CpuDevice& device,
           TimingMode mode)
      : invocation_(invocation),
        operands_(operands),
        device_(device),
        cold_(mode.cache == proto::COLD) {
    for (int set = 0; set < operands.sets(); ++set) {
      invocation.Pack(operands.addresses(set));
    }
  }

  absl::Status Prepare(int64_t calls) override;
  absl::StatusOr<int64_t> TimeNs() override;
  // Unimplemented with cold caches: what a flush takes would be metered, too.
  absl::StatusOr<Ran> Run(int64_t calls) override;
  absl::optional<int64_t> WorkedNs() const override { return worked_ns_; }
  int64_t max_calls() const override;
  // "cpu_time": of all threads of the process, per call.
  void Fill(proto::Measurement* measurement) const override;

 private:
  Invocation& invocation_;
  OperandSets& operands_;
  CpuDevice& device_;
  const bool cold_;
  int64_t next_calls_ = 0;
  int64_t worked_ns_ = 0;  // by the last batch
  int64_t cpu_ns_ = 0;
  int64_t calls_ = 0;
};

}  // namespace optrail::ops

#endif  // OPTRAIL_OPS_DEVICE_CPU_TIMER_H_

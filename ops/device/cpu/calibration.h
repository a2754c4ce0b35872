#ifndef OPTRAIL_OPS_DEVICE_CPU_CALIBRATION_H_
#define OPTRAIL_OPS_DEVICE_CPU_CALIBRATION_H_

// Loops of fixed work that are timed beside the samples of a process: what the
// machine was like, apart from the code under measurement. A run whose loops
// all took 3% longer was made on a slower machine, not with slower code.
//
//   Calibration calibration(CpuHardware());
//   calibration.Run(3);
//   ... measure, with Run(1) now and then ...
//   calibration.Run(3);
//   calibration.Fill(&conditions);
//
//   loop         work
//   vector       fused multiply-adds on the widest vectors: its rate under load
//   l1, l2       reading half of that cache over and over
//   l3           reading twice the L2, once: what lies behind it
//   memory       reading 2 MiB whose lines were flushed from all caches
//
// One turn of all takes less than a millisecond. (The monitor adds
// "arithmetic", the loop that it runs after every sample.) The work depends on
// the hardware's caches and on nothing else, so that times compare between
// processes and runs of one hardware, not between hardware. Loops that this
// machine cannot run (no L3, no flush instruction) are absent. They run on the
// calling thread and disturb its caches: what runs next finds them cold.

#include <cstdint>
#include <vector>

#include "absl/types/optional.h"
#include "ops/device/cpu/memory.h"
#include "tuning/proto/context.pb.h"
#include "tuning/proto/trial.pb.h"

namespace optrail::ops {

// One reading of the loop "arithmetic", 2000 dependent integer multiply-adds:
// the clock rate of the core. About 3 us, cheap enough for every sample.
int64_t TimeArithmeticLoopNs();

class Calibration {
 public:
  // Where there is no memory for the buffer, only the loop in registers runs.
  explicit Calibration(const proto::Hardware& hardware);

  // Reads every loop `turns` times.
  void Run(int turns);

  // The readings since construction or the last Forget(), one median and
  // the fastest per loop.
  void Fill(proto::Conditions* conditions) const;
  void Forget();

 private:
  struct Loop {
    const char* name;
    std::vector<double> readings_ns;
  };
  enum Name { kVector, kL1, kL2, kL3, kMemory, kLoops };

  absl::optional<GuardedMemory> memory_;
  int64_t l1_floats_ = 0;
  int64_t l2_floats_ = 0;
  int64_t l3_floats_ = 0;  // 0: there is no L3
  Loop loops_[kLoops];
};

}  // namespace optrail::ops

#endif  // OPTRAIL_OPS_DEVICE_CPU_CALIBRATION_H_

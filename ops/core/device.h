#ifndef OPTRAIL_OPS_CORE_DEVICE_H_
#define OPTRAIL_OPS_CORE_DEVICE_H_

// Device is where kernels run: it owns memory, and brings what is needed to
// measure them there. How to time a batch of calls, what disturbs a sample,
// what a call costs beside time and what the hardware can do at best are known
// to the kind of device alone; the stopwatch, the tracker and the reports know
// no kind. Kinds announce themselves by device_type.h; the CPU is in
// ops/device/cpu.
//
//   OPTRAIL_ASSIGN_OR_RETURN(std::unique_ptr<Buffer> x,
//                            device.Allocate(bytes));
//   OPTRAIL_ASSIGN_OR_RETURN(std::unique_ptr<Timer> timer,
//                            device.MakeTimer(runnable, operands, mode));
//
// A Buffer is one operand's memory: aligned to 64 bytes, on huge pages where
// the machine has them, with guard zones on both sides that reveal writes
// outside.

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "absl/types/span.h"
#include "ops/core/invocation.h"
#include "tuning/proto/config.pb.h"
#include "tuning/proto/context.pb.h"
#include "tuning/proto/trial.pb.h"

namespace optrail::ops {

// Sums over each row of a matrix, in double precision. Sum s of the first 16
// takes an element as it is where bit s of the column's word is set, else its
// negative; the last one is of squares of absolute + relative * |element|.
struct RowSums {
  proto::DataType data_type = proto::DATA_TYPE_UNSPECIFIED;  // a float
  int64_t rows = 0;
  std::vector<uint16_t> signs;  // one for each column
  double absolute = 0, relative = 0;
};
inline constexpr int kRowSums = 17;

class Buffer {
 public:
  virtual ~Buffer() = default;

  // Address in the device's memory; for the CPU, ordinary memory.
  virtual void* data() = 0;
  virtual size_t size_bytes() const = 0;
  virtual size_t page_bytes() const = 0;  // as granted by the system

  virtual absl::Status CopyFromHost(const void* source) = 0;
  virtual absl::Status CopyToHost(void* destination) = 0;

  // Whether it lies far from the host: then the next three never pass through
  // it, and copies of what the host has are worth keeping on the device.
  // Elsewhere they are Unimplemented.
  virtual bool far() const { return false; }
  // Fills it with an element of 1, 2 or 4 bytes.
  virtual absl::Status FillWith(const void* element, size_t element_bytes) {
    return absl::UnimplementedError("not far from the host");
  }
  // `other` is of the same device and size.
  virtual absl::Status CopyFrom(Buffer& other) {
    return absl::UnimplementedError("not far from the host");
  }
  // Returns whether all bytes are the same.
  virtual absl::StatusOr<bool> Equals(Buffer& other) {
    return absl::UnimplementedError("not far from the host");
  }
  // Begins to find out whether the guard zones are intact and, with `other`,
  // all bytes are the same. EndCheck() waits and tells whether that is so of
  // all buffers of the device for which it was begun: at a stroke, and not
  // where something is wrong.
  virtual absl::Status BeginCheck(Buffer* other) {
    return absl::UnimplementedError("not far from the host");
  }
  virtual absl::StatusOr<bool> EndCheck() {
    return absl::UnimplementedError("not far from the host");
  }
  // What a few of them can tell, where bringing all to the host takes long: the
  // bytes from `from` on, and sums of rows, kRowSums for each.
  virtual absl::Status CopyPartToHost(size_t from, absl::Span<char> part) {
    return absl::UnimplementedError("not far from the host");
  }
  virtual absl::StatusOr<std::vector<double>> SumRows(const RowSums& sums) {
    return absl::UnimplementedError("not far from the host");
  }

  // Rewrites the guard zones, and tells whether they were intact: DataLoss
  // names the side and the first byte that was overwritten.
  virtual void ArmGuards() = 0;
  virtual absl::Status CheckGuards() = 0;
};

// How calls are timed: part of a task's identity, since a config must be
// measured the way it is used.
struct TimingMode {
  proto::CacheMode cache = proto::HOT;
  proto::LaunchMode launch = proto::LAUNCH_MODE_UNSPECIFIED;
};

// The clock of a device, bound to one runnable and its operands. Prepare()
// and TimeNs() come in pairs.
class Timer {
 public:
  virtual ~Timer() = default;

  // Outside the clock, before a batch of `calls`: restores operands, flushes
  // caches, captures a graph.
  virtual absl::Status Prepare(int64_t calls) = 0;
  // Makes the calls of Prepare() back to back and returns what they took, or
  // the error of a call. Late errors of the device are reported here, too.
  virtual absl::StatusOr<int64_t> TimeNs() = 0;

  // The same calls as in the last batch, at least `calls` of them, without what
  // Prepare() does: nothing is flushed, restored or called untimed in between,
  // so that a meter reads calls and nothing else. Operands that are worked on
  // in place are not restored. After at least one Prepare(). Unimplemented,
  // with the reason, where calls cannot be made like that.
  struct Ran {
    int64_t calls = 0;
    int64_t elapsed_ns = 0;
  };
  virtual absl::StatusOr<Ran> Run(int64_t calls) {
    return absl::UnimplementedError(
        "unsupported here: calls that cannot follow each other without what "
        "prepares them are not metered");
  }

  // The time that the threads of this process worked during the last batch, all
  // together, and at most a microsecond more; nullopt: unknown.
  virtual absl::optional<int64_t> WorkedNs() const { return absl::nullopt; }

  // Upper limit of `calls`: 1 with cold caches, the number of prefilled operand
  // sets for a kernel that works in place.
  virtual int64_t max_calls() const { return int64_t{1} << 30; }

  // Adds metrics of all that was timed so far: processor time on the host.
  virtual void Fill(proto::Measurement* measurement) const {}
};

// Whether somebody else had the device while a sample was taken, and what the
// machine was like meanwhile. It lives for one sampling: between its samples,
// warm-up included, nothing else is measured.
class Monitor {
 public:
  virtual ~Monitor() = default;

  virtual void Begin() = 0;
  // True if the sample that took `elapsed_ns` must be left out of estimates.
  virtual bool End(int64_t elapsed_ns) = 0;
  // Where waiting for a core was all that disturbed the last sample: for how
  // long, what was waited just before and after it included. Else 0.
  virtual int64_t WaitedNs() const { return 0; }

  // Between samples: reads what the machine is like at the moment, if that was
  // long ago. True if it did and the caches are no longer as the last batch
  // left them.
  virtual bool Calibrate() { return false; }

  // Adds what was seen, at the end of the sampling.
  virtual void Fill(proto::Conditions* conditions) = 0;
};

struct MeterInfo {
  std::string metric;  // "joules"
  std::string unit;    // "J"
  proto::Direction direction = proto::LOWER_IS_BETTER;
  // Calls run back to back at least this long, so that the reading is well
  // above the meter's resolution, and for `warm_up` before, until the meter
  // follows. The device rests before that, as long as this at most.
  absl::Duration min_window = absl::Milliseconds(100);
  absl::Duration warm_up = absl::ZeroDuration();
  absl::Duration cool_down = absl::ZeroDuration();
  bool estimated = false;     // a model's answer, no reading
  bool whole_device = false;  // what others did on the device is in it
  std::string source;         // "NVML energy counter"
};

// What else calls cost: energy, memory traffic, a counter.
class Meter {
 public:
  virtual ~Meter() = default;
  virtual const MeterInfo& info() const = 0;

  // Before the first window of a process: learns how this device has to be
  // read, which info() tells from then on, and whether it can be believed.
  // `load` keeps the device working for so long. What is learnt is kept in
  // `folder`, by device; empty: it is not. FailedPrecondition, with the reason,
  // where readings must not be believed.
  virtual absl::Status Calibrate(
      absl::FunctionRef<absl::Status(absl::Duration)> load,
      const std::string& folder) {
    return absl::OkStatus();
  }
  // Waits until the device has cooled down, for info().cool_down at most.
  virtual void Rest() { absl::SleepFor(info().cool_down); }

  virtual absl::Status Begin() = 0;
  // What `calls` calls since Begin() cost together. The caller fills in the
  // duration where the meter knows none.
  virtual absl::StatusOr<proto::MeterWindow> End(int64_t calls) = 0;
};

// Of the processes that share a device and take turns, one has it until this
// is gone.
class Turn {
 public:
  virtual ~Turn() = default;
};

class Runnable;  // runnable.h

class Device {
 public:
  virtual ~Device() = default;

  virtual const proto::Hardware& hardware() const = 0;
  proto::DeviceKind kind() const { return hardware().device_kind(); }
  // Tells it apart from every other one, in hexadecimal; empty where it has no
  // name of its own.
  virtual std::string uuid() const { return ""; }

  // ResourceExhausted if the memory cannot be had.
  virtual absl::StatusOr<std::unique_ptr<Buffer>> Allocate(
      size_t size_bytes) = 0;

  // Memory for a workspace, which the device may keep for the next one where
  // allocating takes long. Its contents are not specified.
  virtual absl::StatusOr<std::shared_ptr<Buffer>> AllocateWorkspace(
      size_t size_bytes) {
    return Allocate(size_bytes);
  }
  // Writes zeros, before what is launched next.
  virtual absl::Status Zero(void* memory, size_t size_bytes) {
    std::memset(memory, 0, size_bytes);
    return absl::OkStatus();
  }

  // The stream that takes the calls made for this device; what is launched
  // there from now on counts as busy_ns().
  virtual Stream stream() { return Stream(); }

  // Waits for everything launched so far; reports a failed launch.
  virtual absl::Status Synchronize() = 0;

  // What is launched here until it is gone meets nobody else who takes turns;
  // processes of other sessions do. Calls `waits`, once, if it has to wait.
  // nullptr where nobody takes turns.
  virtual std::unique_ptr<Turn> TakeTurn(absl::FunctionRef<void()> waits) {
    return nullptr;
  }

  // Packs what calls of the operands need. Unimplemented for a mode that the
  // device does not have. Runnable, operands and device must outlive the timer.
  virtual absl::StatusOr<std::unique_ptr<Timer>> MakeTimer(
      Runnable& runnable, OperandSets& operands, TimingMode mode) = 0;

  // After the first call of what is going to be sampled: libraries start
  // threads late, and a monitor watches those that exist.
  virtual std::unique_ptr<Monitor> MakeMonitor() = 0;

  // Those that work here; owned by the device.
  virtual absl::Span<Meter* const> meters() { return {}; }

  // How long the device has worked so far on what was launched, from a launch
  // until it was waited for; absent where it is the host itself that works.
  virtual absl::optional<int64_t> busy_ns() const { return absl::nullopt; }

  // The limits that "% of roofline" refers to; takes about a second.
  // Unimplemented where nobody knows how to measure them.
  virtual absl::StatusOr<proto::Ceilings> MeasureCeilings() = 0;
};

}  // namespace optrail::ops

#endif  // OPTRAIL_OPS_CORE_DEVICE_H_

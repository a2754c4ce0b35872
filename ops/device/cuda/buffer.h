#ifndef OPTRAIL_OPS_DEVICE_CUDA_BUFFER_H_
#define OPTRAIL_OPS_DEVICE_CUDA_BUFFER_H_

// One operand in the GPU's memory, between guard zones.

#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "ops/core/device.h"
#include "ops/device/cuda/driver.h"

namespace optrail::ops::cuda {

// Tells on the GPU whether two pieces of its memory hold the same bytes.
class MemoryComparer {
 public:
  // `driver`, its context and `stream` must outlive it.
  MemoryComparer(const Driver& driver, Stream stream)
      : driver_(driver), stream_(stream) {}
  ~MemoryComparer();
  MemoryComparer(const MemoryComparer&) = delete;
  MemoryComparer& operator=(const MemoryComparer&) = delete;

  const Driver& driver() const { return driver_; }
  Stream stream() const { return stream_; }

  // Made ready when it is first asked, which takes some 90 ms, or before.
  absl::Status Init();

  // The addresses are multiples of 16. Waits for the answer.
  absl::StatusOr<bool> Equal(Address a, Address b, size_t size_bytes);

  // The same of several, and of guard zones, at a stroke: each is begun, and
  // then it is asked whether there was no difference.
  absl::Status BeginEqual(Address a, Address b, size_t size_bytes);
  absl::Status BeginGuard(Address guard);
  absl::StatusOr<bool> AreAllEqual();

  // A kernel that does nothing.
  absl::StatusOr<Function> Empty();

  // How long it was waited for so far.
  int64_t busy_ns() const { return busy_ns_; }

  // Buffer::SumRows of what lies there.
  absl::StatusOr<std::vector<double>> Project(Address values,
                                              const RowSums& sums);

  // Copies what lies there behind itself, so that it lies there so often; of a
  // multiple of 16 bytes, as launched. The driver's own copies of some
  // megabytes take ten times as long (an H200, 13.0).
  absl::Status Repeat(Address first, size_t size_bytes, int64_t times);

  // Reads all of it once, as launched: what the L2 held is gone then, and
  // nothing has to be written back for what came instead.
  absl::Status Read(Address from, size_t size_bytes);

 private:
  // Before the first of what AreAllEqual() tells of.
  absl::Status BeginComparing();
  absl::Status Launch(Address a, Address b, size_t size_bytes);
  absl::Status Wait();

  const Driver& driver_;
  const Stream stream_;
  Module module_ = nullptr;
  Function differs_ = nullptr, stray_ = nullptr, repeat_ = nullptr,
           project_ = nullptr, empty_ = nullptr;
  Address flag_ = 0;
  bool comparing_ = false;
  int64_t busy_ns_ = 0;
  Address work_ = 0;  // of Project
  size_t work_bytes_ = 0;
};

// ResourceExhausted if there is not enough memory. `comparer` must outlive the
// buffer. The data is aligned to 256 bytes, as cuMemAlloc's.
absl::StatusOr<std::unique_ptr<Buffer>> AllocateBuffer(MemoryComparer& comparer,
                                                       size_t size_bytes);

}  // namespace optrail::ops::cuda

#endif  // OPTRAIL_OPS_DEVICE_CUDA_BUFFER_H_

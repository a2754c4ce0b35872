#include "graph/runner/cuda_feeder.h"

#include <algorithm>
#include <utility>

#include "base/status_macros.h"
#include "ops/device/cuda/driver.h"

namespace optrail::graph {
namespace {

using ops::cuda::Address;
using ops::cuda::CudaDevice;
using ops::cuda::Driver;
using ops::cuda::Event;
using ops::cuda::Stream;

constexpr unsigned kNonBlocking = 1;    // CU_STREAM_NON_BLOCKING
constexpr unsigned kDisableTiming = 2;  // CU_EVENT_DISABLE_TIMING
constexpr int64_t kAlignment = 256;     // of inputs in a batch, in bytes

class CudaFeeder : public Feeder {
 public:
  CudaFeeder(std::vector<FedInput> inputs, const FeederOptions& options,
             CudaDevice& device)
      : inputs_(std::move(inputs)),
        ahead_(options.sent_ahead > 0),
        pinned_(options.pinned),
        device_(device),
        driver_(device.driver()),
        slots_(std::max(options.sent_ahead, 1)) {}

  ~CudaFeeder() override {
    (void)device_.Synchronize();
    if (beside_ != nullptr) {
      driver_.StreamSynchronize(beside_);
      driver_.StreamDestroy(beside_);
    }
    for (Slot& slot : slots_) {
      if (slot.locked != nullptr) driver_.MemFreeHost(slot.locked);
      if (slot.device != 0) driver_.MemFree(slot.device);
      if (slot.sent != nullptr) driver_.EventDestroy(slot.sent);
      if (slot.used != nullptr) driver_.EventDestroy(slot.used);
    }
  }

  absl::Status Open() {
    for (const FedInput& input : inputs_) {
      offsets_.push_back(batch_bytes_);
      batch_bytes_ += (input.bytes + kAlignment - 1) / kAlignment * kAlignment;
    }
    if (ahead_) {
      OPTRAIL_RETURN_IF_ERROR(driver_.Check(
          driver_.StreamCreate(&beside_, kNonBlocking), "cuStreamCreate"));
    }
    for (Slot& slot : slots_) OPTRAIL_RETURN_IF_ERROR(Open(slot));
    return absl::OkStatus();
  }

  std::vector<int64_t> bytes() const override {
    std::vector<int64_t> bytes;
    for (const FedInput& input : inputs_) bytes.push_back(input.bytes);
    return bytes;
  }

  absl::StatusOr<absl::Span<char* const>> Next() override {
    Slot& slot = slots_[next_];
    if (std::exchange(slot.is_on_its_way, false)) {
      OPTRAIL_RETURN_IF_ERROR(driver_.Check(driver_.EventSynchronize(slot.sent),
                                            "cuEventSynchronize"));
    }
    return absl::Span<char* const>(slot.host);
  }

  absl::Status Send() override {
    Slot& slot = slots_[next_];
    next_ = (next_ + 1) % slots_.size();
    slot.is_on_its_way = true;
    const Stream computes = device_.stream().handle;
    if (!ahead_) {
      for (size_t i = 0; i < inputs_.size(); ++i) {
        OPTRAIL_RETURN_IF_ERROR(
            Copy(reinterpret_cast<Address>(inputs_[i].address), slot.host[i],
                 inputs_[i].bytes, computes));
      }
      return Record(slot.sent, computes);
    }
    OPTRAIL_RETURN_IF_ERROR(Await(slot.used, beside_));
    OPTRAIL_RETURN_IF_ERROR(
        Copy(slot.device, slot.block, batch_bytes_, beside_));
    OPTRAIL_RETURN_IF_ERROR(Record(slot.sent, beside_));
    OPTRAIL_RETURN_IF_ERROR(Await(slot.sent, computes));
    for (size_t i = 0; i < inputs_.size(); ++i) {
      OPTRAIL_RETURN_IF_ERROR(
          driver_.Check(driver_.MemcpyDtoDAsync(
                            reinterpret_cast<Address>(inputs_[i].address),
                            slot.device + static_cast<Address>(offsets_[i]),
                            inputs_[i].bytes, computes),
                        "cuMemcpyDtoDAsync"));
    }
    return Record(slot.used, computes);
  }

 private:
  // A batch of the host, and the buffer on the device to which it is sent.
  struct Slot {
    char* block = nullptr;  // of the host
    void* locked = nullptr;
    std::vector<char> pageable;
    std::vector<char*> host;  // each input in it
    Address device = 0;
    Event sent = nullptr;  // the host's memory may be written again
    Event used = nullptr;  // and the device's
    bool is_on_its_way = false;
  };

  absl::Status Open(Slot& slot) {
    if (pinned_) {
      OPTRAIL_RETURN_IF_ERROR(
          driver_.Check(driver_.MemHostAlloc(&slot.locked, batch_bytes_, 0),
                        "cuMemHostAlloc"));
      slot.block = static_cast<char*>(slot.locked);
    } else {
      slot.pageable.resize(batch_bytes_);
      slot.block = slot.pageable.data();
    }
    for (const int64_t offset : offsets_) {
      slot.host.push_back(slot.block + offset);
    }
    OPTRAIL_RETURN_IF_ERROR(Make(slot.sent));
    if (!ahead_) return absl::OkStatus();
    OPTRAIL_RETURN_IF_ERROR(Make(slot.used));
    return driver_.Check(driver_.MemAlloc(&slot.device, batch_bytes_),
                         "cuMemAlloc");
  }

  absl::Status Make(Event& event) {
    return driver_.Check(driver_.EventCreate(&event, kDisableTiming),
                         "cuEventCreate");
  }
  absl::Status Copy(Address to, const char* from, int64_t bytes,
                    Stream stream) {
    return driver_.Check(driver_.MemcpyHtoDAsync(to, from, bytes, stream),
                         "cuMemcpyHtoDAsync");
  }
  absl::Status Record(Event event, Stream stream) {
    return driver_.Check(driver_.EventRecord(event, stream), "cuEventRecord");
  }
  // An event that was not recorded yet is not waited for.
  absl::Status Await(Event event, Stream stream) {
    return driver_.Check(driver_.StreamWaitEvent(stream, event, 0),
                         "cuStreamWaitEvent");
  }

  const std::vector<FedInput> inputs_;
  const bool ahead_, pinned_;
  CudaDevice& device_;
  const Driver& driver_;
  std::vector<int64_t> offsets_;  // of each input in a batch
  int64_t batch_bytes_ = 0;
  Stream beside_ = nullptr;
  std::vector<Slot> slots_;
  size_t next_ = 0;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Feeder>> MakeCudaFeeder(
    std::vector<FedInput> inputs, const FeederOptions& options,
    CudaDevice& device) {
  auto feeder =
      std::make_unique<CudaFeeder>(std::move(inputs), options, device);
  OPTRAIL_RETURN_IF_ERROR(feeder->Open());
  return std::unique_ptr<Feeder>(std::move(feeder));
}

}  // namespace optrail::graph

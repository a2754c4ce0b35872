#include "ops/device/cuda/buffer.h"

#include <cstring>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"

namespace optrail::ops::cuda {
namespace {

// On either side. A kernel that misses its bounds by a tile misses them by
// kilobytes.
constexpr size_t kGuardBytes = 16 << 10;
// NaN for every floating-point type: it shows when it is read, too.
constexpr char kGuardByte = '\xff';

class CudaBuffer : public Buffer {
 public:
  CudaBuffer(const Driver& driver, Address base, size_t size_bytes)
      : driver_(driver), base_(base), size_bytes_(size_bytes) {}
  ~CudaBuffer() override { driver_.MemFree(base_); }

  void* data() override { return reinterpret_cast<void*>(base_ + kGuardBytes); }
  size_t size_bytes() const override { return size_bytes_; }
  size_t page_bytes() const override { return size_t{2} << 20; }

  absl::Status CopyFromHost(const void* source) override {
    return driver_.Check(
        driver_.MemcpyHtoD(base_ + kGuardBytes, source, size_bytes_),
        "cuMemcpyHtoD");
  }
  absl::Status CopyToHost(void* destination) override {
    return driver_.Check(
        driver_.MemcpyDtoH(destination, base_ + kGuardBytes, size_bytes_),
        "cuMemcpyDtoH");
  }

  // Failures show when the guards are checked.
  void ArmGuards() override {
    const std::string guard(kGuardBytes, kGuardByte);
    driver_.MemcpyHtoD(base_, guard.data(), guard.size());
    driver_.MemcpyHtoD(After(), guard.data(), guard.size());
  }
  absl::Status CheckGuards() override {
    OPTRAIL_RETURN_IF_ERROR(CheckGuard(base_, "before"));
    return CheckGuard(After(), "after");
  }

 private:
  Address After() const { return base_ + kGuardBytes + size_bytes_; }

  absl::Status CheckGuard(Address at, absl::string_view side) {
    std::vector<char> guard(kGuardBytes);
    OPTRAIL_RETURN_IF_ERROR(driver_.Check(
        driver_.MemcpyDtoH(guard.data(), at, guard.size()), "cuMemcpyDtoH"));
    for (size_t i = 0; i < guard.size(); ++i) {
      if (guard[i] == kGuardByte) continue;
      const size_t distance = side == "before" ? kGuardBytes - i : i + 1;
      return absl::DataLossError(absl::StrCat("memory was overwritten ",
                                              distance, " bytes ", side,
                                              " the operand"));
    }
    return absl::OkStatus();
  }

  const Driver& driver_;
  const Address base_;
  const size_t size_bytes_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Buffer>> AllocateBuffer(const Driver& driver,
                                                       size_t size_bytes) {
  Address base = 0;
  OPTRAIL_RETURN_IF_ERROR(driver.Check(
      driver.MemAlloc(&base, size_bytes + 2 * kGuardBytes),
      absl::StrCat("cuMemAlloc of ", size_bytes + 2 * kGuardBytes, " bytes")));
  auto buffer = std::make_unique<CudaBuffer>(driver, base, size_bytes);
  buffer->ArmGuards();
  return buffer;
}

}  // namespace optrail::ops::cuda

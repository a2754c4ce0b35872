#include "ops/device/cuda/buffer.h"

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "base/status_macros.h"

namespace optrail::ops::cuda {
namespace {

// On either side. A kernel that misses its bounds by a tile misses them by
// kilobytes.
constexpr size_t kGuardBytes = 16 << 10;
// NaN for every floating-point type: it shows when it is read, too.
constexpr char kGuardByte = '\xff';

// PTX, which any GPU's driver compiles: NVRTC may be missing, and a process has
// this to do only once.
constexpr char kKernels[] =
#include "ops/device/cuda/buffer_kernels.inc"
    ;
constexpr unsigned kThreads = 256;
constexpr size_t kMaxBlocks = 1024;

class CudaBuffer : public Buffer {
 public:
  CudaBuffer(MemoryComparer& comparer, Address base, size_t size_bytes)
      : comparer_(comparer),
        driver_(comparer.driver()),
        base_(base),
        size_bytes_(size_bytes) {}
  ~CudaBuffer() override { driver_.MemFree(base_); }

  void* data() override { return reinterpret_cast<void*>(base_ + kGuardBytes); }
  size_t size_bytes() const override { return size_bytes_; }
  size_t page_bytes() const override { return size_t{2} << 20; }

  absl::Status CopyFromHost(const void* source) override {
    OPTRAIL_RETURN_IF_ERROR(Wait());
    OPTRAIL_RETURN_IF_ERROR(driver_.Check(
        driver_.MemcpyHtoD(Data(), source, size_bytes_), "cuMemcpyHtoD"));
    // A copy of few bytes is on its way when it returns, in a stream that the
    // device's own does not wait for: the default one.
    return driver_.Check(driver_.StreamSynchronize(nullptr),
                         "cuStreamSynchronize");
  }
  absl::Status CopyToHost(void* destination) override {
    OPTRAIL_RETURN_IF_ERROR(Wait());
    return driver_.Check(
        driver_.MemcpyDtoH(destination, base_ + kGuardBytes, size_bytes_),
        "cuMemcpyDtoH");
  }

  // In the order of what is launched; what fails shows when it is waited for.
  bool far() const override { return true; }
  absl::Status FillWith(const void* element, size_t element_bytes) override {
    const size_t count = size_bytes_ / element_bytes;
    int result = 0;
    if (element_bytes == 1) {
      unsigned char value;
      std::memcpy(&value, element, sizeof(value));
      result = driver_.MemsetD8Async(Data(), value, count, comparer_.stream());
    } else if (element_bytes == 2) {
      unsigned short value;
      std::memcpy(&value, element, sizeof(value));
      result = driver_.MemsetD16Async(Data(), value, count, comparer_.stream());
    } else if (element_bytes == 4) {
      unsigned value;
      std::memcpy(&value, element, sizeof(value));
      result = driver_.MemsetD32Async(Data(), value, count, comparer_.stream());
    } else {
      return absl::UnimplementedError(
          absl::StrCat("elements of ", element_bytes, " bytes"));
    }
    return driver_.Check(result, "cuMemsetAsync");
  }
  absl::Status CopyFrom(Buffer& other) override {
    return driver_.Check(
        driver_.MemcpyDtoDAsync(Data(), AddressOf(other), size_bytes_,
                                comparer_.stream()),
        "cuMemcpyDtoDAsync");
  }
  absl::StatusOr<bool> Equals(Buffer& other) override {
    return comparer_.Equal(Data(), AddressOf(other), size_bytes_);
  }
  absl::Status BeginCheck(Buffer* other) override {
    OPTRAIL_RETURN_IF_ERROR(comparer_.BeginGuard(base_));
    OPTRAIL_RETURN_IF_ERROR(comparer_.BeginGuard(After()));
    if (other == nullptr) return absl::OkStatus();
    return comparer_.BeginEqual(Data(), AddressOf(*other), size_bytes_);
  }
  absl::StatusOr<bool> EndCheck() override { return comparer_.AreAllEqual(); }
  absl::Status CopyPartToHost(size_t from, absl::Span<char> part) override {
    OPTRAIL_RETURN_IF_ERROR(Wait());
    return driver_.Check(
        driver_.MemcpyDtoH(part.data(), Data() + from, part.size()),
        "cuMemcpyDtoH");
  }
  absl::StatusOr<std::vector<double>> SumRows(const RowSums& sums) override {
    return comparer_.Project(Data(), sums);
  }

  // Failures show when the guards are checked.
  void ArmGuards() override {
    for (const Address at : {base_, After()}) {
      driver_.MemsetD8Async(at, static_cast<unsigned char>(kGuardByte),
                            kGuardBytes, comparer_.stream());
    }
  }
  absl::Status CheckGuards() override {
    OPTRAIL_RETURN_IF_ERROR(Wait());
    OPTRAIL_RETURN_IF_ERROR(CheckGuard(base_, "before"));
    return CheckGuard(After(), "after");
  }

 private:
  static Address AddressOf(Buffer& buffer) {
    return reinterpret_cast<Address>(buffer.data());
  }
  Address Data() const { return base_ + kGuardBytes; }
  // The host's copies do not wait for the device's own stream.
  absl::Status Wait() {
    return driver_.Check(driver_.StreamSynchronize(comparer_.stream()),
                         "cuStreamSynchronize");
  }
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

  MemoryComparer& comparer_;
  const Driver& driver_;
  const Address base_;
  const size_t size_bytes_;
};

}  // namespace

MemoryComparer::~MemoryComparer() {
  if (module_ != nullptr) driver_.ModuleUnload(module_);
  if (flag_ != 0) driver_.MemFree(flag_);
  if (work_ != 0) driver_.MemFree(work_);
}

absl::Status MemoryComparer::Init() {
  if (differs_ != nullptr) return absl::OkStatus();
  if (flag_ == 0) {
    OPTRAIL_RETURN_IF_ERROR(driver_.Check(
        driver_.MemAlloc(&flag_, sizeof(unsigned)), "cuMemAlloc"));
  }
  OPTRAIL_RETURN_IF_ERROR(driver_.Check(
      driver_.ModuleLoadData(&module_, kKernels), "cuModuleLoadData"));
  OPTRAIL_RETURN_IF_ERROR(
      driver_.Check(driver_.ModuleGetFunction(&project_, module_, "project"),
                    "cuModuleGetFunction project"));
  OPTRAIL_RETURN_IF_ERROR(
      driver_.Check(driver_.ModuleGetFunction(&stray_, module_, "stray"),
                    "cuModuleGetFunction stray"));
  OPTRAIL_RETURN_IF_ERROR(
      driver_.Check(driver_.ModuleGetFunction(&repeat_, module_, "repeat"),
                    "cuModuleGetFunction repeat"));
  OPTRAIL_RETURN_IF_ERROR(
      driver_.Check(driver_.ModuleGetFunction(&empty_, module_, "empty"),
                    "cuModuleGetFunction empty"));
  return driver_.Check(driver_.ModuleGetFunction(&differs_, module_, "differs"),
                       "cuModuleGetFunction differs");
}

absl::StatusOr<Function> MemoryComparer::Empty() {
  OPTRAIL_RETURN_IF_ERROR(Init());
  return empty_;
}

absl::Status MemoryComparer::Launch(Address a, Address b, size_t size_bytes) {
  OPTRAIL_RETURN_IF_ERROR(Init());
  unsigned long long bytes = size_bytes;
  void* parameters[] = {&a, &b, &bytes, &flag_};
  const size_t blocks =
      std::clamp<size_t>(size_bytes / 16 / kThreads, 1, kMaxBlocks);
  return driver_.Check(
      driver_.LaunchKernel(differs_, static_cast<unsigned>(blocks), 1, 1,
                           kThreads, 1, 1, 0, stream_, parameters, nullptr),
      "cuLaunchKernel differs");
}

absl::Status MemoryComparer::BeginComparing() {
  OPTRAIL_RETURN_IF_ERROR(Init());
  if (comparing_) return absl::OkStatus();
  comparing_ = true;
  return driver_.Check(
      driver_.MemsetD8Async(flag_, 0, sizeof(unsigned), stream_),
      "cuMemsetD8Async");
}

absl::Status MemoryComparer::BeginEqual(Address a, Address b,
                                        size_t size_bytes) {
  OPTRAIL_RETURN_IF_ERROR(BeginComparing());
  return Launch(a, b, size_bytes);
}

absl::Status MemoryComparer::BeginGuard(Address guard) {
  OPTRAIL_RETURN_IF_ERROR(BeginComparing());
  unsigned long long bytes = kGuardBytes;
  void* parameters[] = {&guard, &bytes, &flag_};
  return driver_.Check(
      driver_.LaunchKernel(stray_, kGuardBytes / kThreads, 1, 1, kThreads, 1, 1,
                           0, stream_, parameters, nullptr),
      "cuLaunchKernel stray");
}

absl::StatusOr<bool> MemoryComparer::Equal(Address a, Address b,
                                           size_t size_bytes) {
  comparing_ = false;
  OPTRAIL_RETURN_IF_ERROR(BeginEqual(a, b, size_bytes));
  return AreAllEqual();
}

absl::Status MemoryComparer::Wait() {
  const int64_t start_ns = Clock::Real()->NowNs();
  const absl::Status waited =
      driver_.Check(driver_.StreamSynchronize(stream_), "cuStreamSynchronize");
  busy_ns_ += Clock::Real()->NowNs() - start_ns;
  return waited;
}

absl::StatusOr<bool> MemoryComparer::AreAllEqual() {
  comparing_ = false;
  OPTRAIL_RETURN_IF_ERROR(Wait());
  unsigned differs = 0;
  OPTRAIL_RETURN_IF_ERROR(driver_.Check(
      driver_.MemcpyDtoH(&differs, flag_, sizeof(differs)), "cuMemcpyDtoH"));
  return differs == 0;
}

absl::StatusOr<std::vector<double>> MemoryComparer::Project(
    Address values, const RowSums& sums) {
  OPTRAIL_RETURN_IF_ERROR(Init());
  unsigned type = sums.data_type == proto::F32   ? 0
                  : sums.data_type == proto::F16 ? 1
                                                 : 2;
  const size_t signs_bytes = sums.signs.size() * sizeof(uint16_t);
  std::vector<double> result(sums.rows * kRowSums);
  const size_t result_bytes = result.size() * sizeof(double);
  const size_t result_at = (signs_bytes + 255) / 256 * 256;
  if (work_bytes_ < result_at + result_bytes) {
    if (work_ != 0) driver_.MemFree(std::exchange(work_, 0));
    work_bytes_ = 0;
    OPTRAIL_RETURN_IF_ERROR(driver_.Check(
        driver_.MemAlloc(&work_, result_at + result_bytes), "cuMemAlloc"));
    work_bytes_ = result_at + result_bytes;
  }
  Address signs = work_, to = work_ + result_at;
  // Nothing that was launched uses them, and the copy is over when it returns
  // or is waited for in the default stream.
  OPTRAIL_RETURN_IF_ERROR(
      driver_.Check(driver_.MemcpyHtoD(signs, sums.signs.data(), signs_bytes),
                    "cuMemcpyHtoD"));
  OPTRAIL_RETURN_IF_ERROR(
      driver_.Check(driver_.StreamSynchronize(nullptr), "cuStreamSynchronize"));
  OPTRAIL_RETURN_IF_ERROR(driver_.Check(
      driver_.MemsetD8Async(to, 0, result_bytes, stream_), "cuMemsetD8Async"));
  unsigned long long columns = sums.signs.size();
  double absolute = sums.absolute, relative = sums.relative;
  void* parameters[] = {&values,   &type,     &columns, &signs,
                        &absolute, &relative, &to};
  OPTRAIL_RETURN_IF_ERROR(driver_.Check(
      driver_.LaunchKernel(project_, static_cast<unsigned>(sums.rows), 1, 1,
                           kThreads, 1, 1, 0, stream_, parameters, nullptr),
      "cuLaunchKernel project"));
  OPTRAIL_RETURN_IF_ERROR(Wait());
  OPTRAIL_RETURN_IF_ERROR(driver_.Check(
      driver_.MemcpyDtoH(result.data(), to, result_bytes), "cuMemcpyDtoH"));
  return result;
}

absl::Status MemoryComparer::Repeat(Address first, size_t size_bytes,
                                    int64_t times) {
  OPTRAIL_RETURN_IF_ERROR(Init());
  if (times < 2) return absl::OkStatus();
  unsigned long long bytes = size_bytes;
  void* parameters[] = {&first, &bytes};
  const size_t blocks = (size_bytes / 16 + kThreads - 1) / kThreads;
  return driver_.Check(
      driver_.LaunchKernel(repeat_, static_cast<unsigned>(blocks),
                           static_cast<unsigned>(times - 1), 1, kThreads, 1, 1,
                           0, stream_, parameters, nullptr),
      "cuLaunchKernel repeat");
}

absl::Status MemoryComparer::Read(Address from, size_t size_bytes) {
  // Its one half is compared with the other, and nobody asks for the answer.
  const size_t half = size_bytes / 32 * 16;
  return Launch(from, from + half, half);
}

absl::StatusOr<std::unique_ptr<Buffer>> AllocateBuffer(MemoryComparer& comparer,
                                                       size_t size_bytes) {
  const Driver& driver = comparer.driver();
  Address base = 0;
  OPTRAIL_RETURN_IF_ERROR(driver.Check(
      driver.MemAlloc(&base, size_bytes + 2 * kGuardBytes),
      absl::StrCat("cuMemAlloc of ", size_bytes + 2 * kGuardBytes, " bytes")));
  auto buffer = std::make_unique<CudaBuffer>(comparer, base, size_bytes);
  buffer->ArmGuards();
  return buffer;
}

}  // namespace optrail::ops::cuda

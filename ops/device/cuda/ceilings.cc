#include "ops/device/cuda/ceilings.h"

#include <algorithm>
#include <functional>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/stats/statistics.h"
#include "base/status_macros.h"
#include "ops/device/cuda/nvrtc.h"

namespace optrail::ops::cuda {
namespace {

constexpr char kSource[] =
#include "ops/device/cuda/ceilings_source.inc"
    ;

constexpr size_t kBytes = size_t{1} << 30;
constexpr int kRepeats = 7;

// These are constants of ceilings.cu.
constexpr size_t kReadThreads = 512, kReadBytes = 8 * 16 * kReadThreads;
constexpr unsigned kMultiplyThreads = 256;
constexpr unsigned kTilesBytes = (2 * 64 + 256) * 64 * 2;
constexpr double kWgmmaFlop = 2.0 * 2 * 64 * 64 * 256;
constexpr double kMmaFlop = 8.0 * 8 * 2 * 16 * 8 * 16;
constexpr int kHopper = 90;

class Measuring {
 public:
  explicit Measuring(MeasuredGpu& device)
      : device_(device), driver_(device.driver()) {}
  ~Measuring() {
    if (module_ != nullptr) driver_.ModuleUnload(module_);
    if (start_ != nullptr) driver_.EventDestroy(start_);
    if (end_ != nullptr) driver_.EventDestroy(end_);
  }

  absl::StatusOr<proto::Ceilings> All() {
    OPTRAIL_RETURN_IF_ERROR(Check(driver_.EventCreate(&start_, 0)));
    OPTRAIL_RETURN_IF_ERROR(Check(driver_.EventCreate(&end_, 0)));
    OPTRAIL_ASSIGN_OR_RETURN(const auto from, device_.Allocate(kBytes));
    OPTRAIL_ASSIGN_OR_RETURN(const auto to, device_.Allocate(kBytes));
    const auto address = [](Buffer& buffer) {
      return reinterpret_cast<Address>(buffer.data());
    };
    // Not zero: some machines treat zeros specially.
    OPTRAIL_RETURN_IF_ERROR(Check(driver_.MemsetD8Async(
        address(*from), 0x5a, kBytes, device_.driver_stream())));
    proto::Ceilings ceilings;
    OPTRAIL_ASSIGN_OR_RETURN(const std::vector<double> copies, Times([&] {
                               return driver_.MemcpyDtoDAsync(
                                   address(*to), address(*from), kBytes,
                                   device_.driver_stream());
                             }));
    // A copy reads and writes every byte.
    const double copied =
        2.0 * kBytes / *std::min_element(copies.begin(), copies.end());
    ceilings.set_memory_copy_bytes_per_s_one_thread(copied);
    ceilings.set_memory_copy_bytes_per_s_all_threads(copied);
    ceilings.set_memory_buffer_bytes(kBytes);
    ceilings.set_measured_unix_ns(absl::GetCurrentTimeNanos());
    const absl::StatusOr<const Nvrtc*> nvrtc = Nvrtc::Get();
    if (!nvrtc.ok()) return ceilings;
    OPTRAIL_RETURN_IF_ERROR(Compile(**nvrtc));

    Address sum = address(*to), data = address(*from);
    OPTRAIL_ASSIGN_OR_RETURN(Function read_all, FunctionOf("read_all"));
    void* read_parameters[] = {&data, &sum};
    OPTRAIL_ASSIGN_OR_RETURN(
        const std::vector<double> reads, Times([&] {
          return driver_.LaunchKernel(
              read_all, static_cast<unsigned>(kBytes / kReadBytes), 1, 1,
              kReadThreads, 1, 1, 0, device_.driver_stream(), read_parameters,
              nullptr);
        }));
    const double read = kBytes / *std::min_element(reads.begin(), reads.end());
    ceilings.set_memory_read_bytes_per_s_one_thread(read);
    ceilings.set_memory_read_bytes_per_s_all_threads(read);

    OPTRAIL_RETURN_IF_ERROR(ReadL2(data, sum, &ceilings));

    OPTRAIL_ASSIGN_OR_RETURN(Function multiply, FunctionOf("multiply"));
    const unsigned shared = wgmma_ ? kTilesBytes + 1024 : 0;
    if (wgmma_) {
      OPTRAIL_RETURN_IF_ERROR(Check(driver_.FuncSetAttribute(
          multiply, static_cast<int>(FunctionAttribute::kMaxDynamicSharedBytes),
          static_cast<int>(shared))));
    }
    int rounds = 20'000;
    const int blocks = device_.hardware().cores() * (wgmma_ ? 1 : 4);
    void* parameters[] = {&rounds, &sum};
    OPTRAIL_ASSIGN_OR_RETURN(
        const std::vector<double> products, Times([&] {
          return driver_.LaunchKernel(
              multiply, static_cast<unsigned>(blocks), 1, 1, kMultiplyThreads,
              1, 1, shared, device_.driver_stream(), parameters, nullptr);
        }));
    const double flops =
        (wgmma_ ? kWgmmaFlop : kMmaFlop) * rounds * blocks / Median(products);
    ceilings.set_flop_per_s_one_thread(flops);
    ceilings.set_flop_per_s_all_threads(flops);
    ceilings.set_flop_of("16-bit products");
    return ceilings;
  }

 private:
  // A quarter of the L2: some GPUs have it in two halves, each with copies of
  // what lies in the other.
  absl::Status ReadL2(Address from, Address sum, proto::Ceilings* ceilings) {
    OPTRAIL_ASSIGN_OR_RETURN(Function read_l2, FunctionOf("read_l2"));
    const auto blocks = static_cast<unsigned>(4 * device_.hardware().cores());
    // Whole steps of all threads, four at a time.
    const int64_t step_bytes = int64_t{4} * 16 * kReadThreads * blocks;
    const int64_t steps =
        std::max<int64_t>(1, device_.l2_bytes() / 4 / step_bytes);
    auto vectors = static_cast<uint32_t>(steps * step_bytes / 16);
    int rounds = 50;
    void* parameters[] = {&from, &vectors, &rounds, &sum};
    OPTRAIL_ASSIGN_OR_RETURN(const std::vector<double> reads, Times([&] {
                               return driver_.LaunchKernel(
                                   read_l2, blocks, 1, 1, kReadThreads, 1, 1, 0,
                                   device_.driver_stream(), parameters,
                                   nullptr);
                             }));
    ceilings->set_l2_read_bytes_per_s(
        16.0 * vectors * rounds /
        *std::min_element(reads.begin(), reads.end()));
    return absl::OkStatus();
  }

  absl::Status Check(int result) const {
    return driver_.Check(result, "measuring ceilings");
  }

  absl::Status Compile(const Nvrtc& nvrtc) {
    int64_t capability = 0;
    for (const auto& attribute : device_.hardware().attributes()) {
      if (attribute.name() == "compute_capability") {
        capability = attribute.int_();
      }
    }
    wgmma_ = capability == kHopper;
    OPTRAIL_ASSIGN_OR_RETURN(
        const Cubin cubin,
        nvrtc.Compile(kSource, "ceilings.cu",
                      {absl::StrCat("-arch=sm_", capability, wgmma_ ? "a" : ""),
                       "-std=c++17", "-default-device",
                       absl::StrCat("-DWGMMA=", wgmma_ ? 1 : 0)}));
    return Check(driver_.ModuleLoadData(&module_, cubin.bytes.data()));
  }

  absl::StatusOr<Function> FunctionOf(const char* name) const {
    Function function = nullptr;
    OPTRAIL_RETURN_IF_ERROR(
        Check(driver_.ModuleGetFunction(&function, module_, name)));
    return function;
  }

  // Seconds of each, without the first.
  absl::StatusOr<std::vector<double>> Times(
      const std::function<int()>& launch) {
    std::vector<double> seconds;
    for (int i = 0; i <= kRepeats; ++i) {
      OPTRAIL_RETURN_IF_ERROR(
          Check(driver_.EventRecord(start_, device_.driver_stream())));
      OPTRAIL_RETURN_IF_ERROR(Check(launch()));
      OPTRAIL_RETURN_IF_ERROR(
          Check(driver_.EventRecord(end_, device_.driver_stream())));
      OPTRAIL_RETURN_IF_ERROR(Check(driver_.EventSynchronize(end_)));
      float milliseconds = 0;
      OPTRAIL_RETURN_IF_ERROR(
          Check(driver_.EventElapsedTime(&milliseconds, start_, end_)));
      if (i > 0) seconds.push_back(std::max(1e-9, milliseconds * 1e-3));
    }
    return seconds;
  }

  MeasuredGpu& device_;
  const Driver& driver_;
  Event start_ = nullptr, end_ = nullptr;
  Module module_ = nullptr;
  bool wgmma_ = false;
};

}  // namespace

absl::StatusOr<proto::Ceilings> MeasureCudaCeilings(MeasuredGpu& device) {
  return Measuring(device).All();
}

}  // namespace optrail::ops::cuda

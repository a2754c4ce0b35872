#include "ops/device/cpu/perturbation.h"

#include <atomic>
#include <cstdint>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "base/status_macros.h"
#include "ops/core/moved_operands.h"
#include "ops/device/cpu/operand_memory.h"
#include "ops/device/cpu/timer.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace optrail::ops {
namespace {

constexpr int kWorkspace = -1;

// Runs `run` once on every thread of the device, or on most of them where one
// has lost its core.
void OnEachThread(CpuDevice& device, absl::FunctionRef<void()> run) {
  constexpr int64_t kPatienceNs = 1'000'000;
  const int threads = device.threads();
  const int64_t start_ns = Clock::Real()->NowNs();
  std::atomic<int> there{0};
  device.ParallelFor(threads, [&](int64_t) {
    run();
    there.fetch_add(1);
    while (there.load() < threads &&
           Clock::Real()->NowNs() - start_ns < kPatienceNs) {
    }
  });
}

// Denormals are taken for zero while the inner timer runs.
class PerturbedTimer : public MovedTimer {
 public:
  PerturbedTimer(std::unique_ptr<MovedOperands> operands,
                 std::unique_ptr<Timer> timer, CpuDevice& device, bool flush)
      : MovedTimer(std::move(operands), std::move(timer)),
        device_(device),
        flush_(flush) {}

  absl::StatusOr<int64_t> TimeNs() override {
    if (!flush_) return MovedTimer::TimeNs();
#if defined(__x86_64__)
    constexpr unsigned kFlush = 0x8040;  // FTZ and DAZ of MXCSR
    OnEachThread(device_, [] { _mm_setcsr(_mm_getcsr() | kFlush); });
    auto time_ns = MovedTimer::TimeNs();
    OnEachThread(device_, [] { _mm_setcsr(_mm_getcsr() & ~kFlush); });
    return time_ns;
#else
    return absl::UnimplementedError(
        "unsupported here: denormals are switched off on x86-64 only");
#endif
  }

 private:
  CpuDevice& device_;
  const bool flush_;
};

// The place of a line of an operand in its page. Copies keep it: a load waits
// for a store at the same place of another page.
int64_t OffsetInPage(const void* address) {
  constexpr uintptr_t kPage = 4096, kLine = 64;
  return static_cast<int64_t>(reinterpret_cast<uintptr_t>(address) % kPage /
                              kLine * kLine);
}

absl::Status MoveOperands(const OperandSets& from, int64_t workspace_bytes,
                          const proto::Perturbation& perturbation,
                          MovedOperands* to, void** workspace) {
  const auto bytes = from.bytes();
  const bool copies =
      perturbation.pages() != proto::Perturbation::PAGES_UNSPECIFIED ||
      perturbation.offset_bytes() != 0;
  const auto pages = perturbation.pages() == proto::Perturbation::SMALL
                         ? OperandMemory::Pages::kSmall
                         : OperandMemory::Pages::kHuge;
  for (size_t i = 0; copies && i < bytes.size(); ++i) {
    const void* const source = from.addresses(0)[i];
    OPTRAIL_ASSIGN_OR_RETURN(
        OperandMemory memory,
        OperandMemory::Copy(
            source, bytes[i], pages,
            OffsetInPage(source) + perturbation.offset_bytes()));
    auto kept = std::make_shared<const OperandMemory>(std::move(memory));
    to->Move(static_cast<int>(i), kept->data(), kept);
  }
  int64_t total = 0;
  for (const int index : perturbation.aliased_operands()) {
    if (index < kWorkspace || index >= static_cast<int>(bytes.size())) {
      return absl::InvalidArgumentError(
          absl::StrCat("there is no operand ", index));
    }
    total += index == kWorkspace ? workspace_bytes : bytes[index];
  }
  const int64_t block = AliasedBlockBytes(total);
  for (const int index : perturbation.aliased_operands()) {
    if (index == kWorkspace && workspace_bytes == 0) continue;
    const void* const source =
        index == kWorkspace ? *workspace : from.addresses(0)[index];
    OPTRAIL_ASSIGN_OR_RETURN(
        OperandMemory memory,
        OperandMemory::Aliased(
            source, index == kWorkspace ? workspace_bytes : bytes[index],
            block));
    auto kept = std::make_shared<const OperandMemory>(std::move(memory));
    if (index == kWorkspace) {
      *workspace = kept->data();
      to->Keep(kept);
    } else {
      to->Move(index, kept->data(), kept);
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::unique_ptr<Timer>> MakePerturbedCpuTimer(
    Runnable& runnable, OperandSets& operands, CpuDevice& device,
    TimingMode mode, const proto::Perturbation& perturbation) {
  auto moved = std::make_unique<MovedOperands>(operands);
  OPTRAIL_ASSIGN_OR_RETURN(const Call call,
                           runnable.Prepare(operands.addresses(0)));
  void* workspace = call.workspace;
  OPTRAIL_RETURN_IF_ERROR(MoveOperands(operands,
                                       runnable.invocation().workspace_bytes(),
                                       perturbation, moved.get(), &workspace));
  OPTRAIL_ASSIGN_OR_RETURN(
      std::unique_ptr<Timer> timer,
      CpuTimer::Create(runnable, *moved, device, mode,
                       [&](Call& changed) { changed.workspace = workspace; }));
  return std::make_unique<PerturbedTimer>(std::move(moved), std::move(timer),
                                          device,
                                          perturbation.flush_denormals());
}

}  // namespace optrail::ops

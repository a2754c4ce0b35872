#include "ops/device/cpu/perturbation.h"

#include <atomic>
#include <cstdint>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "base/status_macros.h"
#include "ops/device/cpu/operand_memory.h"
#include "ops/device/cpu/timer.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace optrail::ops {
namespace {

constexpr int kWorkspace = -1;

// The operands of `original`, some of them elsewhere.
class MovedOperands : public OperandSets {
 public:
  explicit MovedOperands(OperandSets& original) : original_(original) {
    for (int set = 0; set < original.sets(); ++set) {
      const auto addresses = original.addresses(set);
      addresses_.emplace_back(addresses.begin(), addresses.end());
    }
  }

  // Operand `index` of every set is what is moved to `memory`.
  void Move(int index, OperandMemory memory) {
    for (auto& addresses : addresses_) addresses[index] = memory.data();
    Keep(std::move(memory));
  }
  void Keep(OperandMemory memory) { kept_.push_back(std::move(memory)); }

  absl::Span<void* const> addresses(int set) const override {
    return addresses_[set];
  }
  absl::Span<const int64_t> bytes() const override { return original_.bytes(); }
  int sets() const override { return original_.sets(); }
  bool has_in_out() const override { return original_.has_in_out(); }
  absl::Status Restore() override { return original_.Restore(); }

 private:
  OperandSets& original_;
  std::vector<std::vector<void*>> addresses_;
  std::vector<OperandMemory> kept_;
};

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
class PerturbedTimer : public Timer {
 public:
  PerturbedTimer(std::unique_ptr<MovedOperands> operands,
                 std::unique_ptr<Timer> timer, CpuDevice& device, bool flush)
      : operands_(std::move(operands)),
        timer_(std::move(timer)),
        device_(device),
        flush_(flush) {}

  absl::Status Prepare(int64_t calls) override {
    return timer_->Prepare(calls);
  }
  absl::StatusOr<int64_t> TimeNs() override {
    if (!flush_) return timer_->TimeNs();
#if defined(__x86_64__)
    constexpr unsigned kFlush = 0x8040;  // FTZ and DAZ of MXCSR
    OnEachThread(device_, [] { _mm_setcsr(_mm_getcsr() | kFlush); });
    auto time_ns = timer_->TimeNs();
    OnEachThread(device_, [] { _mm_setcsr(_mm_getcsr() & ~kFlush); });
    return time_ns;
#else
    return absl::UnimplementedError(
        "unsupported here: denormals are switched off on x86-64 only");
#endif
  }
  absl::optional<int64_t> WorkedNs() const override {
    return timer_->WorkedNs();
  }
  int64_t max_calls() const override { return timer_->max_calls(); }
  void Fill(proto::Measurement* measurement) const override {
    timer_->Fill(measurement);
  }

 private:
  const std::unique_ptr<MovedOperands> operands_;
  const std::unique_ptr<Timer> timer_;
  CpuDevice& device_;
  const bool flush_;
};

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
    OPTRAIL_ASSIGN_OR_RETURN(
        OperandMemory memory,
        OperandMemory::Copy(from.addresses(0)[i], bytes[i], pages,
                            perturbation.offset_bytes()));
    to->Move(static_cast<int>(i), std::move(memory));
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
    if (index == kWorkspace) {
      *workspace = memory.data();
      to->Keep(std::move(memory));
    } else {
      to->Move(index, std::move(memory));
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

#include "ops/device/cuda/measured_gpu.h"

#include "absl/strings/escaping.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "base/status_macros.h"
#include "ops/device/cuda/ceilings.h"
#include "ops/device/cuda/perturbation.h"
#include "ops/device/cuda/timer.h"

namespace optrail::ops::cuda {
namespace {

constexpr unsigned kNonBlocking = 1;  // CU_STREAM_NON_BLOCKING

// A neighbour that computes for longer than this may never end: the kernel is
// measured beside it, and the samples are marked.
constexpr absl::Duration kNeighbourPatience = absl::Seconds(30);

}  // namespace

absl::StatusOr<std::unique_ptr<MeasuredGpu>> MeasuredGpu::Make(
    const Driver& driver) {
  int device = 0;
  Context context = nullptr;
  OPTRAIL_RETURN_IF_ERROR(
      driver.Check(driver.DeviceGet(&device, 0), "cuDeviceGet"));
  OPTRAIL_ASSIGN_OR_RETURN(proto::Hardware hardware,
                           HardwareOf(driver, device));
  std::unique_ptr<MeasuredGpu> made(
      new MeasuredGpu(driver, std::move(hardware)));
  unsigned char uuid[16] = "";
  OPTRAIL_RETURN_IF_ERROR(
      driver.Check(driver.DeviceGetUuid(uuid, device), "cuDeviceGetUuid"));
  made->uuid_ = absl::BytesToHexString(
      absl::string_view(reinterpret_cast<char*>(uuid), sizeof(uuid)));
  // Before others see a context of this process.
  made->turns_ = Turns::Join(Turns::PathOf(made->uuid_));
  OPTRAIL_RETURN_IF_ERROR(driver.Check(
      driver.PrimaryCtxRetain(&context, device), "cuDevicePrimaryCtxRetain"));
  OPTRAIL_RETURN_IF_ERROR(
      driver.Check(driver.CtxSetCurrent(context), "cuCtxSetCurrent"));
  OPTRAIL_RETURN_IF_ERROR(driver.Check(
      driver.StreamCreate(&made->stream_, kNonBlocking), "cuStreamCreate"));
  made->comparer_ = std::make_unique<MemoryComparer>(driver, made->stream_);
  // Said by the first that asks it, if it does not work.
  (void)made->comparer_->Init();
  char bus_id[64] = "";
  OPTRAIL_RETURN_IF_ERROR(
      driver.Check(driver.DeviceGetPciBusId(bus_id, sizeof(bus_id), device),
                   "cuDeviceGetPCIBusId"));
  made->nvml_ = Nvml::Open(bus_id);
  if (made->nvml_.ok()) {
    made->watch_ = std::make_unique<GpuWatch>(
        *made->nvml_, made->turns_.ok() ? &*made->turns_ : nullptr);
    if (auto meter = MakeCudaEnergyMeter(*made->nvml_, made->watch_.get(),
                                         made->hardware().id());
        meter.ok()) {
      made->energy_ = *std::move(meter);
      made->meters_.push_back(made->energy_.get());
    }
  }
  return made;
}

MeasuredGpu::~MeasuredGpu() {
  Unload();
  flush_.reset();
  scratch_.reset();
  workspace_.reset();
  comparer_.reset();
  if (stream_ != nullptr) driver_.StreamDestroy(stream_);
}

absl::StatusOr<std::unique_ptr<Buffer>> MeasuredGpu::Allocate(
    size_t size_bytes) {
  return AllocateBuffer(*comparer_, size_bytes);
}

void MeasuredGpu::Note(absl::Status launched) {
  if (launched_.ok()) launched_ = std::move(launched);
  if (!capturing_ && !busy_since_ns_) busy_since_ns_ = Clock::Real()->NowNs();
}

absl::Status MeasuredGpu::Synchronize() {
  const absl::Status launched = std::exchange(launched_, absl::OkStatus());
  OPTRAIL_RETURN_IF_ERROR(launched);
  const absl::Status waited =
      driver_.Check(driver_.StreamSynchronize(stream_), "cuStreamSynchronize");
  if (const auto since_ns = std::exchange(busy_since_ns_, absl::nullopt)) {
    busy_ns_ += Clock::Real()->NowNs() - *since_ns;
  }
  return waited;
}

absl::StatusOr<char*> MeasuredGpu::Scratch(size_t size_bytes) {
  if (scratch_ == nullptr || scratch_->size_bytes() < size_bytes) {
    scratch_.reset();
    OPTRAIL_ASSIGN_OR_RETURN(scratch_, Allocate(size_bytes));
  }
  return static_cast<char*>(scratch_->data());
}

absl::StatusOr<std::shared_ptr<Buffer>> MeasuredGpu::AllocateWorkspace(
    size_t size_bytes) {
  std::unique_ptr<Buffer> taken;
  if (workspace_ != nullptr && workspace_->size_bytes() >= size_bytes) {
    taken = std::move(workspace_);
  } else {
    OPTRAIL_ASSIGN_OR_RETURN(taken, Allocate(size_bytes));
  }
  return std::shared_ptr<Buffer>(taken.release(), [this](Buffer* returned) {
    std::unique_ptr<Buffer> buffer(returned);
    if (workspace_ == nullptr ||
        workspace_->size_bytes() < buffer->size_bytes()) {
      workspace_ = std::move(buffer);
    }
  });
}

absl::Status MeasuredGpu::Zero(void* memory, size_t size_bytes) {
  if (size_bytes == 0) return absl::OkStatus();
  return driver_.Check(driver_.MemsetD8Async(reinterpret_cast<Address>(memory),
                                             0, size_bytes, stream_),
                       "cuMemsetD8Async");
}

ops::Stream MeasuredGpu::stream() {
  Note(absl::OkStatus());
  return {nullptr, stream_};
}

absl::Status MeasuredGpu::FlushL2() {
  const size_t bytes = static_cast<size_t>(2 * l2_bytes());
  if (flush_ == nullptr) {
    OPTRAIL_ASSIGN_OR_RETURN(flush_, Allocate(bytes));
  }
  return driver_.Check(
      driver_.MemsetD8Async(reinterpret_cast<Address>(flush_->data()), 1, bytes,
                            stream_),
      "cuMemsetD8Async");
}

void MeasuredGpu::Repeat(void* first, size_t size_bytes, int64_t times) {
  Note(comparer_->Repeat(reinterpret_cast<Address>(first), size_bytes, times));
}

absl::Status MeasuredGpu::ReadThroughL2(const void* from, size_t size_bytes) {
  return comparer_->Read(reinterpret_cast<Address>(from), size_bytes);
}

absl::StatusOr<std::unique_ptr<Timer>> MeasuredGpu::MakeTimer(
    Runnable& runnable, OperandSets& operands, TimingMode mode) {
  return MakeCudaTimer(*this, runnable, operands, mode);
}

absl::StatusOr<std::unique_ptr<Timer>> MeasuredGpu::MakePerturbedTimer(
    Runnable& runnable, OperandSets& operands, TimingMode mode,
    const proto::Perturbation& perturbation) {
  return MakePerturbedCudaTimer(*this, runnable, operands, mode, perturbation);
}

absl::StatusOr<std::vector<proto::MetricSamples>> MeasuredGpu::ProfileCalls(
    Runnable& runnable, OperandSets& operands) {
  return ProfileCudaCalls(*this, runnable, operands);
}

absl::StatusOr<double> MeasuredGpu::EmptyLaunchNs() {
  OPTRAIL_ASSIGN_OR_RETURN(const Function empty, comparer_->Empty());
  return cuda::EmptyLaunchNs(*this, empty);
}

std::unique_ptr<Monitor> MeasuredGpu::MakeMonitor() {
  return MakeCudaMonitor(watch_.get());
}

std::unique_ptr<Turn> MeasuredGpu::TakeTurn(absl::FunctionRef<void()> waits) {
  class Taken : public Turn {
   public:
    explicit Taken(Turns::Turn turn) : turn_(std::move(turn)) {}

   private:
    const Turns::Turn turn_;
  };
  bool told = false;
  const auto tell = [&] {
    if (!told) waits();
    told = true;
  };
  // First, so that sessions that wait for a neighbour keep nobody else waiting.
  if (watch_ != nullptr) watch_->AwaitQuiet(kNeighbourPatience, tell);
  if (!turns_.ok()) return nullptr;
  return std::make_unique<Taken>(turns_->Take(tell));
}

NeighbourNames MeasuredGpu::FindNeighbours() {
  return watch_ != nullptr ? watch_->Names() : NeighbourNames();
}

absl::StatusOr<proto::Ceilings> MeasuredGpu::MeasureCeilings() {
  const std::unique_ptr<Turn> turn = TakeTurn([] {});
  return MeasureCudaCeilings(*this);
}

}  // namespace optrail::ops::cuda

#include "ops/device/cuda/device.h"

#include <string>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "base/status_macros.h"
#include "ops/device/cuda/ceilings.h"
#include "ops/device/cuda/monitor.h"
#include "ops/device/cuda/timer.h"

namespace optrail::ops::cuda {
namespace {

constexpr unsigned kNonBlocking = 1;  // CU_STREAM_NON_BLOCKING

// What computes for longer than this may never end: it is measured beside it,
// and the samples are marked.
constexpr absl::Duration kNeighbourPatience = absl::Seconds(30);

// "NVIDIA H200" -> "nvidia-h200"; the fingerprint's letters.
std::string IdOf(const std::string& name) {
  std::string id;
  for (const char c : name) {
    if (absl::ascii_isalnum(c)) {
      id.push_back(absl::ascii_tolower(c));
    } else if (!id.empty() && id.back() != '-') {
      id.push_back('-');
    }
  }
  while (!id.empty() && id.back() == '-') id.pop_back();
  return id;
}

}  // namespace

absl::StatusOr<proto::Hardware> HardwareOf(const Driver& driver, int ordinal) {
  int device = 0;
  OPTRAIL_RETURN_IF_ERROR(
      driver.Check(driver.DeviceGet(&device, ordinal), "cuDeviceGet"));
  char name[256] = "";
  OPTRAIL_RETURN_IF_ERROR(driver.Check(
      driver.DeviceGetName(name, sizeof(name), device), "cuDeviceGetName"));
  size_t memory_bytes = 0;
  OPTRAIL_RETURN_IF_ERROR(driver.Check(
      driver.DeviceTotalMem(&memory_bytes, device), "cuDeviceTotalMem"));
  proto::Hardware hardware;
  hardware.set_id(IdOf(name));
  hardware.set_device_kind(proto::CUDA);
  hardware.set_vendor("NVIDIA");
  hardware.set_model(name);
  hardware.set_memory_bytes(static_cast<int64_t>(memory_bytes));

  absl::Status status;
  const auto read = [&](DeviceAttribute attribute) -> int64_t {
    int value = 0;
    if (status.ok()) {
      status = driver.Check(
          driver.DeviceGetAttribute(&value, static_cast<int>(attribute),
                                    device),
          absl::StrCat("cuDeviceGetAttribute ", static_cast<int>(attribute)));
    }
    return value;
  };
  hardware.set_cores(
      static_cast<int32_t>(read(DeviceAttribute::kMultiprocessors)));
  hardware.set_l2_bytes(read(DeviceAttribute::kL2Bytes));
  // Sorted by name.
  const auto add = [&](const char* attribute, int64_t value) {
    proto::HardwareAttribute* added = hardware.add_attributes();
    added->set_name(attribute);
    added->set_int_(value);
  };
  add("clock_khz", read(DeviceAttribute::kClockKhz));
  add("compute_capability",
      read(DeviceAttribute::kMajor) * 10 + read(DeviceAttribute::kMinor));
  add("multiprocessors", hardware.cores());
  add("registers_per_block", read(DeviceAttribute::kRegistersPerBlock));
  add("registers_per_multiprocessor",
      read(DeviceAttribute::kRegistersPerMultiprocessor));
  add("shared_bytes_per_block", read(DeviceAttribute::kSharedBytesPerBlock));
  add("shared_bytes_per_multiprocessor",
      read(DeviceAttribute::kSharedBytesPerMultiprocessor));
  add("warp_size", read(DeviceAttribute::kWarpSize));
  OPTRAIL_RETURN_IF_ERROR(status);
  return hardware;
}

absl::StatusOr<std::unique_ptr<CudaDevice>> CudaDevice::Make(
    const Driver& driver) {
  std::unique_ptr<CudaDevice> made(new CudaDevice(driver));
  OPTRAIL_ASSIGN_OR_RETURN(made->hardware_, HardwareOf(driver, 0));
  int device = 0;
  Context context = nullptr;
  OPTRAIL_RETURN_IF_ERROR(
      driver.Check(driver.DeviceGet(&device, 0), "cuDeviceGet"));
  unsigned char uuid[16] = "";
  OPTRAIL_RETURN_IF_ERROR(
      driver.Check(driver.DeviceGetUuid(uuid, device), "cuDeviceGetUuid"));
  // Before others see a context of this process.
  made->turns_ = Turns::Join(Turns::PathOf(absl::BytesToHexString(
      absl::string_view(reinterpret_cast<char*>(uuid), sizeof(uuid)))));
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
                                         made->hardware_.id());
        meter.ok()) {
      made->energy_ = *std::move(meter);
      made->meters_.push_back(made->energy_.get());
    }
  }
  return made;
}

CudaDevice::~CudaDevice() {
  for (const auto& [code, module] : modules_) driver_.ModuleUnload(module);
  flush_.reset();
  scratch_.reset();
  workspace_.reset();
  comparer_.reset();
  if (stream_ != nullptr) driver_.StreamDestroy(stream_);
}

absl::StatusOr<std::unique_ptr<Buffer>> CudaDevice::Allocate(
    size_t size_bytes) {
  return AllocateBuffer(*comparer_, size_bytes);
}

void CudaDevice::Note(absl::Status launched) {
  if (launched_.ok()) launched_ = std::move(launched);
  if (!capturing_ && !busy_since_ns_) busy_since_ns_ = Clock::Real()->NowNs();
}

absl::Status CudaDevice::Synchronize() {
  const absl::Status launched = std::exchange(launched_, absl::OkStatus());
  OPTRAIL_RETURN_IF_ERROR(launched);
  const absl::Status waited =
      driver_.Check(driver_.StreamSynchronize(stream_), "cuStreamSynchronize");
  if (const auto since_ns = std::exchange(busy_since_ns_, absl::nullopt)) {
    busy_ns_ += Clock::Real()->NowNs() - *since_ns;
  }
  return waited;
}

absl::StatusOr<Module> CudaDevice::Load(const std::string& code) {
  const auto [found, is_new] = modules_.try_emplace(code, nullptr);
  if (!is_new) return found->second;
  const absl::Status loaded = driver_.Check(
      driver_.ModuleLoadData(&found->second, code.data()), "cuModuleLoadData");
  if (loaded.ok()) return found->second;
  modules_.erase(found);
  return loaded;
}

absl::Status CudaDevice::AllowShared(Function function, int64_t bytes) {
  int64_t& allowed = shared_bytes_[function];
  if (bytes <= allowed) return absl::OkStatus();
  OPTRAIL_RETURN_IF_ERROR(driver_.Check(
      driver_.FuncSetAttribute(
          function, static_cast<int>(FunctionAttribute::kMaxDynamicSharedBytes),
          static_cast<int>(bytes)),
      absl::StrCat(bytes, " bytes of dynamic shared memory")));
  allowed = bytes;
  return absl::OkStatus();
}

absl::StatusOr<char*> CudaDevice::Scratch(size_t size_bytes) {
  if (scratch_ == nullptr || scratch_->size_bytes() < size_bytes) {
    scratch_.reset();
    OPTRAIL_ASSIGN_OR_RETURN(scratch_, Allocate(size_bytes));
  }
  return static_cast<char*>(scratch_->data());
}

absl::StatusOr<std::shared_ptr<Buffer>> CudaDevice::AllocateWorkspace(
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

absl::Status CudaDevice::Zero(void* memory, size_t size_bytes) {
  if (size_bytes == 0) return absl::OkStatus();
  return driver_.Check(driver_.MemsetD8Async(reinterpret_cast<Address>(memory),
                                             0, size_bytes, stream_),
                       "cuMemsetD8Async");
}

ops::Stream CudaDevice::stream() {
  Note(absl::OkStatus());
  return {nullptr, stream_};
}

absl::Status CudaDevice::FlushL2() {
  const size_t bytes = static_cast<size_t>(2 * l2_bytes());
  if (flush_ == nullptr) {
    OPTRAIL_ASSIGN_OR_RETURN(flush_, Allocate(bytes));
  }
  return driver_.Check(
      driver_.MemsetD8Async(reinterpret_cast<Address>(flush_->data()), 1, bytes,
                            stream_),
      "cuMemsetD8Async");
}

void CudaDevice::Repeat(void* first, size_t size_bytes, int64_t times) {
  Note(comparer_->Repeat(reinterpret_cast<Address>(first), size_bytes, times));
}

absl::Status CudaDevice::ReadThroughL2(const void* from, size_t size_bytes) {
  return comparer_->Read(reinterpret_cast<Address>(from), size_bytes);
}

absl::StatusOr<std::unique_ptr<Timer>> CudaDevice::MakeTimer(
    Runnable& runnable, OperandSets& operands, TimingMode mode) {
  return MakeCudaTimer(*this, runnable, operands, mode);
}

std::unique_ptr<Monitor> CudaDevice::MakeMonitor() {
  return MakeCudaMonitor(watch_.get());
}

std::unique_ptr<Turn> CudaDevice::TakeTurn(absl::FunctionRef<void()> waits) {
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

NeighbourNames CudaDevice::FindNeighbours() {
  return watch_ != nullptr ? watch_->Names() : NeighbourNames();
}

absl::StatusOr<proto::Ceilings> CudaDevice::MeasureCeilings() {
  const std::unique_ptr<Turn> turn = TakeTurn([] {});
  return MeasureCudaCeilings(*this);
}

}  // namespace optrail::ops::cuda

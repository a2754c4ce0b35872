#include <string>
#include <utility>

#include "base/hash/hash.h"
#include "base/status_macros.h"
#include "graph/runner/cuda_feeder.h"
#include "graph/runner/machine.h"
#include "ops/device/cuda/backend.h"
#include "ops/device/cuda/device.h"
#include "ops/device/cuda/driver.h"

namespace optrail::graph {
namespace {

using ops::cuda::Address;
using ops::cuda::CudaArguments;
using ops::cuda::CudaDevice;
using ops::cuda::CudaPlan;
using ops::cuda::Driver;

constexpr int kCaptureThreadLocal = 1;  // CU_STREAM_CAPTURE_MODE_THREAD_LOCAL
constexpr char kSource[] = "graph.cu";

// All generated kernels of a graph, in one file.
class GeneratedCuda : public ops::cuda::CudaBackend {
 public:
  GeneratedCuda(std::vector<GeneratedKernel> kernels, std::string text)
      : kernels_(std::move(kernels)) {
    ops::BackendFiles files;
    files.sources = {{kSource, std::move(text)}};
    files.sources_hash = Fingerprint(files.sources[0].contents);
    SetFiles(std::move(files));
  }

  std::string name() const override { return "generated"; }

  absl::StatusOr<CudaPlan> Plan(
      const optrail::proto::Shape& shape, const optrail::proto::Config& config,
      const optrail::proto::Hardware& hardware) const override {
    const int64_t number = shape.dims(0).value();
    const GeneratedKernel& kernel = kernels_[number];
    CudaPlan plan;
    plan.source = kSource;
    plan.function = KernelName(number);
    plan.grid_x = static_cast<unsigned>(kernel.blocks);
    plan.block_x = static_cast<unsigned>(kernel.threads);
    return plan;
  }

  absl::Status Arguments(const CudaPlan& plan,
                         const optrail::proto::Shape& shape,
                         const optrail::proto::Config& config,
                         absl::Span<void* const> operands, void* workspace,
                         const Driver& driver,
                         CudaArguments* arguments) const override {
    for (void* const operand : operands) arguments->Add(operand);
    return absl::OkStatus();
  }

 private:
  const std::vector<GeneratedKernel> kernels_;
};

class CapturedGraph : public RecordedCalls {
 public:
  CapturedGraph(const Driver& driver, CudaDevice& device,
                ops::cuda::GraphExec exec)
      : driver_(driver), device_(device), exec_(exec) {}
  ~CapturedGraph() override { driver_.GraphExecDestroy(exec_); }

  absl::Status Run() override {
    return driver_.Check(driver_.GraphLaunch(exec_, device_.stream().handle),
                         "cuGraphLaunch");
  }

 private:
  const Driver& driver_;
  CudaDevice& device_;
  const ops::cuda::GraphExec exec_;
};

class CudaMachine : public Machine {
 public:
  explicit CudaMachine(CudaDevice& device)
      : device_(device), driver_(device.driver()) {
    // The device's, if the next call of it is to succeed.
    (void)driver_.CtxGetCurrent(&context_);
  }

  ops::Device& device() override { return device_; }
  int threads() const override { return 1; }
  ops::Target target() const override {
    return {optrail::proto::CUDA, "", device_.hardware()};
  }
  const LoopPrinter& printer() const override { return CudaPrinter(); }
  int64_t storage_bytes() const override { return 256; }
  // The bulk copy engine and accesses of 16 bytes want that.
  int64_t operand_bytes() const override { return 16; }
  absl::StatusOr<int64_t> MemoryBytes() const override {
    size_t free_bytes = 0, total_bytes = 0;
    OPTRAIL_RETURN_IF_ERROR(driver_.Check(
        driver_.MemGetInfo(&free_bytes, &total_bytes), "cuMemGetInfo"));
    return static_cast<int64_t>(free_bytes);
  }
  // The weights of a model do not stay in the L2 from call to call.
  optrail::proto::CacheMode cache_mode() const override {
    return optrail::proto::COLD;
  }
  optrail::proto::LaunchMode launch_mode() const override {
    return optrail::proto::GRAPH;
  }

  std::shared_ptr<ops::Backend> Generated(
      const std::vector<GeneratedKernel>& kernels,
      const std::vector<int>& operands) const override {
    return std::make_shared<GeneratedCuda>(
        kernels, CudaPrinter().File(kernels, operands));
  }
  bool takes_number() const override { return false; }

  absl::Status UseInThisThread() override {
    return driver_.Check(driver_.CtxSetCurrent(context_), "cuCtxSetCurrent");
  }

  absl::Status Write(void* to, const void* from, int64_t bytes) override {
    if (bytes == 0) return absl::OkStatus();
    OPTRAIL_RETURN_IF_ERROR(device_.Synchronize());
    OPTRAIL_RETURN_IF_ERROR(driver_.Check(
        driver_.MemcpyHtoD(reinterpret_cast<Address>(to), from, bytes),
        "cuMemcpyHtoD"));
    // The copy may still be under way, and streams do not wait for it.
    return driver_.Check(driver_.CtxSynchronize(), "cuCtxSynchronize");
  }
  absl::Status Read(void* to, const void* from, int64_t bytes) override {
    if (bytes == 0) return absl::OkStatus();
    OPTRAIL_RETURN_IF_ERROR(device_.Synchronize());
    return driver_.Check(
        driver_.MemcpyDtoH(to, reinterpret_cast<Address>(from), bytes),
        "cuMemcpyDtoH");
  }
  const char* HostAddress(const char* address) const override {
    return nullptr;
  }

  absl::StatusOr<std::unique_ptr<RecordedCalls>> Record(
      const std::function<absl::Status()>& calls) override {
    const ops::cuda::Stream stream = device_.stream().handle;
    OPTRAIL_RETURN_IF_ERROR(device_.Synchronize());
    OPTRAIL_RETURN_IF_ERROR(
        driver_.Check(driver_.StreamBeginCapture(stream, kCaptureThreadLocal),
                      "cuStreamBeginCapture"));
    device_.OverlapLaunches(true);
    const absl::Status launched = calls();
    device_.OverlapLaunches(false);
    ops::cuda::Graph graph = nullptr;
    const absl::Status captured = driver_.Check(
        driver_.StreamEndCapture(stream, &graph), "cuStreamEndCapture");
    if (!launched.ok() && graph != nullptr) driver_.GraphDestroy(graph);
    OPTRAIL_RETURN_IF_ERROR(launched);
    OPTRAIL_RETURN_IF_ERROR(captured);
    ops::cuda::GraphExec exec = nullptr;
    const absl::Status made = driver_.Check(
        driver_.GraphInstantiate(&exec, graph, 0), "cuGraphInstantiate");
    driver_.GraphDestroy(graph);
    OPTRAIL_RETURN_IF_ERROR(made);
    return std::make_unique<CapturedGraph>(driver_, device_, exec);
  }

  absl::StatusOr<std::unique_ptr<Feeder>> MakeFeeder(
      std::vector<FedInput> inputs, const FeederOptions& options) override {
    return MakeCudaFeeder(std::move(inputs), options, device_);
  }

 private:
  CudaDevice& device_;
  const Driver& driver_;
  ops::cuda::Context context_ = nullptr;
};

}  // namespace

std::unique_ptr<Machine> MakeCudaMachine(ops::Device& device) {
  auto* const own = dynamic_cast<CudaDevice*>(&device);
  return own == nullptr ? nullptr : std::make_unique<CudaMachine>(*own);
}

}  // namespace optrail::graph

#include "ops/device/cuda/perturbation.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "ops/core/moved_operands.h"
#include "ops/device/cuda/aliased_memory.h"
#include "ops/device/cuda/timer.h"

namespace optrail::ops::cuda {
namespace {

constexpr int kWorkspace = -1;
constexpr int kMostConcurrentCalls = 2;
constexpr int kCaptureThreadLocal = 1;  // CU_STREAM_CAPTURE_MODE_THREAD_LOCAL

absl::Status CheckOffered(const proto::Perturbation& perturbation) {
  if (perturbation.pages() != proto::Perturbation::PAGES_UNSPECIFIED ||
      perturbation.offset_bytes() != 0) {
    return absl::UnimplementedError(
        "unsupported here: a GPU's operands are on its own pages");
  }
  if (perturbation.flush_denormals()) {
    return absl::UnimplementedError(
        "unsupported here: a GPU's denormals are its compiler's affair");
  }
  if (perturbation.concurrent_calls() > kMostConcurrentCalls) {
    return absl::InvalidArgumentError(
        absl::StrCat("concurrent_calls is ", perturbation.concurrent_calls(),
                     ", expected at most ", kMostConcurrentCalls));
  }
  return absl::OkStatus();
}

// A workspace that must begin with zeros holds the tickets by which blocks
// meet: repeated under themselves, blocks could wait for each other forever.
absl::Status Alias(MeasuredGpu& device, const Runnable& runnable,
                   const OperandSets& from,
                   const proto::Perturbation& perturbation, MovedOperands* to,
                   void** workspace) {
  const auto bytes = from.bytes();
  for (const int index : perturbation.aliased_operands()) {
    if (index < kWorkspace || index >= static_cast<int>(bytes.size())) {
      return absl::InvalidArgumentError(
          absl::StrCat("there is no operand ", index));
    }
    const Invocation& invocation = runnable.invocation();
    const bool is_workspace = index == kWorkspace;
    if (is_workspace &&
        (invocation.workspace_bytes() == 0 || invocation.zeroed_bytes() > 0)) {
      continue;
    }
    OPTRAIL_ASSIGN_OR_RETURN(
        const auto memory,
        AliasedMemory::Make(
            device.driver(),
            is_workspace ? *workspace : from.addresses(0)[index],
            is_workspace ? invocation.workspace_bytes() : bytes[index],
            device.driver_stream()));
    if (is_workspace) {
      *workspace = memory->data();
      to->Keep(memory);
    } else {
      to->Move(index, memory->data(), memory);
    }
  }
  return device.Synchronize();
}

// The launches of one call.
class CapturedCall {
 public:
  explicit CapturedCall(MeasuredGpu& device)
      : device_(device), driver_(device.driver()) {}
  ~CapturedCall() {
    if (graph_ != nullptr) driver_.GraphDestroy(graph_);
  }

  absl::Status Capture(const Invocation& invocation, const Call& call) {
    OPTRAIL_RETURN_IF_ERROR(
        driver_.Check(driver_.StreamBeginCapture(device_.driver_stream(),
                                                 kCaptureThreadLocal),
                      "cuStreamBeginCapture"));
    device_.SetCapturing(true);
    const absl::Status ran = invocation.Run(call);
    device_.SetCapturing(false);
    const absl::Status captured = driver_.Check(
        driver_.StreamEndCapture(device_.driver_stream(), &graph_),
        "cuStreamEndCapture");
    OPTRAIL_RETURN_IF_ERROR(ran);
    return captured;
  }

  absl::StatusOr<std::vector<KernelNode>> Kernels() const {
    size_t count = 0;
    OPTRAIL_RETURN_IF_ERROR(driver_.Check(
        driver_.GraphGetNodes(graph_, nullptr, &count), "cuGraphGetNodes"));
    std::vector<GraphNode> nodes(count);
    OPTRAIL_RETURN_IF_ERROR(
        driver_.Check(driver_.GraphGetNodes(graph_, nodes.data(), &count),
                      "cuGraphGetNodes"));
    std::vector<KernelNode> kernels;
    for (GraphNode node : nodes) {
      int type = -1;
      OPTRAIL_RETURN_IF_ERROR(driver_.Check(
          driver_.GraphNodeGetType(node, &type), "cuGraphNodeGetType"));
      if (type != kKernelNode) continue;
      KernelNode kernel = {};
      OPTRAIL_RETURN_IF_ERROR(
          driver_.Check(driver_.GraphKernelNodeGetParams(node, &kernel),
                        "cuGraphKernelNodeGetParams"));
      if (kernel.function == nullptr) {
        OPTRAIL_RETURN_IF_ERROR(driver_.Check(
            driver_.KernelGetFunction(&kernel.function, kernel.kernel),
            "cuKernelGetFunction"));
      }
      kernels.push_back(kernel);
    }
    return kernels;
  }

 private:
  MeasuredGpu& device_;
  const Driver& driver_;
  Graph graph_ = nullptr;
};

double Blocks(const KernelNode& kernel) {
  return static_cast<double>(kernel.grid_x) * kernel.grid_y * kernel.grid_z;
}
double Threads(const KernelNode& kernel) {
  return static_cast<double>(kernel.block_x) * kernel.block_y * kernel.block_z;
}

void Add(const char* name, double value,
         std::vector<proto::MetricSamples>* metrics) {
  proto::MetricSamples& metric = metrics->emplace_back();
  metric.set_metric(name);
  metric.add_values(value);
}

absl::Status AddLargest(const Driver& driver,
                        const std::vector<KernelNode>& kernels,
                        std::vector<proto::MetricSamples>* metrics) {
  const KernelNode& largest = *std::max_element(
      kernels.begin(), kernels.end(),
      [](const KernelNode& a, const KernelNode& b) {
        return Blocks(a) * Threads(a) < Blocks(b) * Threads(b);
      });
  int resident = 0;
  OPTRAIL_RETURN_IF_ERROR(driver.Check(
      driver.OccupancyMaxActiveBlocks(&resident, largest.function,
                                      static_cast<int>(Threads(largest)),
                                      largest.shared_bytes),
      "cuOccupancyMaxActiveBlocksPerMultiprocessor"));
  Add("grid_blocks", Blocks(largest), metrics);
  Add("block_threads", Threads(largest), metrics);
  Add("resident_blocks", resident, metrics);
  int device = 0, threads = 0;
  OPTRAIL_RETURN_IF_ERROR(
      driver.Check(driver.CtxGetDevice(&device), "cuCtxGetDevice"));
  OPTRAIL_RETURN_IF_ERROR(driver.Check(
      driver.DeviceGetAttribute(
          &threads,
          static_cast<int>(DeviceAttribute::kThreadsPerMultiprocessor), device),
      "cuDeviceGetAttribute"));
  constexpr int kWarpThreads = 32;
  Add("multiprocessor_warps", threads / kWarpThreads, metrics);
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::unique_ptr<Timer>> MakePerturbedCudaTimer(
    MeasuredGpu& device, Runnable& runnable, OperandSets& operands,
    TimingMode mode, const proto::Perturbation& perturbation) {
  OPTRAIL_RETURN_IF_ERROR(CheckOffered(perturbation));
  auto moved = std::make_unique<MovedOperands>(operands);
  CudaTimerOptions options;
  if (perturbation.aliased_operands_size() > 0) {
    OPTRAIL_ASSIGN_OR_RETURN(const Call call,
                             runnable.Prepare(operands.addresses(0)));
    void* workspace = call.workspace;
    OPTRAIL_RETURN_IF_ERROR(Alias(device, runnable, operands, perturbation,
                                  moved.get(), &workspace));
    if (workspace != call.workspace) options.workspace = workspace;
    mode.cache = proto::HOT;
  }
  options.two_at_a_time = perturbation.concurrent_calls() == 2;
  OPTRAIL_ASSIGN_OR_RETURN(
      std::unique_ptr<Timer> timer,
      MakeCudaTimer(device, runnable, *moved, mode, options));
  return std::make_unique<MovedTimer>(std::move(moved), std::move(timer));
}

absl::StatusOr<std::vector<proto::MetricSamples>> ProfileCudaCalls(
    MeasuredGpu& device, Runnable& runnable, OperandSets& operands) {
  std::vector<proto::MetricSamples> metrics;
  OPTRAIL_ASSIGN_OR_RETURN(const double empty_ns, device.EmptyLaunchNs());
  Add("empty_launch_ns", empty_ns, &metrics);
  if (!device.driver().HasKernelNodes()) return metrics;
  OPTRAIL_ASSIGN_OR_RETURN(const Call call,
                           runnable.Prepare(operands.addresses(0)));
  // Libraries get ready in the first call, which they may not while captured.
  device.Note(runnable.invocation().Run(call));
  OPTRAIL_RETURN_IF_ERROR(device.Synchronize());
  CapturedCall captured(device);
  OPTRAIL_RETURN_IF_ERROR(captured.Capture(runnable.invocation(), call));
  OPTRAIL_ASSIGN_OR_RETURN(const std::vector<KernelNode> kernels,
                           captured.Kernels());
  Add("kernels", static_cast<double>(kernels.size()), &metrics);
  if (!kernels.empty()) {
    OPTRAIL_RETURN_IF_ERROR(AddLargest(device.driver(), kernels, &metrics));
  }
  return metrics;
}

}  // namespace optrail::ops::cuda

#include "ops/device/cuda/timer.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/status_macros.h"

namespace optrail::ops::cuda {
namespace {

// Copies of cold mode together exceed the L2 this many times: it is no perfect
// least-recently-used cache.
constexpr int64_t kTimesL2 = 4;
constexpr int64_t kMaxCopies = 128;
// Operands that exceed the L2 by themselves are cold again after one call.
constexpr int64_t kLeastColdCalls = 64;
// A round over the copies that takes longer than this, some twenty times what
// moving its bytes takes, and so many times the batch is not made for the sake
// of the caches alone. (Below that many it keeps the device as hot as it is
// when calls follow each other.)
constexpr int64_t kSlowRoundNs = 1'000'000;
constexpr int64_t kLongRoundBatches = 4;
// Nodes of a graph cost host memory and time to instantiate.
constexpr int64_t kMaxCalls = 4096;

// Copies begin where cuMemAlloc's own do.
int64_t Aligned(int64_t bytes) { return (bytes + 255) / 256 * 256; }

constexpr unsigned kNonBlocking = 1;    // CU_STREAM_NON_BLOCKING
constexpr unsigned kDisableTiming = 2;  // CU_EVENT_DISABLE_TIMING
constexpr int kCaptureThreadLocal = 1;  // CU_STREAM_CAPTURE_MODE_THREAD_LOCAL

class CudaTimer : public Timer {
 public:
  CudaTimer(MeasuredGpu& device, Runnable& runnable, OperandSets& operands,
            TimingMode mode, const CudaTimerOptions& options)
      : device_(device),
        driver_(device.driver()),
        runnable_(runnable),
        operands_(operands),
        mode_(mode),
        workspace_(options.workspace) {}
  ~CudaTimer() override {
    DropGraph();
    if (beside_ != nullptr) driver_.StreamDestroy(beside_);
    for (Event event : {fork_, join_}) {
      if (event != nullptr) driver_.EventDestroy(event);
    }
    if (start_ != nullptr) driver_.EventDestroy(start_);
    if (end_ != nullptr) driver_.EventDestroy(end_);
  }

  absl::Status Init() {
    OPTRAIL_RETURN_IF_ERROR(
        driver_.Check(driver_.EventCreate(&start_, 0), "cuEventCreate"));
    OPTRAIL_RETURN_IF_ERROR(
        driver_.Check(driver_.EventCreate(&end_, 0), "cuEventCreate"));
    if (cold()) OPTRAIL_RETURN_IF_ERROR(MakeCopies());
    for (const std::vector<void*>& copy : copies_) {
      OPTRAIL_RETURN_IF_ERROR(AddCall(copy));
    }
    if (!copies_.empty()) return absl::OkStatus();
    for (int set = 0; set < operands_.sets(); ++set) {
      OPTRAIL_RETURN_IF_ERROR(AddCall(operands_.addresses(set)));
    }
    return absl::OkStatus();
  }

  // Before Init().
  absl::Status OpenSecondStream() {
    OPTRAIL_RETURN_IF_ERROR(driver_.Check(
        driver_.StreamCreate(&beside_, kNonBlocking), "cuStreamCreate"));
    OPTRAIL_RETURN_IF_ERROR(driver_.Check(
        driver_.EventCreate(&fork_, kDisableTiming), "cuEventCreate"));
    OPTRAIL_RETURN_IF_ERROR(driver_.Check(
        driver_.EventCreate(&join_, kDisableTiming), "cuEventCreate"));
    const int64_t bytes = runnable_.invocation().workspace_bytes();
    if (bytes == 0) return absl::OkStatus();
    OPTRAIL_ASSIGN_OR_RETURN(second_workspace_,
                             device_.Allocate(static_cast<size_t>(bytes)));
    return device_.Zero(second_workspace_->data(), static_cast<size_t>(bytes));
  }

  absl::Status Prepare(int64_t calls) override {
    calls_ = calls;
    if (operands_.has_in_out()) OPTRAIL_RETURN_IF_ERROR(operands_.Restore());
    if (graph() && captured_calls_ != calls) {
      OPTRAIL_RETURN_IF_ERROR(Capture());
    }
    if (cold() && copies_.empty()) return device_.FlushL2();
    // The rest of the round over the copies evicts what the batch begins with,
    // and leaves behind what calls leave: a fill would leave lines that have to
    // be written back while the batch is timed. Where calls take far longer
    // than their bytes, what they leave does not show, and reading them is
    // enough.
    const auto copies = static_cast<int64_t>(copies_.size());
    if (calls < copies) {
      const bool slow = (copies - calls) * call_ns_ > kSlowRoundNs &&
                        copies - calls > kLongRoundBatches * calls;
      // A batch that is taken once only finds out how long a call takes.
      const bool once = std::exchange(prepared_calls_, calls) != calls;
      if (call_ns_ == 0 || slow || once) {
        const char* const rest = static_cast<char*>(copies_[calls][0]);
        return device_.ReadThroughL2(rest, copies_end_ - rest);
      }
      if (graph() && rest_ == nullptr) {
        OPTRAIL_RETURN_IF_ERROR(CaptureCalls(calls, copies, &rest_));
      }
      return Launch(calls, copies, rest_);
    }
    // In place, an untimed batch would spoil the operands of the timed one.
    if (operands_.has_in_out()) return absl::OkStatus();
    return Launch(0, calls_, exec_);
  }

  absl::StatusOr<int64_t> TimeNs() override {
    OPTRAIL_RETURN_IF_ERROR(driver_.Check(
        driver_.EventRecord(start_, device_.driver_stream()), "cuEventRecord"));
    OPTRAIL_RETURN_IF_ERROR(Launch(0, calls_, exec_));
    OPTRAIL_RETURN_IF_ERROR(driver_.Check(
        driver_.EventRecord(end_, device_.driver_stream()), "cuEventRecord"));
    OPTRAIL_ASSIGN_OR_RETURN(const int64_t elapsed_ns, ElapsedNs());
    call_ns_ = std::max<int64_t>(elapsed_ns / calls_, 1);
    return elapsed_ns;
  }

  // With cold caches whole rounds over the copies, each of which evicts the
  // next.
  absl::StatusOr<Ran> Run(int64_t calls) override {
    if (cold() && copies_.empty()) {
      return absl::UnimplementedError(
          "unsupported here: calls that work in place are not metered with "
          "cold "
          "caches, since flushing takes energy, too; expected --cache=hot");
    }
    const auto copies = static_cast<int64_t>(copies_.size());
    const bool parts = graph() && calls_ < copies;
    if (parts && rest_ == nullptr) {
      OPTRAIL_RETURN_IF_ERROR(CaptureCalls(calls_, copies, &rest_));
    }
    const int64_t round = std::max(calls_, copies);
    Ran ran;
    OPTRAIL_RETURN_IF_ERROR(driver_.Check(
        driver_.EventRecord(start_, device_.driver_stream()), "cuEventRecord"));
    for (; ran.calls < calls; ran.calls += round) {
      OPTRAIL_RETURN_IF_ERROR(Launch(0, graph() ? calls_ : round, exec_));
      if (parts) OPTRAIL_RETURN_IF_ERROR(Launch(calls_, copies, rest_));
    }
    OPTRAIL_RETURN_IF_ERROR(driver_.Check(
        driver_.EventRecord(end_, device_.driver_stream()), "cuEventRecord"));
    OPTRAIL_ASSIGN_OR_RETURN(ran.elapsed_ns, ElapsedNs());
    return ran;
  }

  int64_t max_calls() const override {
    if (operands_.has_in_out()) return operands_.sets();
    if (cold()) {
      return std::max<int64_t>(static_cast<int64_t>(copies_.size()),
                               kLeastColdCalls);
    }
    return kMaxCalls;
  }

 private:
  bool cold() const { return mode_.cache == proto::COLD; }
  bool graph() const { return mode_.launch == proto::GRAPH; }

  // Of what was launched between the two events, once it is done.
  absl::StatusOr<int64_t> ElapsedNs() {
    OPTRAIL_RETURN_IF_ERROR(device_.Synchronize());
    float milliseconds = 0;
    OPTRAIL_RETURN_IF_ERROR(
        driver_.Check(driver_.EventElapsedTime(&milliseconds, start_, end_),
                      "cuEventElapsedTime"));
    return static_cast<int64_t>(std::llround(milliseconds * 1e6));
  }

  absl::Status AddCall(absl::Span<void* const> operands) {
    OPTRAIL_ASSIGN_OR_RETURN(const Call call, runnable_.Prepare(operands));
    prepared_.push_back(call);
    if (workspace_ != nullptr) prepared_.back().workspace = workspace_;
    return absl::OkStatus();
  }

  // What fails is reported when the device is waited for.
  void Enqueue(int64_t from, int64_t to) {
    const Invocation& invocation = runnable_.invocation();
    const auto prepared = static_cast<int64_t>(prepared_.size());
    const bool rotates = !copies_.empty() || operands_.has_in_out();
    if (beside_ != nullptr) Follow(device_.driver_stream(), beside_, fork_);
    for (int64_t call = from; call < to; ++call) {
      Call made = prepared_[rotates ? call % prepared : 0];
      if (beside_ != nullptr && call % 2 == 1) {
        made.stream.handle = beside_;
        if (second_workspace_ != nullptr) {
          made.workspace = second_workspace_->data();
        }
      }
      device_.Note(invocation.Run(made));
    }
    if (beside_ != nullptr) Follow(beside_, device_.driver_stream(), join_);
  }

  // Later launches into `second` wait for those that `first` has.
  void Follow(Stream first, Stream second, Event event) {
    device_.Note(
        driver_.Check(driver_.EventRecord(event, first), "cuEventRecord"));
    device_.Note(driver_.Check(driver_.StreamWaitEvent(second, event, 0),
                               "cuStreamWaitEvent"));
  }

  // Those calls, one by one or as the graph that was captured of them.
  absl::Status Launch(int64_t from, int64_t to, GraphExec exec) {
    if (!graph()) {
      Enqueue(from, to);
      return absl::OkStatus();
    }
    device_.Note(driver_.Check(
        driver_.GraphLaunch(exec, device_.driver_stream()), "cuGraphLaunch"));
    return absl::OkStatus();
  }

  // The batch, since launching that call by call takes longer than running it.
  absl::Status Capture() {
    DropGraph();
    OPTRAIL_RETURN_IF_ERROR(CaptureCalls(0, calls_, &exec_));
    captured_calls_ = calls_;
    return absl::OkStatus();
  }

  absl::Status CaptureCalls(int64_t from, int64_t to, GraphExec* exec) {
    OPTRAIL_RETURN_IF_ERROR(
        driver_.Check(driver_.StreamBeginCapture(device_.driver_stream(),
                                                 kCaptureThreadLocal),
                      "cuStreamBeginCapture"));
    device_.SetCapturing(true);
    Enqueue(from, to);
    device_.SetCapturing(false);
    Graph graph = nullptr;
    const absl::Status captured =
        driver_.Check(driver_.StreamEndCapture(device_.driver_stream(), &graph),
                      "cuStreamEndCapture");
    OPTRAIL_RETURN_IF_ERROR(captured);
    const absl::Status instantiated = driver_.Check(
        driver_.GraphInstantiate(exec, graph, 0), "cuGraphInstantiate");
    driver_.GraphDestroy(graph);
    return instantiated;
  }

  void DropGraph() {
    for (GraphExec* exec : {&exec_, &rest_}) {
      if (*exec != nullptr) driver_.GraphExecDestroy(*exec);
      *exec = nullptr;
    }
    captured_calls_ = 0;
  }

  absl::Status MakeCopies() {
    if (operands_.has_in_out()) return absl::OkStatus();  // has sets already
    const absl::Span<const int64_t> bytes = operands_.bytes();
    int64_t set_bytes = 0;
    for (const int64_t operand : bytes) set_bytes += operand;
    const int64_t count =
        std::clamp<int64_t>((kTimesL2 * device_.l2_bytes() + set_bytes - 1) /
                                std::max<int64_t>(set_bytes, 1),
                            2, kMaxCopies);
    int64_t aligned_bytes = 0;
    for (const int64_t operand : bytes) aligned_bytes += Aligned(operand);
    OPTRAIL_ASSIGN_OR_RETURN(
        char* at, device_.Scratch(static_cast<size_t>(count * aligned_bytes)));
    char* const first = at;
    for (int64_t i = 0; i < count; ++i) {
      std::vector<void*>& addresses = copies_.emplace_back();
      for (const int64_t operand : bytes) {
        addresses.push_back(at);
        at += Aligned(operand);
      }
    }
    copies_end_ = at;
    for (size_t i = 0; i < bytes.size(); ++i) {
      OPTRAIL_RETURN_IF_ERROR(driver_.Check(
          driver_.MemcpyDtoDAsync(
              reinterpret_cast<Address>(copies_[0][i]),
              reinterpret_cast<Address>(operands_.addresses(0)[i]), bytes[i],
              device_.driver_stream()),
          "cuMemcpyDtoDAsync"));
    }
    device_.Repeat(first, static_cast<size_t>(aligned_bytes), count);
    return device_.Synchronize();
  }

  MeasuredGpu& device_;
  const Driver& driver_;
  Runnable& runnable_;
  OperandSets& operands_;
  const TimingMode mode_;
  void* const workspace_;    // null: the runnable's
  Stream beside_ = nullptr;  // null: one call at a time
  Event fork_ = nullptr, join_ = nullptr;
  std::unique_ptr<Buffer> second_workspace_;
  Event start_ = nullptr, end_ = nullptr;
  GraphExec exec_ = nullptr, rest_ = nullptr;  // the batch, the other copies
  int64_t captured_calls_ = 0;
  int64_t calls_ = 0;
  int64_t prepared_calls_ = 0;              // of a batch that is no whole round
  int64_t call_ns_ = 0;                     // of the last batch
  std::vector<std::vector<void*>> copies_;  // cold mode: addresses of each
  std::vector<Call> prepared_;              // of every copy or set
  const char* copies_end_ = nullptr;
};

// Launches nothing but a kernel without work.
class EmptyCall : public Invocation {
 public:
  EmptyCall(const Driver& driver, Function empty)
      : driver_(driver), empty_(empty) {}
  absl::Status Run(const Call& call) const override {
    return driver_.Check(
        driver_.LaunchKernel(empty_, 1, 1, 1, 32, 1, 1, 0, call.stream.handle,
                             nullptr, nullptr),
        "cuLaunchKernel empty");
  }

 private:
  const Driver& driver_;
  const Function empty_;
};

class NoOperands : public OperandSets {
 public:
  absl::Span<void* const> addresses(int set) const override { return {}; }
  absl::Span<const int64_t> bytes() const override { return {}; }
  int sets() const override { return 1; }
  bool has_in_out() const override { return false; }
  absl::Status Restore() override { return absl::OkStatus(); }
};

}  // namespace

absl::StatusOr<std::unique_ptr<Timer>> MakeCudaTimer(
    MeasuredGpu& device, Runnable& runnable, OperandSets& operands,
    TimingMode mode, const CudaTimerOptions& options) {
  auto timer =
      std::make_unique<CudaTimer>(device, runnable, operands, mode, options);
  if (options.two_at_a_time) {
    OPTRAIL_RETURN_IF_ERROR(timer->OpenSecondStream());
  }
  OPTRAIL_RETURN_IF_ERROR(timer->Init());
  return timer;
}

absl::StatusOr<double> EmptyLaunchNs(MeasuredGpu& device, Function empty) {
  constexpr int kCalls = 64, kRepetitions = 5;
  OPTRAIL_ASSIGN_OR_RETURN(
      const std::unique_ptr<Runnable> runnable,
      Runnable::Create(std::make_unique<EmptyCall>(device.driver(), empty),
                       device));
  NoOperands operands;
  OPTRAIL_ASSIGN_OR_RETURN(
      const std::unique_ptr<Timer> timer,
      MakeCudaTimer(device, *runnable, operands, {proto::HOT, proto::GRAPH}));
  double best_ns = 0;
  for (int i = 0; i < kRepetitions; ++i) {
    OPTRAIL_RETURN_IF_ERROR(timer->Prepare(kCalls));
    OPTRAIL_ASSIGN_OR_RETURN(const int64_t elapsed_ns, timer->TimeNs());
    const double call_ns = static_cast<double>(elapsed_ns) / kCalls;
    if (i == 0 || call_ns < best_ns) best_ns = call_ns;
  }
  return best_ns;
}

}  // namespace optrail::ops::cuda

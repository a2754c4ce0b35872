#include "lib/plan.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "base/status_macros.h"
#include "lib/cuda_context.h"
#include "lib/planning_device.h"
#include "ops/core/compile_cache.h"
#include "ops/core/device_type.h"
#include "ops/core/tuned_kernel.h"
#include "tuning/proto/canonical.h"

namespace optrail::lib {
namespace {

// The alignment of workspaces and packed weights (ops/core/invocation.h).
constexpr size_t kAlignment = 64;
constexpr size_t kGpuAlignment = 256;

optrail_allocator DefaultAllocator() {
  optrail_allocator allocator = {};
  allocator.allocate = [](void*, size_t bytes, size_t alignment) {
    return std::aligned_alloc(alignment,
                              (bytes + alignment - 1) / alignment * alignment);
  };
  allocator.release = [](void*, void* memory, size_t) { std::free(memory); };
  return allocator;
}

absl::StatusOr<optrail_allocator> CheckedAllocator(
    const optrail_allocator* given) {
  if (given == nullptr) return DefaultAllocator();
  if (given->allocate == nullptr || given->release == nullptr) {
    return absl::InvalidArgumentError(
        "options->allocator needs both functions, allocate and release");
  }
  return *given;
}

bool IsAligned(const void* address, size_t alignment) {
  return reinterpret_cast<uintptr_t>(address) % alignment == 0;
}

bool Overlap(const void* a, size_t a_bytes, const void* b, size_t b_bytes) {
  const auto* const from_a = static_cast<const char*>(a);
  const auto* const from_b = static_cast<const char*>(b);
  return a_bytes > 0 && b_bytes > 0 && from_a < from_b + b_bytes &&
         from_b < from_a + a_bytes;
}

std::string Pointer(const void* address) {
  return absl::StrCat("0x", absl::Hex(reinterpret_cast<uintptr_t>(address)));
}

absl::Status CheckOptions(const Problem& problem,
                          const optrail_plan_options& options) {
  if ((options.flags & ~uint32_t{OPTRAIL_MAY_COMPILE}) != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("options->flags is ", options.flags,
                     ", of which this library knows ", OPTRAIL_MAY_COMPILE));
  }
  if (problem.question.device_kind == proto::CPU) return absl::OkStatus();
  if (problem.question.device_kind != proto::CUDA) {
    return absl::UnimplementedError(
        absl::StrCat("unsupported here: plans run on cpu and cuda, not on ",
                     tuning::DeviceName(problem.question.device_kind)));
  }
  if (problem.question.threads != 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("problem->threads is ", problem.question.threads,
                     ", expected 0 or 1 on cuda"));
  }
  if (options.allocator != nullptr) {
    return absl::InvalidArgumentError(
        "options->allocator is given, expected NULL on cuda, where memory is "
        "taken in the order of a stream; next: bring call->workspace");
  }
  return absl::OkStatus();
}

// Compiles with the backend, as far as the options allow that.
absl::StatusOr<ops::Artifact> ArtifactOf(const ops::ChosenKernel& kernel,
                                         const ops::Target& target,
                                         const optrail_plan_options& options) {
  const ops::CompileRequest request = kernel.Request(target);
  const std::string folder =
      options.compile_cache == nullptr ? "" : options.compile_cache;
  return (options.flags & OPTRAIL_MAY_COMPILE) != 0
             ? ops::CompileCached(*kernel.backend, request, folder)
             : ops::CachedArtifact(*kernel.backend, request, folder);
}

}  // namespace

Blocks::~Blocks() {
  for (std::atomic<void*>& block : kept_) {
    if (void* const memory = block.load()) {
      allocator_.release(allocator_.context, memory, bytes_);
    }
  }
}

absl::StatusOr<void*> Blocks::Take() {
  for (std::atomic<void*>& block : kept_) {
    if (block.load(std::memory_order_relaxed) == nullptr) continue;
    if (void* const memory = block.exchange(nullptr)) return memory;
  }
  void* const memory =
      allocator_.allocate(allocator_.context, bytes_, kAlignment);
  if (memory == nullptr) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "the allocator has no ", bytes_, " bytes for a call's workspace"));
  }
  if (!IsAligned(memory, kAlignment)) {
    allocator_.release(allocator_.context, memory, bytes_);
    return absl::InvalidArgumentError(
        absl::StrCat("the allocator returned ", Pointer(memory),
                     ", expected a multiple of ", kAlignment));
  }
  std::memset(memory, 0, zeroed_);
  return memory;
}

void Blocks::Give(void* memory, bool reusable) {
  for (int i = 0; i < kKept && reusable; ++i) {
    void* free_slot = nullptr;
    if (kept_[i].load(std::memory_order_relaxed) == nullptr &&
        kept_[i].compare_exchange_strong(free_slot, memory)) {
      return;
    }
  }
  allocator_.release(allocator_.context, memory, bytes_);
}

// Memory for one call: the caller's, else a block.
class Plan::Lease {
 public:
  Lease() = default;
  ~Lease() {
    if (blocks_ != nullptr) blocks_->Give(memory_, reusable_);
  }
  Lease(const Lease&) = delete;
  Lease& operator=(const Lease&) = delete;

  absl::Status Take(void* callers, Blocks& blocks) {
    memory_ = callers;
    if (callers != nullptr || blocks.bytes() == 0) return absl::OkStatus();
    OPTRAIL_ASSIGN_OR_RETURN(memory_, blocks.Take());
    blocks_ = &blocks;
    return absl::OkStatus();
  }
  void* memory() const { return memory_; }
  void KeepForNextCall() { reusable_ = true; }

 private:
  void* memory_ = nullptr;
  Blocks* blocks_ = nullptr;  // from which it is; null: the caller's
  bool reusable_ = false;
};

absl::StatusOr<std::unique_ptr<Plan>> Plan::Create(
    const Store* store, const optrail_problem& given,
    const optrail_plan_options& options) {
  OPTRAIL_ASSIGN_OR_RETURN(Problem problem, ParseProblem(given));
  OPTRAIL_RETURN_IF_ERROR(CheckOptions(problem, options));
  std::unique_ptr<CudaContext> context;
  if (problem.question.device_kind == proto::CUDA) {
    OPTRAIL_ASSIGN_OR_RETURN(context, CudaContext::Current());
    problem.hardware = context->hardware();
  }
  OPTRAIL_ASSIGN_OR_RETURN(const optrail_allocator allocator,
                           CheckedAllocator(options.allocator));
  if (options.config != nullptr) problem.question.config = options.config;
  OPTRAIL_ASSIGN_OR_RETURN(
      const ops::ChosenKernel kernel,
      ops::ChooseKernel(problem.question, problem.hardware,
                        store == nullptr ? nullptr : &store->configs()));
  std::unique_ptr<Plan> plan(new Plan());
  plan->choice_ = ChoiceOf(tuning::CanonicalText(kernel.config), kernel.found,
                           problem.hardware);
  if (options.config != nullptr) plan->choice_.source = OPTRAIL_CALLERS_CONFIG;
  if (problem.exact_only && options.config == nullptr &&
      plan->choice_.source != OPTRAIL_TUNED_EXACTLY) {
    return absl::NotFoundError(
        store == nullptr
            ? "no store is given (NULL), and without one nothing is tuned"
            : WhyNotExact(kernel.found.warning));
  }
  plan->name_ = absl::StrCat(problem.question.operator_name, " ",
                             tuning::CanonicalText(kernel.shape));
  plan->threads_ = problem.question.threads;
  plan->observed_key_ = ObservedKeyOf(problem, SourceOf(plan->choice_.source));
  OPTRAIL_ASSIGN_OR_RETURN(plan->operands_,
                           OperandsOf(*kernel.entry->op, kernel.shape));
  const bool on_gpu = context != nullptr;
  const ops::Target target{problem.question.device_kind, on_gpu ? "" : "native",
                           problem.hardware};
  OPTRAIL_ASSIGN_OR_RETURN(const ops::Artifact artifact,
                           ArtifactOf(kernel, target, options));
  plan->gpu_ = context.get();
  plan->device_ = std::move(context);
  if (!on_gpu) {
    plan->device_ =
        std::make_unique<PlanningDevice>(problem.hardware, plan->threads_);
  }
  OPTRAIL_ASSIGN_OR_RETURN(plan->invocation_,
                           kernel.backend->Load(artifact, kernel.shape,
                                                kernel.config, *plan->device_));
  plan->workspaces_ =
      std::make_unique<Blocks>(allocator, plan->invocation_->workspace_bytes(),
                               plan->invocation_->zeroed_bytes());
  plan->packed_ =
      std::make_unique<Blocks>(allocator, plan->invocation_->packed_bytes(), 0);
  return plan;
}

absl::StatusOr<optrail_operand> Plan::operand(size_t index) const {
  if (index < operands_.size()) return operands_[index].View();
  return NoSuchOperand(name_, index, operands_.size());
}

// Says in words what Check() found wrong.
absl::Status Plan::Refuse(const optrail_call& call) const {
  if (call.operand_count != operands_.size() || call.operands == nullptr) {
    return absl::InvalidArgumentError(
        absl::StrCat(name_, ": the call has ",
                     call.operands == nullptr ? 0 : call.operand_count,
                     " operands, expected ", operands_.size()));
  }
  for (size_t i = 0; i < operands_.size(); ++i) {
    const Operand& operand = operands_[i];
    const std::string what =
        absl::StrCat(name_, ": operand ", i, " (", operand.spec.name, ") ");
    const void* const address = call.operands[i];
    if (address == nullptr) {
      return absl::InvalidArgumentError(absl::StrCat(what, "is NULL"));
    }
    if (!IsAligned(address, operand.alignment)) {
      return absl::InvalidArgumentError(absl::StrCat(
          what, "is at ", Pointer(address), ", expected a multiple of ",
          operand.alignment, " for ", operand.type));
    }
    if (call.operand_bytes != nullptr &&
        call.operand_bytes[i] != operand.bytes) {
      return absl::InvalidArgumentError(
          absl::StrCat(what, "has ", call.operand_bytes[i], " bytes, expected ",
                       operand.bytes));
    }
  }
  return absl::InvalidArgumentError(absl::StrCat(
      name_, ": an output overlaps another operand, and must not"));
}

absl::Status Plan::Check(const optrail_call& call) const {
  const size_t count = operands_.size();
  if (call.operand_count != count || call.operands == nullptr) {
    return Refuse(call);
  }
  for (size_t i = 0; i < count; ++i) {
    const Operand& operand = operands_[i];
    const char* const begin = static_cast<const char*>(call.operands[i]);
    bool right = begin != nullptr && IsAligned(begin, operand.alignment) &&
                 (call.operand_bytes == nullptr ||
                  call.operand_bytes[i] == operand.bytes);
    for (size_t k = 0; k < i && right; ++k) {
      const auto* const other = static_cast<const char*>(call.operands[k]);
      const bool written = operand.spec.role != ops::Role::kInput ||
                           operands_[k].spec.role != ops::Role::kInput;
      right = !written || begin + operand.bytes <= other ||
              other + operands_[k].bytes <= begin;
    }
    if (!right) return Refuse(call);
  }
  if (call.workspace != nullptr) {
    OPTRAIL_RETURN_IF_ERROR(CheckMemory(
        "workspace", call.workspace, call.workspace_bytes, workspace_bytes()));
    OPTRAIL_RETURN_IF_ERROR(CheckApart("workspace", call.workspace,
                                       workspace_bytes(), call,
                                       /*from_inputs=*/true));
  }
  if (call.packed != nullptr) {
    OPTRAIL_RETURN_IF_ERROR(
        CheckMemory("packed", call.packed, call.packed_bytes, packed_bytes()));
    // A call that reads packed weights may have no use for those it replaced.
    OPTRAIL_RETURN_IF_ERROR(CheckApart("packed", call.packed, packed_bytes(),
                                       call, /*from_inputs=*/false));
    if (call.workspace != nullptr &&
        Overlap(call.packed, packed_bytes(), call.workspace,
                workspace_bytes())) {
      return absl::InvalidArgumentError(
          absl::StrCat(name_, ": packed overlaps workspace, and must not"));
    }
  }
  if ((call.flags & ~uint32_t{OPTRAIL_WORKSPACE_IS_CLEAN}) != 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        "call->flags is ", call.flags, ", of which this library knows ",
        OPTRAIL_WORKSPACE_IS_CLEAN));
  }
  return gpu_ == nullptr ? CheckThreads(call) : CheckStream(call);
}

// Memory of the caller's that a call works on: aligned and large enough.
absl::Status Plan::CheckMemory(const char* name, const void* memory,
                               size_t bytes, size_t needed) const {
  const size_t alignment = gpu_ == nullptr ? kAlignment : kGpuAlignment;
  if (!IsAligned(memory, alignment)) {
    return absl::InvalidArgumentError(
        absl::StrCat(name, " is at ", Pointer(memory),
                     ", expected a multiple of ", alignment));
  }
  if (bytes < needed) {
    return absl::InvalidArgumentError(absl::StrCat(
        name, "_bytes is ", bytes, ", expected at least ", needed));
  }
  return absl::OkStatus();
}

// InvalidArgument if the memory overlaps an operand: all of them, or those that
// are written.
absl::Status Plan::CheckApart(const char* name, const void* memory,
                              size_t bytes, const optrail_call& call,
                              bool from_inputs) const {
  for (size_t i = 0; i < operands_.size(); ++i) {
    const Operand& operand = operands_[i];
    if ((from_inputs || operand.spec.role != ops::Role::kInput) &&
        Overlap(memory, bytes, call.operands[i], operand.bytes)) {
      return absl::InvalidArgumentError(
          absl::StrCat(name_, ": ", name, " at ", Pointer(memory), " (", bytes,
                       " bytes) overlaps operand ", i, " (", operand.spec.name,
                       "), and ", "must not"));
    }
  }
  return absl::OkStatus();
}

absl::Status Plan::CheckThreads(const optrail_call& call) const {
  if (call.stream != nullptr) {
    return absl::InvalidArgumentError(absl::StrCat(
        name_,
        ": the call brings a stream, and the plan runs on the CPU; next:"
        " set problem.device to \"cuda\""));
  }
  if (call.threads == nullptr) return absl::OkStatus();
  const Threads& threads = *reinterpret_cast<const Threads*>(call.threads);
  if (threads.count() > threads_) {
    return absl::InvalidArgumentError(
        absl::StrCat(name_, ": the call brings ", threads.count(),
                     " threads, and the plan was made for ", threads_,
                     "; next: set problem.threads"));
  }
  return threads.CheckAlive();
}

absl::Status Plan::CheckStream(const optrail_call& call) const {
  if (call.threads != nullptr) {
    return absl::InvalidArgumentError(
        absl::StrCat(name_,
                     ": the call brings threads, and the plan runs on a "
                     "GPU; next: set call.stream"));
  }
  OPTRAIL_RETURN_IF_ERROR(gpu_->CheckCurrent());
  const auto check = [&](const void* address, absl::string_view what) {
    if (address == nullptr || !gpu_->IsHostMemory(address)) {
      return absl::OkStatus();
    }
    return absl::InvalidArgumentError(absl::StrCat(
        name_, ": ", what, " is at ", Pointer(address),
        ", which is memory of the host, expected memory of the GPU"));
  };
  for (size_t i = 0; i < operands_.size(); ++i) {
    OPTRAIL_RETURN_IF_ERROR(check(call.operands[i], operands_[i].spec.name));
  }
  OPTRAIL_RETURN_IF_ERROR(check(call.workspace, "workspace"));
  return check(call.packed, "packed");
}

absl::Status Plan::RunWith(const optrail_call& given, void* workspace,
                           void* packed) const {
  ops::Call call;
  call.operands = absl::MakeConstSpan(given.operands, given.operand_count);
  call.workspace = workspace;
  call.packed = packed != nullptr ? packed : const_cast<void*>(given.packed);
  if (given.threads == nullptr) {
    if (packed != nullptr) {
      OPTRAIL_RETURN_IF_ERROR(invocation_->Pack(call));
    }
    return invocation_->Run(call);
  }
  Threads::Loops loops(*reinterpret_cast<const Threads*>(given.threads));
  call.stream.loops = &loops;
  absl::Status status;
  if (packed != nullptr) status = invocation_->Pack(call);
  if (status.ok() && loops.status().ok()) status = invocation_->Run(call);
  return loops.status().ok() ? status : loops.status();
}

absl::Status Plan::Pack(const optrail_call& call, void* packed) const {
  if (packed_bytes() == 0) return absl::OkStatus();
  if (packed == nullptr) return absl::InvalidArgumentError("packed is NULL");
  optrail_call checked = call;
  checked.packed = packed;
  checked.packed_bytes = packed_bytes();
  OPTRAIL_RETURN_IF_ERROR(Check(checked));
  OPTRAIL_RETURN_IF_ERROR(CheckApart("packed", packed, packed_bytes(), call,
                                     /*from_inputs=*/true));
  ops::Call pack;
  pack.operands = absl::MakeConstSpan(call.operands, call.operand_count);
  pack.packed = packed;
  pack.stream.handle = call.stream;
  if (call.threads == nullptr) return invocation_->Pack(pack);
  Threads::Loops loops(*reinterpret_cast<const Threads*>(call.threads));
  pack.stream.loops = &loops;
  const absl::Status status = invocation_->Pack(pack);
  return loops.status().ok() ? status : loops.status();
}

absl::Status Plan::Run(const optrail_call& call) const {
  const Observer* const observer = Observer::Get();
  if (observer == nullptr) return RunUncounted(call);
  // The host's clock does not tell what a GPU takes.
  const bool timed = observer->times() && gpu_ == nullptr;
  const int64_t begin_ns = timed ? Clock::Real()->NowNs() : 0;
  OPTRAIL_RETURN_IF_ERROR(RunUncounted(call));
  tuning::ObservedCounter& counter =
      *counter_.Of(*observer, [this] { return observed_key_; });
  if (timed) {
    counter.AddRun(Clock::Real()->NowNs() - begin_ns);
  } else {
    counter.AddRun();
  }
  return absl::OkStatus();
}

absl::Status Plan::RunUncounted(const optrail_call& call) const {
  OPTRAIL_RETURN_IF_ERROR(Check(call));
  if (gpu_ != nullptr) return Launch(call);
  Lease workspace, packed;
  OPTRAIL_RETURN_IF_ERROR(workspace.Take(call.workspace, *workspaces_));
  if (call.packed == nullptr) {
    OPTRAIL_RETURN_IF_ERROR(packed.Take(nullptr, *packed_));
  }
  // A memset of no bytes takes 220 ns where its page was never touched: with
  // AVX-512 it is a masked store (Zen 5, glibc 2.36).
  if (call.workspace != nullptr && invocation_->zeroed_bytes() > 0 &&
      (call.flags & OPTRAIL_WORKSPACE_IS_CLEAN) == 0) {
    std::memset(call.workspace, 0, invocation_->zeroed_bytes());
  }
  const absl::Status status =
      RunWith(call, workspace.memory(), packed.memory());
  if (status.ok()) {
    workspace.KeepForNextCall();
    packed.KeepForNextCall();
  }
  return status;
}

// Memory for one launch: the caller's, else the driver's in the stream's order.
class Plan::StreamLease {
 public:
  StreamLease(const CudaContext& gpu, void* stream)
      : gpu_(gpu), stream_(stream) {}
  ~StreamLease() {
    if (taken_ != nullptr) gpu_.Give(taken_, stream_);
  }
  StreamLease(const StreamLease&) = delete;
  StreamLease& operator=(const StreamLease&) = delete;

  absl::StatusOr<void*> Take(const void* callers, size_t bytes) {
    if (callers != nullptr || bytes == 0) return const_cast<void*>(callers);
    OPTRAIL_ASSIGN_OR_RETURN(taken_, gpu_.Take(bytes, stream_));
    return taken_;
  }

 private:
  const CudaContext& gpu_;
  void* const stream_;
  void* taken_ = nullptr;
};

absl::Status Plan::Launch(const optrail_call& given) const {
  StreamLease workspace(*gpu_, given.stream), packed(*gpu_, given.stream);
  ops::Call call;
  call.operands = absl::MakeConstSpan(given.operands, given.operand_count);
  call.stream.handle = given.stream;
  OPTRAIL_ASSIGN_OR_RETURN(call.workspace,
                           workspace.Take(given.workspace, workspace_bytes()));
  OPTRAIL_ASSIGN_OR_RETURN(call.packed,
                           packed.Take(given.packed, packed_bytes()));
  const bool clean = given.workspace != nullptr &&
                     (given.flags & OPTRAIL_WORKSPACE_IS_CLEAN) != 0;
  if (!clean) {
    OPTRAIL_RETURN_IF_ERROR(
        gpu_->Zero(call.workspace, invocation_->zeroed_bytes(), given.stream));
  }
  if (given.packed == nullptr && packed_bytes() > 0) {
    OPTRAIL_RETURN_IF_ERROR(invocation_->Pack(call));
  }
  return invocation_->Run(call);
}

}  // namespace optrail::lib

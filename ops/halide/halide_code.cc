#include "ops/halide/halide_code.h"

#include <stdlib.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <mutex>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "ops/core/loaded_library.h"
#include "ops/halide/entry_point.h"

namespace optrail::ops {
namespace {

// Structs of HalideRuntime.h, version 14, so that this builds without it.
struct HalideDimension {
  int32_t min = 0, extent = 0, stride = 0;
  uint32_t flags = 0;
};
struct HalideType {
  uint8_t code = 0;  // 0: signed, 1: unsigned, 2: float
  uint8_t bits = 0;
  uint16_t lanes = 1;
};
struct HalideBuffer {
  uint64_t device = 0;
  const void* device_interface = nullptr;
  uint8_t* host = nullptr;
  uint64_t flags = 0;
  HalideType type;
  int32_t dimensions = 0;
  HalideDimension* dim = nullptr;
  void* padding = nullptr;
};
static_assert(sizeof(HalideBuffer) == 56);

using Task = int (*)(void* context, int i, uint8_t* closure);
using DoParFor = int (*)(void* context, Task task, int min, int size,
                         uint8_t* closure);

HalideType TypeOf(proto::DataType type) {
  switch (type) {
    case proto::F64:
      return {2, 64};
    case proto::F32:
      return {2, 32};
    case proto::I64:
      return {0, 64};
    case proto::I32:
      return {0, 32};
    case proto::I16:
      return {0, 16};
    case proto::I8:
      return {0, 8};
    default:
      return {1, 8};
  }
}

// Blocks that calls use, kept between them: a call asks for the same each time,
// and fresh pages cost more than what is computed in them. A thread gets back
// what it gave, without meeting others.
class Workspace {
 public:
  Workspace() = default;
  ~Workspace() {
    for (Shard& shard : shards_) {
      for (Block* const block : shard.free) ::free(block);
    }
  }
  Workspace(const Workspace&) = delete;
  Workspace& operator=(const Workspace&) = delete;

  void* Take(size_t size) {
    size = (size + kAlignment - 1) / kAlignment * kAlignment;
    Shard& shard = ShardOfThisThread();
    {
      const std::lock_guard<std::mutex> lock(shard.mutex);
      for (auto block = shard.free.rbegin(); block != shard.free.rend();
           ++block) {
        if ((*block)->size != size) continue;
        void* const data = *block + 1;
        *block = shard.free.back();
        shard.free.pop_back();
        return data;
      }
    }
    auto* const block = static_cast<Block*>(
        aligned_alloc(kAlignment, sizeof(Block) + size + kPadding));
    if (block == nullptr) return nullptr;
    block->size = size;
    return block + 1;
  }
  void Give(void* data) {
    Shard& shard = ShardOfThisThread();
    const std::lock_guard<std::mutex> lock(shard.mutex);
    shard.free.push_back(static_cast<Block*>(data) - 1);
  }

 private:
  static constexpr size_t kAlignment = 128;
  // Vectors may be read across the end.
  static constexpr size_t kPadding = 256;
  // The header before the memory of a block.
  struct alignas(kAlignment) Block {
    size_t size;
  };
  // More threads than these share some.
  static constexpr unsigned kShards = 16;
  struct alignas(64) Shard {
    std::mutex mutex;
    std::vector<Block*> free;
  };

  Shard& ShardOfThisThread() {
    static std::atomic<unsigned> threads{0};
    thread_local const unsigned number = threads++;
    return shards_[number % kShards];
  }

  std::array<Shard, kShards> shards_;
};

// The turns of a parallel loop. Every thread has a part of its own, the same in
// every call, so that it finds in its caches what it had there; takes that
// piece by piece; and then helps others with theirs, so that a thread that
// loses its core holds up one piece.
class Turns {
 public:
  Turns(int64_t count, int threads)
      : parts_(threads),
        piece_(std::max<int64_t>(1, count / threads / kPiecesOfPart)) {
    for (int t = 0; t < threads; ++t) {
      parts_[t].next = count * t / threads;
      parts_[t].end = count * (t + 1) / threads;
    }
  }

  // Calls run(i) for turns until all are taken, or until it returns false.
  template <class Run>
  void Take(int64_t own, const Run& run) {
    const auto parts = static_cast<int64_t>(parts_.size());
    for (int64_t p = 0; p < parts; ++p) {
      Part& part = parts_[(own + p) % parts];
      while (part.next.load(std::memory_order_relaxed) < part.end) {
        const int64_t begin = part.next.fetch_add(piece_);
        const int64_t end = std::min(begin + piece_, part.end);
        for (int64_t i = begin; i < end; ++i) {
          if (!run(i)) return;
        }
      }
    }
  }

 private:
  static constexpr int64_t kPiecesOfPart = 16;
  struct alignas(64) Part {
    std::atomic<int64_t> next{0};
    int64_t end = 0;
  };
  std::vector<Part> parts_;
  const int64_t piece_;
};

class HalideCode : public Invocation {
 public:
  HalideCode(std::unique_ptr<LoadedLibrary> library,
             const std::vector<OperandSpec>& operands, int threads)
      : library_(std::move(library)), threads_(threads) {
    // Outputs come last.
    for (const bool output : {false, true}) {
      for (size_t i = 0; i < operands.size(); ++i) {
        if ((operands[i].role != Role::kInput) != output) continue;
        order_.push_back(i);
        std::vector<HalideDimension> dims;
        int32_t stride = 1;
        for (size_t d = operands[i].dims.size(); d-- > 0;) {
          const auto extent = static_cast<int32_t>(operands[i].dims[d]);
          dims.push_back({0, extent, stride, 0});
          stride *= extent;
        }
        dims_.push_back(std::move(dims));
        HalideBuffer buffer;
        buffer.type = TypeOf(operands[i].data_type);
        buffer.dimensions = static_cast<int32_t>(dims_.back().size());
        buffers_.push_back(buffer);
        names_.push_back(operands[i].name);
        bytes_.push_back(operands[i].size_bytes());
        inputs_ += !output;
      }
    }
  }

  absl::Status Bind() {
    entry_ = reinterpret_cast<Entry*>(library_->Symbol(
        absl::StrCat(optrail::halide::kEntryPoint, "_argv").c_str()));
    if (entry_ == nullptr || !Set("halide_set_custom_do_par_for", &ParFor) ||
        !Set("halide_set_custom_malloc", &Malloc) ||
        !Set("halide_set_custom_free", &Free) ||
        !Set("halide_set_error_handler", &Error)) {
      return absl::InternalError("this is no code of Halide 14");
    }
    return CheckBounds();
  }

  absl::Status Run(const Call& call) const override {
    std::vector<HalideBuffer> buffers = buffers_;
    for (size_t b = 0; b < buffers.size(); ++b) {
      buffers[b].host = static_cast<uint8_t*>(call.operands[order_[b]]);
      // Written where bounds are asked for alone.
      buffers[b].dim = const_cast<HalideDimension*>(dims_[b].data());
    }
    // Updates read an output back as if it were aligned like memory of
    // Halide's own.
    for (size_t b = inputs_; b < buffers.size(); ++b) {
      if (reinterpret_cast<uintptr_t>(buffers[b].host) % kVectorBytes != 0) {
        buffers[b].host = static_cast<uint8_t*>(workspace_.Take(bytes_[b]));
      }
    }
    const absl::Status status = RunCode(call, buffers);
    for (size_t b = inputs_; b < buffers.size(); ++b) {
      void* const wanted = call.operands[order_[b]];
      if (buffers[b].host == wanted) continue;
      // An output of a failed call stays as it was.
      if (status.ok()) std::memcpy(wanted, buffers[b].host, bytes_[b]);
      workspace_.Give(buffers[b].host);
    }
    return status;
  }

 private:
  using Entry = int(void** arguments);
  static constexpr size_t kVectorBytes = 64;

  template <class Function>
  bool Set(const char* name, Function* function) {
    using Setter = Function* (*)(Function*);
    const auto set = reinterpret_cast<Setter>(library_->Symbol(name));
    if (set != nullptr) set(function);
    return set != nullptr;
  }

  // The code hands on a pointer to this.
  struct Context {
    const HalideCode& code;
    const Call& call;
    std::mutex mutex;
    std::string error;
  };

  absl::Status RunCode(const Call& call,
                       std::vector<HalideBuffer>& buffers) const {
    Context context{*this, call, {}, {}};
    void* pointer = &context;
    std::vector<void*> arguments = {&pointer};
    for (HalideBuffer& buffer : buffers) arguments.push_back(&buffer);
    const int status = entry_(arguments.data());
    if (status == 0) return absl::OkStatus();
    return absl::InvalidArgumentError(
        context.error.empty() ? absl::StrCat("the code returned ", status)
                              : context.error);
  }

  // Inputs without memory make the code say what it would read of them.
  absl::Status CheckBounds() {
    std::vector<HalideBuffer> buffers = buffers_;
    std::vector<std::vector<HalideDimension>> asked = dims_;
    for (size_t b = 0; b < buffers.size(); ++b) {
      for (HalideDimension& dim : asked[b]) {
        if (b < inputs_) dim.min = dim.extent = 0;
      }
      buffers[b].dim = asked[b].data();
    }
    OPTRAIL_RETURN_IF_ERROR(RunCode(Call(), buffers));
    for (size_t b = 0; b < buffers.size(); ++b) {
      for (size_t d = 0; d < dims_[b].size(); ++d) {
        const HalideDimension& needs = asked[b][d];
        const HalideDimension& has = dims_[b][d];
        if (needs.min >= 0 && needs.min + needs.extent <= has.extent) continue;
        return absl::InvalidArgumentError(
            absl::StrCat("the code would use ", names_[b], " from ", needs.min,
                         " to ", needs.min + needs.extent, " in dimension ", d,
                         " of extent ", has.extent));
      }
    }
    return absl::OkStatus();
  }

  static int ParFor(void* context, Task task, int min, int size,
                    uint8_t* closure) {
    const Context& here = *static_cast<Context*>(context);
    const int threads = std::min(here.code.threads_, size);
    if (threads <= 0) return 0;
    std::atomic<int> failed{0};
    Turns turns(size, threads);
    here.call.ParallelFor(threads, [&](int64_t thread) {
      turns.Take(thread, [&](int64_t i) {
        const int status = task(context, min + static_cast<int>(i), closure);
        if (status != 0) failed = status;
        return status == 0;
      });
    });
    return failed;
  }
  static void* Malloc(void* context, size_t size) {
    return static_cast<Context*>(context)->code.workspace_.Take(size);
  }
  static void Free(void* context, void* block) {
    if (block != nullptr) {
      static_cast<Context*>(context)->code.workspace_.Give(block);
    }
  }
  static void Error(void* context, const char* message) {
    auto* const failed = static_cast<Context*>(context);
    const std::lock_guard<std::mutex> lock(failed->mutex);
    failed->error = message;
  }

  const std::unique_ptr<LoadedLibrary> library_;
  const int threads_;
  Entry* entry_ = nullptr;
  std::vector<size_t> order_;  // of operands, outputs last
  std::vector<HalideBuffer> buffers_;
  std::vector<std::vector<HalideDimension>> dims_;
  std::vector<std::string> names_;
  std::vector<size_t> bytes_;
  size_t inputs_ = 0;
  mutable Workspace workspace_;  // for many threads at once
};

}  // namespace

absl::StatusOr<std::unique_ptr<Invocation>> LoadHalideCode(
    absl::string_view bytes, const std::vector<OperandSpec>& operands,
    int threads) {
  OPTRAIL_ASSIGN_OR_RETURN(std::unique_ptr<LoadedLibrary> library,
                           LoadedLibrary::Load(bytes));
  auto code =
      std::make_unique<HalideCode>(std::move(library), operands, threads);
  OPTRAIL_RETURN_IF_ERROR(code->Bind());
  return code;
}

}  // namespace optrail::ops

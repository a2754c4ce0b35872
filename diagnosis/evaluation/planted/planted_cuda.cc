// The CUDA kernels with a known bottleneck: what to compile and how to launch
// it.

#include <algorithm>
#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "ops/core/attributes.h"
#include "ops/core/registry.h"
#include "ops/device/cuda/backend.h"
#include "ops/lib/cuda_frame.h"

namespace optrail::ops {
namespace {

// More than half of what a multiprocessor has, so that it holds one block.
constexpr unsigned kSharedOfOneBlock = 130 << 10;
constexpr int64_t kWarp = 32;  // lanes

class PlantedCuda : public cuda::CudaBackend {
 public:
  std::vector<std::vector<proto::DataType>> data_types() const override {
    return {{proto::F32}};
  }

  absl::StatusOr<cuda::CudaPlan> Plan(
      const proto::Shape& shape, const proto::Config& config,
      const proto::Hardware& hardware) const override {
    const int64_t rows = shape.dims(0).value();
    const bool short_rows = shape.dims(1).value() <= 32;
    const std::string cause = cuda::VariantKnob(config, "cause");
    const int64_t amount = cuda::Knob(config, "amount");
    const Operator& op = *Registry::Get().Find("planted")->op;
    int64_t threads = 256, blocks = rows;
    cuda::CudaPlan plan;
    plan.source = "planted_cuda.cu";
    plan.function = "planted";
    if (cause == "unused_lanes") {
      blocks = CeilDiv(rows, threads / kWarp);
    } else if (cause == "healthy" && short_rows) {
      blocks = CeilDiv(rows, threads);
    } else if (cause == "strided") {
      threads = 64;
      blocks = CeilDiv(rows, threads);
    } else if (cause == "bank_conflicts") {
      threads = 128;
      blocks = CeilDiv(rows, threads);
    } else if (cause == "few_blocks") {
      blocks = amount;
    } else if (cause == "tail") {
      // One block of the second wave in eight multiprocessors, or more.
      threads = 1024;
      blocks = hardware.cores() + hardware.cores() * amount / 32;
      plan.dynamic_shared_bytes = kSharedOfOneBlock;
    } else if (cause == "latency") {
      threads = 64;
      blocks = hardware.cores();
    } else if (cause == "atomics") {
      plan.before = {"zero_sums", 1, 1024};
    } else if (cause == "passes") {
      plan.function = "sums";
      plan.before = {"planted",
                     static_cast<unsigned>(8 * std::max(hardware.cores(), 1)),
                     static_cast<unsigned>(threads)};
    }
    plan.grid_x = static_cast<unsigned>(std::min(blocks, rows));
    plan.block_x = static_cast<unsigned>(threads);
    plan.defines = {absl::StrCat("CAUSE_", absl::AsciiStrToUpper(cause)),
                    absl::StrCat("AMOUNT=", amount),
                    absl::StrCat("THREADS=", threads),
                    absl::StrCat("DEPTH=", IntAttributeOf(op, shape, "depth"))};
    if (short_rows) plan.defines.push_back("SHORT_ROWS");
    return plan;
  }

  absl::Status Arguments(const cuda::CudaPlan& plan, const proto::Shape& shape,
                         const proto::Config& config,
                         absl::Span<void* const> operands, void* workspace,
                         const cuda::Driver& driver,
                         cuda::CudaArguments* arguments) const override {
    if (plan.function != "sums") {
      AddAll(shape, operands, arguments);
      return absl::OkStatus();
    }
    arguments->Add(operands[1]);
    arguments->Add(operands[2]);
    arguments->Add<long long>(shape.dims(1).value());
    return absl::OkStatus();
  }

  void ArgumentsBefore(const cuda::CudaPlan& plan, const proto::Shape& shape,
                       const proto::Config& config,
                       absl::Span<void* const> operands, void* workspace,
                       cuda::CudaArguments* arguments) const override {
    if (plan.before.function == "planted") {
      AddAll(shape, operands, arguments);
      return;
    }
    arguments->Add(operands[2]);
    arguments->Add<long long>(shape.dims(0).value());
  }

 private:
  static void AddAll(const proto::Shape& shape,
                     absl::Span<void* const> operands,
                     cuda::CudaArguments* arguments) {
    for (void* const operand : operands) arguments->Add(operand);
    arguments->Add<long long>(shape.dims(0).value());
    arguments->Add<long long>(shape.dims(1).value());
  }
};

OPTRAIL_REGISTER_BACKEND("planted", PlantedCuda)

}  // namespace
}  // namespace optrail::ops

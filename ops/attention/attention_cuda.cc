// The CUDA kernels of attention: which of them a config stands for, what to
// compile and how to launch it.
//
//   mma     mma.sync, any shape, from sm_80 on        attention_mma.cu
//   hopper  wgmma fed by the bulk copy engine         attention_hopper.cu
//   decode  few queries over many keys                attention_decode.cu

#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "base/status_macros.h"
#include "ops/core/registry.h"
#include "ops/device/cuda/backend.h"
#include "ops/lib/cuda_frame.h"

namespace optrail::ops {
namespace {

using cuda::CudaPlan;
using cuda::Knob;

// Columns of a head that registers hold.
constexpr int64_t kMaxColumns = 256;

struct Size {
  int64_t batch, heads, queries, keys, d;
  int64_t group;
  bool causal;

  int64_t kv_heads() const { return batch * heads / group; }
  // One head of keys has the queries of all heads that share it.
  int64_t rows() const { return queries * group; }
};
Size SizeOf(const proto::Shape& shape) {
  const auto dim = [&](int i) { return shape.dims(i).value(); };
  Size size = {dim(0), dim(1), dim(2), dim(3), dim(4), 1, false};
  for (const proto::Attribute& attribute : shape.attributes()) {
    if (attribute.name() == "group") size.group = attribute.int_();
  }
  size.causal = NamedVariant(shape, "causal") == "yes";
  return size;
}

// Columns of a head in shared memory, where the copy engine writes slabs of 64:
// it fills what the head does not have with zeros.
int64_t SlabColumns(const Size& size) { return CeilDiv(size.d, 64) * 64; }

// Scores are powers of two.
float ScaleOf(const Size& size) {
  return static_cast<float>(M_LOG2E / std::sqrt(static_cast<double>(size.d)));
}

class AttentionCuda : public cuda::CudaBackend {
 public:
  std::vector<std::vector<proto::DataType>> data_types() const override {
    return HalfTypes();
  }

  absl::StatusOr<CudaPlan> Plan(
      const proto::Shape& shape, const proto::Config& config,
      const proto::Hardware& hardware) const override {
    const Size size = SizeOf(shape);
    const std::string kernel = cuda::VariantKnob(config, "kernel");
    if (size.d > kMaxColumns) {
      return absl::UnimplementedError(
          absl::StrCat("heads of ", size.d, " columns, at most ", kMaxColumns));
    }
    OPTRAIL_ASSIGN_OR_RETURN(const cuda::Element element,
                             cuda::ElementOf(shape.data_types(0)));
    CudaPlan plan = kernel == "hopper"   ? Hopper(size, config)
                    : kernel == "decode" ? Decode(size, config)
                                         : Mma(size, config);
    for (const std::string& define :
         {absl::StrCat("D=", kernel == "hopper" ? SlabColumns(size) : size.d),
          absl::StrCat("CAUSAL=", size.causal ? 1 : 0),
          absl::StrCat("ELEMENT=", element.code), InputOf(element)}) {
      plan.defines.push_back(define);
    }
    return plan;
  }

  absl::Status Arguments(const CudaPlan& plan, const proto::Shape& shape,
                         const proto::Config& config,
                         absl::Span<void* const> operands, void* workspace,
                         const cuda::Driver& driver,
                         cuda::CudaArguments* arguments) const override {
    const Size size = SizeOf(shape);
    const auto add = [&](int64_t value) {
      arguments->Add(static_cast<int>(value));
    };
    if (plan.function == "attention") {
      const proto::DataType type = shape.data_types(0);
      const int64_t heads = size.batch * size.heads;
      // What lies beyond a head's rows reads as zero and is not written.
      const auto add_map = [&](void* address, int64_t of_heads, int64_t rows,
                               int64_t box_rows) -> absl::Status {
        cuda::TensorMap map;
        OPTRAIL_RETURN_IF_ERROR(
            cuda::EncodeMatrices(driver, address, of_heads, rows, size.d, type,
                                 static_cast<uint32_t>(box_rows), &map));
        arguments->Add(map);
        return absl::OkStatus();
      };
      OPTRAIL_RETURN_IF_ERROR(add_map(operands[0], heads, size.queries,
                                      64 * Knob(config, "consumers")));
      for (const int i : {1, 2}) {
        OPTRAIL_RETURN_IF_ERROR(add_map(operands[i], size.kv_heads(), size.keys,
                                        Knob(config, "keys")));
      }
      OPTRAIL_RETURN_IF_ERROR(add_map(operands[3], heads, size.queries, 64));
      add(heads);
      add(size.queries);
      add(size.keys);
      arguments->Add(ScaleOf(size));
      return absl::OkStatus();
    }
    for (void* operand : operands) arguments->Add(operand);
    if (plan.function == "attention_mma") {
      add(size.kv_heads());
      add(size.rows());
    }
    add(size.queries);
    add(size.keys);
    arguments->Add(ScaleOf(size));
    if (plan.function == "attention_decode") arguments->Add(workspace);
    return absl::OkStatus();
  }

 private:
  static CudaPlan Hopper(const Size& size, const proto::Config& config) {
    const int64_t consumers = Knob(config, "consumers");
    const int64_t keys = Knob(config, "keys");
    const int64_t slots = Knob(config, "slots");
    CudaPlan plan;
    plan.source = "attention_hopper.cu";
    plan.function = "attention";
    plan.architecture_specific = true;
    plan.defines = {absl::StrCat("CONSUMERS=", consumers),
                    absl::StrCat("KEYS=", keys), absl::StrCat("SLOTS=", slots),
                    absl::StrCat("BLOCKS=", Knob(config, "blocks")),
                    absl::StrCat("GROUP=", size.group)};
    plan.grid_x = static_cast<unsigned>(CeilDiv(size.queries, 64 * consumers) *
                                        size.batch * size.heads);
    plan.block_x = static_cast<unsigned>(128 * (consumers + 1));
    // Tiles begin at multiples of 1024.
    plan.dynamic_shared_bytes = static_cast<unsigned>(
        (consumers * 64 + slots * keys) * SlabColumns(size) * 2 + 1024);
    return plan;
  }

  static CudaPlan Mma(const Size& size, const proto::Config& config) {
    const int64_t warps = Knob(config, "warps");
    const int64_t keys = Knob(config, "keys");
    const int64_t padded = CeilDiv(size.d, 16) * 16;
    CudaPlan plan;
    plan.source = "attention_mma.cu";
    plan.function = "attention_mma";
    plan.defines = {absl::StrCat("PADDED=", padded),
                    absl::StrCat("WARPS=", warps), absl::StrCat("KEYS=", keys),
                    absl::StrCat("VECTOR=", cuda::VectorOf(size.d, 2))};
    plan.grid_x = static_cast<unsigned>(CeilDiv(size.rows(), 16 * warps) *
                                        size.kv_heads());
    plan.block_x = static_cast<unsigned>(32 * warps);
    plan.dynamic_shared_bytes =
        static_cast<unsigned>((16 * warps + 4 * keys) * (padded + 8) * 2);
    return plan;
  }

  static CudaPlan Decode(const Size& size, const proto::Config& config) {
    const int64_t warps = Knob(config, "warps");
    const int64_t parts = Knob(config, "parts");
    const bool cluster = Knob(config, "cluster") != 0;
    // A row of a part has its state and its sums.
    const int64_t part_bytes = 4 * (size.d + 2) * size.rows();
    CudaPlan plan;
    plan.source = "attention_decode.cu";
    plan.function = "attention_decode";
    plan.defines = {absl::StrCat("ROWS=", size.rows()),
                    absl::StrCat("WARPS=", warps),
                    absl::StrCat("PARTS=", parts),
                    absl::StrCat("CLUSTER=", cluster ? 1 : 0)};
    plan.cluster = static_cast<int>(cluster ? parts : 1);
    plan.grid_x = static_cast<unsigned>(size.kv_heads() * parts);
    plan.block_x = static_cast<unsigned>(32 * warps);
    plan.dynamic_shared_bytes = static_cast<unsigned>(warps * part_bytes);
    if (parts > 1 && !cluster) {
      // Counters, in whole pieces of 256 bytes, and parts.
      plan.workspace_bytes =
          static_cast<size_t>(CeilDiv(size.kv_heads(), 64) * 256 +
                              size.kv_heads() * parts * part_bytes);
    }
    return plan;
  }
};

OPTRAIL_REGISTER_BACKEND("attention", AttentionCuda)

}  // namespace
}  // namespace optrail::ops

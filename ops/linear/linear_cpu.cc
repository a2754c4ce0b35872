// The CPU kernel of linear: a product whose tiles are finished while they are
// in registers or cache. Weights are packed before calls, as a layer would keep
// them; those of bfloat16 only where they are multiplied in pairs.

#include <cstdint>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "ops/lib/blocks.h"
#include "ops/lib/cpu_frame.h"
#include "ops/linear/linear_knobs.h"
#include "ops/product/cpu/product.h"

namespace optrail::ops {
namespace {

Activation ActivationOf(const proto::Shape& shape) {
  if (shape.attributes().empty()) return Activation::kNone;
  return shape.attributes(0).variant() == "relu" ? Activation::kRelu
                                                 : Activation::kGelu;
}

// A bias of bfloat16 becomes floats with each call.
template <class T>
std::unique_ptr<Invocation> BindLayer(const ProductSpec& spec,
                                      Activation activation,
                                      CpuDevice& device) {
  constexpr bool kWidens = !std::is_same_v<T, float>;
  WorkspaceLayout layout;
  const auto product = Product<T>::Plan(spec, device, layout);
  const int64_t n = spec.size.n;
  Workspaces biases;
  if (kWidens) biases = Workspaces(layout, 1, n);
  return MakePackingInvocation(
      layout, product.packs_b() ? product.packed_floats() : 0,
      [=](const Call& call, float* to) {
        product.PackB(static_cast<const T*>(call.operands[1]), to);
      },
      [=](const Call& call, const float* packed) {
        Epilogue epilogue;
        epilogue.activation = activation;
        const auto* const bias = static_cast<const T*>(call.operands[2]);
        if constexpr (kWidens) {
          float* const widened = biases.at(call, 0);
          Widen(bias, 1, n, n, widened, n);
          epilogue.shift = widened;
        } else {
          epilogue.shift = bias;
        }
        typename Product<T>::Right w;
        w.data = static_cast<const T*>(call.operands[1]);
        if (product.packs_b()) w.packed = packed;
        product.Run(call, {static_cast<const T*>(call.operands[0])}, w,
                    static_cast<T*>(call.operands[3]), epilogue);
      });
}

class LinearCpu : public KnobKernel<LinearKnobs> {
 public:
  std::vector<std::vector<proto::DataType>> data_types() const override {
    return {{proto::F32}, {proto::BF16}};
  }

 protected:
  absl::StatusOr<std::unique_ptr<Invocation>> Bind(
      const proto::Shape& shape, const LinearKnobs& knobs,
      CpuDevice& device) const override {
    ProductSpec spec;
    spec.size = {shape.dims(0).value(), shape.dims(1).value(),
                 shape.dims(2).value()};
    OPTRAIL_ASSIGN_OR_RETURN(spec.blocking, BlockingOf(knobs, spec.size.k));
    spec.blocking.pack_b = false;
    spec.blocking.prefetch_a |= knobs.prefetch_a;
    spec.task_rows = knobs.task_rows;
    spec.task_columns = knobs.task_columns;
    if (shape.data_types(0) == proto::BF16) {
      spec.may_pack_b = true;
      return BindLayer<uint16_t>(spec, ActivationOf(shape), device);
    }
    // Few rows are bound by reading the weights, which may be best as stored.
    constexpr int64_t kFewRows = 8;
    spec.may_pack_b = spec.size.m > kFewRows || knobs.pack_b;
    if (spec.may_pack_b) {
      spec.blocking.ReadInStreams(spec.size.m, spec.size.k);
    }
    return BindLayer<float>(spec, ActivationOf(shape), device);
  }

  std::vector<std::pair<std::string, int64_t>> BlocksOf(
      const LinearKnobs& knobs) const override {
    return {{"m", knobs.mr},
            {"m", knobs.task_rows},
            {"n", knobs.nr_vectors * TileLanes()},
            {"n", knobs.task_columns},
            {"k", knobs.kc}};
  }
};

OPTRAIL_REGISTER_CPU_KERNEL("linear", LinearCpu)

}  // namespace
}  // namespace optrail::ops

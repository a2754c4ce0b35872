#ifndef OPTRAIL_OPS_PRODUCT_AMX_BACKEND_H_
#define OPTRAIL_OPS_PRODUCT_AMX_BACKEND_H_

// The backend "amx" of operators that are products at heart.
//
//   class MatmulAmx : public AmxProductBackend {
//    protected:
//     absl::StatusOr<std::unique_ptr<Invocation>> Bind(
//         const proto::Shape& shape, const proto::Config& config,
//         CpuDevice& device) const override {
//       OPTRAIL_ASSIGN_OR_RETURN(const AmxKnobs knobs, AmxKnobsFrom(config));
//       return BindAmxProduct<AmxTiles>(shape, knobs, device);
//     }
//   };
//   OPTRAIL_REGISTER_BACKEND("matmul", MatmulAmx)

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "base/status_macros.h"
#include "ops/core/cpu_device.h"
#include "ops/core/invocation.h"
#include "ops/lib/amx_backend.h"
#include "ops/lib/blocks.h"
#include "ops/lib/packed_operand.h"
#include "ops/lib/pairs.h"
#include "ops/product/amx/product.h"
#include "tuning/proto/config.pb.h"

namespace optrail::ops {

class AmxProductBackend : public AmxBackend {
 public:
  std::vector<std::pair<std::string, int64_t>> Blocks(
      const proto::Config& config) const override;
};

// InvalidArgument where a knob of amx.space.textproto is missing.
absl::StatusOr<AmxKnobs> AmxKnobsFrom(const proto::Config& config);

// operands: a [m, k], b [k, n], c [m, n]; the first three dimensions of
// `shape`. ResourceExhausted without memory.
template <class Tiles>
absl::StatusOr<std::unique_ptr<Invocation>> BindAmxProduct(
    const proto::Shape& shape, const AmxKnobs& knobs, CpuDevice& device) {
  const ProductSize size = {shape.dims(0).value(), shape.dims(1).value(),
                            shape.dims(2).value()};
  OPTRAIL_ASSIGN_OR_RETURN(
      const auto product,
      AmxProduct<Tiles>::Plan(knobs, size, /*packed_b=*/false, device));
  return MakeInvocation(
      [=, &device](absl::Span<void* const> operands) {
        product.Run(device, static_cast<const uint16_t*>(operands[0]),
                    static_cast<const uint16_t*>(operands[1]),
                    static_cast<uint16_t*>(operands[2]), Epilogue());
      },
      product.workspaces());
}

// The same with a bias [n] of bfloat16 before c. B, a layer's weights, is
// packed before calls.
template <class Tiles>
absl::StatusOr<std::unique_ptr<Invocation>> BindAmxLayer(
    const proto::Shape& shape, const AmxKnobs& knobs, Activation activation,
    CpuDevice& device) {
  const ProductSize size = {shape.dims(0).value(), shape.dims(1).value(),
                            shape.dims(2).value()};
  OPTRAIL_ASSIGN_OR_RETURN(
      const auto product,
      AmxProduct<Tiles>::Plan(knobs, size, /*packed_b=*/true, device));
  const int64_t n = size.n;
  OPTRAIL_ASSIGN_OR_RETURN(const auto widened,
                           Workspaces::Create(device, 1, n));
  const auto weights =
      std::make_shared<PackedOperand>(device, PackedElements(size.k, n) / 2);
  return MakePackingInvocation(
      [=](absl::Span<void* const> operands) {
        PackPairs(static_cast<const uint16_t*>(operands[1]), size.k, n, n,
                  reinterpret_cast<uint16_t*>(weights->Keep(operands[1])));
      },
      [=, &device](absl::Span<void* const> operands) {
        float* const bias = widened->at(0);
        Widen(static_cast<const uint16_t*>(operands[2]), 1, n, n, bias, n);
        product.Run(
            device, static_cast<const uint16_t*>(operands[0]),
            reinterpret_cast<const uint16_t*>(weights->Find(operands[1])),
            static_cast<uint16_t*>(operands[3]), {nullptr, bias, activation});
      },
      product.workspaces(), widened);
}

}  // namespace optrail::ops

#endif  // OPTRAIL_OPS_PRODUCT_AMX_BACKEND_H_

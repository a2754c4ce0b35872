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
#include "base/status_macros.h"
#include "ops/core/cpu_device.h"
#include "ops/core/invocation.h"
#include "ops/lib/blocks.h"
#include "ops/lib/cpu_frame.h"
#include "ops/product/amx/amx_backend.h"
#include "ops/product/amx/pairs.h"
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
// `shape`.
template <class Tiles>
absl::StatusOr<std::unique_ptr<Invocation>> BindAmxProduct(
    const proto::Shape& shape, const AmxKnobs& knobs, CpuDevice& device) {
  const ProductSize size = {shape.dims(0).value(), shape.dims(1).value(),
                            shape.dims(2).value()};
  WorkspaceLayout layout;
  const auto product =
      AmxProduct<Tiles>::Plan(knobs, size, /*packed_b=*/false, device, layout);
  return MakeInvocation(layout, [=](const Call& call) {
    product.Run(call, static_cast<const uint16_t*>(call.operands[0]),
                static_cast<const uint16_t*>(call.operands[1]),
                static_cast<uint16_t*>(call.operands[2]), Epilogue());
  });
}

// The same with a bias [n] of bfloat16 before c. B, a layer's weights, is
// packed before calls.
template <class Tiles>
absl::StatusOr<std::unique_ptr<Invocation>> BindAmxLayer(
    const proto::Shape& shape, const AmxKnobs& knobs, Activation activation,
    CpuDevice& device) {
  const ProductSize size = {shape.dims(0).value(), shape.dims(1).value(),
                            shape.dims(2).value()};
  WorkspaceLayout layout;
  const auto product =
      AmxProduct<Tiles>::Plan(knobs, size, /*packed_b=*/true, device, layout);
  const int64_t n = size.n;
  const Workspaces widened(layout, 1, n);
  return MakePackingInvocation(
      layout, PackedElements(size.k, n) / 2,
      [=](const Call& call, float* to) {
        PackPairs(static_cast<const uint16_t*>(call.operands[1]), size.k, n, n,
                  reinterpret_cast<uint16_t*>(to));
      },
      [=](const Call& call, const float* weights) {
        float* const bias = widened.at(call, 0);
        Widen(static_cast<const uint16_t*>(call.operands[2]), 1, n, n, bias, n);
        product.Run(call, static_cast<const uint16_t*>(call.operands[0]),
                    reinterpret_cast<const uint16_t*>(weights),
                    static_cast<uint16_t*>(call.operands[3]),
                    {nullptr, bias, activation});
      });
}

}  // namespace optrail::ops

#endif  // OPTRAIL_OPS_PRODUCT_AMX_BACKEND_H_

// The matrix product by AMX's tiles.

#include "ops/core/registry.h"
#include "ops/matmul/amx_backend.h"

namespace optrail::ops {
namespace {

class MatmulAmx : public AmxBackend {
 protected:
  absl::StatusOr<std::unique_ptr<Invocation>> Bind(
      const proto::Shape& shape, const AmxKnobs& knobs,
      CpuDevice& device) const override {
    return BindAmxProduct<AmxTiles>(shape, knobs, /*has_bias=*/false,
                                    Activation::kNone, device);
  }
};

OPTRAIL_REGISTER_BACKEND("matmul", MatmulAmx)

}  // namespace
}  // namespace optrail::ops

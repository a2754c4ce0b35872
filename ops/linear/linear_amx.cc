// A layer by AMX's tiles: matmul's product, whose sums get bias and activation
// before they are rounded.

#include "ops/core/registry.h"
#include "ops/matmul/amx_backend.h"

namespace optrail::ops {
namespace {

class LinearAmx : public AmxBackend {
 protected:
  absl::StatusOr<std::unique_ptr<Invocation>> Bind(
      const proto::Shape& shape, const AmxKnobs& knobs,
      CpuDevice& device) const override {
    Activation activation = Activation::kNone;
    if (!shape.attributes().empty()) {
      activation = shape.attributes(0).variant() == "relu" ? Activation::kRelu
                                                           : Activation::kGelu;
    }
    return BindAmxProduct<AmxTiles>(shape, knobs, /*has_bias=*/true, activation,
                                    device);
  }
};

OPTRAIL_REGISTER_BACKEND("linear", LinearAmx)

}  // namespace
}  // namespace optrail::ops

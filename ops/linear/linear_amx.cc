// A layer by AMX's tiles: matmul's product of packed weights, whose sums get
// bias and activation before they are rounded.

#include "base/status_macros.h"
#include "ops/core/registry.h"
#include "ops/product/amx/backend.h"

namespace optrail::ops {
namespace {

class LinearAmx : public AmxProductBackend {
 protected:
  absl::StatusOr<std::unique_ptr<Invocation>> Bind(
      const proto::Shape& shape, const proto::Config& config,
      CpuDevice& device) const override {
    OPTRAIL_ASSIGN_OR_RETURN(const AmxKnobs knobs, AmxKnobsFrom(config));
    Activation activation = Activation::kNone;
    if (!shape.attributes().empty()) {
      activation = shape.attributes(0).variant() == "relu" ? Activation::kRelu
                                                           : Activation::kGelu;
    }
    return BindAmxLayer<AmxTiles>(shape, knobs, activation, device);
  }
};

OPTRAIL_REGISTER_BACKEND("linear", LinearAmx)

}  // namespace
}  // namespace optrail::ops

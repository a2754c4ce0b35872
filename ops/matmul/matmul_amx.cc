// The matrix product by AMX's tiles.

#include "base/status_macros.h"
#include "ops/core/registry.h"
#include "ops/product/amx/backend.h"

namespace optrail::ops {
namespace {

class MatmulAmx : public AmxProductBackend {
 protected:
  absl::StatusOr<std::unique_ptr<Invocation>> Bind(
      const proto::Shape& shape, const proto::Config& config,
      CpuDevice& device) const override {
    OPTRAIL_ASSIGN_OR_RETURN(const AmxKnobs knobs, AmxKnobsFrom(config));
    return BindAmxProduct<AmxTiles>(shape, knobs, device);
  }
};

OPTRAIL_REGISTER_BACKEND("matmul", MatmulAmx)

}  // namespace
}  // namespace optrail::ops

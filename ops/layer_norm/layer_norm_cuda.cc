#include "ops/core/registry.h"
#include "ops/norm/norm_cuda.h"

namespace optrail::ops {
namespace {

class LayerNormCuda : public NormCuda {
 public:
  LayerNormCuda() : NormCuda("layer_norm_cuda.cu") {}
};

OPTRAIL_REGISTER_BACKEND("layer_norm", LayerNormCuda)

}  // namespace
}  // namespace optrail::ops

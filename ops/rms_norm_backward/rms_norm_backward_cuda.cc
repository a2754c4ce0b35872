#include "ops/core/registry.h"
#include "ops/norm/norm_cuda.h"

namespace optrail::ops {
namespace {

class RmsNormBackwardCuda : public NormBackwardCuda {
 public:
  RmsNormBackwardCuda()
      : NormBackwardCuda("rms_norm_backward_cuda.cu", /*centred=*/false) {}
};

OPTRAIL_REGISTER_BACKEND("rms_norm_backward", RmsNormBackwardCuda)

}  // namespace
}  // namespace optrail::ops

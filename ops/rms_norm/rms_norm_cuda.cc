#include "ops/core/registry.h"
#include "ops/norm/norm_cuda.h"

namespace optrail::ops {
namespace {

class RmsNormCuda : public NormCuda {
 public:
  RmsNormCuda() : NormCuda("rms_norm_cuda.cu") {}
};

OPTRAIL_REGISTER_BACKEND("rms_norm", RmsNormCuda)

}  // namespace
}  // namespace optrail::ops

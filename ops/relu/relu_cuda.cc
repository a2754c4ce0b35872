#include "ops/core/registry.h"
#include "ops/lib/cuda_frame.h"

namespace optrail::ops {
namespace {

class ReluCuda : public ElementwiseCuda {
 public:
  ReluCuda() : ElementwiseCuda("relu_cuda.cu") {}
};

OPTRAIL_REGISTER_BACKEND("relu", ReluCuda)

}  // namespace
}  // namespace optrail::ops

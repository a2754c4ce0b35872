#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "ops/core/registry.h"
#include "ops/lib/cuda_frame.h"

namespace optrail::ops {
namespace {

class GeluCuda : public ElementwiseCuda {
 public:
  GeluCuda() : ElementwiseCuda("gelu_cuda.cu") {}
  std::vector<std::string> Defines(const proto::Shape& shape) const override {
    const bool tanh = NamedVariant(shape, "approximation") == "tanh";
    return {absl::StrCat("TANH=", tanh ? 1 : 0)};
  }
};

OPTRAIL_REGISTER_BACKEND("gelu", GeluCuda)

}  // namespace
}  // namespace optrail::ops

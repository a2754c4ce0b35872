// The CUDA kernels of linear: which of them a config stands for, what to
// compile and how to launch it.
//
//   mma     mma.sync, any shape, from sm_80 on    linear_mma.cu
//   hopper  wgmma fed by the bulk copy engine     linear_hopper.cu

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "base/status_macros.h"
#include "ops/core/registry.h"
#include "ops/lib/product_cuda.h"

namespace optrail::ops {
namespace {

class LinearCuda : public ProductCuda {
 public:
  LinearCuda() : ProductCuda("linear") {}

  absl::Status Arguments(const cuda::CudaPlan& plan, const proto::Shape& shape,
                         const proto::Config& config,
                         absl::Span<void* const> operands, void* workspace,
                         const cuda::Driver& driver,
                         cuda::CudaArguments* arguments) const override {
    OPTRAIL_ASSIGN_OR_RETURN(const Size size, SizeOf(shape));
    const proto::DataType type = shape.data_types(0);
    if (IsHopper(config)) {
      cuda::TensorMap map_x, map_w;
      OPTRAIL_RETURN_IF_ERROR(cuda::EncodeMatrix(
          driver, operands[0], size.m, size.k, type, TileRows(config), &map_x));
      OPTRAIL_RETURN_IF_ERROR(cuda::EncodeMatrix(driver, operands[1], size.k,
                                                 size.n, type, kTileK, &map_w));
      arguments->Add(map_x);
      arguments->Add(map_w);
      OPTRAIL_RETURN_IF_ERROR(
          AddResult(size, operands[3], type, driver, arguments));
      arguments->Add(operands[2]);
    } else {
      for (void* operand : operands) arguments->Add(operand);
    }
    for (const int64_t value : {size.m, size.n, size.k}) {
      arguments->Add(static_cast<int>(value));
    }
    AddWalk(size, config, workspace, arguments);
    return absl::OkStatus();
  }

 protected:
  absl::StatusOr<Size> SizeOf(const proto::Shape& shape) const override {
    const int64_t k = shape.dims(2).value();
    return Size{shape.dims(0).value(), shape.dims(1).value(), k,
                cuda::VectorOf(k, 2)};
  }
  int64_t Cluster(const proto::Config& config) const override {
    return cuda::Knob(config, "cluster");
  }
  void AddDefines(const proto::Shape& shape,
                  std::vector<std::string>* defines) const override {
    const std::string f = NamedVariant(shape, "activation");
    defines->push_back(absl::StrCat("ACTIVATION=", f == "relu"   ? 1
                                                   : f == "gelu" ? 2
                                                                 : 0));
  }
};

OPTRAIL_REGISTER_BACKEND("linear", LinearCuda)

}  // namespace
}  // namespace optrail::ops

#ifndef OPTRAIL_OPS_MATMUL_AMX_BACKEND_H_
#define OPTRAIL_OPS_MATMUL_AMX_BACKEND_H_

// The backend "amx" of operators that are products of bfloat16 at heart.
//
//   class MatmulAmx : public AmxBackend {
//    protected:
//     absl::StatusOr<std::unique_ptr<Invocation>> Bind(
//         const proto::Shape& shape, const AmxKnobs& knobs,
//         CpuDevice& device) const override;
//   };
//   OPTRAIL_REGISTER_BACKEND("matmul", MatmulAmx)
//
// Elsewhere it is unsupported, and says what is missing.

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "ops/core/backend.h"
#include "ops/core/cpu_device.h"
#include "ops/core/invocation.h"
#include "ops/matmul/amx_product.h"
#include "tuning/proto/config.pb.h"

namespace optrail::ops {

class AmxBackend : public Backend {
 public:
  std::string name() const override { return "amx"; }
  proto::DeviceKind kind() const override { return proto::CPU; }
  std::vector<std::vector<proto::DataType>> data_types() const override {
    return {{proto::BF16}};
  }

  absl::StatusOr<std::string> Id(const Target& target) const override;
  absl::StatusOr<Recipe> Describe(const CompileRequest& request) const override;
  absl::StatusOr<std::unique_ptr<Invocation>> Load(
      const Artifact& artifact, const proto::Shape& shape,
      const proto::Config& config, Device& device) const override;
  std::vector<std::pair<std::string, int64_t>> Blocks(
      const proto::Config& config) const override;

 protected:
  // As Load.
  virtual absl::StatusOr<std::unique_ptr<Invocation>> Bind(
      const proto::Shape& shape, const AmxKnobs& knobs,
      CpuDevice& device) const = 0;
};

// InvalidArgument where a knob of amx.space.textproto is missing.
absl::StatusOr<AmxKnobs> AmxKnobsFrom(const proto::Config& config);

// operands: a [m, k], b [k, n], with `bias` [n] of bfloat16, c [m, n]; the
// first three dimensions of `shape`. ResourceExhausted without memory.
template <class Tiles>
absl::StatusOr<std::unique_ptr<Invocation>> BindAmxProduct(
    const proto::Shape& shape, const AmxKnobs& knobs, bool has_bias,
    Activation activation, CpuDevice& device) {
  const MatmulSize size = {shape.dims(0).value(), shape.dims(1).value(),
                           shape.dims(2).value()};
  OPTRAIL_ASSIGN_OR_RETURN(const auto product,
                           AmxProduct<Tiles>::Plan(knobs, size, device));
  const int64_t n = size.n;
  OPTRAIL_ASSIGN_OR_RETURN(const auto widened,
                           Workspaces::Create(device, 1, has_bias ? n : 1));
  return MakeInvocation(
      [=, &device](absl::Span<void* const> operands) {
        Epilogue epilogue;
        epilogue.activation = activation;
        if (has_bias) {
          float* const bias = widened->at(0);
          Widen(static_cast<const uint16_t*>(operands[2]), 1, n, n, bias, n);
          epilogue.shift = bias;
        }
        product.Run(device, static_cast<const uint16_t*>(operands[0]),
                    static_cast<const uint16_t*>(operands[1]),
                    static_cast<uint16_t*>(operands.back()), epilogue);
      },
      product.workspaces(), widened);
}

}  // namespace optrail::ops

#endif  // OPTRAIL_OPS_MATMUL_AMX_BACKEND_H_

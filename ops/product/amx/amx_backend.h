#ifndef OPTRAIL_OPS_PRODUCT_AMX_AMX_BACKEND_H_
#define OPTRAIL_OPS_PRODUCT_AMX_AMX_BACKEND_H_

// The backend "amx": operators of bfloat16 by the tiles of amx.h. Elsewhere it
// is unsupported, and says what is missing.
//
//   class Conv2dAmx : public AmxBackend {
//    protected:
//     absl::StatusOr<std::unique_ptr<Invocation>> Bind(
//         const proto::Shape& shape, const proto::Config& config,
//         CpuDevice& device) const override;
//   };
//   OPTRAIL_REGISTER_BACKEND("conv2d", Conv2dAmx)

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "ops/core/backend.h"
#include "ops/core/cpu_device.h"
#include "ops/core/invocation.h"
#include "tuning/proto/config.pb.h"

namespace optrail::ops {

class AmxBackend : public BackendFor<CpuDevice> {
 public:
  std::string name() const override { return "amx"; }
  std::vector<std::vector<proto::DataType>> data_types() const override {
    return {{proto::BF16}};
  }

  absl::StatusOr<std::string> Id(const Target& target) const override;
  absl::StatusOr<Recipe> Describe(const CompileRequest& request) const override;

 protected:
  absl::StatusOr<std::unique_ptr<Invocation>> LoadOn(
      const Artifact& artifact, const proto::Shape& shape,
      const proto::Config& config, CpuDevice& device) const override;
  // Does the work of Load.
  virtual absl::StatusOr<std::unique_ptr<Invocation>> Bind(
      const proto::Shape& shape, const proto::Config& config,
      CpuDevice& device) const = 0;
};

// What a config says of knobs; status() is InvalidArgument once one was asked
// for that it does not have, which counts as 0, false or "".
class KnobReader {
 public:
  explicit KnobReader(const proto::Config& config) : config_(config) {}

  int64_t Int(absl::string_view name) { return Find(name).int_(); }
  bool Bool(absl::string_view name) { return Find(name).bool_(); }
  std::string Variant(absl::string_view name) { return Find(name).variant(); }
  const absl::Status& status() const { return status_; }

 private:
  const proto::KnobValue& Find(absl::string_view name);

  const proto::Config& config_;
  absl::Status status_;
};

}  // namespace optrail::ops

#endif  // OPTRAIL_OPS_PRODUCT_AMX_AMX_BACKEND_H_

#ifndef OPTRAIL_OPS_CORE_TUNED_KERNEL_H_
#define OPTRAIL_OPS_CORE_TUNED_KERNEL_H_

// ChooseKernel answers programs that run operators and do not tune them: which
// backend computes this shape, and with which config?
//
//   KernelQuestion question;
//   question.operator_name = "softmax";
//   question.shape = shape;
//   OPTRAIL_ASSIGN_OR_RETURN(
//       const ChosenKernel kernel,
//       ChooseKernel(question, device.hardware(), &store));
//   OPTRAIL_ASSIGN_OR_RETURN(
//       const Artifact artifact,
//       CompileCached(*kernel.backend, kernel.Request(target), folder));
//   kernel.backend->Load(artifact, kernel.shape, kernel.config, device);

#include <string>

#include "absl/status/statusor.h"
#include "ops/core/backend.h"
#include "ops/core/registry.h"
#include "tuning/proto/config.pb.h"
#include "tuning/proto/context.pb.h"
#include "tuning/store/store.h"

namespace optrail::ops {

struct KernelQuestion {
  std::string operator_name;
  proto::Shape shape;
  proto::DeviceKind device_kind = proto::CPU;
  std::string backend;  // "": the device kind's own
  int threads = 1;
  proto::CacheMode cache_mode = proto::HOT;
  proto::LaunchMode launch_mode = proto::LAUNCH_MODE_UNSPECIFIED;
  // Canonical text of a config that is used in place of the store's; "": none.
  std::string config;
};

struct ChosenKernel {
  const OperatorEntry* entry = nullptr;
  const Backend* backend = nullptr;
  proto::Shape shape;
  proto::Config config;  // with a value for every knob
  // The entry that the config is from; it points into the store.
  tuning::LookupResult found;

  CompileRequest Request(const Target& target) const {
    return {shape, config, target};
  }
};

// `store` may be null: the default config. NotFound names the operators there
// are, Unimplemented the backends and data types. InvalidArgument: a shape that
// the operator does not have, or a config that is not valid for it here.
absl::StatusOr<ChosenKernel> ChooseKernel(
    const KernelQuestion& question, const proto::Hardware& hardware,
    const tuning::TunedConfigStore* store);

}  // namespace optrail::ops

#endif  // OPTRAIL_OPS_CORE_TUNED_KERNEL_H_

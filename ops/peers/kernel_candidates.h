#ifndef OPTRAIL_OPS_PEERS_KERNEL_CANDIDATES_H_
#define OPTRAIL_OPS_PEERS_KERNEL_CANDIDATES_H_

// What every peer benchmark does with our own side: finds the operator, its
// configs for a shape, and prepares and verifies them.

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "ops/core/operator.h"
#include "ops/core/reference_check.h"
#include "ops/core/registry.h"
#include "ops/peers/interleaved.h"

namespace optrail::ops {

// An operator's operands for a shape, and its kernel's candidates on them.
class KernelCandidates {
 public:
  // `shape_text`: "m=512,n=512,k=512/f32". Fills operands and computes the
  // reference.
  static absl::StatusOr<std::unique_ptr<KernelCandidates>> Create(
      absl::string_view op, absl::string_view shape_text, Device& device);

  // The default config, the checked-in tuned config for this shape, hardware
  // and thread count if there is one, and each of `configs` ("mr=6,kc=256": the
  // knobs left out have their default). Each has been verified on the
  // operands. InvalidArgument says what is wrong with a config.
  absl::StatusOr<std::vector<Candidate>> Make(
      const std::vector<std::string>& configs);

  const Operator& op() const { return *entry_->op; }
  const proto::Shape& shape() const { return shape_; }
  CheckedOperands& operands() { return *operands_; }

 private:
  KernelCandidates(const OperatorEntry* entry, proto::Shape shape,
                   Device& device)
      : entry_(entry), shape_(std::move(shape)), device_(device) {}

  absl::StatusOr<Candidate> Prepare(const std::string& name,
                                    const proto::Config& config);
  // Empty if there is none.
  std::string TunedConfigText() const;

  const OperatorEntry* entry_;
  const proto::Shape shape_;
  Device& device_;
  std::unique_ptr<CheckedOperands> operands_;
};

}  // namespace optrail::ops

#endif  // OPTRAIL_OPS_PEERS_KERNEL_CANDIDATES_H_

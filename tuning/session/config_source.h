#ifndef OPTRAIL_TUNING_SESSION_CONFIG_SOURCE_H_
#define OPTRAIL_TUNING_SESSION_CONFIG_SOURCE_H_

// Where a session's configs come from, where that is no space: knobs that
// depend on each other's values have no levels to list (traces of schedules,
// tuning/schedule). A backend that has one gives it to the session, which sees
// configs and trials as ever.

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "tuning/proto/config.pb.h"
#include "tuning/session/proposer.h"

namespace optrail::tuning {

class ConfigSource {
 public:
  virtual ~ConfigSource() = default;
  // InvalidArgument says what is wrong with the config.
  virtual absl::Status Validate(const proto::Config& config) const = 0;
  // Does the work of MakeProposer; this must outlive the proposer.
  virtual absl::StatusOr<std::unique_ptr<Proposer>> Propose(
      const proto::Session& begun, const ProposerOptions& options) const = 0;
  // The strategy that --strategy=default stands for.
  virtual std::string DefaultStrategy() const = 0;
  // For provenance: of all that decides which configs there are.
  virtual std::string Hash() const = 0;
  // Adds to a session's header what its configs are read by later.
  virtual void Describe(proto::Session* header) const {}
};

}  // namespace optrail::tuning

#endif  // OPTRAIL_TUNING_SESSION_CONFIG_SOURCE_H_

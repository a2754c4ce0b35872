#ifndef OPTRAIL_TUNING_SESSION_STORED_CONFIG_H_
#define OPTRAIL_TUNING_SESSION_STORED_CONFIG_H_

// A session that searches nothing: it tries one config, the stored one, and
// proves it against the default as any session proves its best.
//
//   const StoredConfig source(config);
//   OPTRAIL_ASSIGN_OR_RETURN(const std::unique_ptr<Proposer> proposer,
//                            source.Propose(begun, options));

#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "tuning/proto/config.pb.h"
#include "tuning/session/config_source.h"
#include "tuning/session/proposer.h"

namespace optrail::tuning {

// The strategy of such a session, which is no search to be judged.
inline constexpr char kStoredStrategy[] = "stored";

class StoredConfig : public ConfigSource {
 public:
  explicit StoredConfig(proto::Config config) : config_(std::move(config)) {}

  absl::Status Validate(const proto::Config& config) const override;
  absl::StatusOr<std::unique_ptr<Proposer>> Propose(
      const proto::Session& begun,
      const ProposerOptions& options) const override;
  std::string DefaultStrategy() const override { return kStoredStrategy; }
  std::string Hash() const override;

 private:
  const proto::Config config_;
};

}  // namespace optrail::tuning

#endif  // OPTRAIL_TUNING_SESSION_STORED_CONFIG_H_

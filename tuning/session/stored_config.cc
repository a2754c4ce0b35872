#include "tuning/session/stored_config.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/types/optional.h"
#include "base/hash/hash.h"
#include "tuning/proto/canonical.h"

namespace optrail::tuning {
namespace {

class OneConfig : public Proposer {
 public:
  explicit OneConfig(const proto::Config& config) : config_(config) {}

  std::vector<proto::Config> Ask(int count) override {
    if (asked_ || count < 1) return {};
    asked_ = true;
    return {config_};
  }
  absl::Status Tell(const proto::Trial& trial) override {
    if (CanonicalText(trial.config()) == CanonicalText(config_)) {
      asked_ = true;
      works_ = trial.outcome() == proto::OK;
    }
    return absl::OkStatus();
  }
  std::vector<proto::Config> Finalists(int count) const override {
    return works_ && count > 0 ? std::vector<proto::Config>{config_}
                               : std::vector<proto::Config>();
  }
  std::vector<proto::Config> Front() const override { return Finalists(1); }
  absl::optional<double> ExpectedImprovement() const override {
    return absl::nullopt;
  }

 private:
  const proto::Config config_;
  bool asked_ = false, works_ = false;
};

}  // namespace

absl::Status StoredConfig::Validate(const proto::Config& config) const {
  const std::string text = CanonicalText(config);
  if (text == CanonicalText(config_)) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(text, " is not the stored config ", CanonicalText(config_)));
}

absl::StatusOr<std::unique_ptr<Proposer>> StoredConfig::Propose(
    const proto::Session& begun, const ProposerOptions&) const {
  auto proposer = std::make_unique<OneConfig>(config_);
  // Trials that were known before.
  for (const proto::Trial& trial : begun.trials()) {
    if (absl::Status told = proposer->Tell(trial); !told.ok()) return told;
  }
  return proposer;
}

std::string StoredConfig::Hash() const {
  return Fingerprint(CanonicalText(config_));
}

}  // namespace optrail::tuning

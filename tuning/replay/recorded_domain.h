#ifndef OPTRAIL_TUNING_REPLAY_RECORDED_DOMAIN_H_
#define OPTRAIL_TUNING_REPLAY_RECORDED_DOMAIN_H_

// RecordedDomain presents a recording to search strategies: a config is valid
// if it was recorded (failed ones are: a strategy has to find out).

#include <vector>

#include "absl/container/flat_hash_map.h"
#include "tuning/replay/recording.h"
#include "tuning/space/domain.h"

namespace optrail::tuning {

class RecordedDomain final : public Domain {
 public:
  // `recording` must outlive the domain.
  explicit RecordedDomain(const Recording& recording);

  // Sets the answers of Prior: one value per config of the recording.
  void SetPrior(std::vector<double> prior) { prior_ = std::move(prior); }

  absl::Span<const KnobLevels> knobs() const override;
  bool IsValid(absl::Span<const uint16_t> levels) const override;
  absl::optional<int64_t> size() const override;
  Levels At(int64_t index) const override;
  absl::optional<int64_t> IndexOf(
      absl::Span<const uint16_t> levels) const override;
  Levels Sample(Rng& rng) const override;
  absl::optional<double> Prior(
      absl::Span<const uint16_t> levels) const override;

 private:
  const Recording& recording_;
  absl::flat_hash_map<Levels, int64_t> index_;
  std::vector<double> prior_;
};

}  // namespace optrail::tuning

#endif  // OPTRAIL_TUNING_REPLAY_RECORDED_DOMAIN_H_

#ifndef OPTRAIL_TUNING_SESSION_EVALUATION_RECORDED_NOISE_H_
#define OPTRAIL_TUNING_SESSION_EVALUATION_RECORDED_NOISE_H_

// Noise as it was recorded: what process medians really did beside each other,
// instead of a formula for it.
//
//   OPTRAIL_ASSIGN_OR_RETURN(const RecordedNoise noise,
//                            RecordedNoise::FromProcesses(path, half));
//   const RecordedNoise::Source& source = noise.Draw(rng);
//   const double factor = source.rounds[r][i];   // of the true time
//
// A source is one benchmark (or one config of a recorded space); in a round of
// it several processes (or repeats) were read one after the other.

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/random.h"

namespace optrail::tuning {

// Parameters are chosen on one half of the sources and judged on the other.
enum class Half { kFit, kJudge, kAll };

class RecordedNoise {
 public:
  struct Source {
    std::string name;
    // Readings over the source's median; at least two in a round.
    std::vector<std::vector<double>> rounds;
  };

  // A table of process medians: a benchmark a line, rounds between tabs, the
  // medians of a round between blanks. Errors name file and line.
  static absl::StatusOr<RecordedNoise> FromProcesses(const std::string& path,
                                                     Half half);
  // The repeats of every config of recorded spaces.
  static absl::StatusOr<RecordedNoise> FromRecordings(const std::string& folder,
                                                      Half half);

  const Source& Draw(Rng& rng) const {
    return sources_[rng.UniformInt(sources_.size())];
  }
  const std::vector<Source>& sources() const { return sources_; }

 private:
  std::vector<Source> sources_;
};

}  // namespace optrail::tuning

#endif  // OPTRAIL_TUNING_SESSION_EVALUATION_RECORDED_NOISE_H_

#ifndef OPTRAIL_TUNING_SPACE_DOMAIN_H_
#define OPTRAIL_TUNING_SPACE_DOMAIN_H_

// Domain is what a search strategy sees of a space: knobs with finitely many
// levels and a rule that says which combinations are valid. It knows nothing
// about kernels, clocks or files. Implementations: a Space bound to a shape and
// a hardware (space.h), and recorded spaces (tuning/replay).
//
//   const Levels start = domain.Sample(rng);
//   for (const Levels& next : domain.Neighbours(start,
//   Neighbourhood::kAdjacent)) ...

#include <cstdint>
#include <string>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/types/optional.h"
#include "absl/types/span.h"
#include "base/random.h"

namespace optrail::tuning {

// One knob with its levels. Ordinal knobs hold integers in increasing order;
// booleans and named variants are categorical and hold labels.
struct KnobLevels {
  std::string name;
  bool ordinal = false;
  std::vector<int64_t> ints;        // ordinal only
  std::vector<std::string> labels;  // one per level, also for ordinal knobs

  int size() const { return static_cast<int>(labels.size()); }
};

// A config as one level index per knob, in the order of Domain::knobs().
using Levels = absl::InlinedVector<uint16_t, 16>;

enum class Neighbourhood {
  kAdjacent,  // one knob, one level up or down (any other level if categorical)
  kHamming,   // one knob, any other level
};

class Domain {
 public:
  virtual ~Domain() = default;

  virtual absl::Span<const KnobLevels> knobs() const = 0;

  // Returns whether a combination is a config of this domain.
  virtual bool IsValid(absl::Span<const uint16_t> levels) const = 0;

  // The number of valid configs if they are enumerated; nullopt if there are
  // too many, and then only Sample, IsValid and Neighbours may be used.
  virtual absl::optional<int64_t> size() const = 0;

  // The index-th valid config in lexicographic order of levels. Needs size().
  virtual Levels At(int64_t index) const = 0;

  // Its inverse; nullopt if `levels` is not valid. Needs size().
  virtual absl::optional<int64_t> IndexOf(
      absl::Span<const uint16_t> levels) const = 0;

  // Uniform over the valid configs.
  virtual Levels Sample(Rng& rng) const = 0;

  // How promising a config is before anything was measured; higher is better.
  // nullopt if the space declares no prior.
  virtual absl::optional<double> Prior(
      absl::Span<const uint16_t> levels) const {
    return absl::nullopt;
  }

  // The valid configs that differ in one knob, in a fixed order.
  std::vector<Levels> Neighbours(absl::Span<const uint16_t> levels,
                                 Neighbourhood kind) const;
};

}  // namespace optrail::tuning

#endif  // OPTRAIL_TUNING_SPACE_DOMAIN_H_

#ifndef OPTRAIL_TUNING_SPACE_SPACE_H_
#define OPTRAIL_TUNING_SPACE_SPACE_H_

// Space is a checked space file; BoundSpace is that space for one shape and one
// hardware, where every knob has its levels and every config is valid or not.
//
//   ASSIGN_OR_RETURN(Space space, Space::Parse(text,
//   "softmax.space.textproto")); ASSIGN_OR_RETURN(std::unique_ptr<BoundSpace>
//   bound,
//                    space.Bind(shape, hardware));
//   const proto::Config start = bound->default_config();
//   const proto::Config other = bound->ToConfig(bound->Sample(rng));
//
// The format, the expressions and the limits are documented in
// docs/reference/space_format.md. Neither class knows what a kernel is; a
// config that is valid here may still fail when it is measured.

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/optional.h"
#include "absl/types/span.h"
#include "base/random.h"
#include "tuning/proto/config.pb.h"
#include "tuning/proto/context.pb.h"
#include "tuning/space/domain.h"
#include "tuning/space/space.pb.h"

namespace optrail::tuning {

class BoundSpace;
struct ParsedSpace;  // space_parser.h
struct SpaceTables;  // in space.cc

struct BindOptions {
  // hw.threads: how many threads a kernel may use; 0 stands for hw.cores.
  int threads = 0;

  // Escape hatch: a rule that expressions can't state. It sees one number per
  // knob in the order of BoundSpace::knobs(): the value of an integer knob, the
  // level's index of others. Must be a pure function, callable from any thread.
  std::function<bool(absl::Span<const int64_t>)> predicate;
};

// How many configs the constraints leave, to explain an empty space.
struct Diagnosis {
  struct Row {
    std::string location;  // "softmax.space.textproto:5:20"
    std::string expr;
    std::string why;
    double valid_alone = 0;  // configs that satisfy this constraint
    // The share that it could not evaluate (division by zero, overflow) of
    // those that it refuses.
    double erroneous = 0;
    double valid_so_far = 0;  // that satisfy this and all earlier ones
  };
  double raw = 0;  // product of the knobs' level counts
  std::vector<Row> rows;
  std::string ToString() const;
};

// Immutable, cheap to copy, safe to share between threads.
class Space {
 public:
  // InvalidArgument: "FILE:LINE:COLUMN: " and the knob, the value and what was
  // expected; a fault inside an expression is located inside its string.
  static absl::StatusOr<Space> Parse(absl::string_view text,
                                     absl::string_view filename);

  const std::string& filename() const;
  const proto::Space& proto() const;

  // 16 hexadecimal digits over what decides which configs exist and which come
  // first. Layout, comments, `doc` and `why` do not count.
  const std::string& hash() const;
  const std::string& canonical_text() const;

  // After splits are expanded, in declared order.
  std::vector<std::string> knob_names() const;
  // The dimensions a shape must have, sorted.
  std::vector<std::string> dims() const;

  // InvalidArgument, with FILE:LINE:COLUMN, if the shape lacks a dimension that
  // the space reads, has an attribute of another type, or if the hardware has
  // no attribute of a name; and if no config is valid (with a diagnosis).
  absl::StatusOr<std::unique_ptr<BoundSpace>> Bind(
      const proto::Shape& shape, const proto::Hardware& hardware,
      const BindOptions& options = {}) const;

  absl::StatusOr<Diagnosis> Diagnose(const proto::Shape& shape,
                                     const proto::Hardware& hardware,
                                     const BindOptions& options = {}) const;

  const ParsedSpace& parsed() const { return *parsed_; }

 private:
  explicit Space(std::shared_ptr<const ParsedSpace> parsed)
      : parsed_(std::move(parsed)) {}

  std::shared_ptr<const ParsedSpace> parsed_;
};

// Immutable and safe to share between threads.
class BoundSpace final : public Domain {
 public:
  // More valid configs than this are not enumerated: size() is nullopt. They
  // are still sampled uniformly.
  static constexpr int64_t kMaxEnumerated = int64_t{1} << 22;

  ~BoundSpace() override;

  const Space& space() const;
  const proto::Shape& shape() const;
  const proto::Hardware& hardware() const;

  // Domain.
  absl::Span<const KnobLevels> knobs() const override;
  bool IsValid(absl::Span<const uint16_t> levels) const override;
  absl::optional<int64_t> size() const override;
  Levels At(int64_t index) const override;
  absl::optional<int64_t> IndexOf(
      absl::Span<const uint16_t> levels) const override;
  Levels Sample(Rng& rng) const override;
  // Minus infinity where the prior's expression can't be evaluated.
  absl::optional<double> Prior(
      absl::Span<const uint16_t> levels) const override;

  // The exact number of valid configs, also above kMaxEnumerated; nullopt where
  // counting them would take too long, or the number exceeds 2^62.
  absl::optional<int64_t> count() const;
  // The product of the knobs' level counts.
  double raw_count() const;

  // Returns whether the prior ranks the config above the default. False if the
  // space has no prior or no such config.
  bool PriorPrefers(const proto::Config& config) const;

  // The prior's `top_k`; 0 if the space has none.
  int64_t top_k() const;

  // `levels` must be in range; they need not be valid.
  proto::Config ToConfig(absl::Span<const uint16_t> levels) const;

  // The levels of a config that has a value for every knob but those with an
  // `absent` value, and each among its knob's levels; InvalidArgument names
  // what is wrong. Does not look at constraints.
  absl::StatusOr<Levels> ToLevels(const proto::Config& config) const;

  // The config with the `absent` values of the knobs that it lacks, as kernels
  // need it. Errors as of ToLevels().
  absl::StatusOr<proto::Config> Complete(const proto::Config& config) const;

  // OK if the config is valid. InvalidArgument names the knob, or the
  // constraint that is violated, where it stands, and why it is there.
  absl::Status Validate(const proto::Config& config) const;

  // Returns whether constraints read fact.*, which compiling a config tells.
  bool has_fact_constraints() const;
  // OK if a config with those facts, (name, value), may be launched.
  // InvalidArgument names the constraint, the facts that it reads and why it is
  // there; or a fact that the compiler does not tell.
  absl::Status CheckFacts(
      const proto::Config& config,
      absl::Span<const std::pair<std::string, int64_t>> facts) const;

  // The valid config nearest to the declared default: the default itself where
  // it is valid; else the one whose levels differ least in sum (lower levels
  // first on a tie; another variant counts more than any number of steps).
  const proto::Config& default_config() const;
  const Levels& default_levels() const;

  // What a reader should know: attributes of the hardware that were absent and
  // assumed, a default that was adjusted.
  const std::vector<std::string>& notes() const;

  // The note that says which constraint refuses the declared default; "" where
  // it is valid. A default whose value is no level (48 for a knob with powers
  // of two) is not refused: the next lower level is what it means.
  const std::string& default_refusal() const;

 private:
  friend class Space;
  explicit BoundSpace(std::unique_ptr<SpaceTables> tables);

  std::unique_ptr<const SpaceTables> tables_;
};

}  // namespace optrail::tuning

#endif  // OPTRAIL_TUNING_SPACE_SPACE_H_

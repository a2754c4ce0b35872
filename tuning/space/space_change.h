#ifndef OPTRAIL_TUNING_SPACE_SPACE_CHANGE_H_
#define OPTRAIL_TUNING_SPACE_SPACE_CHANGE_H_

// Spaces that differ from another one in a single respect, as the text of a
// space file: a record of a session holds it, and its hash is another one.
//
//   OPTRAIL_ASSIGN_OR_RETURN(const std::string wider,
//                            WithWiderKnob(space.proto(), "batch", true));
//   const std::string text = WithDefault(wider, winner);
//
// Whether a program can use the configs that a wider range adds is not known
// here: they may fail when they are measured.

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "tuning/proto/config.pb.h"
#include "tuning/space/space.pb.h"

namespace optrail::tuning {

// Two more values beyond the largest or the smallest of the knob, in the step
// or the ratio of the last two; of divisors all that the bound kept out.
// InvalidArgument for a knob that has no range to extend at that end.
absl::StatusOr<std::string> WithWiderKnob(proto::Space space,
                                          absl::string_view knob, bool upwards);

std::string WithoutPrior(proto::Space space);

std::string WithConstraint(proto::Space space, absl::string_view expr,
                           absl::string_view why);

// The values of `config` are the default for every shape.
std::string WithDefault(absl::string_view text, const proto::Config& config);

// "knob == value", as expressions write it.
std::string EqualsText(const proto::KnobValue& value);

}  // namespace optrail::tuning

#endif  // OPTRAIL_TUNING_SPACE_SPACE_CHANGE_H_

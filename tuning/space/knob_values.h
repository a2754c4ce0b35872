#ifndef OPTRAIL_TUNING_SPACE_KNOB_VALUES_H_
#define OPTRAIL_TUNING_SPACE_KNOB_VALUES_H_

// The values that a knob of a space file declares. Only for space_parser.cc,
// whose header has ValueOf and ExpectedValue.

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "base/text/textproto.h"
#include "tuning/space/space_parser.h"

namespace optrail::tuning {

// Such that the canonical text of a config needs no quoting and reads back.
bool IsVariantName(absl::string_view name);
// The same for names of dimensions and attributes.
bool IsDimName(absl::string_view name);

// Fills in kind and values of *parsed. InvalidArgument with the place, the
// knob, what it has and what was expected.
absl::Status ReadValues(const proto::Space::Knob& knob,
                        const TextProtoPlace& place, ParsedKnob* parsed);

}  // namespace optrail::tuning

#endif  // OPTRAIL_TUNING_SPACE_KNOB_VALUES_H_

#ifndef OPTRAIL_TUNING_SPACE_DEFAULT_NOTE_H_
#define OPTRAIL_TUNING_SPACE_DEFAULT_NOTE_H_

// Tells the note that a space's declared default is not valid for a shape from
// the other notes of a bound space.
//
//   for (const std::string& note : bound->notes()) {
//     if (RefusesDefault(note)) refused.push_back(note);
//   }
//
// A default whose value is no level (48 for a knob with powers of two) is not
// refused: the next lower level is what such a declaration means.

#include "absl/strings/string_view.h"

namespace optrail::tuning {

// `note` is one of BoundSpace::notes(). It names the constraint.
bool RefusesDefault(absl::string_view note);

}  // namespace optrail::tuning

#endif  // OPTRAIL_TUNING_SPACE_DEFAULT_NOTE_H_

#ifndef OPTRAIL_TUNING_SPACE_STRING_LOCATION_H_
#define OPTRAIL_TUNING_SPACE_STRING_LOCATION_H_

// Finds the place in the file of a byte of a text proto's string value, so that
// an error inside an expression points into it.

#include <cstddef>

#include "absl/strings/string_view.h"

namespace optrail::tuning {

struct TextLocation {
  int line = 0;    // from 1
  int column = 0;  // from 1; a tab advances to the next multiple of 8 plus 1
};

// `field` is where the field's name stands in `text`; `offset` counts bytes of
// the string's value, across escapes and adjacent literals. An offset at the
// end of the value gives the closing quote. Gives back `field` if there is no
// string.
TextLocation LocateInString(absl::string_view text, TextLocation field,
                            size_t offset);

}  // namespace optrail::tuning

#endif  // OPTRAIL_TUNING_SPACE_STRING_LOCATION_H_

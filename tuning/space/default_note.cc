#include "tuning/space/default_note.h"

#include "absl/strings/match.h"

namespace optrail::tuning {

// Space::Bind() writes the note; space_test holds the two together.
bool RefusesDefault(absl::string_view note) {
  return absl::StartsWith(note, "the declared default ") &&
         absl::StrContains(note, " because ");
}

}  // namespace optrail::tuning

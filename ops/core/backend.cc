#include "ops/core/backend.h"

#include "absl/strings/ascii.h"
#include "base/hash/hash.h"

namespace optrail::ops {
std::string Recipe::Key() const {
  // Parts carry their lengths, so that no two recipes make the same text.
  std::string text = absl::StrCat("recipe 1\nindex ", index, "\n");
  const auto add = [&](absl::string_view what, absl::string_view part) {
    absl::StrAppend(&text, what, " ", part.size(), "\n", part, "\n");
  };
  add("compiler", compiler);
  for (const std::string& option : options) add("option", option);
  for (const EmbeddedFile& source : sources) {
    add("path", source.path);
    add("source", source.contents);
  }
  // Twice 64 bits: what a cache answers is run without another look.
  return absl::StrCat(Fingerprint(text), Fingerprint(absl::StrCat("2 ", text)));
}

bool IsBackendName(absl::string_view name) {
  if (name.empty() || !absl::ascii_islower(name[0])) return false;
  for (const char c : name) {
    if (!absl::ascii_islower(c) && !absl::ascii_isdigit(c) && c != '_') {
      return false;
    }
  }
  return name != "best" && name != "all";
}

}  // namespace optrail::ops

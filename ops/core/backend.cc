#include "ops/core/backend.h"

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "base/hash.h"

namespace optrail::ops {
namespace {

// The files of one release ago, while FormerId() asks a backend on this thread.
struct FormerFiles {
  const Backend* backend = nullptr;
  const BackendFiles* files = nullptr;
};
thread_local FormerFiles former_files;

}  // namespace

const BackendFiles& Backend::files() const {
  return former_files.backend == this ? *former_files.files : files_;
}

absl::StatusOr<std::string> Backend::FormerId(const Target& target) const {
  if (files_.former_sources_hash.empty()) {
    return absl::NotFoundError(
        absl::StrCat("backend ", name(),
                     " has no id of one release ago: its sources of "
                     "that time are not all there"));
  }
  BackendFiles files = files_;
  files.sources_hash = files.former_sources_hash;
  const FormerFiles outer = former_files;
  former_files = {this, &files};
  absl::StatusOr<std::string> id = Id(target);
  former_files = outer;
  return id;
}

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

#include "base/process/running_binary.h"

#include <elf.h>
#include <limits.h>
#include <link.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/escaping.h"
#include "absl/strings/string_view.h"
#include "base/file/file.h"
#include "base/hash/hash.h"

namespace optrail {

namespace {

// The folder of the bundle whose loader runs this process; else empty. A
// program that a bundle's command line started sees the same environment.
std::string Bundle() {
  const char* const folder = std::getenv("OPTRAIL_BUNDLE");
  if (folder == nullptr) return "";
  char self[PATH_MAX];
  const ssize_t length = readlink("/proc/self/exe", self, sizeof(self));
  if (length <= 0) return "";
  return std::string(self, static_cast<size_t>(length)) ==
                 JoinPath(folder, "lib/ld-linux-x86-64.so.2")
             ? folder
             : "";
}

// The id in the notes of a segment; "" where there is none.
std::string BuildIdIn(absl::string_view notes) {
  const auto padded = [](size_t bytes) { return (bytes + 3) / 4 * 4; };
  while (notes.size() >= sizeof(ElfW(Nhdr))) {
    ElfW(Nhdr) header;
    std::memcpy(&header, notes.data(), sizeof(header));
    notes.remove_prefix(sizeof(header));
    const size_t name = padded(header.n_namesz);
    const size_t id = padded(header.n_descsz);
    if (name + id > notes.size()) break;
    if (header.n_type == NT_GNU_BUILD_ID &&
        notes.substr(0, header.n_namesz) == absl::string_view("GNU\0", 4)) {
      return absl::BytesToHexString(notes.substr(name, header.n_descsz));
    }
    notes.remove_prefix(name + id);
  }
  return "";
}

// Called for each object that is loaded; the first is the program.
int TakeBuildId(dl_phdr_info* program, size_t, void* id) {
  for (int i = 0; i < program->dlpi_phnum; ++i) {
    const ElfW(Phdr)& segment = program->dlpi_phdr[i];
    if (segment.p_type != PT_NOTE) continue;
    const auto* const notes =
        reinterpret_cast<const char*>(program->dlpi_addr + segment.p_vaddr);
    std::string found = BuildIdIn({notes, segment.p_memsz});
    if (found.empty()) continue;
    *static_cast<std::string*>(id) = std::move(found);
    break;
  }
  return 1;  // no further object
}

}  // namespace

std::string RunningBinary() {
  const std::string bundle = Bundle();
  return bundle.empty() ? "/proc/self/exe" : JoinPath(bundle, "optrail");
}

const std::string& RunningBinaryFingerprint() {
  static const auto* const fingerprint = [] {
    const absl::StatusOr<std::string> contents =
        ReadFile(Bundle().empty() ? "/proc/self/exe"
                                  : JoinPath(Bundle(), "lib/optrail"));
    return new std::string(contents.ok() ? Fingerprint(*contents) : "");
  }();
  return *fingerprint;
}

const std::string& RunningBuildId() {
  static const auto* const id = [] {
    auto* const found = new std::string;
    dl_iterate_phdr(TakeBuildId, found);
    if (found->empty()) *found = RunningBinaryFingerprint();
    return found;
  }();
  return *id;
}

}  // namespace optrail

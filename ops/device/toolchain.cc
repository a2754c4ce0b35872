#include "ops/device/toolchain.h"

#include <sys/utsname.h>

#include <fstream>
#include <sstream>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "ops/device/build_flags.h"

namespace optrail::ops {
namespace {

std::string Compiler() {
#if defined(__clang__)
  return absl::StrCat("clang++ ", __clang_major__, ".", __clang_minor__, ".",
                      __clang_patchlevel__);
#elif defined(__GNUC__)
  return absl::StrCat("g++ ", __GNUC__, ".", __GNUC_MINOR__, ".",
                      __GNUC_PATCHLEVEL__);
#else
  return "unknown";
#endif
}

}  // namespace

std::string OsName(const std::string& os_release) {
  for (absl::string_view line : absl::StrSplit(os_release, '\n')) {
    if (!absl::ConsumePrefix(&line, "PRETTY_NAME=")) continue;
    line = absl::StripAsciiWhitespace(line);
    absl::ConsumePrefix(&line, "\"");
    absl::ConsumeSuffix(&line, "\"");
    return std::string(line);
  }
  return "";
}

proto::Toolchain BuildToolchain() {
  proto::Toolchain toolchain;
  toolchain.set_compiler(Compiler());
  toolchain.set_flags(OPTRAIL_COMPILER_FLAGS);
  toolchain.set_compilation_mode(OPTRAIL_COMPILATION_MODE);

  std::ifstream in("/etc/os-release");
  std::stringstream os_release;
  os_release << in.rdbuf();
  toolchain.set_os(OsName(os_release.str()));
  utsname system;
  if (uname(&system) == 0) toolchain.set_os_kernel(system.release);
  return toolchain;
}

}  // namespace optrail::ops

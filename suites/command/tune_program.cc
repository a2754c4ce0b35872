#include "suites/command/tune_program.h"

#include <unistd.h>

#include <array>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "base/process/running_binary.h"
#include "base/text/quote.h"

namespace optrail::suites {
namespace {

// "@optrail//ops/softmax" for "external/optrail/ops/softmax".
std::string PackageLabel(absl::string_view folder) {
  if (!absl::ConsumePrefix(&folder, "external/")) {
    return absl::StrCat("//", folder);
  }
  const size_t slash = folder.find('/');
  if (slash == absl::string_view::npos) return absl::StrCat("@", folder, "//");
  return absl::StrCat("@", folder.substr(0, slash), "//",
                      folder.substr(slash + 1));
}

}  // namespace

std::string OwnPath() {
  std::array<char, 4096> path;
  const ssize_t length =
      readlink(RunningBinary().c_str(), path.data(), path.size());
  return length > 0 ? std::string(path.data(), length) : "";
}

std::string TuneProgramBeside(absl::string_view path) {
  const size_t slash = path.rfind('/');
  const absl::string_view folder =
      slash == absl::string_view::npos ? "" : path.substr(0, slash);
  absl::string_view name =
      slash == absl::string_view::npos ? path : path.substr(slash + 1);
  if (!absl::ConsumeSuffix(&name, "_bench"))
    absl::ConsumeSuffix(&name, "_tune");
  const std::string tuner = absl::StrCat(name, "_tune");
  // .../bazel-out/k8-opt/bin/ops/softmax/softmax_bench
  constexpr absl::string_view kOut = "/bazel-out/", kBin = "/bin/";
  const size_t out = folder.rfind(kOut);
  const std::string with_slash = absl::StrCat(folder, "/");
  const size_t bin = out == absl::string_view::npos
                         ? std::string::npos
                         : with_slash.find(std::string(kBin), out);
  if (bin == absl::string_view::npos) {
    return QuoteForShell(folder.empty() ? tuner
                                        : absl::StrCat(folder, "/", tuner));
  }
  const size_t package = bin + kBin.size();
  return absl::StrCat(
      "bazel run ",
      PackageLabel(package < folder.size() ? folder.substr(package) : ""), ":",
      tuner, " --");
}

}  // namespace optrail::suites

// generate_knobs --space=FILE --name=softmax --out=softmax_knobs.h
//
// Writes the header of generate.h. The `operator` macro runs it at build time.

#include <iostream>

#include "absl/flags/flag.h"
#include "absl/flags/parse.h"
#include "base/exit_code.h"
#include "base/file/file.h"
#include "base/status_macros.h"
#include "tuning/space/generate.h"
#include "tuning/space/space.h"

ABSL_FLAG(std::string, space, "", "Space file (textproto).");
ABSL_FLAG(std::string, name, "", "Name of the operator.");
ABSL_FLAG(std::string, namespace, "optrail::ops", "C++ namespace.");
ABSL_FLAG(std::string, header_path, "",
          "Path of the header in its workspace, for the header guard.");
ABSL_FLAG(int32_t, shards, 1, "Over how many files to spread instantiations.");
ABSL_FLAG(std::string, out, "", "File to write.");

namespace optrail::tuning {
namespace {

absl::Status Run() {
  const std::string path = absl::GetFlag(FLAGS_space);
  OPTRAIL_ASSIGN_OR_RETURN(const std::string text, ReadFile(path));
  OPTRAIL_ASSIGN_OR_RETURN(const Space space, Space::Parse(text, path));
  GenerateOptions options;
  options.name = absl::GetFlag(FLAGS_name);
  options.cpp_namespace = absl::GetFlag(FLAGS_namespace);
  options.header_path = absl::GetFlag(FLAGS_header_path);
  options.shards = absl::GetFlag(FLAGS_shards);
  OPTRAIL_ASSIGN_OR_RETURN(const std::string header,
                           GenerateKnobsHeader(space, options));
  return WriteFileAtomically(absl::GetFlag(FLAGS_out), header);
}

}  // namespace
}  // namespace optrail::tuning

int main(int argc, char** argv) {
  absl::ParseCommandLine(argc, argv);
  const absl::Status status = optrail::tuning::Run();
  if (!status.ok()) std::cerr << status.message() << "\n";
  return ToInt(optrail::ExitCodeOf(status));
}

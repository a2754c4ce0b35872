#ifndef OPTRAIL_TUNING_COMMAND_PROGRAM_H_
#define OPTRAIL_TUNING_COMMAND_PROGRAM_H_

// Which program a command runs, by the contents of its files: what a program
// was measured to do says nothing of it once it has changed.
//
//   OPTRAIL_ASSIGN_OR_RETURN(
//       const auto files, ProgramFiles("./train --batch={batch}", {}, ""));
//   files[0].path(), files[0].fingerprint();
//
// Found are the file that the command's first word stands for and, behind an
// interpreter (sh, python3, ...), its script. What else the program reads is
// the caller's to name.

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "tuning/proto/session.pb.h"

namespace optrail::tuning {

// `named` are files beside those that are found; NotFound if one is missing. A
// first word that stands for no file (a part of the shell) is left out.
// Relative paths are of `directory` (empty: the current one).
absl::StatusOr<std::vector<proto::TunedCommand::File>> ProgramFiles(
    absl::string_view command, const std::vector<std::string>& named,
    const std::string& directory);

}  // namespace optrail::tuning

#endif  // OPTRAIL_TUNING_COMMAND_PROGRAM_H_

#ifndef OPTRAIL_TUNING_COMMAND_PROGRAM_H_
#define OPTRAIL_TUNING_COMMAND_PROGRAM_H_

// Which program a command runs, by the contents of its files: what a program
// was measured to do says nothing of it once it has changed.
//
//   OPTRAIL_ASSIGN_OR_RETURN(
//       const CommandProgram program, FindProgram("./train --batch={batch}",
//       {}, ""));
//   program.files[0].path(), program.files[0].fingerprint();
//
// Found are the file that the command's first word stands for, behind what
// only starts programs (nice, env, taskset, `cd folder &&`, `sh -c`) that which
// is started, and behind interpreters (sh, python3, ...) their scripts. What
// else the program reads is the caller's to name.

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "tuning/proto/session.pb.h"

namespace optrail::tuning {

struct CommandProgram {
  std::vector<proto::TunedCommand::File> files;
  // Words that stand for files which an earlier part of the command may have
  // made (`make && ./bench`), and so do not count unless they are named.
  std::vector<std::string> left_out;
};

// `named` are files beside those that are found; NotFound if one is missing. A
// first word that stands for no file (a part of the shell) is left out.
// Relative paths are of `directory` (empty: the current one).
absl::StatusOr<CommandProgram> FindProgram(
    absl::string_view command, const std::vector<std::string>& named,
    const std::string& directory);

}  // namespace optrail::tuning

#endif  // OPTRAIL_TUNING_COMMAND_PROGRAM_H_

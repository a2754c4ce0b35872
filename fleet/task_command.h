#ifndef OPTRAIL_FLEET_TASK_COMMAND_H_
#define OPTRAIL_FLEET_TASK_COMMAND_H_

// Reads the command of a task, a line of `optrail fleet submit`:
//
//   OPTRAIL_ASSIGN_OR_RETURN(const std::vector<std::string> words,
//                            WordsOfCommand("watch HEAD --run='make bench'"));
//   if (BuildsCommits(words)) ...   // it needs a pilot with a repository
//
// Thread safety: all functions are pure.

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace optrail::fleet {

// The words of a task's command; single quotes keep words together, and nothing
// is expanded. InvalidArgument for other quotes, line breaks, and commands that
// a pilot does not run.
absl::StatusOr<std::vector<std::string>> WordsOfCommand(
    const std::string& command);

// The command of these words. InvalidArgument for a word that a command cannot
// have: one with a single quote or a control character.
absl::StatusOr<std::string> CommandOfWords(
    const std::vector<std::string>& words);

// Returns whether the word is the flag `name`: with one dash or two, with its
// value or before it.
bool IsFlag(absl::string_view word, absl::string_view name);

// Returns whether a task judges the shared history, which the pilot copies for
// it. A gate that builds and runs both sides needs no copy.
bool JudgesHistory(const std::vector<std::string>& words);

// Returns whether the task builds commits of the pilot's repository.
bool BuildsCommits(const std::vector<std::string>& words);

// The command that compiles ahead what a `tune` or a `bench` is going to need
// on that hardware ("": where it runs), with those of its flags that `compile`
// knows; "" for a task that compiles nothing of ours. InvalidArgument for a
// command whose flags stand in a file.
absl::StatusOr<std::string> CompileAheadOf(
    const std::string& command, const std::vector<std::string>& compile_flags,
    const std::string& hardware_id);

// One task for each commit in place of each `watch`: "watch COMMIT --limit=1
// ...". All processes of a commit then run on one machine. InvalidArgument for
// another command, and for a watch that names a range itself.
absl::StatusOr<std::vector<std::string>> PerCommit(
    const std::vector<std::string>& commands,
    const std::vector<std::string>& commits);

}  // namespace optrail::fleet

#endif  // OPTRAIL_FLEET_TASK_COMMAND_H_

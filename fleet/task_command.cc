#include "fleet/task_command.h"

#include <algorithm>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "base/status_macros.h"

namespace optrail::fleet {
namespace {

constexpr absl::string_view kCommands[] = {"tune", "bench",   "watch",
                                           "gate", "compile", "bisect"};

}  // namespace

bool IsFlag(absl::string_view word, absl::string_view name) {
  if (!absl::ConsumePrefix(&word, "-")) return false;
  (void)absl::ConsumePrefix(&word, "-");
  return absl::ConsumePrefix(&word, name) && (word.empty() || word[0] == '=');
}

bool JudgesHistory(const std::vector<std::string>& words) {
  return words[0] == "gate" &&
         std::none_of(words.begin(), words.end(), [](const std::string& word) {
           return IsFlag(word, "run") || IsFlag(word, "build");
         });
}

bool BuildsCommits(const std::vector<std::string>& words) {
  return words[0] == "watch" || words[0] == "bisect" ||
         (words[0] == "gate" && !JudgesHistory(words));
}

absl::StatusOr<std::vector<std::string>> WordsOfCommand(
    const std::string& command) {
  std::vector<std::string> words;
  bool in_word = false, in_quotes = false;
  for (const char c : command) {
    const bool is_control = static_cast<unsigned char>(c) < ' ';
    if (is_control || (!in_quotes && absl::string_view("\"\\`$").find(c) !=
                                         absl::string_view::npos)) {
      return absl::InvalidArgumentError(absl::StrCat(
          "'", command,
          "': expected words and flags of optrail, with no quotes but '...' "
          "around words that belong together"));
    }
    if (c == '\'') {
      in_quotes = !in_quotes;
    } else if (c == ' ' && !in_quotes) {
      in_word = false;
      continue;
    }
    if (!in_word) words.emplace_back();
    in_word = true;
    if (c != '\'') words.back() += c;
  }
  if (in_quotes) {
    return absl::InvalidArgumentError(
        absl::StrCat("'", command, "': a quote that is opened and not closed"));
  }
  if (words.empty() || std::find(std::begin(kCommands), std::end(kCommands),
                                 words[0]) == std::end(kCommands)) {
    return absl::InvalidArgumentError(
        absl::StrCat("'", command, "': expected a command that pilots run: ",
                     absl::StrJoin(kCommands, ", ")));
  }
  for (const std::string& word : words) {
    if (words[0] == "gate" && IsFlag(word, "wait")) {
      return absl::InvalidArgumentError(absl::StrCat(
          "'", command,
          "': the task judges a copy of the history, to which nothing comes; "
          "leave out --wait, and submit it once all is measured"));
    }
    if (words[0] == "gate" && IsFlag(word, "job")) {
      return absl::InvalidArgumentError(absl::StrCat(
          "'", command,
          "': the task has no connection to the fleet; leave out --job, or "
          "type `optrail gate --job` yourself"));
    }
    // The words behind it are for the program that is measured.
    if (word == "--") break;
    if (words[0] == "bisect" && IsFlag(word, "nodes")) {
      return absl::InvalidArgumentError(absl::StrCat(
          "'", command,
          "': the task has no connection to the fleet; leave out --nodes, or "
          "type `optrail bisect --nodes` yourself"));
    }
    if (!IsFlag(word, "history")) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        "'", command, "': the pilot chooses --history; leave it out"));
  }
  return words;
}

absl::StatusOr<std::string> CommandOfWords(
    const std::vector<std::string>& words) {
  std::string command;
  for (const std::string& word : words) {
    for (const char c : word) {
      if (c != '\'' && static_cast<unsigned char>(c) >= ' ') continue;
      return absl::InvalidArgumentError(absl::StrCat(
          "'", word,
          "': expected no single quote and no line break in what a task of "
          "the fleet is given; next: put it into a script of the repository"));
    }
    const bool is_plain =
        !word.empty() && word.find_first_of(" \"\\`$") == std::string::npos;
    absl::StrAppend(&command, command.empty() ? "" : " ", is_plain ? "" : "'",
                    word, is_plain ? "" : "'");
  }
  // The pilot splits the text again and must find these words.
  OPTRAIL_RETURN_IF_ERROR(WordsOfCommand(command).status());
  return command;
}

absl::StatusOr<std::string> CompileAheadOf(
    const std::string& command, const std::vector<std::string>& compile_flags,
    const std::string& hardware_id) {
  OPTRAIL_ASSIGN_OR_RETURN(const std::vector<std::string> words,
                           WordsOfCommand(command));
  if (words[0] != "tune" && words[0] != "bench") return std::string();
  std::vector<std::string> compile = {"compile"};
  for (size_t i = 1; i < words.size(); ++i) {
    const auto is = [&words, i](const char* flag) {
      return IsFlag(words[i], flag);
    };
    // Programs of others.
    if (is("command") || is("space")) return std::string();
    if (is("preset") || is("flagfile")) {
      return absl::InvalidArgumentError(absl::StrCat(
          "'", command, "': with --compile_on, expected the flags that ",
          words[i], " stands for"));
    }
    const bool is_known = std::any_of(
        compile_flags.begin(), compile_flags.end(),
        [&words, i](const auto& flag) { return IsFlag(words[i], flag); });
    if (!is_known) continue;
    // A benchmark needs the default and the tuned config.
    if (words[0] == "bench" && is("trials")) continue;
    compile.push_back(words[i]);
    const bool has_value = words[i].find('=') != std::string::npos;
    if (!has_value && i + 1 < words.size() &&
        !absl::StartsWith(words[i + 1], "-")) {
      compile.push_back(words[i + 1]);
    }
  }
  if (words[0] == "bench") compile.push_back("--trials=1");
  if (!hardware_id.empty()) {
    compile.push_back(absl::StrCat("--hw=", hardware_id));
  }
  return CommandOfWords(compile);
}

absl::StatusOr<std::vector<std::string>> PerCommit(
    const std::vector<std::string>& commands,
    const std::vector<std::string>& commits) {
  std::vector<std::string> tasks;
  for (const std::string& command : commands) {
    OPTRAIL_ASSIGN_OR_RETURN(const std::vector<std::string> words,
                             WordsOfCommand(command));
    const bool has_range =
        std::any_of(words.begin() + 1, words.end(), [](const auto& word) {
          return !absl::StartsWith(word, "-") || IsFlag(word, "limit");
        });
    if (words[0] != "watch" || has_range) {
      return absl::InvalidArgumentError(absl::StrCat(
          "'", command,
          "': with --each_commit, expected watch and flags like --run=COMMAND, "
          "without a range and --limit"));
    }
    const absl::string_view flags =
        absl::StripLeadingAsciiWhitespace(command).substr(words[0].size());
    for (const std::string& commit : commits) {
      tasks.push_back(absl::StrCat("watch ", commit, " --limit=1", flags));
    }
  }
  return tasks;
}

}  // namespace optrail::fleet

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

constexpr absl::string_view kCommands[] = {"tune", "bench", "watch", "gate",
                                           "compile"};

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
  return words[0] == "watch" || (words[0] == "gate" && !JudgesHistory(words));
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
    if (!IsFlag(word, "history")) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        "'", command, "': the pilot chooses --history; leave it out"));
  }
  return words;
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

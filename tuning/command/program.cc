#include "tuning/command/program.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/file/file.h"
#include "base/hash/hash.h"
#include "base/status_macros.h"
#include "base/text/utf8.h"
#include "re2/re2.h"

namespace optrail::tuning {
namespace {

bool IsRegularFile(const std::string& path) {
  struct stat status;
  return stat(path.c_str(), &status) == 0 && S_ISREG(status.st_mode);
}

std::string InDirectory(const std::string& directory, const std::string& path) {
  if (directory.empty() || absl::StartsWith(path, "/")) return path;
  return JoinPath(directory, path);
}

// The file that a shell would run for `word`; empty if there is none.
std::string Resolve(const std::string& word, const std::string& directory) {
  if (absl::StrContains(word, '/')) {
    const std::string path = InDirectory(directory, word);
    return IsRegularFile(path) ? path : "";
  }
  const char* search = std::getenv("PATH");
  for (const absl::string_view folder :
       absl::StrSplit(search == nullptr ? "" : search, ':')) {
    const std::string path = InDirectory(
        directory, JoinPath(folder.empty() ? "." : std::string(folder), word));
    if (IsRegularFile(path) && access(path.c_str(), X_OK) == 0) return path;
  }
  return "";
}

bool IsInterpreter(absl::string_view path) {
  static const RE2* const kNames = new RE2(
      R"((?:ba|da|z|k|fi)?sh|python[\d.]*|perl|ruby|node|Rscript|julia|lua)");
  const absl::string_view name = FileNameOf(path);
  return RE2::FullMatch(re2::StringPiece(name.data(), name.size()), *kNames);
}

// Starts what its arguments name.
bool IsStarter(absl::string_view word) {
  static const RE2* const kNames = new RE2(
      "env|exec|time|nice|ionice|nohup|setsid|stdbuf|timeout|taskset|numactl|"
      "chrt|command");
  const absl::string_view name = FileNameOf(word);
  return RE2::FullMatch(re2::StringPiece(name.data(), name.size()), *kNames);
}

// A flag, a number (of cores, seconds, a priority) or NAME=VALUE.
bool IsStartersArgument(const std::string& word) {
  static const RE2* const kArgument =
      new RE2(R"(-.*|(?:0x)?[\d.,:-]+[smhd]?|[A-Za-z_]\w*=.*)");
  return RE2::FullMatch(word, *kArgument);
}

bool IsAssignment(const std::string& word) {
  static const RE2* const kAssignment = new RE2(R"([A-Za-z_]\w*=.*)");
  return RE2::FullMatch(word, *kAssignment);
}

using Words = std::vector<std::string>;

// The simple commands of a shell's command line, unquoted; what stands behind a
// redirection is no word of them, and is added to `redirected`. Expansions are
// not made: a word with one stands for no file.
std::vector<Words> SimpleCommands(absl::string_view command,
                                  Words* redirected) {
  std::vector<Words> commands(1);
  std::string word;
  bool in_word = false, behind_redirection = false;
  char quote = 0;
  const auto end_word = [&] {
    if (!in_word) return;
    (behind_redirection ? *redirected : commands.back()).push_back(word);
    word.clear();
    in_word = behind_redirection = false;
  };
  for (size_t i = 0; i < command.size(); ++i) {
    const char c = command[i];
    const bool escapes = c == '\\' && quote != '\'' && i + 1 < command.size();
    if (escapes) {
      word += command[++i];
      in_word = true;
    } else if (quote != 0) {
      if (c == quote) {
        quote = 0;
      } else {
        word += c;
      }
    } else if (c == '\'' || c == '"') {
      quote = c;
      in_word = true;
    } else if (absl::ascii_isspace(c) && c != '\n') {
      end_word();
    } else if (c == '<' || c == '>') {
      // 2> is no word, >&2 no command's end.
      if (word == "1" || word == "2") in_word = false, word.clear();
      end_word();
      while (i + 1 < command.size() &&
             (command[i + 1] == '>' || command[i + 1] == '&')) {
        ++i;
      }
      behind_redirection = true;
    } else if (absl::StrContains("\n;&|()", c)) {
      end_word();
      commands.emplace_back();
    } else {
      word += c;
      in_word = true;
    }
  }
  end_word();
  return commands;
}

class ProgramFinder {
 public:
  explicit ProgramFinder(std::string directory)
      : directory_(std::move(directory)) {}

  void Look(absl::string_view command) {
    for (const Words& words : SimpleCommands(command, &made_)) {
      size_t first = 0;
      while (first < words.size() && IsAssignment(words[first])) ++first;
      while (first < words.size() && IsStarter(words[first])) {
        ++first;
        while (first < words.size() && IsStartersArgument(words[first])) {
          ++first;
        }
      }
      for (size_t i = first; i + 1 < words.size(); ++i) {
        if (words[i] == "-o") made_.push_back(words[i + 1]);
      }
      if (first < words.size()) LookAt(words, first);
    }
  }

  const Words& paths() const { return paths_; }
  const Words& left_out() const { return left_out_; }

 private:
  void LookAt(const Words& words, size_t first) {
    const std::string& name = words[first];
    const Words arguments(words.begin() + first + 1, words.end());
    if (name == "cd") {
      if (!arguments.empty()) {
        directory_ = InDirectory(directory_, arguments[0]);
      }
      return;
    }
    const std::string program = Resolve(name, directory_);
    if (program.empty()) return;
    if (paths_.empty()) {
      paths_.push_back(program);
    } else if (absl::StrContains(name, '/')) {
      left_out_.push_back(name);
    }
    if (IsInterpreter(program)) LookBehindInterpreter(arguments);
  }

  void LookBehindInterpreter(const Words& arguments) {
    for (size_t i = 0; i < arguments.size(); ++i) {
      const std::string& argument = arguments[i];
      const bool more = i + 1 < arguments.size();
      if (argument == "-c") {
        if (more) Look(arguments[i + 1]);
        return;
      }
      if (argument == "-m") {
        if (more) Add(absl::StrCat(arguments[i + 1], ".py"));
        return;
      }
      if (!absl::StartsWith(argument, "-") && Add(argument)) return;
    }
  }

  bool Add(const std::string& script) {
    const std::string path = InDirectory(directory_, script);
    if (!IsRegularFile(path)) return false;
    if (absl::c_linear_search(made_, script)) {
      left_out_.push_back(script);
    } else {
      paths_.push_back(path);
    }
    return true;
  }

  std::string directory_;
  Words paths_;
  Words left_out_;
  Words made_;  // by the command itself
};

}  // namespace

absl::StatusOr<CommandProgram> FindProgram(
    absl::string_view command, const std::vector<std::string>& named,
    const std::string& directory) {
  ProgramFinder finder(directory);
  finder.Look(command);
  std::vector<std::string> paths = finder.paths();
  for (const std::string& name : named) {
    const std::string path = InDirectory(directory, name);
    if (!IsRegularFile(path)) {
      return absl::NotFoundError(
          absl::StrCat("program '", path, "': expected a file"));
    }
    paths.push_back(path);
  }
  CommandProgram program;
  for (const std::string& word : finder.left_out()) {
    if (!absl::c_linear_search(named, word)) program.left_out.push_back(word);
  }
  for (const std::string& path : paths) {
    OPTRAIL_ASSIGN_OR_RETURN(const std::string contents, ReadFile(path));
    proto::TunedCommand::File file;
    file.set_path(SanitiseText(path));
    file.set_fingerprint(Fingerprint(contents));
    program.files.push_back(std::move(file));
  }
  return program;
}

}  // namespace optrail::tuning

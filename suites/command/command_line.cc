#include "suites/command/command_line.h"

#include <algorithm>
#include <csignal>
#include <cstddef>
#include <iostream>
#include <numeric>
#include <set>
#include <string>

#include "absl/flags/commandlineflag.h"
#include "absl/flags/reflection.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "absl/time/time.h"
#include "base/check.h"
#include "base/exit_code.h"
#include "base/status_macros.h"
#include "base/utf8.h"

namespace optrail::suites {
namespace {

constexpr int kHelpWidth = 80;

// Levenshtein's distance, to suggest what was meant.
int EditDistance(absl::string_view a, absl::string_view b) {
  std::vector<int> row(b.size() + 1);
  std::iota(row.begin(), row.end(), 0);
  for (size_t i = 1; i <= a.size(); ++i) {
    int diagonal = row[0];
    row[0] = static_cast<int>(i);
    for (size_t j = 1; j <= b.size(); ++j) {
      const int substitute = diagonal + (a[i - 1] != b[j - 1]);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, substitute});
    }
  }
  return row.back();
}

// "; did you mean X?", or nothing if no name is close.
std::string Suggestion(absl::string_view typed,
                       const std::vector<std::string>& names,
                       absl::string_view prefix) {
  const std::string* best = nullptr;
  int best_distance = 1 + static_cast<int>(typed.size()) / 3;
  for (const std::string& name : names) {
    const int distance = EditDistance(typed, name);
    if (distance <= best_distance) {
      best = &name;
      best_distance = distance;
    }
  }
  if (best == nullptr) return "";
  return absl::StrCat("; did you mean ", prefix, *best, "?");
}

std::string Wrapped(absl::string_view text, int indent) {
  std::string out;
  int column = kHelpWidth;
  for (absl::string_view word :
       absl::StrSplit(text, absl::ByAnyChar(" \n"), absl::SkipEmpty())) {
    if (column + 1 + static_cast<int>(word.size()) > kHelpWidth) {
      absl::StrAppend(&out, out.empty() ? "" : "\n", std::string(indent, ' '),
                      word);
      column = indent + static_cast<int>(word.size());
    } else {
      absl::StrAppend(&out, " ", word);
      column += 1 + static_cast<int>(word.size());
    }
  }
  return out;
}

std::string FlagHelp(const Command& command, const std::string& name) {
  const absl::CommandLineFlag* flag = absl::FindCommandLineFlag(name);
  if (flag == nullptr) return "";
  std::string value = flag->DefaultValue();
  for (const auto& [changed, to] : command.defaults) {
    if (changed == name) value = to;
  }
  return absl::StrCat("  --", name,
                      value.empty() ? "" : absl::StrCat("=", value), "\n",
                      Wrapped(flag->Help(), 6), "\n");
}

std::string Help(absl::string_view program, const Command& command,
                 bool with_name) {
  std::string text = absl::StrCat(
      command.summary, "\n\nUsage: ", program,
      with_name ? absl::StrCat(" ", command.name) : "",
      command.arguments.empty() ? "" : absl::StrCat(" ", command.arguments),
      command.flags.empty() ? "" : " [flags]", "\n");
  if (!command.details.empty()) absl::StrAppend(&text, "\n", command.details);
  if (!absl::EndsWith(text, "\n")) absl::StrAppend(&text, "\n");
  if (!command.flags.empty()) {
    absl::StrAppend(&text, "\nFlags, with their defaults:\n");
    for (const std::string& flag : command.flags) {
      absl::StrAppend(&text, FlagHelp(command, flag));
    }
  }
  return text;
}

bool IsBool(const absl::CommandLineFlag& flag) { return flag.IsOfType<bool>(); }

// Checks and sets the flags in `args`, and takes the positional arguments out.
// What the flag's type has to say beyond "Illegal value", else what it expects.
std::string WhyRefused(const absl::CommandLineFlag& flag,
                       absl::string_view value, absl::string_view error) {
  absl::ConsumePrefix(
      &error, absl::StrCat("Illegal value '", value, "' specified for flag '",
                           flag.Name(), "'"));
  absl::ConsumePrefix(&error, "; ");
  error = absl::StripAsciiWhitespace(error);
  if (!error.empty()) return std::string(error);
  if (flag.IsOfType<absl::Duration>()) {
    return "expected a duration such as 10m";
  }
  if (flag.IsOfType<bool>()) return "expected true or false";
  if (flag.IsOfType<double>() || flag.IsOfType<float>()) {
    return "expected a number";
  }
  return "expected a whole number";
}

// A flag without an effect is a question that would get another answer.
absl::Status CheckUse(const Command& command,
                      const std::vector<std::string>& positional,
                      const std::set<std::string>& given) {
  if (command.use == nullptr) return absl::OkStatus();
  const FlagUse use = command.use(positional);
  for (const std::string& name : given) {
    if (std::find(use.flags.begin(), use.flags.end(), name) !=
        use.flags.end()) {
      continue;
    }
    return absl::InvalidArgumentError(
        absl::StrCat("--", name, ": means nothing ", use.call,
                     Suggestion(name, use.flags, "--")));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<std::string>> ParseFlags(
    const Command& command, const std::vector<std::string>& args) {
  for (const auto& [name, value] : command.defaults) {
    std::string error;
    absl::CommandLineFlag* flag = absl::FindCommandLineFlag(name);
    OPTRAIL_CHECK(flag != nullptr && flag->ParseFrom(value, &error))
        << "default of --" << name << ": " << error;
  }
  std::vector<std::string> positional;
  std::set<std::string> given;
  for (size_t i = 0; i < args.size(); ++i) {
    absl::string_view arg = args[i];
    if (arg == "--") {
      positional.insert(positional.end(), args.begin() + i + 1, args.end());
      break;
    }
    if (!absl::StartsWith(arg, "-") || arg == "-") {
      positional.emplace_back(arg);
      continue;
    }
    arg.remove_prefix(absl::StartsWith(arg, "--") ? 2 : 1);
    const size_t equals = arg.find('=');
    std::string name(arg.substr(0, equals));
    const bool has_value = equals != absl::string_view::npos;
    std::string value(has_value ? arg.substr(equals + 1) : "");
    const auto takes = [&](const std::string& flag) {
      return std::find(command.flags.begin(), command.flags.end(), flag) !=
             command.flags.end();
    };
    bool negated = false;
    if (!takes(name) && absl::StartsWith(name, "no") && !has_value &&
        takes(name.substr(2))) {
      name = name.substr(2);
      negated = true;
    }
    absl::CommandLineFlag* flag = absl::FindCommandLineFlag(name);
    if (!takes(name) || flag == nullptr) {
      return absl::InvalidArgumentError(absl::StrCat(
          "unknown flag --", name, Suggestion(name, command.flags, "--")));
    }
    if (IsBool(*flag) && !has_value) {
      value = negated ? "false" : "true";
    } else if (negated) {
      return absl::InvalidArgumentError(absl::StrCat(
          "flag --", name, " is not a boolean: --no", name, " means nothing"));
    } else if (!has_value) {
      if (i + 1 == args.size()) {
        return absl::InvalidArgumentError(
            absl::StrCat("flag --", name, " needs a value: --", name, "=..."));
      }
      value = args[++i];
    }
    // A list that is given in parts is one.
    const bool is_list = flag->IsOfType<std::vector<std::string>>() ||
                         std::find(command.lists.begin(), command.lists.end(),
                                   name) != command.lists.end();
    if (!given.insert(name).second && is_list) {
      value = absl::StrCat(flag->CurrentValue(), ",", value);
    }
    std::string error;
    if (!flag->ParseFrom(value, &error)) {
      return absl::InvalidArgumentError(absl::StrCat(
          "flag --", name, "=", value, ": ", WhyRefused(*flag, value, error)));
    }
  }
  const int count = static_cast<int>(positional.size());
  if (count < command.min_arguments ||
      (command.max_arguments >= 0 && count > command.max_arguments)) {
    return absl::InvalidArgumentError(absl::StrCat(
        command.name, " takes ",
        command.arguments.empty() ? "no arguments" : command.arguments,
        ", but ", count, count == 1 ? " argument was" : " arguments were",
        " given"));
  }
  OPTRAIL_RETURN_IF_ERROR(CheckUse(command, positional, given));
  return positional;
}

bool IsHelp(absl::string_view arg) {
  return arg == "--help" || arg == "-h" || arg == "-help" ||
         arg == "--helpfull";
}

int Run(absl::string_view program, const Command& command, bool with_name,
        const std::vector<std::string>& args) {
  for (const std::string& arg : args) {
    if (arg == "--") break;
    if (IsHelp(arg)) {
      std::cout << Help(program, command, with_name);
      return 0;
    }
  }
  const std::string title = with_name ? absl::StrCat(program, " ", command.name)
                                      : std::string(program);
  const absl::StatusOr<std::vector<std::string>> positional =
      ParseFlags(command, args);
  if (!positional.ok()) {
    std::cerr << title << ": " << SanitiseText(positional.status().message())
              << "\n"
              << "next: "
              << (with_name ? absl::StrCat(program, " help ", command.name)
                            : absl::StrCat(program, " --help"))
              << "\n";
    return ToInt(ExitCode::kBadInput);
  }
  const absl::StatusOr<int> code = command.run(*positional);
  std::cout.flush();
  if (!code.ok()) {
    // It quotes what files and commands say.
    std::cerr << title << ": " << SanitiseText(code.status().message()) << "\n";
    return ToInt(ExitCodeOf(code.status()));
  }
  if (!std::cout) {
    std::cerr << title << ": writing to standard output failed\n";
    return ToInt(ExitCode::kBadInput);
  }
  return *code;
}

}  // namespace

int RunSingleCommand(absl::string_view program, const Command& command,
                     int argc, char** argv) {
  return Run(program, command, /*with_name=*/false,
             std::vector<std::string>(argv + 1, argv + argc));
}

int RunCommandLine(absl::string_view program, absl::string_view about,
                   const std::vector<Command>& commands, int argc,
                   char** argv) {
  // A limit on the size of files is an error of the write, not a signal that
  // ends the program in the middle of something.
  std::signal(SIGXFSZ, SIG_IGN);
  std::vector<std::string> args(argv + 1, argv + argc);
  std::vector<std::string> names;
  for (const Command& command : commands) names.push_back(command.name);

  const auto overview = [&] {
    std::string text = absl::StrCat(about, "\n\nUsage: ", program,
                                    " COMMAND [arguments] [flags]\n\n");
    for (const Command& command : commands) {
      absl::StrAppend(
          &text, "  ", command.name,
          std::string(14 - std::min<size_t>(13, command.name.size()), ' '),
          command.summary, "\n");
    }
    absl::StrAppend(&text, "\n", program,
                    " help COMMAND explains a command and its flags.\n");
    return text;
  };
  if (args.empty()) {
    std::cerr << overview();
    return ToInt(ExitCode::kBadInput);
  }
  std::string name = args[0];
  if (IsHelp(name) || (name == "help" && args.size() == 1)) {
    std::cout << overview();
    return 0;
  }
  bool help = false;
  if (name == "help") {
    name = args[1];
    help = true;
  }
  for (const Command& command : commands) {
    if (command.name != name) continue;
    if (help) {
      std::cout << Help(program, command, /*with_name=*/true);
      return 0;
    }
    return Run(program, command, /*with_name=*/true,
               std::vector<std::string>(args.begin() + 1, args.end()));
  }
  std::cerr << program << ": unknown command \"" << name << "\""
            << Suggestion(name, names, "") << "\nnext: " << program
            << " help\n";
  return ToInt(ExitCode::kBadInput);
}

}  // namespace optrail::suites

#include "suites/command/command_line.h"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstddef>
#include <iostream>
#include <map>
#include <set>
#include <utility>

#include "absl/flags/commandlineflag.h"
#include "absl/flags/reflection.h"
#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "absl/types/optional.h"
#include "base/check.h"
#include "base/exit_code.h"
#include "base/file/failed_file.h"
#include "base/file/file.h"
#include "base/status_macros.h"
#include "base/text/closest.h"
#include "base/text/table.h"
#include "base/text/utf8.h"
#include "base/text/wrapped_stream.h"
#include "suites/command/command_help.h"
#include "suites/command/refusals.h"

namespace optrail::suites {
namespace {

// The command line as it was typed, before any flag is set.
struct Given {
  std::vector<FlagText> flags;  // values as text
  Words positional;
};

bool IsList(const Command& command, const absl::CommandLineFlag& flag) {
  return flag.IsOfType<Words>() ||
         Contains(command.lists, std::string(flag.Name()));
}

// Takes one argument that begins with "-" apart; `next` is the one after it.
absl::StatusOr<FlagText> TakeFlag(const Call& call, absl::string_view arg,
                                  const std::string* next, bool* used_next) {
  arg.remove_prefix(absl::StartsWith(arg, "--") ? 2 : 1);
  const size_t equals = arg.find('=');
  std::string name(arg.substr(0, equals));
  const bool has_value = equals != absl::string_view::npos;
  std::string value(has_value ? arg.substr(equals + 1) : "");
  const Words taken = AllFlags(*call.command);
  bool negated = false;
  if (!Contains(taken, name) && absl::StartsWith(name, "no") && !has_value &&
      Contains(taken, name.substr(2))) {
    name = name.substr(2);
    negated = true;
  }
  const absl::CommandLineFlag* flag = absl::FindCommandLineFlag(name);
  if (!Contains(taken, name) || flag == nullptr) return UnknownFlag(call, name);
  if (flag->IsOfType<bool>() && !has_value) {
    value = negated ? "false" : "true";
  } else if (negated) {
    return absl::InvalidArgumentError(absl::StrCat(
        "flag --", name, " is not a boolean: --no", name, " means nothing"));
  } else if (!has_value) {
    if (next == nullptr) {
      return absl::InvalidArgumentError(
          absl::StrCat("flag --", name, " needs a value: --", name, "=..."));
    }
    value = *next;
    *used_next = true;
  }
  // Often a variable of a script that is not set; neither "any" nor "default"
  // would be what was meant.
  bool is_empty = value.empty();
  if (IsList(*call.command, *flag)) {
    for (absl::string_view element : absl::StrSplit(value, ',')) {
      is_empty |= element.empty();
    }
  }
  if (is_empty) {
    return absl::InvalidArgumentError(absl::StrCat(
        "flag --", name, "=", value, " is empty",
        value.empty() ? "" : " in part", ": expected a value",
        value.empty() ? "; one that is not required may be left out" : ""));
  }
  return FlagText{std::move(name), std::move(value)};
}

absl::StatusOr<Given> TakeApart(const Call& call, const Words& args) {
  Given given;
  for (size_t i = 0; i < args.size(); ++i) {
    const std::string& arg = args[i];
    if (arg == "--") {
      given.positional.insert(given.positional.end(), args.begin() + i + 1,
                              args.end());
      break;
    }
    if (!absl::StartsWith(arg, "-") || arg == "-") {
      given.positional.push_back(arg);
      if (!arg.empty()) continue;
      return absl::InvalidArgumentError(absl::StrCat(
          "argument ", given.positional.size(), " is empty: expected a value"));
    }
    bool used_next = false;
    OPTRAIL_ASSIGN_OR_RETURN(
        FlagText flag,
        TakeFlag(call, arg, i + 1 < args.size() ? &args[i + 1] : nullptr,
                 &used_next));
    if (used_next) ++i;
    given.flags.push_back(std::move(flag));
  }
  return given;
}

// The origin of each flag whose value is not its default.
std::map<std::string, std::string>& Origins() {
  static auto* const origins = new std::map<std::string, std::string>;
  return *origins;
}
constexpr char kCommandLine[] = "command line";

// Sets the flags of the file that the settings flag names, where it is given.
absl::Status SetFromFile(const Command& command, const Given& given) {
  std::string error;
  bool is_read = false;
  for (const auto& [name, value] : given.flags) {
    if (name != command.settings.flag) continue;
    if (is_read) {
      return absl::InvalidArgumentError(absl::StrCat(
          "flag --", name, "=", value,
          ": it is given twice, and values of two files do not mix; expected "
          "one file"));
    }
    is_read = true;
    OPTRAIL_ASSIGN_OR_RETURN(const std::vector<FlagSetting> settings,
                             command.settings.read(value));
    for (const FlagSetting& setting : settings) {
      absl::CommandLineFlag* flag = absl::FindCommandLineFlag(setting.flag);
      OPTRAIL_CHECK(flag != nullptr) << "--" << setting.flag;
      if (!flag->ParseFrom(setting.value, &error)) {
        return absl::InvalidArgumentError(absl::StrCat(
            setting.place, ": ", setting.flag, " is \"", setting.value,
            "\": ", WhyRefused(*flag, setting.value, error)));
      }
      Origins()[setting.flag] = setting.place;
    }
  }
  return absl::OkStatus();
}

absl::Status SetFlags(const Command& command, const Given& given) {
  std::string error;
  Origins().clear();
  for (const auto& [name, value] : command.defaults) {
    absl::CommandLineFlag* flag = absl::FindCommandLineFlag(name);
    OPTRAIL_CHECK(flag != nullptr && flag->ParseFrom(value, &error))
        << "default of --" << name << ": " << error;
  }
  OPTRAIL_RETURN_IF_ERROR(SetFromFile(command, given));
  std::set<std::string> seen;
  for (const auto& [name, text] : given.flags) {
    absl::CommandLineFlag* flag = absl::FindCommandLineFlag(name);
    // A list that is given in parts is one.
    const std::string value =
        !seen.insert(name).second && IsList(command, *flag)
            ? absl::StrCat(flag->CurrentValue(), ",", text)
            : text;
    Origins()[name] = kCommandLine;
    if (flag->ParseFrom(value, &error)) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        "flag --", name, "=", value, ": ", WhyRefused(*flag, value, error),
        OtherFormat(command, name)));
  }
  return absl::OkStatus();
}

// Finds the part that is called, and takes its name out of the arguments.
absl::Status FindPart(Call* call, Words* positional) {
  const std::vector<Command>& parts = call->command->parts;
  if (parts.empty()) return absl::OkStatus();
  const bool is_default =
      positional->empty() && !call->command->default_part.empty();
  if (positional->empty() && !is_default) {
    return absl::InvalidArgumentError(
        absl::StrCat(call->command->name, " takes ", call->command->arguments,
                     ", but 0 arguments were given"));
  }
  const std::string name =
      is_default ? call->command->default_part : (*positional)[0];
  Words names;
  for (const Command& part : parts) {
    names.push_back(part.name);
    if (part.name == name) call->part = &part;
  }
  if (call->part == nullptr) {
    return absl::InvalidArgumentError(
        absl::StrCat("\"", name, "\": ", ExpectedOneOf(name, names)));
  }
  if (!is_default) positional->erase(positional->begin());
  return absl::OkStatus();
}

absl::Status CheckArguments(const Call& call, const Words& positional) {
  const Command& runs = call.runs();
  const int count = static_cast<int>(positional.size());
  if (count >= runs.min_arguments &&
      (runs.max_arguments < 0 || count <= runs.max_arguments)) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat(
      call.Name(), " takes ",
      runs.arguments.empty() ? "no arguments" : runs.arguments, ", but ", count,
      count == 1 ? " argument was" : " arguments were", " given",
      FlagOfName(runs, positional)));
}

// Finds the part, checks and sets the flags; the arguments of what is to run.
absl::StatusOr<Words> Prepare(Call* call, const Words& args) {
  OPTRAIL_ASSIGN_OR_RETURN(Given given, TakeApart(*call, args));
  OPTRAIL_RETURN_IF_ERROR(FindPart(call, &given.positional));
  if (call->part != nullptr) {
    for (const auto& [name, value] : given.flags) {
      if (Contains(call->part->flags, name)) continue;
      return RefuseFlag(*call, name, absl::StrCat("for ", call->Name()),
                        call->part->flags);
    }
  }
  OPTRAIL_RETURN_IF_ERROR(SetFlags(*call->command, given));
  OPTRAIL_RETURN_IF_ERROR(CheckArguments(*call, given.positional));
  if (call->command->use != nullptr) {
    const FlagUse use = call->command->use(given.positional);
    for (const auto& [name, value] : given.flags) {
      if (Contains(use.flags, name)) continue;
      return RefuseFlag(*call, name, use.call, use.flags);
    }
  }
  return given.positional;
}

bool IsHelp(absl::string_view arg) {
  return arg == "--help" || arg == "-h" || arg == "-help" ||
         arg == "--helpfull";
}

// Explains the command, or the part of it that `words` name.
absl::Status PrintHelp(Call call, Words words) {
  if (!words.empty()) OPTRAIL_RETURN_IF_ERROR(FindPart(&call, &words));
  std::cout << (call.part == nullptr
                    ? CommandHelp(call.Typed(), *call.command)
                    : PartHelp(call.Typed(), *call.command, *call.part));
  return absl::OkStatus();
}

// The exit code of a status from before anything ran.
int WrongUse(const Call& call, const absl::Status& status) {
  if (status.ok()) return ToInt(ExitCode::kOk);
  std::cerr << call.Typed() << ": " << SanitiseText(status.message())
            << "\nnext: " << call.HelpCommand() << "\n";
  return ToInt(ExitCode::kBadInput);
}

int EndHelp(const Call& call, const absl::Status& printed) {
  const int code = WrongUse(call, printed);
  return code == 0 ? EndOutput(call.Typed(), code) : code;
}

// "; did you mean runs.json?" for an error about a file that is not there; ""
// for any other.
std::string FileHint(const absl::Status& status) {
  const absl::optional<FailedFile> failed = FailedFileOf(status);
  if (!failed.has_value()) return "";
  if (failed->error_number == EISDIR) return "; expected a file";
  if (failed->error_number != ENOENT) return "";
  const std::string& path = failed->path;
  const std::string folder = DirectoryOf(path);
  if (!FileExists(folder)) return absl::StrCat("; there is no folder ", folder);
  // An extension would make any two names alike.
  const absl::string_view name = FileNameOf(path);
  const absl::string_view stem = name.substr(0, name.find('.'));
  const absl::string_view extension = name.substr(stem.size());
  Words stems;
  for (const std::string& there : ListDirectory(folder).value_or(Words())) {
    absl::string_view other = there;
    if (absl::ConsumeSuffix(&other, extension)) stems.emplace_back(other);
  }
  const std::string meant = Closest(stem, stems);
  return meant.empty() ? "; next: look for a typing error"
                       : absl::StrCat("; did you mean ", meant, extension, "?");
}

// Names the lines of a file of settings that an error speaks of: before it
// where it begins with their flag, else behind it.
std::string WithOrigins(absl::string_view message) {
  absl::string_view rest = message;
  absl::ConsumePrefix(&rest, "flag ");
  std::string before, behind;
  for (const auto& [flag, origin] : Origins()) {
    if (origin == kCommandLine) continue;
    const std::string typed = absl::StrCat("--", flag);
    const size_t found = message.find(typed);
    if (found == absl::string_view::npos) continue;
    const size_t end = found + typed.size();
    if (end < message.size() &&
        (absl::ascii_isalnum(message[end]) || message[end] == '_')) {
      continue;  // a longer name
    }
    if (absl::StartsWith(rest, typed)) {
      before = absl::StrCat(origin, ": ");
    } else {
      absl::StrAppend(&behind, "; ", typed, " is set in ", origin);
    }
  }
  return absl::StrCat(before, message, behind);
}

int Run(Call call, const Words& args) {
  for (size_t i = 0; i < args.size() && args[i] != "--"; ++i) {
    if (!IsHelp(args[i])) continue;
    // `history thin --help` explains thin.
    const bool names_part = i > 0 && !absl::StartsWith(args[0], "-");
    return EndHelp(call,
                   PrintHelp(call, names_part ? Words{args[0]} : Words()));
  }
  const absl::StatusOr<Words> positional = Prepare(&call, args);
  if (!positional.ok()) return WrongUse(call, positional.status());
  const absl::StatusOr<int> code = call.runs().run(*positional);
  std::cout.flush();
  if (!code.ok()) {
    // It quotes what files and commands say.
    std::cerr << call.Typed() << ": "
              << SanitiseText(absl::StrCat(WithOrigins(code.status().message()),
                                           FileHint(code.status())))
              << "\n";
    return ToInt(ExitCodeOf(code.status()));
  }
  return EndOutput(call.Typed(), *code);
}

}  // namespace

FlagUse UseAllBut(std::string call, std::vector<std::string> flags,
                  const std::vector<std::string>& unused) {
  flags.erase(std::remove_if(flags.begin(), flags.end(),
                             [&](const std::string& flag) {
                               return std::find(unused.begin(), unused.end(),
                                                flag) != unused.end();
                             }),
              flags.end());
  return {std::move(call), std::move(flags)};
}

std::string FlagOrigin(const std::string& flag) {
  const auto found = Origins().find(flag);
  return found == Origins().end() ? "default" : found->second;
}

int EndOutput(absl::string_view typed, int code) {
  std::cout.flush();
  if (std::cout) return code;
  std::cerr << typed << ": writing to standard output failed\n";
  return ToInt(ExitCode::kBadInput);
}

int RunSingleCommand(absl::string_view program, const Command& command,
                     int argc, char** argv) {
  const WrappedStream wrapped(std::cerr, TerminalWidth());
  Call call;
  call.program = program;
  call.command = &command;
  call.with_name = false;
  return Run(call, Words(argv + 1, argv + argc));
}

int RunCommandLine(absl::string_view program, absl::string_view about,
                   const std::vector<CommandGroup>& groups, int argc,
                   char** argv) {
  // A limit on the size of files is an error of the write, not a signal that
  // ends the program in the middle of something.
  std::signal(SIGXFSZ, SIG_IGN);
  const WrappedStream wrapped(std::cerr, TerminalWidth());
  Words args(argv + 1, argv + argc);
  if (args.empty()) {
    std::cerr << Overview(program, about, groups);
    return ToInt(ExitCode::kBadInput);
  }
  const bool help = args[0] == "help";
  // `help help` explains what there is to explain.
  const bool all_help = help && (args.size() == 1 || args[1] == "help");
  if (IsHelp(args[0]) || all_help) {
    std::cout << Overview(program, about, groups);
    return EndOutput(program, ToInt(ExitCode::kOk));
  }
  if (help) args.erase(args.begin());
  Words names = {"help"};
  for (const CommandGroup& group : groups) {
    for (const Command& command : group.commands) {
      names.push_back(command.name);
      if (command.name != args[0]) continue;
      Call call;
      call.program = program;
      call.command = &command;
      call.groups = &groups;
      const Words rest(args.begin() + 1, args.end());
      return help ? EndHelp(call, PrintHelp(call, rest)) : Run(call, rest);
    }
  }
  std::cerr << program << ": unknown command \"" << args[0] << "\""
            << DidYouMean(args[0], names) << "\nnext: " << program << " help\n";
  return ToInt(ExitCode::kBadInput);
}

}  // namespace optrail::suites

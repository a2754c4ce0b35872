#include "suites/command/command_help.h"

#include <algorithm>

#include "absl/flags/commandlineflag.h"
#include "absl/flags/reflection.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/text/prose.h"
#include "base/text/table.h"

namespace optrail::suites {
namespace {

int HelpWidth() {
  constexpr int kWidest = 80;
  const int width = TerminalWidth();
  return width > 0 ? std::min(width, kWidest) : kWidest;
}

// The paragraphs of a text that was laid out for 80 columns, for a terminal
// that has fewer. Examples are indented, and stay as they are.
std::string Refilled(absl::string_view text) {
  std::string filled;
  std::string paragraph;
  const auto end_paragraph = [&] {
    if (paragraph.empty()) return;
    absl::StrAppend(&filled, FillParagraph(paragraph, HelpWidth(), 0, 0), "\n");
    paragraph.clear();
  };
  for (const absl::string_view line :
       absl::StrSplit(absl::StripSuffix(text, "\n"), '\n')) {
    if (!line.empty() && line[0] != ' ') {
      absl::StrAppend(&paragraph, line, " ");
      continue;
    }
    end_paragraph();
    absl::StrAppend(&filled, line, "\n");
  }
  end_paragraph();
  return filled;
}

// "  compare       Compares ...".
std::string NameLine(absl::string_view name, absl::string_view summary) {
  constexpr int kIndent = 16;
  const std::string begin = absl::StrCat(
      "  ", name, std::string(14 - std::min<size_t>(13, name.size()), ' '));
  const std::string filled = FillParagraph(
      summary, HelpWidth(), static_cast<int>(begin.size()), kIndent);
  return absl::StrCat(begin, absl::string_view(filled).substr(begin.size()),
                      "\n");
}

const std::string* TextOf(const std::vector<FlagText>& texts,
                          const std::string& flag) {
  for (const auto& [name, text] : texts) {
    if (name == flag) return &text;
  }
  return nullptr;
}

// `parts`: those that take the flag, where not all do.
std::string FlagHelp(const Command& command, const std::string& name,
                     const std::vector<std::string>& parts) {
  const absl::CommandLineFlag* flag = absl::FindCommandLineFlag(name);
  if (flag == nullptr) return "";
  const std::string* own_default = TextOf(command.defaults, name);
  const std::string* meaning = TextOf(command.meanings, name);
  const std::string value =
      own_default != nullptr ? *own_default : flag->DefaultValue();
  return absl::StrCat(
      "  --", name, value.empty() ? "" : absl::StrCat("=", value),
      parts.empty() ? "" : absl::StrCat("  (", absl::StrJoin(parts, ", "), ")"),
      "\n",
      FillParagraph(meaning != nullptr ? *meaning : flag->Help(), HelpWidth(),
                    6, 6),
      "\n");
}

std::string Usage(absl::string_view call, const Command& command,
                  bool has_flags) {
  const std::string usage = absl::StrCat(
      "Usage: ", call,
      command.arguments.empty() ? "" : absl::StrCat(" ", command.arguments),
      has_flags ? " [flags]" : "");
  std::string text =
      absl::StrCat(Refilled(command.summary), "\n",
                   FillParagraph(usage, HelpWidth(), 0, 0), "\n");
  if (!command.details.empty()) {
    absl::StrAppend(&text, "\n", Refilled(command.details));
  }
  return text;
}

constexpr char kFlagsHeading[] = "\nFlags, with their defaults:\n";

}  // namespace

std::vector<std::string> AllFlags(const Command& command) {
  std::vector<std::string> all = command.flags;
  for (const Command& part : command.parts) {
    for (const std::string& flag : part.flags) {
      if (std::find(all.begin(), all.end(), flag) == all.end()) {
        all.push_back(flag);
      }
    }
  }
  return all;
}

std::string Overview(absl::string_view program, absl::string_view about,
                     const std::vector<CommandGroup>& groups) {
  std::string text = absl::StrCat(Refilled(about), "\nUsage: ", program,
                                  " COMMAND [arguments] [flags]\n");
  for (const CommandGroup& group : groups) {
    absl::StrAppend(&text, "\n", group.heading, "\n");
    for (const Command& command : group.commands) {
      absl::StrAppend(&text, NameLine(command.name, command.summary));
    }
  }
  absl::StrAppend(&text, "\n", program,
                  " help COMMAND explains a command and its flags.\n");
  return text;
}

std::string CommandHelp(absl::string_view call, const Command& command) {
  const std::vector<std::string> flags = AllFlags(command);
  std::string text = Usage(call, command, !flags.empty());
  if (!command.parts.empty()) {
    absl::StrAppend(
        &text, "\n",
        FillParagraph(absl::StrCat("Commands, which `optrail help ",
                                   command.name, " NAME` explains one by one:"),
                      HelpWidth(), 0, 0),
        "\n");
    for (const Command& part : command.parts) {
      absl::StrAppend(&text, NameLine(part.name, part.summary));
    }
  }
  if (!flags.empty()) absl::StrAppend(&text, kFlagsHeading);
  for (const std::string& flag : flags) {
    std::vector<std::string> takers;
    for (const Command& part : command.parts) {
      if (std::find(part.flags.begin(), part.flags.end(), flag) !=
          part.flags.end()) {
        takers.push_back(part.name);
      }
    }
    if (takers.size() == command.parts.size()) takers.clear();
    absl::StrAppend(&text, FlagHelp(command, flag, takers));
  }
  return text;
}

std::string PartHelp(absl::string_view call, const Command& command,
                     const Command& part) {
  std::string text =
      Usage(absl::StrCat(call, " ", part.name), part, !part.flags.empty());
  if (!part.flags.empty()) absl::StrAppend(&text, kFlagsHeading);
  for (const std::string& flag : part.flags) {
    absl::StrAppend(&text, FlagHelp(command, flag, {}));
  }
  return text;
}

}  // namespace optrail::suites

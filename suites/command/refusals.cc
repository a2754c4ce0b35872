#include "suites/command/refusals.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "absl/time/time.h"
#include "base/text/closest.h"
#include "suites/command/command_help.h"

namespace optrail::suites {
namespace {

// The other commands that take a flag; other parts of the same command, if
// there are any, alone.
Words TakersOf(const Call& call, const std::string& flag) {
  Words takers;
  for (const Command& part : call.command->parts) {
    if (&part != call.part && Contains(part.flags, flag)) {
      takers.push_back(absl::StrCat(call.command->name, " ", part.name));
    }
  }
  if (!takers.empty() || call.groups == nullptr) return takers;
  for (const CommandGroup& group : *call.groups) {
    for (const Command& command : group.commands) {
      if (Contains(command.flags, flag)) takers.push_back(command.name);
      for (const Command& part : command.parts) {
        if (Contains(part.flags, flag)) {
          takers.push_back(absl::StrCat(command.name, " ", part.name));
        }
      }
    }
  }
  takers.erase(std::remove(takers.begin(), takers.end(), call.Name()),
               takers.end());
  return takers;
}

// Names the mend of a flag that has no effect here: "; did you mean
// --keep_runs?", "; history thin takes it".
std::string Instead(const Call& call, const std::string& flag,
                    const Words& applicable) {
  for (const auto& [name, text] : call.command->instead) {
    if (name == flag) return absl::StrCat("; ", text);
  }
  Words takers = TakersOf(call, flag);
  // A flag of another command is no typing error; --format of this one may be
  // called --report_format.
  Words near = applicable;
  if (!takers.empty()) {
    near.erase(std::remove_if(near.begin(), near.end(),
                              [&](const std::string& name) {
                                const Words parts = absl::StrSplit(name, '_');
                                return !Contains(parts, flag);
                              }),
               near.end());
  }
  const std::string close = DidYouMean(flag, near, "--");
  if (!close.empty() || takers.empty()) return close;
  if (takers.size() == 1) return absl::StrCat("; ", takers[0], " takes it");
  constexpr size_t kMost = 3;
  std::string last = takers.back();
  takers.pop_back();
  if (takers.size() >= kMost) {
    takers.resize(kMost - 1);
    last = "others";
  }
  return absl::StrCat("; ", absl::StrJoin(takers, ", "), " and ", last,
                      " take it");
}

}  // namespace

absl::Status RefuseFlag(const Call& call, const std::string& flag,
                        absl::string_view where, const Words& applicable) {
  return absl::InvalidArgumentError(absl::StrCat(
      "--", flag, ": means nothing ", where, Instead(call, flag, applicable)));
}

absl::Status UnknownFlag(const Call& call, const std::string& flag) {
  const Words applicable = AllFlags(*call.command);
  const std::vector<FlagText>& instead = call.command->instead;
  if (!TakersOf(call, flag).empty() ||
      std::any_of(instead.begin(), instead.end(),
                  [&](const FlagText& text) { return text.first == flag; })) {
    return RefuseFlag(call, flag, absl::StrCat("for ", call.command->name),
                      applicable);
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "unknown flag --", flag, DidYouMean(flag, applicable, "--")));
}

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

std::string OtherFormat(const Command& command, absl::string_view flag) {
  if (flag != "format") return "";
  for (const std::string& other : AllFlags(command)) {
    if (absl::EndsWith(other, "_format")) {
      return absl::StrCat("; --", other, " names that of the file");
    }
  }
  return "";
}

std::string FlagOfName(const Command& runs, const Words& positional) {
  if (runs.max_arguments != 0 || positional.size() != 1) return "";
  for (const char* flag : {"op", "filter"}) {
    if (!Contains(runs.flags, flag)) continue;
    return absl::StrCat("; did you mean --", flag, "=", positional[0], "?");
  }
  return "";
}

}  // namespace optrail::suites

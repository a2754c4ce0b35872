#include "diagnosis/code_difference.h"

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <set>
#include <system_error>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "absl/time/time.h"
#include "base/file/file.h"
#include "base/process/subprocess.h"
#include "base/text/utf8.h"
#include "diagnosis/code_change.h"
#include "diagnosis/source_hunks.h"

namespace optrail::diagnosis {
namespace {

constexpr size_t kMostFunctions = 3;
constexpr size_t kMostHunks = 3;
constexpr size_t kMostPrograms = 32;
constexpr int64_t kMostTextBytes = int64_t{512} << 20;
constexpr absl::Duration kDisassemblyDeadline = absl::Minutes(2);

std::string Shortened(absl::string_view text, size_t bytes) {
  return text.size() <= bytes
             ? std::string(text)
             : absl::StrCat(TruncateUtf8(std::string(text), bytes), "...");
}

// "foo(int) [clone .isra.0]" is foo(int): which clones there are is the
// compiler's choice.
absl::string_view WithoutClone(absl::string_view name) {
  return absl::StripTrailingAsciiWhitespace(name.substr(0, name.find(" [")));
}

// "blur" of "ns::blur<4>(float const*, long)".
std::string BaseName(absl::string_view function) {
  absl::string_view name = function.substr(0, function.find('('));
  name = name.substr(0, name.find('<'));
  for (const char separator : {' ', ':'}) {
    const size_t at = name.rfind(separator);
    if (at != absl::string_view::npos) name = name.substr(at + 1);
  }
  return std::string(name);
}

// The first line of a side that is code.
std::string FirstCode(const std::vector<std::string>& lines) {
  for (const std::string& line : lines) {
    if (!IsCommentLine(line)) {
      return absl::StrCat("\"", Shortened(absl::StripAsciiWhitespace(line), 60),
                          "\"");
    }
  }
  return "nothing";
}

std::string HunkText(const SourceHunk& hunk) {
  const size_t more = std::max(hunk.removed.size(), hunk.added.size()) > 1
                          ? std::max(hunk.removed.size(), hunk.added.size()) - 1
                          : 0;
  return absl::StrCat(
      hunk.file, ":", hunk.line, ": ", FirstCode(hunk.removed), " -> ",
      FirstCode(hunk.added),
      more > 0
          ? absl::StrCat(" and ", more, more == 1 ? " line" : " lines", " more")
          : "");
}

std::string ChangeText(const char* what, const CodeChange& change) {
  std::string text = absl::StrCat(what, ": ", Shortened(change.name, 90));
  if (!change.cause.empty()) absl::StrAppend(&text, ": ", change.cause);
  if (!change.facts.empty()) {
    absl::StrAppend(&text, change.cause.empty() ? ": " : "; ", change.facts);
  }
  if (change.cause.empty() && change.facts.empty()) {
    absl::StrAppend(&text, ": other instructions, of the same kinds");
  }
  return text;
}

bool IsProgram(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  char head[18] = {};
  file.read(head, sizeof(head));
  // ELF, and of its types a program (2) or a shared library (3).
  return file.gcount() == sizeof(head) &&
         absl::StartsWith(absl::string_view(head, sizeof(head)), "\177ELF") &&
         (head[16] == 2 || head[16] == 3);
}

}  // namespace

void AddFunctions(absl::string_view disassembly, Code* code) {
  std::string* text = nullptr;
  std::set<std::string> seen;
  for (const absl::string_view line : absl::StrSplit(disassembly, '\n')) {
    // "0000000000001139 <blur(float const*, long)>:"
    if (absl::EndsWith(line, ">:") && absl::StrContains(line, " <")) {
      const size_t begin = line.find(" <") + 2;
      const std::string name(
          WithoutClone(line.substr(begin, line.size() - 2 - begin)));
      text = &code->functions[name];
      if (seen.insert(name).second) text->clear();
    } else if (text != nullptr) {
      absl::StrAppend(text, line, "\n");
    }
  }
}

void AddKernels(absl::string_view sass, Code* code) {
  std::string* text = nullptr;
  for (const absl::string_view line : absl::StrSplit(sass, '\n')) {
    const absl::string_view stripped = absl::StripAsciiWhitespace(line);
    // "Function : _Z3addPfS_"
    if (absl::StartsWith(stripped, "Function : ")) {
      text = &code->kernels[std::string(stripped.substr(11))];
      text->clear();
      continue;
    }
    // "/*0010*/    LDG.E R2, [R2.64] ;    /* 0x... */"; lines that hold code
    // words alone are left out.
    const size_t end = stripped.find("*/");
    if (text == nullptr || !absl::StartsWith(stripped, "/*") ||
        absl::StartsWith(stripped, "/* ") || end == absl::string_view::npos) {
      continue;
    }
    const absl::string_view place = stripped.substr(2, end - 2);
    const absl::string_view rest = stripped.substr(end + 2);
    absl::StrAppend(text, place, ":\t",
                    absl::StripAsciiWhitespace(rest.substr(0, rest.find(';'))),
                    "\n");
  }
}

Code ReadCode(const std::vector<std::string>& files) {
  Code code;
  CommandOptions command;
  command.environment = {{"LC_ALL", "C"}};
  command.max_stdout_bytes = kMostTextBytes;
  command.timeout = kDisassemblyDeadline;
  const auto say = [&](const std::string& text) {
    if (std::find(code.unsupported.begin(), code.unsupported.end(), text) ==
        code.unsupported.end()) {
      code.unsupported.push_back(text);
    }
  };
  for (const std::string& file : files) {
    const auto text = RunCommand(
        {"objdump", "-d", "-C", "--no-show-raw-insn", file}, command);
    if (!text.ok() || !text->exit.ok() || text->stdout_truncated) {
      say(absl::StrCat("the compiled code was not compared: unsupported here: ",
                       !text.ok() ? std::string(text.status().message())
                       : text->stdout_truncated
                           ? absl::StrCat(file, " is too large")
                           : absl::StrCat("objdump ", text->exit.ToString()),
                       !text.ok() ? "; next: install binutils" : ""));
      continue;
    }
    AddFunctions(text->stdout_text, &code);
    const auto contents = ReadFile(file);
    if (!contents.ok() || !absl::StrContains(*contents, ".nv_fatbin")) continue;
    const auto sass = RunCommand({"cuobjdump", "--dump-sass", file}, command);
    if (!sass.ok() || !sass->exit.ok() || sass->stdout_truncated) {
      say(absl::StrCat("kernels for CUDA were not compared: unsupported here: ",
                       sass.ok()
                           ? absl::StrCat("cuobjdump ", sass->exit.ToString())
                           : std::string(sass.status().message())));
      continue;
    }
    AddKernels(sass->stdout_text, &code);
  }
  return code;
}

std::vector<std::string> ProgramsBelow(const std::string& folder) {
  std::vector<std::string> programs;
  std::error_code error;
  for (std::filesystem::recursive_directory_iterator it(folder, error), end;
       !error && it != end; it.increment(error)) {
    if (it->path().filename() == ".git") {
      it.disable_recursion_pending();
    } else if (it->is_regular_file(error) && !it->is_symlink(error) &&
               IsProgram(it->path().string())) {
      programs.push_back(it->path().string());
    }
  }
  std::sort(programs.begin(), programs.end());
  if (programs.size() > kMostPrograms) programs.resize(kMostPrograms);
  return programs;
}

std::vector<std::string> BuiltDifference(const std::string& before,
                                         const std::string& after,
                                         const std::string& source_diff) {
  const auto programs = [](const std::string& path) {
    std::error_code error;
    return std::filesystem::is_directory(path, error)
               ? ProgramsBelow(path)
               : std::vector<std::string>{path};
  };
  return DifferenceLines(ReadCode(programs(before)), ReadCode(programs(after)),
                         source_diff);
}

std::vector<std::string> DifferenceLines(const Code& before, const Code& after,
                                         absl::string_view source_diff) {
  std::vector<std::string> lines;
  const std::vector<CodeChange> kernels =
      ChangedKernels(before.kernels, after.kernels);
  const std::vector<CodeChange> functions =
      ChangedFunctions(before.functions, after.functions);
  for (size_t i = 0; i < std::min(kernels.size(), kMostFunctions); ++i) {
    lines.push_back(ChangeText("SASS", kernels[i]));
  }
  for (size_t i = 0; i < std::min(functions.size(), kMostFunctions); ++i) {
    // After the worst, only what is worse, too.
    if (i > 0 && functions[i].cause.empty()) break;
    lines.push_back(ChangeText("code", functions[i]));
  }
  if (functions.size() > kMostFunctions) {
    lines.push_back(absl::StrCat("code: ", functions.size(), " of ",
                                 before.functions.size(), " functions differ"));
  }
  const bool was_read = !before.functions.empty() && !after.functions.empty();
  if (functions.empty() && kernels.empty() && was_read) {
    lines.push_back(
        "code: every function is the same on both sides: what changed is data "
        "or settings");
  }
  const std::string worst = !functions.empty() ? BaseName(functions[0].name)
                            : !kernels.empty() ? kernels[0].name
                                               : "";
  const std::vector<SourceHunk> hunks = RankedHunks(source_diff, worst);
  // Settings of the build, and data, come before code that follows from them.
  size_t place = 0;
  for (size_t i = 0; i < std::min(hunks.size(), kMostHunks); ++i) {
    const bool first = hunks[i].rank == 0 ||
                       (functions.empty() && kernels.empty() && was_read);
    lines.insert(
        first ? lines.begin() + static_cast<int64_t>(place++) : lines.end(),
        absl::StrCat(hunks[i].rank == 0 ? "build: " : "source: ",
                     HunkText(hunks[i])));
  }
  for (const std::string& text : after.unsupported) lines.push_back(text);
  return lines;
}

}  // namespace optrail::diagnosis
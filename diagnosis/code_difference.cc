#include "diagnosis/code_difference.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <set>
#include <system_error>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "absl/time/time.h"
#include "base/file/file.h"
#include "base/process/subprocess.h"
#include "base/text/utf8.h"
#include "ops/core/instruction_mix.h"

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

// An instruction without places that move when other functions grow: of a jump
// or call the label is kept, of data relative to the instruction nothing.
std::string WithoutPlaces(absl::string_view instruction) {
  instruction = instruction.substr(0, instruction.find('#'));
  const size_t label = instruction.find(" <");
  const size_t space = instruction.find(' ');
  std::string text(absl::StripTrailingAsciiWhitespace(instruction));
  if (label != absl::string_view::npos && space < label) {
    text = absl::StrCat(
        instruction.substr(0, space),
        absl::StripTrailingAsciiWhitespace(instruction.substr(label)));
  }
  if (const size_t relative = text.find("(%rip)");
      relative != std::string::npos) {
    size_t begin = relative;
    while (begin > 0 && (absl::ascii_isxdigit(text[begin - 1]) ||
                         text[begin - 1] == 'x' || text[begin - 1] == '-')) {
      --begin;
    }
    text.erase(begin, relative - begin);
  }
  return text;
}

// Two functions are alike if these are.
std::string Comparable(absl::string_view text) {
  std::string comparable;
  for (const absl::string_view line : absl::StrSplit(text, '\n')) {
    const size_t tab = line.find(":\t");
    if (tab == absl::string_view::npos) continue;
    const std::string instruction = WithoutPlaces(line.substr(tab + 2));
    if (absl::StrContains(instruction, "nop")) continue;  // alignment
    absl::StrAppend(&comparable, instruction, "\n");
  }
  return comparable;
}

// The facts of one function's main loop; of all its code if it has no loop.
struct Mix {
  std::map<std::string, int64_t> facts;
  bool has_loop = false;

  explicit Mix(const std::string& text) : facts(ops::LoopFacts(text)) {
    has_loop = !facts.empty();
    if (has_loop || text.empty()) return;
    // A loop around the whole text.
    absl::string_view first = text;
    first = absl::StripLeadingAsciiWhitespace(first);
    first = first.substr(0, first.find(':'));
    facts =
        ops::LoopFacts(absl::StrCat(text, "\n7fffffffffff:\tjmp    ", first));
  }

  double Get(const std::string& name) const {
    const auto at = facts.find(name);
    return at == facts.end() ? 0 : static_cast<double>(at->second);
  }

  // Bits of one operation: on floating-point values, else on memory.
  double Width() const {
    const double vector = Get("loop_vector_fp");
    const double scalar = Get("loop_scalar_fp");
    if (vector + scalar > 0) {
      return (vector * Get("loop_vector_bits") + 32 * scalar) /
             (vector + scalar);
    }
    const double operands = Get("loop_memory_operands");
    return operands > 0 ? 8 * Get("loop_memory_bytes") / operands : 0;
  }

  double Values() const {
    return Get("loop_vector_fp") * Get("loop_vector_bits") / 32 +
           Get("loop_scalar_fp");
  }
};

// How many instructions' time such an instruction takes, roughly.
struct Weight {
  const char* fact;
  double instructions;
  const char* cause;
};
constexpr Weight kWeights[] = {
    {"loop_stack_accesses", 1, "values spilled to the stack"},
    {"loop_slow", 15, "divisions or roots in the loop"},
    {"loop_calls", 20, "calls in the loop"},
    {"loop_conversions", 2, "conversions between number formats"},
    {"loop_locked", 20, "locked instructions in the loop"},
    {"loop_gathers", 8, "gathers in the loop"},
};

struct Change {
  std::string name;
  double severity = 0;  // log of how much more is executed for the same data
  std::string cause;
  std::string facts;  // "instructions 12 -> 41, stack accesses 0 -> 18"
};

std::string FactsText(const Mix& before, const Mix& after) {
  constexpr std::pair<const char*, const char*> kNames[] = {
      {"loop_instructions", "instructions"},
      {"loop_vector_fp", "vector operations"},
      {"loop_vector_bits", "bits of a vector"},
      {"loop_scalar_fp", "scalar operations"},
      {"loop_stack_accesses", "stack accesses"},
      {"loop_slow", "divisions and roots"},
      {"loop_conversions", "conversions"},
      {"loop_calls", "calls"},
      {"loop_locked", "locked"},
      {"loop_gathers", "gathers"},
      {"loop_memory_bytes", "bytes read and written"},
  };
  std::vector<std::string> changed;
  for (const auto& [fact, name] : kNames) {
    if (before.Get(fact) == after.Get(fact)) continue;
    changed.push_back(absl::StrFormat("%s %.0f -> %.0f", name, before.Get(fact),
                                      after.Get(fact)));
  }
  return absl::StrJoin(changed, ", ");
}

Change CompareFunction(const std::string& name, const std::string& text_before,
                       const std::string& text_after) {
  Change change;
  change.name = name;
  const Mix before(text_before), after(text_after);
  change.facts = FactsText(before, after);
  if (!change.facts.empty()) {
    change.facts = absl::StrCat(
        before.has_loop && after.has_loop ? "main loop: " : "", change.facts);
  }
  // The data that an iteration works on.
  const auto data = [&](const char* fact, const Mix& mix) {
    return mix.Get(fact);
  };
  double units_before = data("loop_memory_bytes", before);
  double units_after = data("loop_memory_bytes", after);
  if (before.Values() > 0 && after.Values() > 0) {
    units_before = before.Values();
    units_after = after.Values();
  }
  if (units_before <= 0 || units_after <= 0) units_before = units_after = 1;
  const auto cost = [](const Mix& mix, double units) {
    double instructions = mix.Get("loop_instructions");
    for (const Weight& weight : kWeights) {
      instructions += (weight.instructions - 1) * mix.Get(weight.fact);
    }
    return std::max(instructions, 1.) / units;
  };
  const double cost_before = cost(before, units_before);
  change.severity = std::log(cost(after, units_after) / cost_before);
  double most = .1;
  const auto consider = [&](double effect, absl::string_view cause) {
    if (effect <= most) return;
    most = effect;
    change.cause = std::string(cause);
  };
  const double width_before = before.Width(), width_after = after.Width();
  if (width_after > 0 && width_before > width_after) {
    consider(
        std::log(width_before / width_after),
        absl::StrFormat("%s: %.0f -> %.0f bits an operation",
                        width_after <= 64 ? "vectors lost" : "narrower vectors",
                        width_before, width_after));
  }
  for (const Weight& weight : kWeights) {
    const double more = after.Get(weight.fact) / units_after -
                        before.Get(weight.fact) / units_before;
    if (more > 0) {
      consider(std::log1p(weight.instructions * more / cost_before),
               weight.cause);
    }
  }
  if (change.cause.empty() && change.severity > .1) {
    change.cause = "more instructions for the same data";
  }
  // A cause that other savings hide is a cause.
  if (most > .1) change.severity = std::max(change.severity, most);
  return change;
}

int64_t CountSass(absl::string_view text, absl::string_view instruction) {
  int64_t count = 0;
  for (const absl::string_view line : absl::StrSplit(text, '\n')) {
    for (const absl::string_view word :
         absl::StrSplit(line, absl::ByAnyChar(" \t"))) {
      const absl::string_view name = word.substr(0, word.find('.'));
      if (name == instruction) ++count;
    }
  }
  return count;
}

Change CompareKernel(const std::string& name, const std::string& before,
                     const std::string& after) {
  // Local loads and stores are spills; tensor cores by mma.sync and by wgmma.
  static constexpr std::pair<const char*, const char*> kSpills[] = {
      {"LDL", "local loads"}, {"STL", "local stores"}};
  static constexpr std::pair<const char*, const char*> kOthers[] = {
      {"HGMMA", "wgmma"},       {"HMMA", "mma"},
      {"FFMA", "f32 products"}, {"MUFU", "special functions"},
      {"BAR", "barriers"},      {"LDG", "global loads"},
      {"STG", "global stores"}, {"LDS", "shared loads"},
      {"STS", "shared stores"}, {"ATOM", "atomics"},
  };
  Change change;
  change.name = name;
  std::vector<std::string> facts;
  const auto lines = [](const std::string& text) {
    return std::count(text.begin(), text.end(), '\n');
  };
  if (lines(before) != lines(after)) {
    facts.push_back(
        absl::StrCat("instructions ", lines(before), " -> ", lines(after)));
  }
  const auto add = [&](const char* instruction, const char* text) {
    const int64_t a = CountSass(before, instruction);
    const int64_t b = CountSass(after, instruction);
    if (a != b) facts.push_back(absl::StrCat(text, " ", a, " -> ", b));
    return b - a;
  };
  int64_t spills = 0;
  for (const auto& [instruction, text] : kSpills) {
    spills += add(instruction, text);
  }
  const int64_t wgmma = add(kOthers[0].first, kOthers[0].second);
  const int64_t mma = add(kOthers[1].first, kOthers[1].second);
  for (size_t i = 2; i < std::size(kOthers); ++i) {
    add(kOthers[i].first, kOthers[i].second);
  }
  change.severity =
      std::log(std::max<double>(1, static_cast<double>(lines(after))) /
               std::max<double>(1, static_cast<double>(lines(before))));
  if (spills > 0) {
    change.cause = "registers spilled to local memory";
  } else if (wgmma < 0 || mma < 0) {
    change.cause = wgmma < 0 && mma > 0 ? "mma where wgmma was"
                                        : "fewer tensor core instructions";
  } else if (change.severity > .1) {
    change.cause = "more instructions";
  }
  if (spills > 0 || wgmma < 0 || mma < 0) change.severity += 10;
  change.facts = absl::StrJoin(facts, ", ");
  return change;
}

// The functions of both sides that differ, the worst first.
template <typename Compare>
std::vector<Change> Changes(const std::map<std::string, std::string>& before,
                            const std::map<std::string, std::string>& after,
                            const Compare& compare) {
  std::vector<Change> changes;
  for (const auto& [name, text] : before) {
    const auto now = after.find(name);
    if (now == after.end() || Comparable(text) == Comparable(now->second)) {
      continue;
    }
    changes.push_back(compare(name, text, now->second));
  }
  std::stable_sort(
      changes.begin(), changes.end(),
      [](const Change& a, const Change& b) { return a.severity > b.severity; });
  return changes;
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

struct Hunk {
  std::string file, line, function;
  std::vector<std::string> removed, added;
  int rank = 0;
};

// How a project is built or configured, beside its sources.
bool IsBuildFile(absl::string_view file) {
  const std::string name =
      std::filesystem::path(std::string(file)).filename().string();
  static const auto* const names = new std::set<std::string>{
      "CMakeLists.txt", "Makefile",     "BUILD",
      "BUILD.bazel",    "meson.build",  ".bazelrc",
      "WORKSPACE",      "MODULE.bazel", "Cargo.toml",
      "setup.py",       "SConstruct",   "configure.ac",
      "GNUmakefile",    "build.ninja",  "CMakePresets.json"};
  return names->count(name) > 0 || absl::EndsWith(name, ".cmake") ||
         absl::EndsWith(name, ".mk") || absl::EndsWith(name, ".bzl");
}

// People read these, and no program does.
bool IsDocument(absl::string_view file) {
  const std::string name =
      std::filesystem::path(std::string(file)).filename().string();
  return absl::EndsWith(name, ".md") || absl::EndsWith(name, ".rst") ||
         absl::EndsWith(name, ".adoc") || absl::StartsWith(name, "README") ||
         absl::StartsWith(name, "LICENSE") ||
         absl::StartsWith(name, "CHANGELOG");
}

bool IsComment(absl::string_view line) {
  line = absl::StripAsciiWhitespace(line);
  return line.empty() || absl::StartsWith(line, "//") ||
         absl::StartsWith(line, "/*") || absl::StartsWith(line, "*") ||
         (absl::StartsWith(line, "#") && !absl::StartsWith(line, "#define") &&
          !absl::StartsWith(line, "#pragma") &&
          !absl::StartsWith(line, "#if") && !absl::StartsWith(line, "#in"));
}

std::vector<Hunk> HunksOf(absl::string_view diff) {
  std::vector<Hunk> hunks;
  std::string file;
  bool in_hunk = false;
  for (const absl::string_view line : absl::StrSplit(diff, '\n')) {
    if (absl::StartsWith(line, "diff --git ")) {
      in_hunk = false;
    } else if (!in_hunk && absl::StartsWith(line, "+++ ")) {
      file = std::string(absl::StripPrefix(line.substr(4), "b/"));
    } else if (absl::StartsWith(line, "@@ ")) {
      // "@@ -12,3 +14,2 @@ float blur(const float* x)"
      in_hunk = true;
      Hunk& hunk = hunks.emplace_back();
      hunk.file = file;
      const std::vector<absl::string_view> words = absl::StrSplit(line, ' ');
      if (words.size() > 2) {
        hunk.line = std::string(words[2].substr(1, words[2].find(',') - 1));
      }
      const size_t end = line.find("@@", 2);
      if (end != absl::string_view::npos) {
        hunk.function = std::string(line.substr(end + 2));
      }
    } else if (in_hunk && !hunks.empty() && absl::StartsWith(line, "-")) {
      hunks.back().removed.emplace_back(line.substr(1));
    } else if (in_hunk && !hunks.empty() && absl::StartsWith(line, "+")) {
      hunks.back().added.emplace_back(line.substr(1));
    }
  }
  return hunks;
}

// The first line of a side that is code.
std::string FirstCode(const std::vector<std::string>& lines) {
  for (const std::string& line : lines) {
    if (!IsComment(line)) {
      return absl::StrCat("\"", Shortened(absl::StripAsciiWhitespace(line), 60),
                          "\"");
    }
  }
  return "nothing";
}

std::string HunkText(const Hunk& hunk) {
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

// Hunks that may matter: those of how it is built first, then those that name
// the worst function, then others, documents last; comments are left out.
std::vector<Hunk> RankedHunks(absl::string_view diff,
                              const std::string& function) {
  std::vector<Hunk> hunks;
  for (Hunk& hunk : HunksOf(diff)) {
    const bool only_comments =
        std::all_of(hunk.removed.begin(), hunk.removed.end(), IsComment) &&
        std::all_of(hunk.added.begin(), hunk.added.end(), IsComment);
    if (only_comments) continue;
    const auto names = [&](const std::string& text) {
      return !function.empty() && absl::StrContains(text, function);
    };
    const bool named =
        names(hunk.function) ||
        std::any_of(hunk.removed.begin(), hunk.removed.end(), names) ||
        std::any_of(hunk.added.begin(), hunk.added.end(), names);
    // A setting that was changed or removed, other than a target that is new.
    const bool is_setting = IsBuildFile(hunk.file) && !hunk.removed.empty();
    hunk.rank = is_setting               ? 0
                : IsDocument(hunk.file)  ? 4
                : named                  ? 1
                : IsBuildFile(hunk.file) ? 3
                                         : 2;
    hunks.push_back(std::move(hunk));
  }
  std::stable_sort(
      hunks.begin(), hunks.end(),
      [](const Hunk& a, const Hunk& b) { return a.rank < b.rank; });
  return hunks;
}

std::string ChangeText(const char* what, const Change& change) {
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
  const std::vector<Change> kernels =
      Changes(before.kernels, after.kernels, CompareKernel);
  const std::vector<Change> functions =
      Changes(before.functions, after.functions, CompareFunction);
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
  const std::vector<Hunk> hunks = RankedHunks(source_diff, worst);
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

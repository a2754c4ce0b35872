#include "diagnosis/code_change.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <iterator>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "ops/core/instruction_mix.h"

namespace optrail::diagnosis {
namespace {

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
CodeChange CompareFunction(const std::string& name,
                           const std::string& text_before,
                           const std::string& text_after) {
  CodeChange change;
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

CodeChange CompareKernel(const std::string& name, const std::string& before,
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
  CodeChange change;
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
std::vector<CodeChange> Changes(const CodeTexts& before, const CodeTexts& after,
                                const Compare& compare) {
  std::vector<CodeChange> changes;
  for (const auto& [name, text] : before) {
    const auto now = after.find(name);
    if (now == after.end() || Comparable(text) == Comparable(now->second)) {
      continue;
    }
    changes.push_back(compare(name, text, now->second));
  }
  std::stable_sort(changes.begin(), changes.end(),
                   [](const CodeChange& a, const CodeChange& b) {
                     return a.severity > b.severity;
                   });
  return changes;
}

}  // namespace

std::vector<CodeChange> ChangedFunctions(const CodeTexts& before,
                                         const CodeTexts& after) {
  return Changes(before, after, CompareFunction);
}

std::vector<CodeChange> ChangedKernels(const CodeTexts& before,
                                       const CodeTexts& after) {
  return Changes(before, after, CompareKernel);
}

}  // namespace optrail::diagnosis

#include "ops/core/instruction_mix.h"

#include <algorithm>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"

namespace optrail::ops {
namespace {

struct Instruction {
  int64_t address = 0;
  absl::string_view name, operands;
  int64_t jumps_to = -1;
};

// "    1140:\tvmovss (%rdi,%rbx,4),%xmm1"
bool Parse(absl::string_view line, Instruction* instruction) {
  const size_t colon = line.find(":\t");
  if (colon == absl::string_view::npos) return false;
  const absl::string_view address =
      absl::StripAsciiWhitespace(line.substr(0, colon));
  if (!absl::SimpleHexAtoi(address, &instruction->address)) return false;
  const absl::string_view text =
      absl::StripAsciiWhitespace(line.substr(colon + 2));
  const size_t space = text.find(' ');
  instruction->name = text.substr(0, space);
  if (space != absl::string_view::npos) {
    instruction->operands = absl::StripAsciiWhitespace(text.substr(space));
  }
  if (absl::StartsWith(instruction->name, "j") &&
      !absl::StartsWith(instruction->operands, "*")) {
    const absl::string_view target =
        instruction->operands.substr(0, instruction->operands.find(' '));
    int64_t to = 0;
    if (absl::SimpleHexAtoi(target, &to)) instruction->jumps_to = to;
  }
  return true;
}

bool EndsInOne(absl::string_view name,
               std::initializer_list<absl::string_view> ends) {
  return std::any_of(ends.begin(), ends.end(), [&](absl::string_view end) {
    return absl::EndsWith(name, end);
  });
}

bool IsArithmetic(absl::string_view name) {
  static constexpr absl::string_view kWords[] = {
      "add", "sub", "mul", "fma", "fnm", "div", "sqrt", "max", "min", "rcp"};
  return EndsInOne(name, {"ps", "pd", "ss", "sd", "ph", "sh"}) &&
         std::any_of(std::begin(kWords), std::end(kWords),
                     [&](absl::string_view word) {
                       return absl::StrContains(name, word);
                     });
}

int VectorBits(absl::string_view operands) {
  if (absl::StrContains(operands, "%zmm")) return 512;
  return absl::StrContains(operands, "%ymm") ? 256 : 128;
}

bool IsOnStack(absl::string_view operands) {
  return absl::StrContains(operands, "(%rsp") ||
         absl::StrContains(operands, "(%rbp");
}

// The bytes that an instruction with an operand in memory reads or writes, by
// its registers and its name.
int64_t MemoryBytes(absl::string_view name, absl::string_view operands) {
  if (!absl::StrContains(operands, '(') || IsOnStack(operands) ||
      absl::StrContains(operands, "(%rip") || absl::StartsWith(name, "lea") ||
      absl::StartsWith(name, "nop") || absl::StartsWith(name, "call") ||
      absl::StartsWith(name, "j") || absl::StartsWith(name, "prefetch")) {
    return 0;
  }
  if (absl::StrContains(operands, "%zmm")) return 64;
  if (absl::StrContains(operands, "%ymm")) return 32;
  if (absl::StrContains(operands, "%xmm")) {
    if (EndsInOne(name, {"ss", "ssl"})) return 4;
    if (EndsInOne(name, {"sd", "q"})) return 8;
    return absl::EndsWith(name, "vd") || absl::EndsWith(name, "sl") ? 4 : 16;
  }
  if (EndsInOne(name, {"b", "bl", "bw", "bq"})) return 1;
  if (EndsInOne(name, {"w", "wl", "wq"})) return 2;
  return absl::StrContains(operands, "%r") &&
                 !absl::StrContains(operands, ",%e") &&
                 !absl::StartsWith(operands, "%e") && !EndsInOne(name, {"l"})
             ? 8
             : 4;
}

struct Counts {
  int64_t instructions = 0, vector = 0, scalar = 0, bits = 0, stack = 0;
  int64_t memory_bytes = 0, memory_operands = 0;
  int64_t slow = 0, conversions = 0, calls = 0, locked = 0, gathers = 0;

  void Add(const Instruction& instruction) {
    const absl::string_view name = instruction.name;
    ++instructions;
    if (IsArithmetic(name)) {
      if (EndsInOne(name, {"ss", "sd", "sh"})) {
        ++scalar;
      } else {
        ++vector;
        bits += VectorBits(instruction.operands);
      }
    }
    stack += IsOnStack(instruction.operands);
    const int64_t bytes = MemoryBytes(name, instruction.operands);
    memory_bytes += bytes;
    memory_operands += bytes > 0;
    slow += absl::StrContains(name, "div") || absl::StrContains(name, "sqrt");
    conversions += absl::StrContains(name, "cvt");
    calls += absl::StartsWith(name, "call");
    locked += name == "lock" || absl::StartsWith(name, "xchg");
    gathers += absl::StrContains(name, "gather");
  }
};

using Range = std::pair<int64_t, int64_t>;  // first and last instruction

int64_t IndexOf(const std::vector<Instruction>& code, int64_t address) {
  return std::lower_bound(code.begin(), code.end(), address,
                          [](const Instruction& instruction, int64_t address) {
                            return instruction.address < address;
                          }) -
         code.begin();
}

// Returns whether control gets from the first instruction of the range to the
// last without leaving it. A block that was moved out of the way jumps back,
// too, and that is no loop.
bool ReachesItsEnd(const std::vector<Instruction>& code, const Range& range) {
  const auto [first, last] = range;
  std::vector<bool> reached(last - first + 1);
  std::vector<int64_t> open = {first};
  while (!open.empty()) {
    int64_t i = open.back();
    open.pop_back();
    while (i >= first && i < last && !reached[i - first]) {
      reached[i - first] = true;
      const Instruction& instruction = code[i];
      if (instruction.jumps_to >= 0) {
        open.push_back(IndexOf(code, instruction.jumps_to));
      }
      if (absl::StartsWith(instruction.name, "jmp") ||
          absl::StartsWith(instruction.name, "ret")) {
        break;
      }
      ++i;
    }
    if (i == last) return true;
  }
  return false;
}

// Loops as ranges of instructions, from where a backward jump leads to it.
std::vector<Range> LoopsOf(const std::vector<Instruction>& code) {
  std::vector<Range> loops;
  for (size_t i = 0; i < code.size(); ++i) {
    // A jump to itself is no loop, and none inside another.
    if (code[i].jumps_to < 0 || code[i].jumps_to >= code[i].address) continue;
    const Range range = {IndexOf(code, code[i].jumps_to),
                         static_cast<int64_t>(i)};
    if (ReachesItsEnd(code, range)) loops.push_back(range);
  }
  return loops;
}

}  // namespace

std::map<std::string, int64_t> LoopFacts(absl::string_view disassembly) {
  std::vector<Instruction> code;
  for (const absl::string_view line : absl::StrSplit(disassembly, '\n')) {
    Instruction instruction;
    if (Parse(line, &instruction)) code.push_back(instruction);
  }
  std::vector<std::pair<Range, Counts>> loops;
  for (const Range& range : LoopsOf(code)) {
    Counts counts;
    for (int64_t i = range.first; i <= range.second; ++i) counts.Add(code[i]);
    loops.emplace_back(range, counts);
  }
  Counts best;
  // By the values that one iteration computes: the remainder of a vectorised
  // loop is often unrolled into more instructions than the loop itself.
  const auto rank = [](const Counts& counts) {
    return std::make_tuple(counts.bits / 32 + counts.scalar,
                           counts.memory_bytes, counts.instructions);
  };
  for (const auto& [range, counts] : loops) {
    // A loop around this one may begin at the same instruction. One inside that
    // computes nothing, as a spin lock's, does not make this one an outer loop.
    const auto [first, last] = range;
    const bool computes = counts.vector + counts.scalar > 0;
    const bool is_innermost =
        std::none_of(loops.begin(), loops.end(),
                     [&, first = first, last = last](auto& other) {
                       const auto& [inner, inside] = other;
                       return inner.first >= first && inner.second <= last &&
                              inner.second - inner.first < last - first &&
                              !(computes && inside.vector + inside.scalar == 0);
                     });
    if (is_innermost && rank(counts) > rank(best)) best = counts;
  }
  if (best.instructions == 0) return {};
  return {{"loop_instructions", best.instructions},
          {"loop_vector_fp", best.vector},
          {"loop_scalar_fp", best.scalar},
          {"loop_vector_bits", best.vector > 0 ? best.bits / best.vector : 0},
          {"loop_stack_accesses", best.stack},
          {"loop_slow", best.slow},
          {"loop_conversions", best.conversions},
          {"loop_memory_bytes", best.memory_bytes},
          {"loop_memory_operands", best.memory_operands},
          {"loop_calls", best.calls},
          {"loop_locked", best.locked},
          {"loop_gathers", best.gathers}};
}

}  // namespace optrail::ops

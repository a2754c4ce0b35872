#include "ops/device/cuda/ablation.h"

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "re2/re2.h"

namespace optrail::ops::cuda {
namespace {

constexpr char kOption[] = "--optrail-ablation=";
// Aliased operands are mapped by granules of this size, in bytes.
constexpr int64_t kGranule = 2 << 20;
constexpr int64_t kNearBytes = 8 << 10;
constexpr int kLanes = 32;
constexpr int kBankBytes = 128;  // all banks, 4 bytes each

struct Name {
  Ablation ablation;
  const char* name;
  const char* changes;  // what there must be
};
constexpr Name kNames[] = {
    {Ablation::kNone, "none", ""},
    {Ablation::kCoalesced, "coalesced", "accesses of global memory"},
    {Ablation::kNear, "near", "loads from global memory"},
    {Ablation::kConflictFree, "conflict_free", "accesses of shared memory"},
    {Ablation::kPlainStores, "plain_stores", "atomic operations on floats"},
    {Ablation::kNoLocalArrays, "no_local_arrays", "arrays in local memory"},
    {Ablation::kAllRegisters, "all_registers", "bounds of registers"},
};

const Name& NameOf(Ablation ablation) {
  return *std::find_if(
      std::begin(kNames), std::end(kNames),
      [&](const Name& name) { return name.ablation == ablation; });
}

// One statement that accesses memory: "@%p1 ld.global.v4.f32 {...}, [%rd1+4];".
struct Access {
  std::string guard;     // "@%p1 " or ""
  std::string mnemonic;  // "ld.global.v4.f32"
  std::string before;    // operands up to the address: "{...}, "
  std::string base;      // "%rd1"
  int64_t offset = 0;
  std::string after;  // from the address on: ""
  std::vector<std::string> parts;

  bool Has(absl::string_view part) const {
    return std::find(parts.begin(), parts.end(), part) != parts.end();
  }
  bool is_copy() const { return parts[0] == "cp"; }
  bool is_atomic() const { return parts[0] == "atom" || parts[0] == "red"; }
  // Blocks wait for it: a loop that looks for it elsewhere would never end.
  bool synchronises() const {
    return Has("global") && (Has("volatile") || Has("relaxed") ||
                             Has("acquire") || Has("release") || Has("mmio"));
  }
  // How many bytes a lane accesses; 0: not known.
  int64_t bytes() const {
    if (is_copy()) {
      int64_t bytes = 0;
      static const LazyRE2 kBytes = {R"(\s*,\s*(\d+).*)"};
      return RE2::FullMatch(after, *kBytes, &bytes) ? bytes : 0;
    }
    const int64_t lanes = Has("v4") ? 4 : Has("v2") ? 2 : 1;
    int64_t bits = 0;
    static const LazyRE2 kType = {"(?:[bsuf]|bf)(8|16|32|64)(?:x2)?"};
    if (!RE2::FullMatch(parts.back(), *kType, &bits)) return 0;
    return lanes * bits / 8 * (absl::EndsWith(parts.back(), "x2") ? 2 : 1);
  }
  std::string With(absl::string_view address) const {
    return absl::StrCat(guard, mnemonic, " ", before, "[", address, "]", after,
                        ";");
  }
};

absl::optional<Access> ParseAccess(absl::string_view line) {
  static const LazyRE2 kAccess = {
      R"(\s*(@!?%\w+\s+)?((?:ld|st|atom|red|cp\.async)\.[\w.:]+)\s+)"
      R"(([^;\[]*(?:\[[^\]]*\]\s*,\s*)?)\[\s*([%$\w]+)\s*(?:\+\s*(-?\d+))?\s*\])"
      R"(([^;\[]*);\s*)"};
  Access access;
  std::string offset;
  if (!RE2::FullMatch(re2::StringPiece(line.data(), line.size()), *kAccess,
                      &access.guard, &access.mnemonic, &access.before,
                      &access.base, &offset, &access.after)) {
    return absl::nullopt;
  }
  access.parts = absl::StrSplit(access.mnemonic, '.');
  // Only a copy into shared memory has two addresses; its last is global. A
  // bulk copy may go either way.
  if (absl::StrContains(access.before, "[") != access.is_copy() ||
      access.Has("bulk")) {
    return absl::nullopt;
  }
  if (!offset.empty() && !absl::SimpleAtoi(offset, &access.offset)) {
    return absl::nullopt;
  }
  return access;
}

bool IsGlobal(const Access& access) {
  return access.Has("global") && !access.is_atomic();
}

// %ol is the first lane of the warp that makes the access, %om all that came
// here.
std::string FindLeader(const Access& access) {
  std::string code = ".reg .b32 %om, %ob, %ol, %on;\nactivemask.b32 %om;\n";
  if (access.guard.empty()) {
    absl::StrAppend(&code, "mov.b32 %ob, %om;\n");
  } else {
    absl::string_view predicate = access.guard;
    absl::ConsumePrefix(&predicate, "@");
    absl::StrAppend(&code, "vote.sync.ballot.b32 %ob, ", predicate, ", %om;\n");
  }
  return absl::StrCat(code,
                      "brev.b32 %ol, %ob;\nclz.b32 %ol, %ol;\n"
                      "mov.u32 %on, %laneid;\n");
}

std::string Coalesced(const Access& access) {
  const int64_t bytes = access.bytes();
  return absl::StrCat("{\n", FindLeader(access),
                      ".reg .b32 %oh;\n.reg .b64 %oa;\n", "add.s64 %oa, ",
                      access.base, ", ", access.offset, ";\n",
                      "mov.b64 {%ob, %oh}, %oa;\n",
                      "shfl.sync.idx.b32 %ob, %ob, %ol, 31, %om;\n",
                      "shfl.sync.idx.b32 %oh, %oh, %ol, 31, %om;\n",
                      "mov.b64 %oa, {%ob, %oh};\n", "and.b64 %oa, %oa, ",
                      -kLanes * bytes, ";\n", "mad.wide.u32 %oa, %on, ", bytes,
                      ", %oa;\n", access.With("%oa"), "\n}");
}

std::string Near(const Access& access) {
  return absl::StrCat("{\n.reg .b64 %oa, %ob;\nadd.s64 %oa, ", access.base,
                      ", ", access.offset, ";\nand.b64 %ob, %oa, ",
                      kNearBytes - 1, ";\nand.b64 %oa, %oa, ", -kGranule,
                      ";\nor.b64 %oa, %oa, %ob;\n", access.With("%oa"), "\n}");
}

std::string ConflictFree(const Access& access) {
  const bool wide = absl::StartsWith(access.base, "%rd");
  return absl::StrCat("{\n", FindLeader(access), ".reg .b32 %oa;\n",
                      wide ? "cvt.u32.u64" : "mov.b32", " %oa, ", access.base,
                      ";\nadd.s32 %oa, %oa, ", access.offset, ";\n",
                      "shfl.sync.idx.b32 %oa, %oa, %ol, 31, %om;\n",
                      "and.b32 %oa, %oa, ", -kBankBytes, ";\n",
                      "mul.lo.u32 %on, %on, ", access.bytes(), ";\n",
                      "and.b32 %on, %on, ", kBankBytes - 1, ";\n",
                      "add.s32 %oa, %oa, %on;\n", access.With("%oa"), "\n}");
}

// nullopt: not one of those.
absl::optional<std::string> PlainStore(const Access& access) {
  static const LazyRE2 kFloat = {"(?:f|bf)(?:16|32|64)(?:x2)?"};
  if (!access.is_atomic() || access.Has("shared") || access.Has("v2") ||
      access.Has("v4") || access.bytes() == 0 ||
      !RE2::FullMatch(access.parts.back(), *kFloat)) {
    return absl::nullopt;
  }
  std::string value = access.after;
  static const LazyRE2 kValue = {R"(\s*,\s*([%\w]+)\s*)"};
  if (!RE2::FullMatch(access.after, *kValue, &value)) return absl::nullopt;
  const std::string type = absl::StrCat("b", 8 * access.bytes());
  std::string code = absl::StrCat(
      access.guard, access.Has("global") ? "st.global." : "st.", type, " [",
      access.base, "+", access.offset, "], ", value, ";");
  if (access.parts[0] == "atom") {
    static const LazyRE2 kResult = {R"(\s*([%\w]+)\s*,\s*)"};
    std::string result;
    if (!RE2::FullMatch(access.before, *kResult, &result)) return absl::nullopt;
    absl::StrAppend(&code, "\n", access.guard, "mov.", type, " ", result, ", ",
                    value, ";");
  }
  return code;
}

class Ablator {
 public:
  explicit Ablator(Ablation ablation) : ablation_(ablation) {}

  std::string Line(absl::string_view line) {
    static const LazyRE2 kDepot = {R"(\s*\.local.*\s(__local_depot\d+)\[.*)"};
    static const LazyRE2 kBound = {R"(\s*\.(minnctapersm|maxnreg)\s.*)"};
    const re2::StringPiece piece(line.data(), line.size());
    RE2::FullMatch(piece, *kDepot, &depot_);
    if (ablation_ == Ablation::kAllRegisters &&
        RE2::FullMatch(piece, *kBound)) {
      ++changed_;
      return "";
    }
    const absl::optional<Access> access = ParseAccess(line);
    if (!access || (access->synchronises() && !access->is_atomic())) {
      return std::string(line);
    }
    const absl::optional<std::string> code = Changed(*access);
    if (!code) return std::string(line);
    ++changed_;
    return *code;
  }
  int changed() const { return changed_; }

 private:
  absl::optional<std::string> Changed(const Access& access) const {
    const bool by_register = absl::StartsWith(access.base, "%");
    switch (ablation_) {
      case Ablation::kCoalesced:
        if (!by_register || !IsGlobal(access) || access.bytes() == 0) break;
        return Coalesced(access);
      case Ablation::kNear:
        if (!by_register || !IsGlobal(access) || access.parts[0] == "st") break;
        return Near(access);
      case Ablation::kConflictFree:
        if (!by_register || access.is_copy() || access.is_atomic() ||
            access.bytes() == 0 ||
            !(access.Has("shared") || access.Has("shared::cta"))) {
          break;
        }
        return ConflictFree(access);
      case Ablation::kPlainStores:
        return PlainStore(access);
      case Ablation::kNoLocalArrays:
        if (!access.Has("local") || depot_.empty()) break;
        return access.With(depot_);
      default:
        break;
    }
    return absl::nullopt;
  }

  const Ablation ablation_;
  std::string depot_;  // where the current function has its arrays
  int changed_ = 0;
};

}  // namespace

std::string AblationOption(Ablation ablation) {
  return absl::StrCat(kOption, NameOf(ablation).name);
}

absl::StatusOr<RecipeOptions> SplitAblation(
    const std::vector<std::string>& options) {
  RecipeOptions split;
  for (const std::string& option : options) {
    absl::string_view name = option;
    if (!absl::ConsumePrefix(&name, kOption)) {
      split.compiler.push_back(option);
      continue;
    }
    for (const Name& known : kNames) {
      if (known.name == name) split.ablation = known.ablation;
    }
    if (!split.ablation) {
      return absl::InvalidArgumentError(
          absl::StrCat("option ", option, ": there is no such ablation"));
    }
  }
  return split;
}

absl::StatusOr<std::string> Ablate(absl::string_view ptx, Ablation ablation) {
  if (ptx.empty()) {
    return absl::UnimplementedError("unsupported here: NVRTC gave no PTX");
  }
  if (ablation == Ablation::kNone) return std::string(ptx);
  Ablator ablator(ablation);
  std::vector<std::string> lines;
  for (const absl::string_view line : absl::StrSplit(ptx, '\n')) {
    lines.push_back(ablator.Line(line));
  }
  if (ablator.changed() == 0) {
    return absl::UnimplementedError(absl::StrCat(
        "unsupported here: the kernel has no ", NameOf(ablation).changes));
  }
  return absl::StrJoin(lines, "\n");
}

std::map<std::string, int64_t> FactsOfPtx(absl::string_view ptx) {
  std::map<std::string, int64_t> facts = {{"global_accesses", 0},
                                          {"narrow_accesses", 0},
                                          {"tensor_instructions", 0}};
  static const LazyRE2 kTensor = {
      R"(\s*(@!?%\w+\s+)?(mma\.sync|wgmma\.mma).*)"};
  for (const absl::string_view line : absl::StrSplit(ptx, '\n')) {
    if (RE2::FullMatch(re2::StringPiece(line.data(), line.size()), *kTensor)) {
      ++facts["tensor_instructions"];
    }
    const absl::optional<Access> access = ParseAccess(line);
    if (!access || !IsGlobal(*access) || access->bytes() == 0) continue;
    ++facts["global_accesses"];
    facts["narrow_accesses"] += access->bytes() < 4;
  }
  return facts;
}

}  // namespace optrail::ops::cuda

#include "ops/device/cpu/microarchitecture.h"

#include <algorithm>
#include <iterator>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace optrail::ops {
namespace {

// What a microarchitecture can do at most, in the order in which vendors added
// it. A flag above a model's level proves that the model number is not true.
enum Level {
  kSse = 0,
  kAvx,
  kAvx2,
  kAvx512,
  kAvx512Vnni,
  kAvx512Bf16,
  kAmx,  // and AVX-512 FP16
  kAmxFp16,
};

struct FlagLevel {
  const char* flag;
  Level level;
};
constexpr FlagLevel kIntelFlagLevels[] = {
    {"avx", kAvx},
    {"avx2", kAvx2},
    {"avx512f", kAvx512},
    {"avx512_vnni", kAvx512Vnni},
    {"avx512_bf16", kAvx512Bf16},
    {"avx512_fp16", kAmx},
    {"amx_tile", kAmx},
    {"amx_fp16", kAmxFp16},
};
// AMD's generations: Zen 4 brought AVX-512 with VNNI and bfloat16 at once; Zen
// 5 is told from it by VP2INTERSECT.
constexpr FlagLevel kAmdFlagLevels[] = {
    {"avx", kAvx},
    {"avx2", kAvx2},
    {"avx512f", kAvx512Bf16},
    {"avx512_vp2intersect", kAmx},
};

struct Model {
  int family;
  int first_model, last_model;
  int first_stepping, last_stepping;
  const char* name;
  Level level;
};

constexpr int kAny = 1 << 30;

// Server processors first.
constexpr Model kIntel[] = {
    {6, 45, 45, 0, kAny, "sandy-bridge", kAvx},
    {6, 62, 62, 0, kAny, "ivy-bridge", kAvx},
    {6, 63, 63, 0, kAny, "haswell", kAvx2},
    {6, 79, 79, 0, kAny, "broadwell", kAvx2},
    {6, 86, 86, 0, kAny, "broadwell", kAvx2},
    {6, 85, 85, 0, 4, "skylake-sp", kAvx512},
    {6, 85, 85, 5, 7, "cascade-lake", kAvx512Vnni},
    {6, 85, 85, 8, kAny, "cooper-lake", kAvx512Bf16},
    {6, 106, 106, 0, kAny, "ice-lake-sp", kAvx512Vnni},
    {6, 108, 108, 0, kAny, "ice-lake-sp", kAvx512Vnni},
    {6, 143, 143, 0, kAny, "sapphire-rapids", kAmx},
    {6, 207, 207, 0, kAny, "emerald-rapids", kAmx},
    {6, 173, 174, 0, kAny, "granite-rapids", kAmxFp16},
    {6, 175, 175, 0, kAny, "sierra-forest", kAvx2},
    // Desktops and laptops.
    {6, 42, 42, 0, kAny, "sandy-bridge", kAvx},
    {6, 58, 58, 0, kAny, "ivy-bridge", kAvx},
    {6, 60, 60, 0, kAny, "haswell", kAvx2},
    {6, 69, 70, 0, kAny, "haswell", kAvx2},
    {6, 61, 61, 0, kAny, "broadwell", kAvx2},
    {6, 71, 71, 0, kAny, "broadwell", kAvx2},
    {6, 78, 78, 0, kAny, "skylake", kAvx2},
    {6, 94, 94, 0, kAny, "skylake", kAvx2},
    {6, 142, 142, 0, kAny, "kaby-lake", kAvx2},
    {6, 158, 158, 0, kAny, "kaby-lake", kAvx2},
    {6, 165, 166, 0, kAny, "comet-lake", kAvx2},
    {6, 125, 126, 0, kAny, "ice-lake", kAvx512Vnni},
    {6, 140, 141, 0, kAny, "tiger-lake", kAvx512Vnni},
    {6, 167, 167, 0, kAny, "rocket-lake", kAvx512Vnni},
    {6, 151, 151, 0, kAny, "alder-lake", kAvx2},
    {6, 154, 154, 0, kAny, "alder-lake", kAvx2},
    {6, 183, 183, 0, kAny, "raptor-lake", kAvx2},
    {6, 186, 186, 0, kAny, "raptor-lake", kAvx2},
    {6, 191, 191, 0, kAny, "raptor-lake", kAvx2},
    {6, 170, 170, 0, kAny, "meteor-lake", kAvx2},
    {6, 172, 172, 0, kAny, "meteor-lake", kAvx2},
    {6, 189, 189, 0, kAny, "lunar-lake", kAvx2},
    {6, 197, 198, 0, kAny, "arrow-lake", kAvx2},
};

constexpr Model kAmd[] = {
    {23, 0x00, 0x2f, 0, kAny, "zen", kAvx2},
    {23, 0x30, 0xff, 0, kAny, "zen2", kAvx2},
    {25, 0x00, 0x0f, 0, kAny, "zen3", kAvx2},
    {25, 0x10, 0x1f, 0, kAny, "zen4", kAvx512Bf16},
    {25, 0x20, 0x5f, 0, kAny, "zen3", kAvx2},
    {25, 0x60, 0x7f, 0, kAny, "zen4", kAvx512Bf16},
    {25, 0xa0, 0xaf, 0, kAny, "zen4", kAvx512Bf16},
    {26, 0x00, 0x4f, 0, kAny, "zen5", kAmx},
    {26, 0x60, 0x7f, 0, kAny, "zen5", kAmx},
};

// For a model number that is not true: the oldest that has the level.
struct ByLevel {
  Level level;
  const char* name;
};
constexpr ByLevel kIntelByLevel[] = {
    {kAvx, "sandy-bridge"},       {kAvx2, "haswell"},
    {kAvx512, "skylake-sp"},      {kAvx512Vnni, "cascade-lake"},
    {kAvx512Bf16, "cooper-lake"}, {kAmx, "sapphire-rapids"},
    {kAmxFp16, "granite-rapids"},
};
constexpr ByLevel kAmdByLevel[] = {
    {kAvx2, "zen"},
    {kAvx512Bf16, "zen4"},
    {kAmx, "zen5"},
};

struct Vendor {
  const Model* models_begin;
  const Model* models_end;
  const FlagLevel* flags_begin;
  const FlagLevel* flags_end;
  const ByLevel* levels_begin;
  const ByLevel* levels_end;
};
const Vendor kIntelVendor = {
    std::begin(kIntel),           std::end(kIntel),
    std::begin(kIntelFlagLevels), std::end(kIntelFlagLevels),
    std::begin(kIntelByLevel),    std::end(kIntelByLevel)};
const Vendor kAmdVendor = {std::begin(kAmd),           std::end(kAmd),
                           std::begin(kAmdFlagLevels), std::end(kAmdFlagLevels),
                           std::begin(kAmdByLevel),    std::end(kAmdByLevel)};

// "xeon" of "Intel(R) Xeon(R) Platinum 8488C"; "cpu" if no brand is known.
std::string Brand(absl::string_view model_name) {
  const std::string lower = absl::AsciiStrToLower(model_name);
  for (const char* brand : {"xeon", "epyc", "ryzen", "threadripper", "core",
                            "celeron", "pentium", "atom"}) {
    if (absl::StrContains(lower, brand)) return brand;
  }
  return "cpu";
}

std::string ArmName(int implementer, int part) {
  struct Part {
    int implementer, part;
    const char* name;
  };
  static constexpr Part kParts[] = {
      {0x41, 0xd08, "arm-cortex-a72"},  {0x41, 0xd0c, "arm-neoverse-n1"},
      {0x41, 0xd40, "arm-neoverse-v1"}, {0x41, 0xd49, "arm-neoverse-n2"},
      {0x41, 0xd4f, "arm-neoverse-v2"}, {0x41, 0xd84, "arm-neoverse-v3"},
      {0x41, 0xd8e, "arm-neoverse-n3"}, {0xc0, 0xac3, "ampere-one"},
      {0x46, 0x001, "fujitsu-a64fx"},
  };
  for (const Part& known : kParts) {
    if (known.implementer == implementer && known.part == part) {
      return known.name;
    }
  }
  return absl::StrCat("arm-impl", implementer, "-part", part);
}

Microarchitecture ClassifyX86(const Vendor& vendor, const std::string& prefix,
                              int family, int model, int stepping,
                              const std::set<std::string>& flags) {
  Level shown = kSse;
  for (const FlagLevel* flag = vendor.flags_begin; flag != vendor.flags_end;
       ++flag) {
    if (flags.count(flag->flag) != 0) shown = std::max(shown, flag->level);
  }
  const bool shows_avx512 = flags.count("avx512f") != 0;
  const Model* const found = std::find_if(
      vendor.models_begin, vendor.models_end, [&](const Model& entry) {
        return entry.family == family && entry.first_model <= model &&
               model <= entry.last_model && entry.first_stepping <= stepping &&
               stepping <= entry.last_stepping;
      });
  Microarchitecture result;
  if (found == vendor.models_end) {
    result.name = absl::StrCat(prefix, "-fam", family, "-mod", model);
    return result;
  }
  if (shown <= found->level) {
    result.name = absl::StrCat(prefix, "-", found->name);
    result.hides_avx512 = found->level >= kAvx512 && !shows_avx512;
    return result;
  }
  const ByLevel* const by_level =
      std::find_if(vendor.levels_begin, vendor.levels_end,
                   [&](const ByLevel& entry) { return entry.level >= shown; });
  result.name = absl::StrCat(prefix, "-", by_level->name);
  return result;
}

}  // namespace

Microarchitecture Classify(absl::string_view vendor,
                           absl::string_view model_name, int family, int model,
                           int stepping, const std::set<std::string>& flags) {
  if (vendor == "GenuineIntel") {
    return ClassifyX86(kIntelVendor, "intel-" + Brand(model_name), family,
                       model, stepping, flags);
  }
  if (vendor == "AuthenticAMD") {
    return ClassifyX86(kAmdVendor, "amd-" + Brand(model_name), family, model,
                       stepping, flags);
  }
  if (vendor == "ARM") return {ArmName(family, model), false};
  std::string name;
  for (char c : absl::AsciiStrToLower(vendor.empty() ? "unknown" : vendor)) {
    if (absl::ascii_isalnum(c)) name += c;
  }
  return {absl::StrCat(name, "-fam", family, "-mod", model), false};
}

bool MattersToKernels(absl::string_view flag) {
  for (const char* prefix : {"avx", "amx_", "sve", "bf16", "i8mm"}) {
    if (absl::StartsWith(flag, prefix)) return true;
  }
  for (const char* name :
       {"sse4_1", "sse4_2", "ssse3", "fma", "f16c", "bmi1", "bmi2", "movbe",
        "popcnt", "vaes", "vpclmulqdq", "gfni", "clflushopt", "asimd",
        "asimdhp", "asimddp", "fphp", "sme", "sme2"}) {
    if (flag == name) return true;
  }
  return false;
}

}  // namespace optrail::ops

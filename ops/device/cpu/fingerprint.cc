#include "ops/device/cpu/fingerprint.h"

#include <algorithm>
#include <map>
#include <set>
#include <sstream>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "base/file/file.h"
#include "base/process/cpus.h"
#include "ops/device/cpu/microarchitecture.h"

namespace optrail::ops {
namespace {

std::string TextOf(const std::string& path) {
  return ReadFile(path).value_or("");
}

// The "key : value" lines of the first processor in /proc/cpuinfo.
std::map<std::string, std::string> FirstProcessor(const std::string& cpuinfo) {
  std::map<std::string, std::string> fields;
  for (absl::string_view line : absl::StrSplit(cpuinfo, '\n')) {
    if (absl::StripAsciiWhitespace(line).empty()) {
      if (!fields.empty()) break;
      continue;
    }
    const std::pair<absl::string_view, absl::string_view> parts =
        absl::StrSplit(line, absl::MaxSplits(':', 1));
    fields.emplace(absl::StripAsciiWhitespace(parts.first),
                   absl::StripAsciiWhitespace(parts.second));
  }
  return fields;
}

int IntField(const std::map<std::string, std::string>& fields,
             const std::string& name) {
  const auto found = fields.find(name);
  if (found == fields.end()) return 0;
  int value = 0;
  if (absl::SimpleAtoi(found->second, &value)) return value;
  if (absl::SimpleHexAtoi(found->second, &value)) return value;
  return 0;
}

std::string TextField(const std::map<std::string, std::string>& fields,
                      const std::string& name) {
  const auto found = fields.find(name);
  return found == fields.end() ? "" : found->second;
}

// "48K" and "2M" as sysfs writes them.
absl::optional<int64_t> ParseSize(absl::string_view text) {
  text = absl::StripAsciiWhitespace(text);
  int64_t unit = 1;
  if (absl::EndsWith(text, "K")) unit = 1 << 10;
  if (absl::EndsWith(text, "M")) unit = 1 << 20;
  if (unit != 1) text.remove_suffix(1);
  int64_t value = 0;
  if (!absl::SimpleAtoi(text, &value)) return absl::nullopt;
  return value * unit;
}

void ReadCaches(const std::string& root, CpuFacts& facts) {
  for (int index = 0; index < 8; ++index) {
    const std::string folder = absl::StrCat(
        root, "/sys/devices/system/cpu/cpu0/cache/index", index, "/");
    const std::string level(
        absl::StripAsciiWhitespace(TextOf(folder + "level")));
    const std::string type(absl::StripAsciiWhitespace(TextOf(folder + "type")));
    if (level.empty() || type == "Instruction") continue;
    const absl::optional<int64_t> size = ParseSize(TextOf(folder + "size"));
    if (level == "1") facts.l1d_bytes = size;
    if (level == "2") facts.l2_bytes = size;
    if (level == "3") facts.l3_bytes = size;
  }
}

// Whole cores of the CPU quota of this process's control group and all groups
// around it; nullopt without one. Inside a container the group's own path may
// not exist: its files are then at the mount point.
absl::optional<int64_t> QuotaCores(const std::string& root) {
  absl::optional<double> cores;
  const auto limit = [&](double quota, double period) {
    if (quota <= 0 || period <= 0) return;
    cores = std::min(cores.value_or(quota / period), quota / period);
  };
  for (absl::string_view line :
       absl::StrSplit(TextOf(root + "/proc/self/cgroup"), '\n')) {
    const std::vector<std::string> fields =
        absl::StrSplit(line, absl::MaxSplits(':', 2));
    if (fields.size() != 3) continue;
    const bool version_2 = fields[1].empty();
    const std::vector<std::string> controllers = absl::StrSplit(fields[1], ',');
    if (!version_2 && std::find(controllers.begin(), controllers.end(),
                                "cpu") == controllers.end()) {
      continue;
    }
    const std::string mount =
        root + (version_2 ? "/sys/fs/cgroup" : "/sys/fs/cgroup/cpu");
    for (std::string group = fields[2];;) {
      double quota = 0, period = 0;
      if (version_2) {
        // "max 100000" has no quota and leaves the stream failed.
        std::stringstream max(TextOf(mount + group + "/cpu.max"));
        if (max >> quota >> period) limit(quota, period);
      } else {
        std::stringstream(TextOf(mount + group + "/cpu.cfs_quota_us")) >> quota;
        std::stringstream(TextOf(mount + group + "/cpu.cfs_period_us")) >>
            period;
        limit(quota, period);
      }
      const size_t slash = group.rfind('/');
      if (slash == std::string::npos || group == "/" || group.empty()) break;
      group.resize(slash);
    }
  }
  if (!cores.has_value()) return absl::nullopt;
  return std::max<int64_t>(1, static_cast<int64_t>(*cores));
}

int SimdBits(const std::set<std::string>& flags) {
  const auto all = [&](std::initializer_list<const char*> names) {
    return std::all_of(names.begin(), names.end(), [&](const char* name) {
      return flags.count(name) != 0;
    });
  };
  // The groups are Highway's targets.
  if (all({"avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"})) {
    return 512;
  }
  if (all({"avx2", "fma", "bmi2"})) return 256;
  return 128;
}

}  // namespace

CpuFacts ReadCpuFacts(const std::string& root, int affinity_cores) {
  const std::map<std::string, std::string> cpu =
      FirstProcessor(TextOf(root + "/proc/cpuinfo"));
  CpuFacts facts;
  facts.vendor = TextField(cpu, "vendor_id");
  facts.model_name = TextField(cpu, "model name");
  facts.family = IntField(cpu, "cpu family");
  facts.model = IntField(cpu, "model");
  facts.stepping = IntField(cpu, "stepping");
  facts.flags = absl::StrSplit(TextField(cpu, "flags"), ' ', absl::SkipEmpty());
  if (facts.vendor.empty() && cpu.count("CPU implementer") != 0) {
    facts.vendor = "ARM";
    facts.family = IntField(cpu, "CPU implementer");
    facts.model = IntField(cpu, "CPU part");
    facts.flags =
        absl::StrSplit(TextField(cpu, "Features"), ' ', absl::SkipEmpty());
  }

  facts.usable_cores = std::max(1, affinity_cores);
  if (const absl::optional<int64_t> quota = QuotaCores(root)) {
    facts.usable_cores =
        static_cast<int>(std::min<int64_t>(facts.usable_cores, *quota));
  }
  ReadCaches(root, facts);
  for (absl::string_view line :
       absl::StrSplit(TextOf(root + "/proc/meminfo"), '\n')) {
    int64_t kib = 0;
    if (!absl::ConsumePrefix(&line, "MemTotal:")) continue;
    absl::ConsumeSuffix(&line, "kB");
    if (absl::SimpleAtoi(line, &kib)) facts.memory_bytes = kib << 10;
  }
  return facts;
}

proto::Hardware HardwareFrom(const CpuFacts& facts) {
  const std::set<std::string> flags(facts.flags.begin(), facts.flags.end());
  proto::Hardware hardware;
  hardware.set_device_kind(proto::CPU);
  hardware.set_vendor(facts.vendor);
  hardware.set_model(facts.model_name);
  hardware.set_cores(facts.usable_cores);
  if (facts.l1d_bytes) hardware.set_l1d_bytes(*facts.l1d_bytes);
  if (facts.l2_bytes) hardware.set_l2_bytes(*facts.l2_bytes);
  if (facts.l3_bytes) hardware.set_l3_bytes(*facts.l3_bytes);
  if (facts.memory_bytes) hardware.set_memory_bytes(*facts.memory_bytes);
  hardware.set_simd_bits(SimdBits(flags));
  for (const std::string& flag : flags) {
    if (MattersToKernels(flag)) hardware.add_features(flag);
  }
  hardware.set_virtual_machine(flags.count("hypervisor") != 0);

  const Microarchitecture found =
      Classify(facts.vendor, facts.model_name, facts.family, facts.model,
               facts.stepping, flags);
  std::string id = absl::StrCat(found.name, "-", facts.usable_cores, "c");
  if (found.hides_avx512) id += "-noavx512";
  if (flags.count("amx_tile") != 0) id += "-amx";
  hardware.set_id(id);
  return hardware;
}

const proto::Hardware& CpuHardware() {
  static const proto::Hardware* const hardware = new proto::Hardware(
      HardwareFrom(ReadCpuFacts("", static_cast<int>(UsableCpus().size()))));
  return *hardware;
}

}  // namespace optrail::ops

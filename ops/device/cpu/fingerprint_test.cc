#include "ops/device/cpu/fingerprint.h"

#include <sys/stat.h>

#include <algorithm>
#include <fstream>
#include <string>

#include "absl/strings/ascii.h"
#include "absl/strings/str_split.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace optrail::ops {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::Not;

const char kAvx2[] = "sse4_2 avx avx2 fma bmi2";
const char kAvx512[] =
    "sse4_2 avx avx2 fma bmi2 avx512f avx512bw avx512cd avx512dq avx512vl "
    "avx512_vnni";

CpuFacts Facts(const std::string& vendor, const std::string& name, int family,
               int model, int stepping, const std::string& flags) {
  CpuFacts facts;
  facts.vendor = vendor;
  facts.model_name = name;
  facts.family = family;
  facts.model = model;
  facts.stepping = stepping;
  facts.flags = absl::StrSplit(flags, ' ');
  facts.usable_cores = 2;
  return facts;
}

std::string IntelXeonId(int model, int stepping, const std::string& flags) {
  return HardwareFrom(Facts("GenuineIntel", "Intel(R) Xeon(R) Processor", 6,
                            model, stepping, flags))
      .id();
}

std::string EpycId(int family, int model, const std::string& flags) {
  return HardwareFrom(
             Facts("AuthenticAMD", "AMD EPYC 9R14", family, model, 1, flags))
      .id();
}

TEST(Fingerprint, NamesMicroarchitectures) {
  const std::string avx512 = kAvx512;
  EXPECT_EQ(IntelXeonId(63, 2, kAvx2), "intel-xeon-haswell-2c");
  EXPECT_EQ(IntelXeonId(85, 4, "avx2 avx512f"), "intel-xeon-skylake-sp-2c");
  EXPECT_EQ(IntelXeonId(85, 7, avx512), "intel-xeon-cascade-lake-2c");
  EXPECT_EQ(IntelXeonId(106, 6, avx512), "intel-xeon-ice-lake-sp-2c");
  EXPECT_EQ(IntelXeonId(143, 8, avx512 + " amx_tile"),
            "intel-xeon-sapphire-rapids-2c-amx");
  EXPECT_EQ(EpycId(25, 0x01, kAvx2), "amd-epyc-zen3-2c");
  EXPECT_EQ(EpycId(25, 0x11, avx512), "amd-epyc-zen4-2c");
  EXPECT_EQ(EpycId(26, 0x02, avx512), "amd-epyc-zen5-2c");
  EXPECT_EQ(HardwareFrom(Facts("GenuineIntel", "Intel(R) Core(TM) i7-11700", 6,
                               167, 1, avx512))
                .id(),
            "intel-core-rocket-lake-2c");
  EXPECT_EQ(HardwareFrom(Facts("ARM", "", 0x41, 0xd4f, 0, "asimd sve")).id(),
            "arm-neoverse-v2-2c");
}

TEST(Fingerprint, UnknownModelsSpeakForThemselves) {
  EXPECT_EQ(IntelXeonId(250, 1, kAvx2), "intel-xeon-fam6-mod250-2c");
  EXPECT_EQ(EpycId(99, 7, kAvx512), "amd-epyc-fam99-mod7-2c");
  EXPECT_EQ(HardwareFrom(Facts("Hygon Genuine!", "C86", 24, 1, 1, kAvx2)).id(),
            "hygongenuine-fam24-mod1-2c");
}

TEST(Fingerprint, FeaturesDecideWhereTheModelNumberCannotBeTrue) {
  // A hypervisor that reports a desktop model beside AMX.
  EXPECT_EQ(IntelXeonId(167, 1, std::string(kAvx512) + " amx_tile avx512_fp16"),
            "intel-xeon-sapphire-rapids-2c-amx");
  EXPECT_EQ(EpycId(25, 0x01, kAvx512), "amd-epyc-zen4-2c");
}

TEST(Fingerprint, HiddenFeaturesDoNotChangeTheMicroarchitectureButTheId) {
  EXPECT_EQ(EpycId(25, 0x11, kAvx2), "amd-epyc-zen4-2c-noavx512");
  EXPECT_EQ(IntelXeonId(143, 8, kAvx512), "intel-xeon-sapphire-rapids-2c");
}

// Without them results of bfloat16 are not comparable, and tuned configs of
// kernels that need them are of no use.
TEST(Fingerprint, TilesAreNamedWhereTheyAre) {
  EXPECT_EQ(IntelXeonId(207, 2, std::string(kAvx512) + " amx_tile amx_bf16"),
            "intel-xeon-emerald-rapids-2c-amx");
  EXPECT_EQ(IntelXeonId(207, 2, kAvx512), "intel-xeon-emerald-rapids-2c");
}

TEST(Fingerprint, KeepsWhatMattersToKernelsSorted) {
  const proto::Hardware hardware = HardwareFrom(Facts(
      "GenuineIntel", "Intel(R) Xeon(R)", 6, 106, 6,
      std::string("fpu hypervisor ") + kAvx512 + " avx512_vnni vmx smep"));
  EXPECT_TRUE(hardware.virtual_machine());
  EXPECT_EQ(hardware.simd_bits(), 512);
  EXPECT_EQ(hardware.cores(), 2);
  EXPECT_THAT(hardware.features(), Contains("avx512f"));
  EXPECT_THAT(hardware.features(), Not(Contains("hypervisor")));
  EXPECT_THAT(hardware.features(), Not(Contains("smep")));
  EXPECT_TRUE(
      std::is_sorted(hardware.features().begin(), hardware.features().end()));
  EXPECT_FALSE(hardware.has_l3_bytes()) << "absent is not zero";

  EXPECT_EQ(
      HardwareFrom(Facts("GenuineIntel", "", 6, 63, 2, kAvx2)).simd_bits(),
      256);
  EXPECT_EQ(
      HardwareFrom(Facts("GenuineIntel", "", 6, 15, 2, "sse2")).simd_bits(),
      128);
}

// A file system as /proc and /sys show it.
class FakeRoot {
 public:
  FakeRoot() : path_(testing::TempDir() + "/fingerprint_root") {
    // Each test starts from nothing.
    EXPECT_EQ(std::system(("rm -rf '" + path_ + "'").c_str()), 0);
  }
  const std::string& path() const { return path_; }

  void Write(const std::string& name, const std::string& text) {
    for (size_t slash = 0; slash != std::string::npos;
         slash = name.find('/', slash + 1)) {
      mkdir((path_ + name.substr(0, slash)).c_str(), 0755);
    }
    std::ofstream(path_ + name) << text;
  }

 private:
  const std::string path_;
};

TEST(ReadCpuFacts, ReadsProcAndSys) {
  FakeRoot root;
  root.Write("/proc/cpuinfo",
             "processor\t: 0\nvendor_id\t: GenuineIntel\ncpu family\t: 6\n"
             "model\t\t: 85\nmodel name\t: Intel(R) Xeon(R) CPU: fast\n"
             "stepping\t: 7\nflags\t\t: fpu avx2\n\n"
             "processor\t: 1\nvendor_id\t: other\n");
  root.Write("/proc/meminfo", "MemTotal:       24000000 kB\nMemFree: 1 kB\n");
  const std::string caches = "/sys/devices/system/cpu/cpu0/cache/";
  const char* const rows[][3] = {{"1", "Data", "32K"},
                                 {"1", "Instruction", "64K"},
                                 {"2", "Unified", "1M"},
                                 {"3", "Unified", "491520K"}};
  for (int i = 0; i < 4; ++i) {
    const std::string folder = caches + "index" + std::to_string(i) + "/";
    root.Write(folder + "level", std::string(rows[i][0]) + "\n");
    root.Write(folder + "type", std::string(rows[i][1]) + "\n");
    root.Write(folder + "size", std::string(rows[i][2]) + "\n");
  }
  const CpuFacts facts = ReadCpuFacts(root.path(), 4);
  EXPECT_EQ(facts.vendor, "GenuineIntel");
  EXPECT_EQ(facts.model_name, "Intel(R) Xeon(R) CPU: fast");
  EXPECT_EQ(facts.family, 6);
  EXPECT_EQ(facts.model, 85);
  EXPECT_EQ(facts.stepping, 7);
  EXPECT_THAT(facts.flags, ElementsAre("fpu", "avx2"));
  EXPECT_EQ(facts.usable_cores, 4);
  EXPECT_EQ(facts.l1d_bytes, 32 << 10);
  EXPECT_EQ(facts.l2_bytes, 1 << 20);
  EXPECT_EQ(facts.l3_bytes, int64_t{480} << 20);
  EXPECT_EQ(facts.memory_bytes, int64_t{24000000} << 10);
}

TEST(ReadCpuFacts, ReadsArm) {
  FakeRoot root;
  root.Write("/proc/cpuinfo",
             "processor\t: 0\nFeatures\t: fp asimd sve\n"
             "CPU implementer\t: 0x41\nCPU part\t: 0xd40\n");
  const CpuFacts facts = ReadCpuFacts(root.path(), 1);
  EXPECT_EQ(HardwareFrom(facts).id(), "arm-neoverse-v1-1c");
}

TEST(ReadCpuFacts, QuotasLimitTheCores) {
  {
    FakeRoot root;
    root.Write("/proc/self/cgroup", "0::/a/b\n");
    root.Write("/sys/fs/cgroup/a/b/cpu.max", "max 100000\n");
    EXPECT_EQ(ReadCpuFacts(root.path(), 8).usable_cores, 8);
    root.Write("/sys/fs/cgroup/a/cpu.max", "350000 100000\n");
    EXPECT_EQ(ReadCpuFacts(root.path(), 8).usable_cores, 3);
    EXPECT_EQ(ReadCpuFacts(root.path(), 2).usable_cores, 2);
    root.Write("/sys/fs/cgroup/a/cpu.max", "50000 100000\n");
    EXPECT_EQ(ReadCpuFacts(root.path(), 8).usable_cores, 1);
  }
  {
    FakeRoot root;  // version 1, inside a container
    root.Write("/proc/self/cgroup", "4:cpu,cpuacct:/docker/x\n");
    root.Write("/sys/fs/cgroup/cpu/cpu.cfs_quota_us", "200000\n");
    root.Write("/sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n");
    EXPECT_EQ(ReadCpuFacts(root.path(), 8).usable_cores, 2);
  }
}

TEST(ReadCpuFacts, ToleratesAnEmptyRoot) {
  FakeRoot root;
  const proto::Hardware hardware = HardwareFrom(ReadCpuFacts(root.path(), 2));
  EXPECT_EQ(hardware.id(), "unknown-fam0-mod0-2c");
}

TEST(CpuHardware, HasAnIdOfItsDocumentedForm) {
  for (const char c : CpuHardware().id()) {
    EXPECT_TRUE(absl::ascii_islower(c) || absl::ascii_isdigit(c) || c == '-')
        << CpuHardware().id();
  }
  EXPECT_GE(CpuHardware().cores(), 1);
}

}  // namespace
}  // namespace optrail::ops

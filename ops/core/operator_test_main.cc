// The test that the `operator` macro makes of every operator: its declaration
// is complete, every listed shape has configs, every kernel computes what the
// reference says, with the default config and with as many others as cover
// every instantiation and every two values of two knobs (config_coverage.h), on
// one thread and on two, on every SIMD target of this machine and on every
// other kind of device that is linked in and found, and the checked-in tuned
// configs can be used.
//
// Listed shapes are scaled down until a reference takes milliseconds; the
// scaled dimensions end up odd, so that loops' tails are tested too. Beside
// them, each dimension is taken below, to and above every block that a config
// cuts it into.

#include <algorithm>
#include <iostream>
#include <set>
#include <string>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/flags/parse.h"
#include "absl/strings/str_cat.h"
#include "base/random.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"
#include "hwy/targets.h"
#include "ops/core/testing/operator_fixture.h"
#include "ops/core/testing/watched_run.h"
#include "tuning/proto/canonical.h"
#include "tuning/proto/store.pb.h"

ABSL_FLAG(std::string, op, "", "name of the operator under test");
ABSL_FLAG(std::vector<std::string>, untested_backends, {},
          "Backends that take too long to compile for a test; whoever measures "
          "them checks their results all the same.");
ABSL_FLAG(int, sampled_configs, 8,
          "how many configs beside the default may be run with each shape, in "
          "units of five; 0: the default only");
ABSL_FLAG(std::string, config, "",
          "knob=value,...: run this config alone, of the backends that have "
          "its knobs");

namespace optrail::ops {
namespace {

// Restores Highway's choice of targets.
class TargetScope {
 public:
  explicit TargetScope(int64_t target) { Set(target); }
  ~TargetScope() { Set(0); }

 private:
  static void Set(int64_t targets) {
    hwy::SetSupportedTargetsForTest(targets);
    hwy::GetChosenTarget().DeInit();
  }
};

// What a machine has that can do no better than `target`.
int64_t SimdBitsOf(int64_t target) {
  return target == HWY_AVX3 ? 512 : target == HWY_AVX2 ? 256 : 128;
}

TEST_F(OperatorTest, DeclaresAndRegistersTheSameKernels) {
  EXPECT_FALSE(entry_->backends.empty()) << "the operator has no backend";
  for (const std::string& name : Registry::Get().DeclaredOnly(op().name())) {
    ADD_FAILURE() << "the BUILD file declares sources of backend " << name
                  << ", but none of them has an OPTRAIL_REGISTER_CPU_KERNEL or "
                     "OPTRAIL_REGISTER_BACKEND(\""
                  << op().name() << "\", ...)";
  }
  for (const std::string& name : Registry::Get().RegisteredOnly(op().name())) {
    ADD_FAILURE() << "backend " << name
                  << " is registered, but the BUILD file declares no sources "
                     "for it";
  }
}

TEST_F(OperatorTest, AcceptsEveryListedShape) {
  for (const tuning::NamedShape& listed : shapes_) {
    const absl::Status status = CheckShape(op(), listed.shape);
    EXPECT_TRUE(status.ok())
        << FileLine(entry_->shapes, listed.line) << ": " << status.message();
    if (!status.ok()) continue;
    EXPECT_GT(op().Flop(listed.shape), 0);
    EXPECT_GT(op().MovedBytes(listed.shape), 0);
  }
}

TEST_F(OperatorTest, HasADefaultThatIsValidForAListedShape) {
  for (const auto& [name, backend] : entry_->backends) {
    SCOPED_TRACE(name);
    const auto hardware = HardwareOf(backend->kind());
    // The build has checked it against what the kind declares.
    if (IsMissing(hardware.status())) continue;
    ASSERT_TRUE(hardware.ok()) << hardware.status().message();
    const auto space = SpaceOf(*backend);
    ASSERT_TRUE(space.ok()) << space.status().message();
    // For some shapes the nearest valid config may stand for the default; if
    // it does for all, the space declares another default than it has.
    std::vector<std::string> refused;
    for (const tuning::NamedShape& listed : shapes_) {
      const auto bound = space->Bind(listed.shape, *hardware);
      ASSERT_TRUE(bound.ok()) << FileLine(entry_->shapes, listed.line) << ": "
                              << bound.status().message();
      const std::string& why = (*bound)->default_refusal();
      if (why.empty()) continue;
      refused.push_back(
          absl::StrCat(FileLine(entry_->shapes, listed.line), ": ", why));
    }
    EXPECT_TRUE(shapes_.empty() || refused.size() < shapes_.size())
        << space->filename()
        << ": the default is valid for no listed shape: " << refused[0];
  }
}

TEST_F(OperatorTest, SpacesReadOnlyWhatShapesOfTheOperatorSay) {
  for (const auto& [name, backend] : entry_->backends) {
    const auto space = SpaceOf(*backend);
    ASSERT_TRUE(space.ok()) << space.status().message();
    std::vector<std::string> dims = op().dims();
    for (const auto& absent : space->proto().dimension())
      dims.push_back(absent.name());
    const bool is_shared = !space->proto().dimension().empty();
    for (const std::string& dim : space->dims()) {
      EXPECT_TRUE(std::count(dims.begin(), dims.end(), dim))
          << space->filename() << ": dim." << dim
          << " is no dimension of operator " << op().name();
    }
    const absl::Status attributes =
        CheckDeclaredAttributes(op(), space->proto().attribute(), is_shared);
    EXPECT_TRUE(attributes.ok())
        << space->filename() << ": " << attributes.message();
  }
}

TEST_F(OperatorTest, OwnKernelMatchesTheReferenceOnEveryTarget) {
  const auto kernel = entry_->FindBackend(proto::CPU, "");
  if (!kernel.ok()) GTEST_SKIP() << "no kernel for CPUs";
  const auto space = SpaceOf(**kernel);
  ASSERT_TRUE(space.ok()) << space.status().message();
  for (const int threads : {1, 2}) {
    threads_ = threads;
    auto device = Make(proto::CPU, threads);
    ASSERT_TRUE(device.ok()) << device.status().message();
    int64_t targets = hwy::SupportedTargets() & HWY_TARGETS;
    bool first_target = true;
    while (targets != 0) {
      const int64_t target = targets & -targets;
      targets &= targets - 1;
      SCOPED_TRACE(hwy::TargetName(target));
      const TargetScope scope(target);
      simd_bits_ = SimdBitsOf(target);
      // Blocks are cut in the same way on every target; the first is the best.
      const bool sweep = threads == 1 && first_target;
      first_target = false;
      ExpectRan(CheckBackend(**kernel, *space, sweep, **device));
    }
  }
}

TEST_F(OperatorTest, OtherBackendsMatchTheReference) {
  for (const int threads : {1, 2}) {
    threads_ = threads;
    auto device = Make(proto::CPU, threads);
    ASSERT_TRUE(device.ok()) << device.status().message();
    CheckOtherBackends(**device);
  }
}

TEST_F(OperatorTest, KernelsOfOtherDevicesMatchTheReference) {
  for (const proto::DeviceKind kind : OtherKinds()) {
    if (entry_->BackendsOf(kind).empty()) continue;
    auto device = Make(kind, 1);
    if (IsMissing(device.status())) continue;
    ASSERT_TRUE(device.ok()) << device.status().message();
    CheckOtherBackends(**device);
  }
}

// What large shapes are checked with agrees with what small ones are.
TEST_F(OperatorTest, PartsOfTheReferenceAreOfTheWhole) {
  std::set<std::string> seen;
  for (const tuning::NamedShape& listed : shapes_) {
    const auto shape = Runnable(listed.shape);
    if (!shape.has_value() || !op().HasPartialReference(*shape) ||
        !seen.insert(tuning::CanonicalText(*shape)).second) {
      continue;
    }
    SCOPED_TRACE(tuning::CanonicalText(*shape));
    const auto specs = op().Operands(*shape);
    ASSERT_TRUE(specs.ok());
    std::vector<std::vector<double>> values;
    for (const OperandSpec& spec : *specs) {
      values.emplace_back();
      if (spec.role == Role::kOutput) continue;
      values.back() = RandomValues(spec, kSeed + values.size());
    }
    const std::vector<std::vector<double>> whole =
        op().Reference(*shape, values);
    ASSERT_EQ(whole.size(), 1);
    const int64_t columns = specs->back().dims.back();
    const int64_t rows = static_cast<int64_t>(whole[0].size()) / columns;
    constexpr int kVectors = 2;
    Rng rng(kSeed);
    std::vector<double> x(columns * kVectors);
    for (double& value : x) value = rng.Gaussian();
    const std::vector<double> times =
        op().ReferenceTimes(*shape, values, x, kVectors);
    EXPECT_TRUE(times.empty() ||
                static_cast<int64_t>(times.size()) == rows * kVectors);
    const double tolerance = 1e-9 * static_cast<double>(columns);
    for (int64_t row = 0; row < rows; ++row) {
      const double* const expected = &whole[0][row * columns];
      const std::vector<double> got = op().ReferenceRow(*shape, values, row);
      ASSERT_EQ(static_cast<int64_t>(got.size()), columns);
      double products[kVectors] = {};
      for (int64_t j = 0; j < columns; ++j) {
        ASSERT_NEAR(got[j], expected[j], tolerance) << row << ", " << j;
        for (int s = 0; s < kVectors; ++s) {
          products[s] += expected[j] * x[j * kVectors + s];
        }
      }
      for (int s = 0; s < kVectors && !times.empty(); ++s) {
        ASSERT_NEAR(times[row * kVectors + s], products[s], 1e3 * tolerance)
            << row;
      }
    }
  }
}

TEST_F(OperatorTest, TunedConfigsCanBeUsed) {
  std::set<std::string> hardware_seen;
  for (const EmbeddedFile& file : entry_->tuned) {
    SCOPED_TRACE(file.path);
    proto::TunedConfigs tuned;
    ASSERT_TRUE(
        google::protobuf::TextFormat::ParseFromString(file.contents, &tuned));
    EXPECT_EQ(tuned.operator_name(), op().name());
    EXPECT_TRUE(
        hardware_seen
            .insert(absl::StrCat(tuned.device_kind(), " ", tuned.hardware_id()))
            .second)
        << "two files for hardware " << tuned.hardware_id();
    const auto hardware = HardwareOf(tuned.device_kind());
    for (const proto::TunedConfig& entry : tuned.tuned()) {
      const auto shape = tuning::ParseShape(entry.shape());
      ASSERT_TRUE(shape.ok()) << shape.status().message();
      const absl::Status accepted = CheckShape(op(), *shape);
      EXPECT_TRUE(accepted.ok()) << accepted.message();
      const auto config = tuning::ParseConfig(entry.config());
      ASSERT_TRUE(config.ok()) << config.status().message();
      const auto backend =
          entry_->FindBackend(tuned.device_kind(), entry.backend());
      ASSERT_TRUE(backend.ok()) << backend.status().message();
      const auto space = SpaceOf(**backend);
      ASSERT_TRUE(space.ok()) << space.status().message();
      // Constraints may read hw.*, and this may be other hardware: knobs and
      // their levels must fit, validity is looked at when it is used.
      const auto type = FindDeviceType(tuned.device_kind());
      ASSERT_TRUE(type.ok()) << type.status().message();
      const auto bound =
          space->Bind(*shape, hardware.ok() ? *hardware : (*type)->Declared());
      ASSERT_TRUE(bound.ok()) << bound.status().message();
      const auto levels = (*bound)->ToLevels(*config);
      if (levels.ok()) continue;
      // What no space can list its backend knows, where it can be used.
      const auto unlisted = (*backend)->Configs(*shape, entry.threads());
      if (!unlisted.ok()) continue;
      EXPECT_NE(*unlisted, nullptr)
          << entry.shape() << ": " << levels.status().message();
      if (*unlisted == nullptr) continue;
      const absl::Status valid = (*unlisted)->Validate(*config);
      EXPECT_TRUE(valid.ok()) << entry.shape() << ": " << valid.message();
    }
  }
}

}  // namespace
}  // namespace optrail::ops

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  absl::ParseCommandLine(argc, argv);
  std::cout << "inputs of seed " << optrail::ops::kSeed << std::endl;
  return optrail::ops::WatchTests([] {
    const int code = RUN_ALL_TESTS();
    const std::string only = absl::GetFlag(FLAGS_config);
    if (only.empty() || optrail::ops::OperatorTest::only_ran()) return code;
    std::cout << "FAILED: --config=" << only
              << ": no backend has such a config\n";
    return 1;
  });
}

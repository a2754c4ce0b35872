// The test that the `operator` macro makes of every operator: its declaration
// is complete, every listed shape has configs, every kernel computes what the
// reference says, with the default config and with sampled ones, on one thread
// and on two, on every SIMD target of this machine, and the checked-in tuned
// configs can be used.
//
// Listed shapes are scaled down until a reference takes milliseconds; the
// scaled dimensions end up odd, so that loops' tails are tested too.

#include <algorithm>
#include <iostream>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/flags/parse.h"
#include "absl/strings/str_cat.h"
#include "absl/types/optional.h"
#include "base/random.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"
#include "hwy/targets.h"
#include "ops/core/reference_check.h"
#include "ops/core/registry.h"
#include "ops/device/cpu/device.h"
#include "ops/device/cpu/fingerprint.h"
#include "tuning/proto/canonical.h"
#include "tuning/proto/store.pb.h"
#include "tuning/space/shapes.h"
#include "tuning/space/space.h"

ABSL_FLAG(std::string, op, "", "name of the operator under test");
ABSL_FLAG(int, sampled_configs, 8,
          "random configs per shape beside the default");

namespace optrail::ops {
namespace {

// Larger shapes are scaled down before they are run.
constexpr double kMaxFlop = 4e6;
constexpr double kMaxElements = 1e5;
constexpr uint64_t kSeed = 20240229;

std::string FileLine(const EmbeddedFile& file, int line) {
  return absl::StrCat(file.path, ":", line);
}

double TotalElements(const std::vector<OperandSpec>& operands) {
  double elements = 0;
  for (const OperandSpec& operand : operands) {
    elements += static_cast<double>(operand.elements());
  }
  return elements;
}

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

class OperatorTest : public testing::Test {
 protected:
  void SetUp() override {
    const std::string name = absl::GetFlag(FLAGS_op);
    entry_ = Registry::Get().Find(name);
    ASSERT_NE(entry_, nullptr)
        << "no OPTRAIL_REGISTER_OPERATOR for an operator named \"" << name
        << "\", the name of the BUILD target, in its srcs";
    ASSERT_FALSE(entry_->space.path.empty());

    auto space =
        tuning::Space::Parse(entry_->space.contents, entry_->space.path);
    ASSERT_TRUE(space.ok()) << space.status().message();
    space_.emplace(*std::move(space));
    auto shapes =
        tuning::ParseShapes(entry_->shapes.contents, entry_->shapes.path);
    ASSERT_TRUE(shapes.ok()) << shapes.status().message();
    shapes_ = *std::move(shapes);
    ASSERT_FALSE(shapes_.empty()) << entry_->shapes.path << " lists no shape";
  }

  const Operator& op() const { return *entry_->op; }

  // The shape itself, or one small enough to run; nullopt if the operator
  // supports nothing as small.
  absl::optional<proto::Shape> Runnable(proto::Shape shape) const {
    while (true) {
      const auto operands = op().Operands(shape);
      if (!operands.ok()) return absl::nullopt;
      if (op().Flop(shape) <= kMaxFlop &&
          TotalElements(*operands) <= kMaxElements) {
        return shape;
      }
      auto& dims = *shape.mutable_dims();
      auto largest = std::max_element(
          dims.begin(), dims.end(),
          [](const auto& a, const auto& b) { return a.value() < b.value(); });
      if (largest->value() <= 1) return absl::nullopt;
      largest->set_value(largest->value() / 2 | (largest->value() > 3));
    }
  }

  std::vector<proto::Config> ConfigsToTry(const tuning::BoundSpace& space) {
    std::vector<proto::Config> configs = {space.default_config()};
    Rng rng(kSeed);
    std::set<std::string> seen = {tuning::CanonicalText(configs[0])};
    for (int i = 0; i < absl::GetFlag(FLAGS_sampled_configs); ++i) {
      const proto::Config config = space.ToConfig(space.Sample(rng));
      if (seen.insert(tuning::CanonicalText(config)).second) {
        configs.push_back(config);
      }
    }
    return configs;
  }

  // Runs the kernel twice, so that state it keeps between calls shows.
  absl::Status RunAndVerify(const Kernel& kernel, const proto::Shape& shape,
                            const proto::Config& config, Device& device) {
    auto invocation = kernel.Prepare(shape, config, device);
    if (!invocation.ok()) return invocation.status();
    auto operands = CheckedOperands::Create(op(), shape, device, 2);
    if (!operands.ok()) return operands.status();
    for (const uint64_t seed : {kSeed, kSeed + 1}) {
      absl::Status status = (*operands)->Fill(seed);
      if (status.ok()) status = (*operands)->Arm();
      if (!status.ok()) return status;
      const int set = static_cast<int>(seed % (*operands)->sets());
      (*invocation)->Run((*operands)->addresses(set));
      if (auto error = (*operands)->Verify(set); !error.ok()) {
        return error.status();
      }
    }
    return absl::OkStatus();
  }

  // Checks `kernel` on all listed shapes; returns how many configs ran.
  int CheckKernel(const Kernel& kernel, Device& device) {
    int runs = 0;
    std::set<std::string> seen;
    for (const tuning::NamedShape& listed : shapes_) {
      const auto shape = Runnable(listed.shape);
      if (!shape.has_value()) continue;
      if (!seen.insert(tuning::CanonicalText(*shape)).second) continue;
      tuning::BindOptions bind_options;
      bind_options.threads = device.threads();
      const auto space = space_->Bind(*shape, device.hardware(), bind_options);
      // A scaled shape may have no configs; listed ones are checked elsewhere.
      if (!space.ok()) continue;
      const std::vector<proto::Config> configs = ConfigsToTry(**space);
      for (const proto::Config& config : configs) {
        const absl::Status status =
            RunAndVerify(kernel, *shape, config, device);
        const bool is_default = &config == &configs[0];
        if (!is_default && (absl::IsInvalidArgument(status) ||
                            absl::IsUnimplemented(status))) {
          continue;  // a kernel may refuse a config
        }
        EXPECT_TRUE(status.ok())
            << FileLine(entry_->shapes, listed.line) << ": shape "
            << tuning::CanonicalText(*shape) << " config "
            << tuning::CanonicalText(config) << " threads " << device.threads()
            << ": " << status.message();
        ++runs;
      }
    }
    return runs;
  }

  const OperatorEntry* entry_ = nullptr;
  absl::optional<tuning::Space> space_;
  std::vector<tuning::NamedShape> shapes_;
};

TEST_F(OperatorTest, DeclaresAndRegistersTheSameKernels) {
  EXPECT_FALSE(entry_->kernels.empty()) << "the operator has no kernel";
  for (const auto& [device, kernel] : entry_->kernels) {
    EXPECT_NE(kernel.kernel, nullptr)
        << "the BUILD file declares sources of a kernel for "
        << tuning::DeviceName(device)
        << ", but none of them has an OPTRAIL_REGISTER_KERNEL(\"" << op().name()
        << "\", ...)";
    EXPECT_FALSE(kernel.id.empty())
        << "a kernel for " << tuning::DeviceName(device)
        << " is registered, but the BUILD file declares no sources for it";
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

TEST_F(OperatorTest, HasAValidDefaultForEveryListedShape) {
  for (const tuning::NamedShape& listed : shapes_) {
    const auto space = space_->Bind(listed.shape, CpuHardware());
    ASSERT_TRUE(space.ok()) << FileLine(entry_->shapes, listed.line) << ": "
                            << space.status().message();
    const absl::Status valid = (*space)->Validate((*space)->default_config());
    EXPECT_TRUE(valid.ok())
        << FileLine(entry_->shapes, listed.line) << ": " << valid.message();
  }
}

TEST_F(OperatorTest, SpaceReadsOnlyWhatShapesOfTheOperatorSay) {
  const std::vector<std::string> dims = op().dims();
  for (const std::string& dim : space_->dims()) {
    EXPECT_TRUE(std::count(dims.begin(), dims.end(), dim))
        << entry_->space.path << ": dim." << dim
        << " is no dimension of operator " << op().name();
  }
  const absl::Status attributes =
      CheckDeclaredAttributes(op(), space_->proto().attribute());
  EXPECT_TRUE(attributes.ok())
      << entry_->space.path << ": " << attributes.message();
}

TEST_F(OperatorTest, CpuKernelMatchesTheReferenceOnEveryTarget) {
  const auto kernel = entry_->kernels.find(proto::CPU);
  if (kernel == entry_->kernels.end()) GTEST_SKIP() << "no kernel for CPUs";
  ASSERT_NE(kernel->second.kernel, nullptr);
  for (const int threads : {1, 2}) {
    auto device = MakeCpuDevice(threads);
    ASSERT_TRUE(device.ok()) << device.status().message();
    int64_t targets = hwy::SupportedTargets();
    while (targets != 0) {
      const int64_t target = targets & -targets;
      targets &= targets - 1;
      SCOPED_TRACE(hwy::TargetName(target));
      const TargetScope scope(target);
      EXPECT_GT(CheckKernel(*kernel->second.kernel, **device), 0)
          << "no listed shape could be scaled down to one that can be tested; "
             "list a smaller one";
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
    for (const proto::TunedConfig& entry : tuned.tuned()) {
      const auto shape = tuning::ParseShape(entry.shape());
      ASSERT_TRUE(shape.ok()) << shape.status().message();
      const absl::Status accepted = CheckShape(op(), *shape);
      EXPECT_TRUE(accepted.ok()) << accepted.message();
      const auto config = tuning::ParseConfig(entry.config());
      ASSERT_TRUE(config.ok()) << config.status().message();
      // Constraints may read hw.*, and this may be other hardware: knobs and
      // their levels must fit, validity is looked at when it is used.
      const auto space = space_->Bind(*shape, CpuHardware());
      ASSERT_TRUE(space.ok()) << space.status().message();
      const auto levels = (*space)->ToLevels(*config);
      EXPECT_TRUE(levels.ok())
          << entry.shape() << ": " << levels.status().message();
    }
  }
}

}  // namespace
}  // namespace optrail::ops

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  absl::ParseCommandLine(argc, argv);
  std::cout << "inputs of seed " << optrail::ops::kSeed << "\n";
  return RUN_ALL_TESTS();
}

#ifndef OPTRAIL_OPS_CORE_TESTING_OPERATOR_FIXTURE_H_
#define OPTRAIL_OPS_CORE_TESTING_OPERATOR_FIXTURE_H_

// OperatorTest runs kernels of the operator that --op names, for the tests of
// operator_test_main.cc, and private to it. It scales shapes down, chooses
// configs, and collects what fails into one failure.

#include <algorithm>
#include <cstdint>
#include <iostream>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/flags/declare.h"
#include "absl/flags/flag.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/types/optional.h"
#include "base/random.h"
#include "gtest/gtest.h"
#include "ops/core/backend_space.h"
#include "ops/core/device_type.h"
#include "ops/core/reference_check.h"
#include "ops/core/registry.h"
#include "ops/core/runnable.h"
#include "ops/core/testing/config_coverage.h"
#include "ops/core/testing/watched_run.h"
#include "tuning/proto/canonical.h"
#include "tuning/session/shared_knobs.h"
#include "tuning/space/shapes.h"
#include "tuning/space/space.h"

ABSL_DECLARE_FLAG(std::string, op);
ABSL_DECLARE_FLAG(std::vector<std::string>, untested_backends);
ABSL_DECLARE_FLAG(int, sampled_configs);
ABSL_DECLARE_FLAG(std::string, config);

namespace optrail::ops {

// Larger shapes are scaled down before they are run.
inline constexpr double kMaxFlop = 4e6;
inline constexpr double kMaxElements = 1e5;
// Around blocks, where one dimension is large and the others are small.
inline constexpr double kMaxSweptFlop = 2e7;
inline constexpr double kMaxSweptElements = 4e5;
inline constexpr int64_t kSmallDimension = 19;
inline constexpr int kMaxSwept = 60;  // with each listed shape
// --sampled_configs times this many may be run with a shape, where so many are
// needed to cover all pairs of values.
inline constexpr int kCoverageFactor = 5;
inline constexpr uint64_t kSeed = 20240229;

inline std::string FileLine(const EmbeddedFile& file, int line) {
  return absl::StrCat(file.path, ":", line);
}

inline double TotalElements(const std::vector<OperandSpec>& operands) {
  double elements = 0;
  for (const OperandSpec& operand : operands) {
    elements += static_cast<double>(operand.elements());
  }
  return elements;
}

class OperatorTest : public testing::Test {
 public:
  // True once --config was one of a backend's space.
  static bool only_ran() { return only_ran_; }

 protected:
  void SetUp() override {
    const std::string name = absl::GetFlag(FLAGS_op);
    entry_ = Registry::Get().Find(name);
    ASSERT_NE(entry_, nullptr)
        << "no OPTRAIL_REGISTER_OPERATOR for an operator named \"" << name
        << "\", the name of the BUILD target, in its srcs";
    ASSERT_FALSE(entry_->space.path.empty());

    auto shapes =
        tuning::ParseShapes(entry_->shapes.contents, entry_->shapes.path);
    ASSERT_TRUE(shapes.ok()) << shapes.status().message();
    shapes_ = *std::move(shapes);
    ASSERT_FALSE(shapes_.empty()) << entry_->shapes.path << " lists no shape";

    if (const std::string text = absl::GetFlag(FLAGS_config); !text.empty()) {
      const auto config = tuning::ParseConfig(text);
      ASSERT_TRUE(config.ok()) << "--config: " << config.status().message();
      only_ = *config;
    }
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

  // The machine's device of a kind, with this many threads of the host; an
  // error for a kind that is not here.
  static absl::StatusOr<std::unique_ptr<Device>> Make(proto::DeviceKind kind,
                                                      int threads) {
    const absl::StatusOr<const DeviceType*> type = FindDeviceType(kind);
    if (!type.ok()) return type.status();
    DeviceOptions options;
    options.threads = threads;  // on a single core, too
    return (*type)->Make(options);
  }

  static absl::StatusOr<Target> TargetOf(const Device& device) {
    const absl::StatusOr<const DeviceType*> type =
        FindDeviceType(device.kind());
    if (!type.ok()) return type.status();
    Target target;
    target.kind = device.kind();
    target.isa = (*type)->isa();
    target.hardware = device.hardware();
    return target;
  }

  // Why no device of the kind can be tested here; said once.
  static bool IsMissing(const absl::Status& status) {
    if (!absl::IsUnavailable(status) && !absl::IsUnimplemented(status)) {
      return false;
    }
    std::cout << "not tested: " << status.message() << "\n";
    return true;
  }

  static std::vector<proto::DeviceKind> OtherKinds() {
    std::vector<proto::DeviceKind> kinds;
    for (const DeviceType* type : ListDeviceTypes()) {
      if (type->kind() != proto::CPU) kinds.push_back(type->kind());
    }
    return kinds;
  }

  static absl::StatusOr<tuning::Space> SpaceOf(const Backend& backend) {
    const EmbeddedFile& file = SpaceFileOf(backend);
    return tuning::Space::Parse(file.contents, file.path);
  }

  // The config's code, compiled once where that is done at run time. It is no
  // part of the config's deadline: on a busy machine a compiler takes its time.
  absl::StatusOr<Artifact> ArtifactOf(const Backend& backend,
                                      const proto::Shape& shape,
                                      const proto::Config& config,
                                      const Device& device) {
    const absl::StatusOr<Target> target = TargetOf(device);
    if (!target.ok()) return target.status();
    const auto recipe = backend.Describe({shape, config, *target});
    if (!recipe.ok()) return recipe.status();
    absl::StatusOr<Artifact> artifact = Artifact();
    if (recipe->NeedsCompiler()) {
      const std::string key = recipe->Key();
      if (compiled_.count(key) == 0) {
        compiled_.emplace(key, backend.Compile(*recipe));
      }
      artifact = compiled_.at(key);
    }
    return artifact;
  }

  // Runs the kernel twice, so that state it keeps between calls shows.
  absl::Status RunAndVerify(const Backend& backend, const Artifact& artifact,
                            const proto::Shape& shape,
                            const proto::Config& config, Device& device) {
    auto runnable = Runnable::Load(backend, artifact, shape, config, device);
    if (!runnable.ok()) return runnable.status();
    auto operands = CheckedOperands::Create(op(), shape, device, 2);
    if (!operands.ok()) return operands.status();
    for (const uint64_t seed : {kSeed, kSeed + 1}) {
      absl::Status status = (*operands)->Fill(
          seed, seed == kSeed ? Values::kHard : Values::kTypical);
      if (status.ok()) status = (*operands)->Arm();
      if (!status.ok()) return status;
      const int set = static_cast<int>(seed % (*operands)->sets());
      status = (*runnable)->Run((*operands)->addresses(set));
      if (status.ok()) status = device.Synchronize();
      if (!status.ok()) return status;
      if (auto error = (*operands)->Verify(set); !error.ok()) {
        return error.status();
      }
    }
    return absl::OkStatus();
  }

  // Runs one config and reports what is wrong; false if it was refused.
  bool CheckConfig(const Backend& backend, const std::string& where,
                   const proto::Shape& shape, const proto::Config& config,
                   Device& device) {
    const std::string what =
        absl::StrCat(where, ": backend ", backend.name(), " shape ",
                     tuning::CanonicalText(shape), " config ",
                     tuning::CanonicalText(config), " threads ", threads_);
    const absl::StatusOr<Artifact> artifact =
        ArtifactOf(backend, shape, config, device);
    absl::Status status = artifact.status();
    if (status.ok()) {
      const ConfigScope running(what);
      status = RunAndVerify(backend, *artifact, shape, config, device);
    }
    unimplemented_ = absl::IsUnimplemented(status);
    if (absl::IsInvalidArgument(status) || unimplemented_) {
      last_refusal_ = absl::StrCat(what, ": ", status.message());
      return false;
    }
    if (status.ok()) {
      worked_.push_back(config);
    } else {
      failed_.push_back(config);
      failures_.push_back(absl::StrCat(what, ": ", status.message()));
    }
    return true;
  }

  // One failure for all configs that failed: what they share, then examples.
  void ReportFailures() {
    constexpr size_t kMostShown = 3;
    if (!failures_.empty()) {
      const std::string shared = tuning::SharedKnobsText(failed_, worked_);
      std::string text = absl::StrCat(
          failures_.size(), " of ", failures_.size() + worked_.size(),
          " runs failed", shared.empty() ? "" : ": ", shared);
      for (size_t i = 0; i < std::min(failures_.size(), kMostShown); ++i) {
        absl::StrAppend(&text, "\n", failures_[i]);
      }
      if (failures_.size() > kMostShown) {
        absl::StrAppend(&text, "\nand ", failures_.size() - kMostShown,
                        " more");
      }
      ADD_FAILURE() << text;
    }
    failures_.clear();
    failed_.clear();
    worked_.clear();
  }

  struct Counts {
    int ran = 0;
    int sampled = 0;
    int refused = 0;
    int swept = 0;
    int unimplemented = 0;
  };

  // Checks `backend` on all listed shapes.
  Counts CheckBackend(const Backend& backend, const tuning::Space& space,
                      bool sweep, Device& device) {
    Counts counts;
    const bool slow_to_compile = backend.name() != OwnBackendName(proto::CPU);
    std::set<std::string> seen;
    ConfigCoverage coverage;
    Rng rng(kSeed);
    for (const tuning::NamedShape& listed : shapes_) {
      if (!Computes(op(), backend, listed.shape).ok()) continue;
      const auto shape = Runnable(listed.shape);
      if (!shape.has_value()) continue;
      if (!seen.insert(tuning::CanonicalText(*shape)).second) continue;
      const auto bound = Bind(space, *shape, device);
      // A scaled shape may have no configs; listed ones are checked elsewhere.
      if (!bound.ok()) continue;
      ConfigCoverage::Options options;
      options.most = 1 + absl::GetFlag(FLAGS_sampled_configs) *
                             (slow_to_compile ? 1 : kCoverageFactor);
      const std::vector<proto::Config> configs =
          only_.has_value() ? OnlyConfig(**bound)
                            : coverage.Choose(**bound, options, rng);
      const std::string where = FileLine(entry_->shapes, listed.line);
      for (const proto::Config& config : configs) {
        const bool is_default = &config == &configs[0];
        const bool accepted =
            CheckConfig(backend, where, *shape, config, device);
        counts.ran += accepted;
        if (unimplemented_) {
          ++counts.unimplemented;
          continue;
        }
        if (is_default) {
          EXPECT_TRUE(accepted)
              << (only_.has_value() ? "--config: " : "the default: ")
              << last_refusal_;
          continue;
        }
        ++counts.sampled;
        counts.refused += !accepted;
      }
      if (sweep) {
        counts.swept += Sweep(backend, space, where, *shape, configs, device);
      }
    }
    ReportFailures();
    return counts;
  }

  // Below, at and above every block that a config cuts a dimension into, the
  // other dimensions being small: tails, and blocks that scaled shapes never
  // fill. Returns how many shapes ran.
  int Sweep(const Backend& backend, const tuning::Space& space,
            const std::string& where, const proto::Shape& small,
            const std::vector<proto::Config>& configs, Device& device) {
    int ran = 0;
    for (const proto::Config& config : configs) {
      for (const auto& [dim, block] : BlocksOf(backend, config)) {
        for (const int64_t size : {block - 1, block, block + 1}) {
          const std::string key = absl::StrCat(dim, " ", size);
          if (size < 1 || ran >= kMaxSwept || swept_.count(key) > 0) continue;
          const auto shape = WithDimension(small, dim, size);
          if (!shape.has_value()) continue;
          const auto bound = Bind(space, *shape, device);
          if (!bound.ok() || !(*bound)->Validate(config).ok()) continue;
          swept_.insert(key);
          ran += CheckConfig(backend, where, *shape, config, device);
        }
      }
    }
    return ran;
  }

  std::vector<std::pair<std::string, int64_t>> BlocksOf(
      const Backend& backend, const proto::Config& config) const {
    std::vector<std::pair<std::string, int64_t>> blocks =
        backend.Blocks(config);
    if (!blocks.empty()) return blocks;
    for (const proto::KnobValue& value : config.set()) {
      if (!value.has_int_()) continue;
      for (const std::string& dim : op().dims()) {
        blocks.emplace_back(dim, value.int_());
      }
    }
    return blocks;
  }

  // `shape` with one dimension of that size and the others small; nullopt if
  // even so it is too much to run.
  absl::optional<proto::Shape> WithDimension(proto::Shape shape,
                                             const std::string& dim,
                                             int64_t size) const {
    for (proto::Dim& other : *shape.mutable_dims()) {
      other.set_value(other.name() == dim
                          ? size
                          : std::min(other.value(), kSmallDimension));
    }
    if (!CheckShape(op(), shape).ok()) return absl::nullopt;
    const auto operands = op().Operands(shape);
    if (!operands.ok() || op().Flop(shape) > kMaxSweptFlop ||
        TotalElements(*operands) > kMaxSweptElements) {
      return absl::nullopt;
    }
    return shape;
  }

  absl::StatusOr<std::unique_ptr<tuning::BoundSpace>> Bind(
      const tuning::Space& space, const proto::Shape& shape,
      const Device& device) const {
    tuning::BindOptions options;
    options.threads = threads_;
    proto::Hardware hardware = device.hardware();
    if (simd_bits_ > 0) hardware.set_simd_bits(simd_bits_);
    return space.Bind(shape, hardware, options);
  }

  // What --config names, where it is one of the space.
  std::vector<proto::Config> OnlyConfig(const tuning::BoundSpace& space) {
    if (!space.Validate(*only_).ok()) return {};
    only_ran_ = true;
    return {*only_};
  }

  void ExpectRan(const Counts& counts) const {
    if (only_.has_value()) return;
    if (counts.ran == 0 && counts.unimplemented > 0) {
      std::cout << "does nothing of this: " << last_refusal_ << "\n";
      return;
    }
    EXPECT_GT(counts.ran, 0)
        << "no listed shape could be scaled down to one that can be tested; "
           "list a smaller one";
    // A kernel may refuse what no constraint can say, not everything.
    EXPECT_TRUE(counts.sampled == 0 || counts.refused < counts.sampled)
        << "the kernel refuses all " << counts.sampled
        << " configs beside the default; the last: " << last_refusal_;
    std::cout << counts.ran << " configs ran, " << counts.refused
              << " were refused, " << counts.swept
              << " shapes around blocks ran\n";
  }

  // Checks every backend of `device`'s kind but, on a CPU, its own, which is
  // checked on every SIMD target.
  void CheckOtherBackends(Device& device) {
    const absl::StatusOr<Target> target = TargetOf(device);
    ASSERT_TRUE(target.ok()) << target.status().message();
    for (const Backend* backend : entry_->BackendsOf(device.kind())) {
      if (device.kind() == proto::CPU &&
          backend->name() == OwnBackendName(proto::CPU)) {
        continue;
      }
      const std::vector<std::string> untested =
          absl::GetFlag(FLAGS_untested_backends);
      if (std::find(untested.begin(), untested.end(), backend->name()) !=
          untested.end()) {
        continue;
      }
      SCOPED_TRACE(backend->name());
      const auto id = backend->Id(*target);
      if (absl::IsUnavailable(id.status())) {
        std::cout << backend->name() << ": " << id.status().message() << "\n";
        continue;
      }
      ASSERT_TRUE(id.ok()) << id.status().message();
      const auto space = SpaceOf(*backend);
      ASSERT_TRUE(space.ok()) << space.status().message();
      swept_.clear();
      ExpectRan(CheckBackend(*backend, *space, threads_ == 1, device));
    }
  }

  int threads_ = 1;
  int64_t simd_bits_ = 0;               // in place of the machine's, if not 0
  absl::optional<proto::Config> only_;  // of --config
  std::string last_refusal_;
  std::vector<proto::Config> failed_, worked_;  // of a backend
  std::vector<std::string> failures_;           // what went wrong in which
  bool unimplemented_ = false;                  // the last refusal was for good
  std::set<std::string> swept_;
  std::map<std::string, absl::StatusOr<Artifact>> compiled_;
  const OperatorEntry* entry_ = nullptr;
  std::vector<tuning::NamedShape> shapes_;

 private:
  static inline bool only_ran_ = false;
};

}  // namespace optrail::ops

#endif  // OPTRAIL_OPS_CORE_TESTING_OPERATOR_FIXTURE_H_

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

#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <iostream>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/flags/parse.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "base/random.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"
#include "hwy/targets.h"
#include "ops/core/backend_space.h"
#include "ops/core/device_type.h"
#include "ops/core/reference_check.h"
#include "ops/core/registry.h"
#include "ops/core/runnable.h"
#include "ops/core/testing/config_coverage.h"
#include "tuning/proto/canonical.h"
#include "tuning/proto/store.pb.h"
#include "tuning/session/shared_knobs.h"
#include "tuning/space/shapes.h"
#include "tuning/space/space.h"

ABSL_FLAG(std::string, op, "", "name of the operator under test");
ABSL_FLAG(std::vector<std::string>, untested_backends, {},
          "Backends that take too long to compile for a test; whoever measures "
          "them checks their results all the same.");
ABSL_FLAG(int, sampled_configs, 8,
          "how many configs beside the default may be run with each shape, in "
          "units of five; 0: the default only");
ABSL_FLAG(absl::Duration, config_deadline, absl::Seconds(60),
          "a config that has not answered by then hangs");

ABSL_FLAG(
    bool, watched, true,
    "in a process of their own, so that the config that ends it is named; "
    "not for tools that look into one process");

ABSL_FLAG(std::string, config, "",
          "knob=value,...: run this config alone, of the backends that have "
          "its knobs");

namespace optrail::ops {
namespace {

// Larger shapes are scaled down before they are run.
constexpr double kMaxFlop = 4e6;
constexpr double kMaxElements = 1e5;
// Around blocks, where one dimension is large and the others are small.
constexpr double kMaxSweptFlop = 2e7;
constexpr double kMaxSweptElements = 4e5;
constexpr int64_t kSmallDimension = 19;
constexpr int kMaxSwept = 60;  // with each listed shape
// --sampled_configs times this many may be run with a shape, where so many are
// needed to cover all pairs of values.
constexpr int kCoverageFactor = 5;
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

// What the process that watches this one can say of its end: a kernel may take
// it down in any way, also one that looks like success.
struct Watched {
  char config[4000];  // that is running; empty: none
  bool only_ran;      // --config was one of a backend's space
  bool finished;
};
Watched* watched = nullptr;

class Running {
 public:
  explicit Running(const std::string& what) {
    what.copy(watched->config, sizeof(watched->config) - 1);
  }
  ~Running() { std::memset(watched->config, 0, sizeof(watched->config)); }
  Running(const Running&) = delete;
  Running& operator=(const Running&) = delete;
};

// Runs the tests in a child, and names the config that it died of.
int Watch(const std::function<int()>& run_tests) {
  watched = static_cast<Watched*>(mmap(nullptr, sizeof(Watched),
                                       PROT_READ | PROT_WRITE,
                                       MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  if (!absl::GetFlag(FLAGS_watched)) return run_tests();
  // Nothing has been started yet that a fork would leave behind.
  const pid_t child = fork();
  if (child == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    const int code = run_tests();
    watched->finished = true;
    return code;
  }
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  const int code = WIFEXITED(status) ? WEXITSTATUS(status) : 1;
  if (watched->finished) return code;
  std::cout << "FAILED: "
            << (watched->config[0] != '\0' ? watched->config
                                           : "outside of any config")
            << ": the process "
            << (WIFSIGNALED(status)
                    ? absl::StrCat("was killed by signal ", WTERMSIG(status))
                    : absl::StrCat("exited with code ", code))
            << std::endl;
  return code == 0 ? 1 : code;
}

// Says which config hangs and ends the process: nobody can stop a kernel that
// does not return.
class Watchdog {
 public:
  explicit Watchdog(std::string what)
      : what_(std::move(what)), thread_([this] { Watch(); }) {}
  ~Watchdog() {
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      done_ = true;
    }
    changed_.notify_one();
    thread_.join();
  }
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;

 private:
  void Watch() {
    const absl::Duration deadline = absl::GetFlag(FLAGS_config_deadline);
    std::unique_lock<std::mutex> lock(mutex_);
    if (changed_.wait_for(lock, absl::ToChronoMilliseconds(deadline),
                          [this] { return done_; })) {
      return;
    }
    std::cout << "FAILED: " << what_ << ": no answer within "
              << absl::FormatDuration(deadline) << std::endl;
    watched->finished = true;  // and said
    std::_Exit(1);
  }

  const std::string what_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool done_ = false;
  std::thread thread_;
};

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

class OperatorTest : public testing::Test {
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
      const Running running(what);
      const Watchdog watchdog(what);
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
    watched->only_ran = true;
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
};

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
  return optrail::ops::Watch([] {
    const int code = RUN_ALL_TESTS();
    const std::string only = absl::GetFlag(FLAGS_config);
    if (only.empty() || optrail::ops::watched->only_ran) return code;
    std::cout << "FAILED: --config=" << only
              << ": no backend has such a config\n";
    return 1;
  });
}

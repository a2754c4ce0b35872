// CUDA kernels of all operators, without a GPU: their spaces fit the hardware
// that the device kind declares, what they ask of a launch is possible there,
// and they compile for the architectures that they are written for. Without
// NVRTC the test says so and compiles nothing.

#include <map>
#include <set>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "ops/core/device_type.h"
#include "ops/core/registry.h"
#include "ops/core/testing/config_coverage.h"
#include "ops/device/cuda/backend.h"
#include "ops/device/cuda/exported.h"
#include "ops/device/cuda/nvrtc.h"
#include "tuning/proto/canonical.h"
#include "tuning/space/shapes.h"
#include "tuning/space/space.h"

namespace optrail::ops::cuda {
namespace {

constexpr int kConfigsPerShape = 12;
// So many kernels of every operator and architecture are compiled.
constexpr int kCompiled = 4;

struct Case {
  const Operator* op;
  const CudaBackend* backend;
  proto::Shape shape;
  proto::Config config;
  bool is_default;

  std::string ToString() const {
    return op->name() + " " + tuning::CanonicalText(shape) + " " +
           tuning::CanonicalText(config);
  }
};

proto::Hardware Declared() {
  const auto type = FindDeviceType(proto::CUDA);
  EXPECT_TRUE(type.ok()) << type.status();
  return (*type)->Declared();
}

// An A100, as far as spaces read it.
proto::Hardware Ampere() {
  proto::Hardware hardware = Declared();
  hardware.set_cores(108);
  for (proto::HardwareAttribute& attribute : *hardware.mutable_attributes()) {
    if (attribute.name() == "compute_capability") attribute.set_int_(80);
    if (attribute.name() == "multiprocessors") attribute.set_int_(108);
    if (attribute.name() == "shared_bytes_per_block") {
      attribute.set_int_(163 << 10);
    }
  }
  return hardware;
}

// The default of every listed shape and configs that cover the space.
std::vector<Case> Cases(const proto::Hardware& hardware) {
  std::vector<Case> cases;
  for (const OperatorEntry* entry : Registry::Get().List()) {
    const auto found = entry->FindBackend(proto::CUDA, "");
    if (!found.ok()) continue;
    const auto* const backend = dynamic_cast<const CudaBackend*>(*found);
    if (backend == nullptr) continue;
    const auto space = tuning::Space::Parse(backend->space()->contents,
                                            backend->space()->path);
    EXPECT_TRUE(space.ok()) << space.status();
    const auto shapes =
        tuning::ParseShapes(entry->shapes.contents, entry->shapes.path);
    EXPECT_TRUE(shapes.ok()) << shapes.status();
    if (!space.ok() || !shapes.ok()) continue;
    ConfigCoverage coverage;
    Rng rng(1);
    for (const tuning::NamedShape& listed : *shapes) {
      if (!Computes(*entry->op, *backend, listed.shape).ok()) continue;
      const auto bound = space->Bind(listed.shape, hardware);
      EXPECT_TRUE(bound.ok()) << bound.status();
      if (!bound.ok()) continue;
      ConfigCoverage::Options options;
      options.most = kConfigsPerShape;
      bool is_default = true;
      for (const proto::Config& config :
           coverage.Choose(**bound, options, rng)) {
        cases.push_back(
            {entry->op.get(), backend, listed.shape, config, is_default});
        is_default = false;
      }
    }
  }
  return cases;
}

int64_t Attribute(const proto::Hardware& hardware, const std::string& name) {
  for (const proto::HardwareAttribute& attribute : hardware.attributes()) {
    if (attribute.name() == name) return attribute.int_();
  }
  ADD_FAILURE() << "no attribute " << name;
  return 0;
}

TEST(CudaKernels, EveryOperatorHasOne) {
  std::set<std::string> names;
  for (const Case& one : Cases(Declared())) names.insert(one.op->name());
  EXPECT_EQ(names,
            (std::set<std::string>{
                "add", "attention", "batched_matmul", "conv2d", "conv_bn_relu",
                "embedding_bag", "gelu", "layer_norm", "layer_norm_backward",
                "linear", "matmul", "relu", "rms_norm", "rms_norm_backward",
                "softmax", "sum", "transpose"}));
}

TEST(CudaKernels, AskForLaunchesThatTheHardwareCanMake) {
  for (const proto::Hardware& hardware : {Declared(), Ampere()}) {
    const int64_t shared = Attribute(hardware, "shared_bytes_per_block");
    for (const Case& one : Cases(hardware)) {
      SCOPED_TRACE(one.ToString());
      const auto plan = one.backend->Plan(one.shape, one.config, hardware);
      ASSERT_TRUE(plan.ok()) << plan.status();
      EXPECT_GE(plan->block_x, 32u);
      EXPECT_LE(plan->block_x, 1024u);
      EXPECT_EQ(plan->block_x % 32, 0u);
      EXPECT_LE(plan->dynamic_shared_bytes, shared);
      EXPECT_GE(plan->grid_x, 1u);
      EXPECT_LT(plan->grid_x, 1u << 31);
      EXPECT_LE(plan->grid_y, 65535u);
      EXPECT_EQ(plan->grid_x % plan->cluster, 0u);
      EXPECT_LE(plan->cluster, 16);
      EXPECT_LT(plan->workspace_bytes, size_t{4} << 30);
    }
  }
}

// The bytes that a program makes of an exported parameter, with operands and
// workspace at the addresses given, and tensor maps as `encoded` writes them.
std::string BytesOf(const ExportedParameter& parameter,
                    const std::vector<uint64_t>& addresses) {
  std::string bytes = parameter.bytes;
  const auto address_of = [&](const ExportedAddress& address) {
    const size_t operand = address.operand < 0
                               ? addresses.size() - 1
                               : static_cast<size_t>(address.operand);
    return addresses[operand] + static_cast<uint64_t>(address.plus);
  };
  for (const ExportedParameter::Address& one : parameter.addresses) {
    const uint64_t value = address_of(one.address);
    bytes.replace(one.at, 8, reinterpret_cast<const char*>(&value), 8);
  }
  for (const ExportedParameter::TensorMap& one : parameter.tensor_maps) {
    const uint64_t value = address_of(one.map.address);
    bytes.replace(one.at, 8, reinterpret_cast<const char*>(&value), 8);
  }
  return bytes;
}

// Writes the address alone.
int EncodeAddress(TensorMap* map, int, uint32_t, void* address, const uint64_t*,
                  const uint64_t*, const uint32_t*, const uint32_t*, int, int,
                  int, int) {
  *map = {};
  map->opaque[0] = reinterpret_cast<uintptr_t>(address);
  return 0;
}
int EncodeImageAddress(TensorMap* map, int, uint32_t, void* address,
                       const uint64_t*, const uint64_t*, const int*, const int*,
                       uint32_t, uint32_t, const uint32_t*, int, int, int,
                       int) {
  return EncodeAddress(map, 0, 0, address, nullptr, nullptr, nullptr, nullptr,
                       0, 0, 0, 0);
}

// A manifest makes the bytes of a launch of our own, wherever operands lie.
TEST(CudaKernels, AreExportedWithTheirParameters) {
  Driver driver{};
  driver.TensorMapEncodeTiled = EncodeAddress;
  driver.TensorMapEncodeIm2col = EncodeImageAddress;
  int maps = 0, launches_before = 0;
  for (const Case& one : Cases(Declared())) {
    SCOPED_TRACE(one.ToString());
    const auto operands = one.op->Operands(one.shape);
    ASSERT_TRUE(operands.ok()) << operands.status();
    const auto exported =
        ExportPlan(*one.backend, one.shape, one.config, Declared(),
                   static_cast<int>(operands->size()));
    ASSERT_TRUE(exported.ok()) << exported.status();
    const auto plan = one.backend->Plan(one.shape, one.config, Declared());
    ASSERT_TRUE(plan.ok()) << plan.status();
    EXPECT_EQ(exported->workspace_bytes,
              static_cast<int64_t>(plan->workspace_bytes));
    Rng rng(7);
    std::vector<uint64_t> addresses;
    std::vector<void*> pointers;
    for (size_t i = 0; i <= operands->size(); ++i) {
      addresses.push_back(
          static_cast<uint64_t>(1 + rng.UniformInt(int64_t{1} << 32)) *
          kExportAlignment);
      pointers.push_back(reinterpret_cast<void*>(addresses.back()));
    }
    void* const workspace =
        plan->workspace_bytes > 0 ? pointers.back() : nullptr;
    pointers.pop_back();
    launches_before += exported->launches.size() > 1;
    for (size_t i = 0; i < exported->launches.size(); ++i) {
      CudaArguments arguments;
      const absl::Status made = one.backend->ArgumentsOf(
          static_cast<int>(i), *plan, one.shape, one.config, pointers,
          workspace, driver, &arguments);
      ASSERT_TRUE(made.ok()) << made;
      const auto& parameters = exported->launches[i].parameters;
      ASSERT_EQ(static_cast<size_t>(arguments.count()), parameters.size());
      for (int k = 0; k < arguments.count(); ++k) {
        EXPECT_EQ(BytesOf(parameters[k], addresses), arguments.bytes(k))
            << "parameter " << k << " of launch " << i;
        maps += static_cast<int>(parameters[k].tensor_maps.size());
      }
    }
  }
  EXPECT_GT(maps, 0);
  EXPECT_GT(launches_before, 0);
}

// Tiles that are a little more than one round of multiprocessors: with stream-K
// each block has its share of all of them.
TEST(CudaKernels, SharesOfATileHaveRoomForTheirSums) {
  const auto shape = tuning::ParseShape("m=2304,n=2048,k=2048/bf16");
  ASSERT_TRUE(shape.ok()) << shape.status();
  const auto backend =
      Registry::Get().Find("matmul")->FindBackend(proto::CUDA, "");
  ASSERT_TRUE(backend.ok()) << backend.status();
  const auto* const cuda = dynamic_cast<const CudaBackend*>(*backend);
  ASSERT_NE(cuda, nullptr);
  const auto plan = [&](const std::string& split_k) {
    const auto config = tuning::ParseConfig(
        "cluster_m=2,cluster_n=1,group=8,kernel=hopper,stages=4,tile_m=128,"
        "tile_n=256,split_k=" +
        split_k);
    EXPECT_TRUE(config.ok()) << config.status();
    return *cuda->Plan(*shape, *config, Declared());
  };
  constexpr size_t kTileBytes = 128 * 256 * 4, kTiles = 18 * 8;
  // Counters fill a multiple of 1024 bytes.
  EXPECT_EQ(plan("1").workspace_bytes, 0u);
  EXPECT_EQ(plan("1").grid_x, 132u);
  EXPECT_EQ(plan("2").workspace_bytes, 2048 + 2 * kTiles * kTileBytes);
  EXPECT_EQ(plan("0").workspace_bytes, 2048 + 2 * 132 * kTileBytes);
  EXPECT_EQ(plan("0").grid_x, 132u);
  // No more blocks than there are steps.
  const auto small = tuning::ParseShape("m=128,n=256,k=640/bf16");
  const auto config = tuning::ParseConfig(
      "cluster_m=1,cluster_n=1,group=8,kernel=hopper,stages=4,tile_m=128,"
      "tile_n=256,split_k=0");
  EXPECT_EQ(cuda->Plan(*small, *config, Declared())->grid_x, 10u);
}

TEST(CudaKernels, CompileForTheirArchitectures) {
  const auto nvrtc = Nvrtc::Get();
  if (!nvrtc.ok()) GTEST_SKIP() << nvrtc.status().message();
  for (const proto::Hardware& hardware : {Ampere(), Declared()}) {
    Target target;
    target.kind = proto::CUDA;
    target.hardware = hardware;
    std::map<std::string, int> compiled;
    std::set<std::string> keys;
    // From the last shape to the first: later ones cover what is rare.
    std::vector<Case> cases = Cases(hardware);
    for (auto one = cases.rbegin(); one != cases.rend(); ++one) {
      SCOPED_TRACE(one->ToString());
      const auto recipe =
          one->backend->Describe({one->shape, one->config, target});
      ASSERT_TRUE(recipe.ok()) << recipe.status();
      if (!keys.insert(recipe->Key()).second) continue;
      if (compiled[one->op->name()]++ >= kCompiled && !one->is_default) {
        continue;
      }
      const auto artifact = one->backend->Compile(*recipe);
      ASSERT_TRUE(artifact.ok()) << artifact.status();
      EXPECT_GT(artifact->bytes.size(), 1000u);
      ASSERT_TRUE(artifact->facts.count("registers")) << artifact->log;
      EXPECT_LE(artifact->facts.at("registers"), 255);
    }
  }
}

}  // namespace
}  // namespace optrail::ops::cuda

// Many threads run one invocation at a time, each on operands of its own: what
// they get is what one thread gets alone, bit for bit.

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "gtest/gtest.h"
#include "ops/core/backend.h"
#include "ops/core/data_type.h"
#include "ops/core/invocation.h"
#include "ops/core/reference_check.h"
#include "ops/core/registry.h"
#include "ops/device/cpu/device.h"
#include "tuning/proto/canonical.h"
#include "tuning/space/space.h"

namespace optrail::ops {
namespace {

struct Case {
  std::string op, shape, backend;
  int threads = 1;  // of the invocation
};

// One caller's operands, workspace and packed weights, of ordinary memory.
class Caller {
 public:
  Caller(const std::vector<OperandSpec>& specs, const Invocation& invocation,
         uint64_t seed)
      : specs_(specs) {
    for (const OperandSpec& spec : specs) {
      operands_.push_back(Memory(spec.size_bytes()));
      if (spec.role == Role::kOutput) continue;
      EncodeValues(spec.data_type, RandomValues(spec, ++seed),
                   operands_.back().get());
    }
    for (const auto& operand : operands_) addresses_.push_back(operand.get());
    workspace_ = Memory(invocation.workspace_bytes());
    packed_ = Memory(invocation.packed_bytes());
    call_.operands = addresses_;
    call_.workspace = workspace_.get();
    call_.packed = packed_.get();
  }

  Call& call() { return call_; }

  std::string Results() const {
    std::string bytes;
    for (size_t i = 0; i < specs_.size(); ++i) {
      if (specs_[i].role == Role::kInput) continue;
      bytes.append(static_cast<const char*>(addresses_[i]),
                   specs_[i].size_bytes());
    }
    return bytes;
  }

 private:
  using Freed = std::unique_ptr<void, decltype(&free)>;
  static Freed Memory(int64_t bytes) {
    const int64_t whole = (bytes + 64) / 64 * 64;
    Freed memory(aligned_alloc(64, whole), &free);
    std::memset(memory.get(), 0x5a, whole);
    return memory;
  }

  const std::vector<OperandSpec> specs_;
  std::vector<Freed> operands_;
  Freed workspace_{nullptr, &free}, packed_{nullptr, &free};
  std::vector<void*> addresses_;
  Call call_;
};

class ManyThreads : public testing::TestWithParam<Case> {};

absl::StatusOr<std::unique_ptr<Invocation>> Load(const Backend& backend,
                                                 const proto::Shape& shape,
                                                 CpuDevice& device) {
  const Target target = {proto::CPU, "native", device.hardware()};
  const auto id = backend.Id(target);
  if (!id.ok()) return id.status();
  proto::Config config;
  if (backend.space() != nullptr) {
    const auto space = tuning::Space::Parse(backend.space()->contents, "space");
    if (!space.ok()) return space.status();
    tuning::BindOptions options;
    options.threads = device.threads();
    const auto bound = space->Bind(shape, device.hardware(), options);
    if (!bound.ok()) return bound.status();
    config = (*bound)->default_config();
  }
  const auto recipe = backend.Describe({shape, config, target});
  if (!recipe.ok()) return recipe.status();
  Artifact artifact;
  if (recipe->NeedsCompiler()) {
    auto compiled = backend.Compile(*recipe);
    if (!compiled.ok()) return compiled.status();
    artifact = *std::move(compiled);
  }
  return backend.Load(artifact, shape, config, device);
}

TEST_P(ManyThreads, GetWhatOneThreadGets) {
  constexpr int kCallers = 6, kCalls = 20;
  const Case& c = GetParam();
  const OperatorEntry* const entry = Registry::Get().Find(c.op);
  if (entry == nullptr) GTEST_SKIP() << "not linked here: " << c.op;
  const auto backend = entry->FindBackend(proto::CPU, c.backend);
  ASSERT_TRUE(backend.ok()) << backend.status();
  const auto shape = tuning::ParseShape(c.shape);
  ASSERT_TRUE(shape.ok()) << shape.status();
  const auto specs = entry->op->Operands(*shape);
  ASSERT_TRUE(specs.ok()) << specs.status();
  // The pool is shared by all callers.
  const auto device = MakeCpuDevice(c.threads);
  ASSERT_TRUE(device.ok()) << device.status();
  const auto loaded = Load(**backend, *shape, **device);
  if (absl::IsUnavailable(loaded.status())) {
    GTEST_SKIP() << loaded.status().message();
  }
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  const Invocation& invocation = **loaded;

  std::vector<std::unique_ptr<Caller>> callers;
  std::vector<std::string> expected;
  for (int i = 0; i < kCallers; ++i) {
    Caller alone(*specs, invocation, i * 100);
    ASSERT_TRUE(invocation.Pack(alone.call()).ok());
    ASSERT_TRUE(invocation.Run(alone.call()).ok());
    expected.push_back(alone.Results());
    callers.push_back(std::make_unique<Caller>(*specs, invocation, i * 100));
    callers.back()->call().stream = (*device)->stream();
  }
  std::vector<std::thread> threads;
  std::vector<absl::Status> statuses(kCallers);
  for (int i = 0; i < kCallers; ++i) {
    threads.emplace_back([&, i] {
      const Call& call = callers[i]->call();
      statuses[i].Update(invocation.Pack(call));
      for (int n = 0; n < kCalls; ++n) {
        statuses[i].Update(invocation.Run(call));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (int i = 0; i < kCallers; ++i) {
    EXPECT_TRUE(statuses[i].ok()) << statuses[i];
    EXPECT_TRUE(callers[i]->Results() == expected[i]) << "caller " << i;
  }
}

std::string NameOf(const testing::TestParamInfo<Case>& info) {
  std::string name = info.param.op + "_" + info.param.backend + "_" +
                     std::to_string(info.param.threads) + "_" +
                     std::to_string(info.index);
  return name;
}

// Templates with and without workspaces and packed weights.
INSTANTIATE_TEST_SUITE_P(
    Templates, ManyThreads,
    testing::ValuesIn(std::vector<Case>{
        {"add", "n=300000/f32", "cpu", 3},
        {"attention", "batch=1,heads=2,queries=40,keys=60,d=32/f32", "cpu", 3},
        {"attention", "batch=1,heads=2,queries=1,keys=600,d=32/f32", "cpu", 3},
        {"batched_matmul", "batch=3,m=40,n=50,k=60/f32", "cpu", 3},
        {"conv2d", "n=2,h=12,w=12,c=16,k=24,r=3,s=3/padding=1/f32", "cpu", 3},
        {"conv2d", "n=2,h=12,w=12,c=16,k=24,r=3,s=3/padding=1/bf16", "cpu", 3},
        {"conv_bn_relu", "n=2,h=12,w=12,c=16,k=24,r=1,s=1/f32", "cpu", 3},
        {"layer_norm_backward", "rows=50,cols=70/f32", "cpu", 3},
        {"linear", "m=40,n=50,k=60/f32", "cpu", 3},
        {"linear", "m=40,n=50,k=60/activation=gelu/bf16", "cpu", 3},
        {"matmul", "m=70,n=80,k=90/f32", "cpu", 1},
        {"matmul", "m=70,n=80,k=90/f32", "cpu", 3},
        {"matmul", "m=70,n=80,k=90/bf16", "cpu", 3},
        {"softmax", "rows=60,cols=200/f32", "cpu", 3},
        {"stencil", "h=60,w=70/f32", "cpu", 3},
        {"sum", "rows=300,cols=7000/axis=rows/f32", "cpu", 3}}),
    NameOf);

INSTANTIATE_TEST_SUITE_P(CompiledWhenAskedFor, ManyThreads,
                         testing::ValuesIn(std::vector<Case>{
                             {"matmul", "m=70,n=80,k=90/f32", "plain", 3},
                             {"softmax", "rows=60,cols=200/f32", "plain", 3}}),
                         NameOf);

// Libraries bring threads of their own: one each.
INSTANTIATE_TEST_SUITE_P(
    Libraries, ManyThreads,
    testing::ValuesIn(std::vector<Case>{
        {"attention", "batch=1,heads=2,queries=40,keys=60,d=32/f32", "onednn"},
        {"conv2d", "n=2,h=12,w=12,c=16,k=24,r=3,s=3/padding=1/f32", "onednn"},
        {"layer_norm_backward", "rows=50,cols=70/f32", "onednn"},
        {"linear", "m=40,n=50,k=60/f32", "onednn"},
        {"matmul", "m=70,n=80,k=90/f32", "onednn"},
        {"matmul", "m=70,n=80,k=90/f32", "openblas"},
        {"matmul", "m=70,n=80,k=90/f32", "blis"},
        {"softmax", "rows=60,cols=200/f32", "onednn"}}),
    NameOf);

}  // namespace
}  // namespace optrail::ops

#include "ops/core/jit_backend.h"

#include <stdlib.h>

#include <memory>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ops/core/cpu_device.h"
#include "ops/core/jit.h"
#include "ops/core/runnable.h"
#include "ops/device/cpu/device.h"
#include "tuning/proto/canonical.h"

namespace optrail::ops {
namespace {

using testing::HasSubstr;

// What the compiler is told to include: a copy of ops/core/jit.h would do, but
// the test has no file of it at run time.
constexpr char kHeader[] = R"(
#include <cstdint>
struct OptrailJitCall {
  void* const* operands;
  const int64_t* dims;
  int threads;
  void (*parallel_for)(void*, int64_t, void (*)(void*, int64_t), void*);
  void* context;
  template <class Body>
  void ParallelFor(int64_t count, const Body& body) const {
    parallel_for(context, count,
        [](void* data, int64_t i) { (*static_cast<const Body*>(data))(i); },
        const_cast<Body*>(&body));
  }
};
#define OPTRAIL_JIT_KERNEL(call) \
  extern "C" __attribute__((visibility("default"))) \
  void optrail_jit_kernel(const OptrailJitCall& call)
)";

constexpr char kScale[] = R"(
#include "factor.jit.h"
OPTRAIL_JIT_KERNEL(call) {
  const auto* x = static_cast<const float*>(call.operands[0]);
  auto* y = static_cast<float*>(call.operands[1]);
  call.ParallelFor(call.dims[0], [=](int64_t i) {
    y[i] = kFactor * OPTRAIL_TIMES * x[i];
#ifdef OPTRAIL_SIGN_MINUS
    y[i] = -y[i];
#endif
  });
}
)";

class JitBackendTest : public testing::Test {
 protected:
  std::shared_ptr<Backend> Make(const std::string& source,
                                const std::string& factor = "2") {
    std::shared_ptr<Backend> backend = MakeJitBackend("native");
    BackendFiles files;
    files.sources = {
        {"x/scale.jit.cc", source},
        {"x/factor.jit.h", "constexpr float kFactor = " + factor + ";\n"},
        {"ops/core/jit.h", kHeader}};
    files.sources_hash = "0123456789abcdef";
    backend->SetFiles(std::move(files));
    return backend;
  }

  absl::StatusOr<Recipe> Describe(const Backend& backend,
                                  const std::string& config) {
    return backend.Describe(
        {*tuning::ParseShape("n=5/f32"), *tuning::ParseConfig(config), {}});
  }

  absl::StatusOr<std::vector<float>> Run(const Backend& backend,
                                         const std::string& config) {
    auto recipe = Describe(backend, config);
    if (!recipe.ok()) return recipe.status();
    const auto artifact = backend.Compile(*recipe);
    if (!artifact.ok()) return artifact.status();
    EXPECT_EQ(artifact->key, recipe->Key());
    EXPECT_GT(artifact->facts.at("object_bytes"), 0);
    const auto device = MakeCpuDevice(2);
    const auto runnable =
        Runnable::Load(backend, *artifact, *tuning::ParseShape("n=5/f32"),
                       *tuning::ParseConfig(config), **device);
    if (!runnable.ok()) return runnable.status();
    std::vector<float> x = {1, 2, 3, 4, 5};
    std::vector<float> y(5);
    void* const operands[] = {x.data(), y.data()};
    const absl::Status run = (*runnable)->Run(operands);
    if (!run.ok()) return run;
    return y;
  }
};

TEST_F(JitBackendTest, CompilesKnobsAsMacrosAndRunsOnTheDevicesThreads) {
  const auto backend = Make(kScale);
  const auto plus = Run(*backend, "sign=plus,times=3");
  ASSERT_TRUE(plus.ok()) << plus.status();
  EXPECT_EQ(*plus, std::vector<float>({6, 12, 18, 24, 30}));
  const auto minus = Run(*backend, "sign=minus,times=1");
  ASSERT_TRUE(minus.ok()) << minus.status();
  EXPECT_EQ(*minus, std::vector<float>({-2, -4, -6, -8, -10}));
}

// Loaded from files without names, of which a later one must not be taken for
// an earlier one that is still there.
TEST_F(JitBackendTest, SeveralKernelsAreThereAtOnce) {
  const auto backend = Make(kScale);
  const auto device = MakeCpuDevice(1);
  ASSERT_TRUE(device.ok()) << device.status();
  std::vector<std::unique_ptr<Runnable>> runnables;
  for (const char* const config : {"sign=plus,times=3", "sign=plus,times=5"}) {
    const auto recipe = Describe(*backend, config);
    ASSERT_TRUE(recipe.ok()) << recipe.status();
    const auto artifact = backend->Compile(*recipe);
    ASSERT_TRUE(artifact.ok()) << artifact.status();
    auto runnable =
        Runnable::Load(*backend, *artifact, *tuning::ParseShape("n=1/f32"),
                       *tuning::ParseConfig(config), **device);
    ASSERT_TRUE(runnable.ok()) << runnable.status();
    runnables.push_back(*std::move(runnable));
  }
  float x = 1, y[2] = {0, 0};
  for (int i : {0, 1}) {
    void* const operands[] = {&x, &y[i]};
    EXPECT_TRUE(runnables[i]->Run(operands).ok());
  }
  EXPECT_EQ(y[0], 6);
  EXPECT_EQ(y[1], 10);
}

TEST_F(JitBackendTest, TheKeyCoversKnobsHeadersAndCompiler) {
  const auto backend = Make(kScale);
  const auto recipe = Describe(*backend, "sign=plus,times=3");
  ASSERT_TRUE(recipe.ok()) << recipe.status();
  EXPECT_TRUE(recipe->NeedsCompiler());
  EXPECT_NE(recipe->compiler, "");
  EXPECT_EQ(Describe(*Make(kScale), "sign=plus,times=3")->Key(), recipe->Key());
  EXPECT_NE(Describe(*backend, "sign=plus,times=4")->Key(), recipe->Key());
  EXPECT_NE(Describe(*Make(kScale, "3"), "sign=plus,times=3")->Key(),
            recipe->Key());
  EXPECT_NE(*Make(kScale, "3")->Id({}), *backend->Id({}));
  EXPECT_EQ(*Make(kScale)->Id({}), *backend->Id({}));
  EXPECT_EQ(backend->Id({})->size(), 16);
}

TEST_F(JitBackendTest, AnErrorOfTheCompilerIsInItsOwnWords) {
  const auto backend =
      Make("OPTRAIL_JIT_KERNEL(call) { no_such_function(OPTRAIL_TIMES); }");
  const auto y = Run(*backend, "times=1");
  EXPECT_EQ(y.status().code(), absl::StatusCode::kInternal);
  EXPECT_THAT(std::string(y.status().message()), HasSubstr("no_such_function"));
  EXPECT_THAT(std::string(y.status().message()), HasSubstr("scale.jit.cc"));
}

TEST_F(JitBackendTest, CodeWithoutAKernelIsRefused) {
  const auto y = Run(*Make("int x = 1;"), "times=1");
  EXPECT_EQ(y.status().code(), absl::StatusCode::kInternal);
  EXPECT_THAT(std::string(y.status().message()),
              HasSubstr("scale.jit.cc defines no OPTRAIL_JIT_KERNEL"));
}

// In a process of its own: the compiler is looked for once.
TEST(JitBackendDeathTest, WithoutACompilerItIsUnsupported) {
  EXPECT_EXIT(
      {
        setenv("OPTRAIL_CXX", "/no/such/compiler", 1);
        const auto id = MakeJitBackend("native")->Id({});
        const bool said =
            absl::IsUnavailable(id.status()) &&
            id.status().message().find("looked for /no/such/compiler") !=
                absl::string_view::npos;
        _exit(said ? 0 : 1);
      },
      testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace optrail::ops

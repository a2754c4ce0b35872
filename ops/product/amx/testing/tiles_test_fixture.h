#ifndef OPTRAIL_OPS_PRODUCT_AMX_TESTING_TILES_TEST_FIXTURE_H_
#define OPTRAIL_OPS_PRODUCT_AMX_TESTING_TILES_TEST_FIXTURE_H_

// Tests of kernels by AMX's tiles: by emulated ones on every machine, by those
// of the processor where it has them. Packing, tails, blocks, threads and
// rounding are the same code in both.
//
//   template <class Tiles>
//   class AmxProductTest : public TilesTest<Tiles> {};
//   TYPED_TEST_SUITE(AmxProductTest, AllTiles);

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <type_traits>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/random.h"
#include "gtest/gtest.h"
#include "ops/core/reference_check.h"
#include "ops/core/registry.h"
#include "ops/core/runnable.h"
#include "ops/device/cpu/device.h"
#include "ops/product/amx/amx.h"
#include "ops/product/amx/testing/emulated_tiles.h"
#include "tuning/proto/canonical.h"
#include "tuning/space/space.h"

namespace optrail::ops {

template <class Tiles>
class TilesTest : public testing::Test {
 protected:
  using Bind = std::function<absl::StatusOr<std::unique_ptr<Invocation>>(
      const proto::Shape& shape, const proto::Config& config,
      CpuDevice& device)>;

  void SetUp() override {
    if (std::is_same<Tiles, EmulatedTiles>::value) return;
    const absl::Status here = AmxForBf16();
    if (!here.ok()) GTEST_SKIP() << here.message();
  }

  // The default and some other configs of the space of the backend "amx",
  // beside the operator's reference.
  static void ExpectComputes(const std::string& op, const std::string& text,
                             int configs, const Bind& bind) {
    constexpr uint64_t kSeed = 11;
    const OperatorEntry* const entry = Registry::Get().Find(op);
    const auto backend = entry->FindBackend(proto::CPU, "amx");
    ASSERT_TRUE(backend.ok()) << backend.status();
    const auto space =
        tuning::Space::Parse((*backend)->space()->contents, "space");
    ASSERT_TRUE(space.ok()) << space.status();
    const auto shape = tuning::ParseShape(text);
    ASSERT_TRUE(shape.ok()) << shape.status();
    Rng rng(kSeed);
    for (const int threads : {1, 2, 3}) {
      const auto device = MakeCpuDevice(threads);
      ASSERT_TRUE(device.ok());
      tuning::BindOptions options;
      options.threads = threads;
      const auto bound = space->Bind(*shape, (*device)->hardware(), options);
      ASSERT_TRUE(bound.ok()) << bound.status();
      for (int i = 0; i < configs; ++i) {
        const proto::Config config =
            i == 0 ? (*bound)->default_config()
                   : (*bound)->ToConfig((*bound)->Sample(rng));
        const absl::Status status =
            RunTwice(*entry->op, *shape, config, bind, **device);
        EXPECT_TRUE(status.ok())
            << op << " " << text << " " << tuning::CanonicalText(config)
            << " on " << threads << " threads: " << status.message();
      }
    }
  }

 private:
  // Workspaces must come back, and nothing of the first call be seen.
  static absl::Status RunTwice(const Operator& op, const proto::Shape& shape,
                               const proto::Config& config, const Bind& bind,
                               CpuDevice& device) {
    constexpr uint64_t kSeed = 12;
    auto invocation = bind(shape, config, device);
    if (!invocation.ok()) return invocation.status();
    auto runnable = Runnable::Create(*std::move(invocation), device);
    if (!runnable.ok()) return runnable.status();
    auto operands = CheckedOperands::Create(op, shape, device);
    if (!operands.ok()) return operands.status();
    for (const Values values : {Values::kHard, Values::kTypical}) {
      absl::Status status = (*operands)->Fill(kSeed, values);
      if (status.ok()) status = (*operands)->Arm();
      if (status.ok()) status = (*runnable)->Run((*operands)->addresses());
      if (!status.ok()) return status;
      status = (*operands)->Verify().status();
      if (!status.ok()) return status;
    }
    return absl::OkStatus();
  }
};

#if defined(__x86_64__)
using AllTiles = testing::Types<EmulatedTiles, AmxTiles>;
#else
using AllTiles = testing::Types<EmulatedTiles>;
#endif

}  // namespace optrail::ops

#endif  // OPTRAIL_OPS_PRODUCT_AMX_TESTING_TILES_TEST_FIXTURE_H_

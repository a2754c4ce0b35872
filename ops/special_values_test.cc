// NaN, infinities and denormals, and operands that lie anywhere a float may:
// every operator's own kernel does what its reference says of them.

#include <cctype>
#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "base/random.h"
#include "gtest/gtest.h"
#include "ops/core/data_type.h"
#include "ops/core/reference_check.h"
#include "ops/core/registry.h"
#include "ops/core/runnable.h"
#include "ops/device/cpu/device.h"
#include "tuning/proto/canonical.h"
#include "tuning/space/space.h"

namespace optrail::ops {
namespace {

struct Case {
  std::string op;
  std::string shape;
};

// Sizes with tails on every target, small enough for every value to matter.
std::vector<Case> Cases() {
  return {
      {"add", "n=1037/f32"},
      {"attention", "batch=1,heads=2,queries=21,keys=37,d=19/f32"},
      {"attention", "batch=1,heads=4,queries=1,keys=300,d=19/group=2/f32"},
      {"attention", "batch=2,heads=2,queries=9,keys=13,d=8/causal=yes/f32"},
      {"attention", "batch=1,heads=2,queries=21,keys=37,d=19/bf16"},
      {"attention", "batch=1,heads=4,queries=1,keys=300,d=19/group=2/bf16"},
      {"batched_matmul", "batch=3,m=7,n=19,k=5/f32"},
      {"batched_matmul", "batch=3,m=7,n=19,k=5/transposed=b/f32"},
      {"conv2d", "n=1,h=9,w=7,c=5,k=19,r=3,s=3/padding=1/f32"},
      {"conv2d", "n=1,h=9,w=7,c=5,k=19,r=3,s=3/f32"},
      {"conv2d", "n=1,h=9,w=7,c=17,k=19,r=3,s=3/padding=1/f32"},
      // Lines of one pixel, and that lie above and below the image as a whole.
      {"conv2d", "n=1,h=2,w=1,c=17,k=33,r=3,s=3/padding=1/f32"},
      {"conv2d", "n=2,h=1,w=9,c=19,k=7,r=1,s=3/padding=1/f32"},
      {"conv2d", "n=1,h=5,w=2,c=16,k=5,r=2,s=1/padding=1/f32"},
      // Padding as wide as a step, and wider.
      {"conv2d", "n=1,h=7,w=31,c=20,k=70,r=5,s=5/padding=2,stride=2/f32"},
      {"conv2d", "n=1,h=4,w=6,c=18,k=9,r=2,s=7/padding=3/bf16"},
      {"conv2d", "n=1,h=7,w=29,c=20,k=70,r=4,s=3/padding=1,stride=3/bf16"},
      {"conv_bn_relu", "n=2,h=9,w=7,c=5,k=19,r=3,s=3/padding=1,stride=2/f32"},
      {"conv_bn_relu", "n=2,h=9,w=7,c=17,k=19,r=3,s=3/stride=2/f32"},
      {"depthwise_conv2d", "n=2,h=9,w=7,c=19,r=3,s=3/padding=1/f32"},
      {"embedding_bag", "rows=11,cols=19,bags=7,lookups=3/f32"},
      {"gelu", "n=1037/f32"},
      {"gelu", "n=1037/approximation=tanh/f32"},
      {"layer_norm", "rows=5,cols=67/f32"},
      {"layer_norm", "rows=5,cols=67/statistics=written/f32"},
      {"layer_norm_backward", "rows=5,cols=67/f32"},
      {"linear", "m=5,n=19,k=7/activation=gelu/f32"},
      {"linear", "m=5,n=19,k=7/activation=relu/f32"},
      {"linear", "m=5,n=19,k=7/activation=relu/bf16"},
      {"matmul", "m=5,n=19,k=7/f32"},
      {"matmul", "m=5,n=19,k=7/bf16"},
      {"matmul", "m=33,n=19,k=7/bf16"},
      {"relu", "n=1037/f32"},
      {"rms_norm", "rows=5,cols=67/f32"},
      {"rms_norm_backward", "rows=5,cols=67/f32"},
      {"stencil", "h=13,w=27/f32"},
      {"sum", "rows=5,cols=67/f32"},
      {"sum", "rows=5,cols=67/axis=rows/f32"},
      {"sum", "rows=5,cols=67/axis=all/f32"},
      {"transpose", "rows=35,cols=67/f32"},
  };
}

constexpr uint64_t kSeed = 5;

class SpecialValuesTest : public testing::TestWithParam<Case> {
 protected:
  void SetUp() override {
    entry_ = Registry::Get().Find(GetParam().op);
    ASSERT_NE(entry_, nullptr) << GetParam().op;
    shape_ = *tuning::ParseShape(GetParam().shape);
    ASSERT_TRUE(CheckShape(*entry_->op, shape_).ok())
        << CheckShape(*entry_->op, shape_);
    auto specs = entry_->op->Operands(shape_);
    ASSERT_TRUE(specs.ok());
    specs_ = *std::move(specs);
    for (size_t i = 0; i < specs_.size(); ++i) {
      values_.push_back(RandomValues(specs_[i], kSeed + i));
    }
  }

  // Runs the own kernel with operands `offset` bytes beyond a cache line, and
  // compares with the reference.
  void ExpectMatchesReference(size_t offset) {
    for (const int threads : {1, 2}) {
      auto device = MakeCpuDevice(threads);
      ASSERT_TRUE(device.ok());
      const auto backend = entry_->FindBackend(proto::CPU, "");
      ASSERT_TRUE(backend.ok());
      const auto space =
          tuning::Space::Parse((*backend)->space()->contents, "space");
      ASSERT_TRUE(space.ok());
      tuning::BindOptions options;
      options.threads = threads;
      const auto bound = space->Bind(shape_, (*device)->hardware(), options);
      ASSERT_TRUE(bound.ok()) << bound.status();
      auto runnable = Runnable::Load(**backend, Artifact(), shape_,
                                     (*bound)->default_config(), **device);
      ASSERT_TRUE(runnable.ok()) << runnable.status();

      std::vector<std::unique_ptr<Buffer>> buffers;
      std::vector<void*> addresses;
      for (size_t i = 0; i < specs_.size(); ++i) {
        auto buffer = (*device)->Allocate(specs_[i].size_bytes() + 128);
        ASSERT_TRUE(buffer.ok());
        const auto address = reinterpret_cast<uintptr_t>((*buffer)->data());
        void* const to =
            reinterpret_cast<void*>((address + 63) / 64 * 64 + offset);
        EncodeValues(specs_[i].data_type, values_[i], to);
        addresses.push_back(to);
        buffers.push_back(*std::move(buffer));
      }
      const std::vector<std::vector<double>> expected =
          entry_->op->Reference(shape_, values_);
      ASSERT_TRUE((*runnable)->Run(addresses).ok());
      size_t result = 0;
      for (size_t i = 0; i < specs_.size(); ++i) {
        if (specs_[i].role == Role::kInput) continue;
        const CompareResult compared =
            Compare(specs_[i].data_type, addresses[i], expected[result++],
                    entry_->op->ToleranceFor(shape_));
        EXPECT_TRUE(compared.ok())
            << "operand " << specs_[i].name << "[" << compared.first_wrong_index
            << "] is " << compared.first_wrong_value << ", expected "
            << compared.first_wrong_expected << ", threads " << threads;
      }
    }
  }

  // Puts the value into every float input in turn, in one place each.
  void ExpectHandles(double special) {
    for (size_t i = 0; i < specs_.size(); ++i) {
      if (specs_[i].role == Role::kOutput || !IsFloat(specs_[i].data_type)) {
        continue;
      }
      // Weights meet 0 outside of the image, or nothing.
      if (GetParam().op.find("conv") == 0 && specs_[i].name == "weights" &&
          GetParam().shape.find("padding") != std::string::npos) {
        continue;
      }
      // Values that are hidden are multiplied by 0.
      if (GetParam().shape.find("causal") != std::string::npos &&
          specs_[i].name == "v") {
        continue;
      }
      SCOPED_TRACE(specs_[i].name);
      const size_t at = values_[i].size() * 2 / 3;
      const double before = std::exchange(values_[i][at], special);
      ExpectMatchesReference(/*offset=*/0);
      values_[i][at] = before;
    }
  }

  const OperatorEntry* entry_ = nullptr;
  proto::Shape shape_;
  std::vector<OperandSpec> specs_;
  std::vector<std::vector<double>> values_;
};

TEST_P(SpecialValuesTest, NanSpoilsWhatDependsOnItAndNothingElse) {
  ExpectHandles(std::numeric_limits<double>::quiet_NaN());
}

TEST_P(SpecialValuesTest, InfinitiesGiveWhatTheFormulaGives) {
  ExpectHandles(std::numeric_limits<double>::infinity());
  ExpectHandles(-std::numeric_limits<double>::infinity());
}

TEST_P(SpecialValuesTest, DenormalsAreComputedWith) {
  for (size_t i = 0; i < specs_.size(); ++i) {
    if (specs_[i].role == Role::kOutput || !IsFloat(specs_[i].data_type)) {
      continue;
    }
    for (double& value : values_[i])
      value = std::ldexp(std::round(value * 64), -149);
  }
  ExpectMatchesReference(/*offset=*/0);
}

TEST_P(SpecialValuesTest, OperandsMayLieAnywhereAFloatMay) {
  ExpectMatchesReference(/*offset=*/4);
  ExpectMatchesReference(/*offset=*/36);
}

// Among 16 million numbers the tolerance of a sum hides one that is missing.
// Whole numbers hide nothing: every partial sum is exact, in any order.
TEST(SumTest, IsExactWhereEveryPartialSumIs) {
  const OperatorEntry* const entry = Registry::Get().Find("sum");
  ASSERT_NE(entry, nullptr);
  const auto backend = entry->FindBackend(proto::CPU, "");
  ASSERT_TRUE(backend.ok());
  const auto space =
      tuning::Space::Parse((*backend)->space()->contents, "space");
  ASSERT_TRUE(space.ok());
  for (const char* text :
       {"rows=1,cols=16777216/f32", "rows=4099,cols=4093/axis=rows/f32",
        "rows=4099,cols=4093/f32", "rows=4099,cols=4093/axis=all/f32"}) {
    SCOPED_TRACE(text);
    const proto::Shape shape = *tuning::ParseShape(text);
    const auto specs = *entry->op->Operands(shape);
    Rng rng(kSeed);
    std::vector<double> x(specs[0].elements());
    for (double& v : x) v = static_cast<double>(rng.UniformInt(2001) - 1000);
    const std::vector<double> expected = entry->op->Reference(shape, {x})[0];
    for (const int threads : {1, 2}) {
      auto device = MakeCpuDevice(threads);
      ASSERT_TRUE(device.ok());
      tuning::BindOptions options;
      options.threads = threads;
      const auto bound = space->Bind(shape, (*device)->hardware(), options);
      ASSERT_TRUE(bound.ok()) << bound.status();
      auto from = (*device)->Allocate(specs[0].size_bytes());
      auto to = (*device)->Allocate(specs[1].size_bytes());
      ASSERT_TRUE(from.ok() && to.ok());
      EncodeValues(proto::F32, x, (*from)->data());
      for (int sample = 0; sample < 4; ++sample) {
        const proto::Config config =
            sample == 0 ? (*bound)->default_config()
                        : (*bound)->ToConfig((*bound)->Sample(rng));
        SCOPED_TRACE(tuning::CanonicalText(config));
        auto runnable =
            Runnable::Load(**backend, Artifact(), shape, config, **device);
        ASSERT_TRUE(runnable.ok()) << runnable.status();
        ASSERT_TRUE((*runnable)->Run({(*from)->data(), (*to)->data()}).ok());
        std::vector<double> sums(expected.size());
        DecodeValues(proto::F32, (*to)->data(), 0, absl::MakeSpan(sums));
        EXPECT_EQ(sums, expected);
      }
    }
  }
}

std::string NameOf(const testing::TestParamInfo<Case>& info) {
  std::string name;
  for (const char c : info.param.op + "_" + info.param.shape) {
    name += std::isalnum(static_cast<unsigned char>(c)) ? c : '_';
  }
  return name;
}

INSTANTIATE_TEST_SUITE_P(All, SpecialValuesTest, testing::ValuesIn(Cases()),
                         NameOf);

}  // namespace
}  // namespace optrail::ops

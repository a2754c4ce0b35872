#include "suites/worker/references_ahead.h"

#include <stdlib.h>

#include <atomic>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "gtest/gtest.h"
#include "ops/core/device_type.h"
#include "ops/core/reference_check.h"
#include "tuning/proto/canonical.h"

namespace optrail::suites {
namespace {

// y = 2 x, counted.
class Double : public ops::Operator {
 public:
  std::string name() const override { return "double"; }
  std::vector<std::string> dims() const override { return {"n"}; }
  absl::StatusOr<std::vector<ops::OperandSpec>> Operands(
      const proto::Shape& shape) const override {
    const int64_t n = shape.dims(0).value();
    return std::vector<ops::OperandSpec>{
        {"x", proto::F32, {n}, ops::Role::kInput},
        {"y", proto::F32, {n}, ops::Role::kOutput}};
  }
  double Flop(const proto::Shape& shape) const override {
    return static_cast<double>(shape.dims(0).value());
  }
  std::vector<std::vector<double>> Reference(
      const proto::Shape& shape,
      absl::Span<const std::vector<double>> operands) const override {
    ++computed;
    std::vector<double> y = operands[0];
    for (double& value : y) value *= 2;
    return {y};
  }
  ops::Tolerance ToleranceFor(const proto::Shape& shape) const override {
    return {0, 0};
  }
  mutable std::atomic<int> computed{0};
};

std::string NewFolder() {
  std::string pattern = testing::TempDir() + "/references_XXXXXX";
  return mkdtemp(pattern.data());
}

TEST(ReferencesAhead, AreFoundByWhoeverNeedsThem) {
  const Double op;
  const proto::Shape shape = *tuning::ParseShape("n=1000/f32");
  const std::string folder = NewFolder();
  ReferencesAhead ahead(op, shape, folder, "build", {3, 5});
  for (const uint64_t seed : {5, 3}) ahead.Await(seed);
  EXPECT_EQ(op.computed, 2);
  const auto device = *ops::MakeDevice(proto::CPU, {});
  const auto operands = *ops::CheckedOperands::Create(op, shape, *device);
  operands->ShareReferences(folder, "build");
  for (const uint64_t seed : {3, 5}) {
    ASSERT_TRUE(operands->Fill(seed, ops::Values::kHard).ok());
    operands->ComputeReference();
  }
  EXPECT_EQ(op.computed, 2);
}

TEST(ReferencesAhead, AreAdoptedByThoseThatWait) {
  const Double op;
  const proto::Shape shape = *tuning::ParseShape("n=1000/f32");
  ReferencesAhead ahead(op, shape, NewFolder(), "build", {3, 5});
  const auto device = *ops::MakeDevice(proto::CPU, {});
  const auto operands = *ops::CheckedOperands::Create(op, shape, *device);
  for (int round = 0; round < 2; ++round) {
    for (const uint64_t seed : {5, 3}) {
      operands->Adopt(ahead.Await(seed));
      ASSERT_TRUE(operands->Fill(seed, ops::Values::kHard).ok());
      operands->ComputeReference();
      ASSERT_TRUE(operands->Arm().ok());
      const auto* const x = static_cast<float*>(operands->addresses()[0]);
      auto* const y = static_cast<float*>(operands->addresses()[1]);
      for (int i = 0; i < 1000; ++i) y[i] = 2 * x[i];
      EXPECT_TRUE(operands->Verify().ok());
      ASSERT_TRUE(operands->Fill(seed).ok());
    }
  }
  EXPECT_EQ(op.computed, 2) << "without a folder in common";
}

TEST(ReferencesAhead, NobodyWaitsForWhatIsNotComing) {
  const Double op;
  const proto::Shape shape = *tuning::ParseShape("n=10/f32");
  ReferencesAhead ahead(op, shape, NewFolder(), "build", {3});
  ahead.Await(4);
  ahead.Await(3);
  // No shape of the operator: said where it is needed.
  ReferencesAhead none(op, *tuning::ParseShape("m=10/f32"), NewFolder(),
                       "build", {1, 2});
  none.Await(2);
  EXPECT_EQ(op.computed, 1);
}

}  // namespace
}  // namespace optrail::suites

#include "ops/norm/norm.h"

#include <cstdint>
#include <vector>

#include "base/random.h"
#include "gtest/gtest.h"
#include "tuning/proto/canonical.h"

namespace optrail::ops {
namespace {

using Values = std::vector<double>;

constexpr int64_t kRows = 3;
constexpr int64_t kCols = 7;

Values Random(Rng& rng, int64_t count, double low, double high) {
  Values values(count);
  for (double& v : values) v = low + (high - low) * rng.UniformReal();
  return values;
}

// The derivative of sum(dy * y) by every input of the forward reference must be
// what the backward reference says: differences in double precision are good to
// about 1e-9 here, and a term that is missing shows in the first digits.
class NormGradientTest : public testing::TestWithParam<bool> {
 protected:
  NormGradientTest()
      : centred_(GetParam()),
        forward_("norm", centred_),
        backward_("norm_backward", centred_),
        plain_(*tuning::ParseShape("rows=3,cols=7/f32")),
        training_(*tuning::ParseShape("rows=3,cols=7/statistics=written/f32")) {
    Rng rng(7);
    inputs_ = {Random(rng, kRows * kCols, -1, 3), Random(rng, kCols, 0.5, 1.5)};
    if (centred_) inputs_.push_back(Random(rng, kCols, -1, 1));
    dy_ = Random(rng, kRows * kCols, -1, 1);
  }

  double Loss(const std::vector<Values>& inputs) const {
    const Values y = forward_.Reference(plain_, inputs)[0];
    double loss = 0;
    for (size_t i = 0; i < y.size(); ++i) loss += y[i] * dy_[i];
    return loss;
  }

  void ExpectGradient(size_t input, const Values& gradient) const {
    ASSERT_EQ(gradient.size(), inputs_[input].size());
    constexpr double kStep = 1e-5;
    for (size_t i = 0; i < gradient.size(); ++i) {
      std::vector<Values> above = inputs_;
      std::vector<Values> below = inputs_;
      above[input][i] += kStep;
      below[input][i] -= kStep;
      EXPECT_NEAR(gradient[i], (Loss(above) - Loss(below)) / (2 * kStep), 1e-7)
          << "input " << input << " element " << i;
    }
  }

  const bool centred_;
  const NormOperator forward_;
  const NormBackwardOperator backward_;
  const proto::Shape plain_;
  const proto::Shape training_;
  std::vector<Values> inputs_;
  Values dy_;
};

TEST_P(NormGradientTest, AgreesWithFiniteDifferencesOfTheForwardReference) {
  const std::vector<Values> written = forward_.Reference(training_, inputs_);
  ASSERT_EQ(written.size(), centred_ ? 3 : 2);
  std::vector<Values> operands = {dy_, inputs_[0], inputs_[1]};
  operands.insert(operands.end(), written.begin() + 1, written.end());
  const std::vector<Values> gradients = backward_.Reference(plain_, operands);
  ASSERT_EQ(gradients.size(), inputs_.size());
  for (size_t input = 0; input < inputs_.size(); ++input) {
    ExpectGradient(input, gradients[input]);
  }
}

INSTANTIATE_TEST_SUITE_P(CentredOrNot, NormGradientTest, testing::Bool());

}  // namespace
}  // namespace optrail::ops

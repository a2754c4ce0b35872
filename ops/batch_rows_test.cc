// Rows of every operator: that one result's rows do not depend on the others is
// what batch_rows.h concludes from the sizes of operands.

#include "ops/core/batch_rows.h"

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ops/core/reference_check.h"
#include "ops/core/registry.h"
#include "ops/core/smaller_shape.h"
#include "tuning/proto/canonical.h"
#include "tuning/space/shapes.h"

namespace optrail::ops {
namespace {

using ::testing::ElementsAre;

// References are computed on one core.
constexpr double kMostWork = 2e6;
constexpr int kMostShapes = 3;  // of each operator

proto::Shape Small(const Operator& op, const proto::Shape& shape) {
  const double work = std::max(op.Flop(shape), op.MovedBytes(shape));
  const auto smaller = SmallerShape(op, shape, kMostWork / 2 / work);
  return work > kMostWork && smaller ? *smaller : shape;
}

TEST(BatchRows, FewerRowsAreOneAFewAndAnOddNumber) {
  EXPECT_THAT(FewerRows(1), ElementsAre());
  EXPECT_THAT(FewerRows(2), ElementsAre(1));
  EXPECT_THAT(FewerRows(4), ElementsAre(1, 3));
  EXPECT_THAT(FewerRows(181), ElementsAre(1, 3, 91));
}

// The first values of inputs, as they are for fewer rows.
std::vector<std::vector<double>> InputsOf(
    const std::vector<OperandSpec>& specs) {
  std::vector<std::vector<double>> values(specs.size());
  for (size_t i = 0; i < specs.size(); ++i) {
    if (specs[i].role == Role::kOutput) continue;
    values[i] = RandomValues(specs[i], 7 + i);
  }
  return values;
}

TEST(BatchRows, OfEveryOperatorAreComputedApart) {
  std::map<std::string, std::string> dims;
  for (const OperatorEntry* entry : Registry::Get().List()) {
    const Operator& op = *entry->op;
    const auto shapes =
        tuning::ParseShapes(entry->shapes.contents, entry->shapes.path);
    ASSERT_TRUE(shapes.ok()) << shapes.status();
    std::string& name = dims[op.name()];
    int tested = 0;
    for (const tuning::NamedShape& listed : *shapes) {
      const proto::Shape whole = Small(op, listed.shape);
      SCOPED_TRACE(op.name() + " " + tuning::CanonicalText(whole));
      const absl::optional<int> dim = BatchDim(op, whole);
      if (dim) name = whole.dims(*dim).name();
      const auto specs = op.Operands(whole);
      ASSERT_TRUE(specs.ok()) << specs.status();
      double elements = 0;  // of tables, too, of which little is read
      for (const OperandSpec& spec : *specs) {
        elements += static_cast<double>(spec.elements());
      }
      if (!dim || std::max(op.Flop(whole), elements) > kMostWork ||
          ++tested > kMostShapes) {
        continue;
      }
      const auto all = op.Reference(whole, InputsOf(*specs));
      for (const int64_t rows : FewerRows(whole.dims(*dim).value())) {
        const proto::Shape shape = WithRows(whole, *dim, rows);
        if (!CheckShape(op, shape).ok()) continue;
        const auto fewer_specs = op.Operands(shape);
        ASSERT_TRUE(fewer_specs.ok()) << fewer_specs.status();
        const auto fewer = op.Reference(shape, InputsOf(*fewer_specs));
        ASSERT_EQ(fewer.size(), all.size());
        for (size_t i = 0; i < fewer.size(); ++i) {
          EXPECT_TRUE(
              std::equal(fewer[i].begin(), fewer[i].end(), all[i].begin()))
              << rows << " rows, result " << i;
        }
      }
    }
  }
  EXPECT_EQ(dims,
            (std::map<std::string, std::string>{{"add", "n"},
                                                {"attention", "batch"},
                                                {"batched_matmul", "batch"},
                                                {"conv2d", "n"},
                                                {"conv_bn_relu", "n"},
                                                {"depthwise_conv2d", ""},
                                                {"embedding_bag", "bags"},
                                                {"gelu", "n"},
                                                {"layer_norm", "rows"},
                                                {"layer_norm_backward", ""},
                                                {"linear", "m"},
                                                {"matmul", "m"},
                                                {"relu", "n"},
                                                {"rms_norm", "rows"},
                                                {"rms_norm_backward", ""},
                                                {"softmax", "rows"},
                                                {"stencil", ""},
                                                {"sum", "rows"},
                                                {"transpose", ""}}));
}

}  // namespace
}  // namespace optrail::ops

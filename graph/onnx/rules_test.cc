#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "graph/onnx/testing/model_builder.h"
#include "graph/reference/reference.h"

namespace optrail::graph {
namespace {

// ONNX 1.12 has no cases of it.
TEST(LpPoolTest, IsTheRootOfASumOfPowers) {
  ModelBuilder model;
  model.Input("x", {1, 1, 2, 3}).Output("y").Output("z");
  auto& pool = model.Node("LpPool", {"x"}, "y");
  ModelBuilder::SetInts(pool, "kernel_shape", {2, 2});
  ModelBuilder::SetInts(pool, "pads", {0, 1, 0, 0});
  ModelBuilder::Set(model.Node("GlobalLpPool", {"x"}, "z"), "p", 3);
  const auto imported = model.Import();
  ASSERT_TRUE(imported.ok()) << imported.status();
  ASSERT_TRUE(imported->uncovered.empty());
  const auto outputs = RunReference(
      imported->graph,
      {Array::Reals(proto::ELEMENT_F32, {1, 1, 2, 3}, {3, -1, 2, -4, 1, 2})});
  ASSERT_TRUE(outputs.ok()) << outputs.status();
  // The padding counts as zeros.
  EXPECT_NEAR((*outputs)[0].At(0), 5, 1e-5);
  EXPECT_NEAR((*outputs)[0].At(1), std::sqrt(27), 1e-5);
  EXPECT_NEAR((*outputs)[0].At(2), std::sqrt(10), 1e-5);
  EXPECT_NEAR((*outputs)[1].At(0), std::cbrt(109), 1e-5);

  ModelBuilder wrong;
  wrong.Input("x", {1, 1, 2, 3}).Output("y");
  auto& zero = wrong.Node("LpPool", {"x"}, "y");
  ModelBuilder::SetInts(zero, "kernel_shape", {2, 2});
  ModelBuilder::Set(zero, "p", 0);
  EXPECT_SAYS(wrong.Error(), "p is 0; expected 1 or more");
}

TEST(LpPoolTest, OfTheFirstOpsetHasARealPower) {
  ModelBuilder model(1);
  model.Input("x", {1, 1, 1, 2}).Output("y").Output("z");
  auto& pool = model.Node("LpPool", {"x"}, "y");
  ModelBuilder::SetInts(pool, "kernel_shape", {1, 2});
  for (onnx::NodeProto* const node :
       {&pool, &model.Node("GlobalLpPool", {"x"}, "z")}) {
    auto& p = *node->add_attribute();
    p.set_name("p");
    p.set_type(onnx::AttributeProto::FLOAT);
    p.set_f(3);
  }
  const auto imported = model.Import();
  ASSERT_TRUE(imported.ok()) << imported.status();
  const auto outputs =
      RunReference(imported->graph,
                   {Array::Reals(proto::ELEMENT_F32, {1, 1, 1, 2}, {1, 2})});
  ASSERT_TRUE(outputs.ok()) << outputs.status();
  EXPECT_NEAR((*outputs)[0].At(0), std::cbrt(9), 1e-5);
  EXPECT_NEAR((*outputs)[1].At(0), std::cbrt(9), 1e-5);
}

TEST(QuantisationTest, DynamicRangesAreThoseOfTheInput) {
  ModelBuilder model;
  model.Input("x", {2}).Output("y").Output("scale").Output("point");
  auto& node = model.Node("DynamicQuantizeLinear", {"x"}, "y");
  node.add_output("scale");
  node.add_output("point");
  const auto imported = model.Import();
  ASSERT_TRUE(imported.ok()) << imported.status();
  const auto outputs = RunReference(
      imported->graph, {Array::Reals(proto::ELEMENT_F32, {2}, {-1, 1})});
  ASSERT_TRUE(outputs.ok()) << outputs.status();
  // 127.5 is a tie, and even numbers win: 1 would be 256 and saturates.
  EXPECT_EQ((*outputs)[2].At(0), 128);
  EXPECT_NEAR((*outputs)[1].At(0), 2. / 255, 1e-8);
  EXPECT_EQ((*outputs)[0].At(0), 0);
  EXPECT_EQ((*outputs)[0].At(1), 255);
}

TEST(QuantisationTest, ProductsHaveAZeroPointForEachRow) {
  ModelBuilder model;
  model.Input("a", {2, 3}, onnx::TensorProto::UINT8);
  model.Input("b", {3, 1}, onnx::TensorProto::UINT8);
  model.Input("zeros", {2}, onnx::TensorProto::UINT8).Output("y");
  model.Node("MatMulInteger", {"a", "b", "zeros"}, "y");
  const auto imported = model.Import();
  ASSERT_TRUE(imported.ok()) << imported.status();
  const auto outputs = RunReference(
      imported->graph,
      {Array::Integers(proto::ELEMENT_U8, {2, 3}, {10, 11, 12, 1, 2, 3}),
       Array::Integers(proto::ELEMENT_U8, {3, 1}, {1, 2, 3}),
       Array::Integers(proto::ELEMENT_U8, {2}, {10, 2})});
  ASSERT_TRUE(outputs.ok()) << outputs.status();
  EXPECT_EQ((*outputs)[0].At(0), 0 * 1 + 1 * 2 + 2 * 3);
  EXPECT_EQ((*outputs)[0].At(1), -1 * 1 + 0 * 2 + 1 * 3);
}

// Returns what the model computes of these inputs, in double precision.
std::vector<Array> Outputs(const ModelBuilder& model,
                           const std::vector<Array>& inputs) {
  const auto imported = model.Import();
  EXPECT_TRUE(imported.ok()) << imported.status();
  if (!imported.ok()) return {};
  for (const auto& one : imported->uncovered) ADD_FAILURE() << one.reason;
  const auto outputs = RunReference(imported->graph, inputs);
  EXPECT_TRUE(outputs.ok()) << outputs.status();
  return outputs.value_or(std::vector<Array>());
}

// ONNX's case has one filter; here each has a scale and a zero point.
TEST(QuantisationTest, ConvolutionsHaveAScaleForEachFilter) {
  ModelBuilder model;
  const int u8 = onnx::TensorProto::UINT8, i8 = onnx::TensorProto::INT8;
  model.Input("x", {1, 1, 1, 2}, u8)
      .Input("x_scale", {})
      .Input("x_zero", {}, u8);
  model.Input("w", {2, 1, 1, 1}, i8).Input("w_scale", {2});
  model.Input("w_zero", {2}, i8).Input("y_scale", {}).Input("y_zero", {}, u8);
  model.Input("bias", {2}, onnx::TensorProto::INT32).Output("y");
  model.Node("QLinearConv",
             {"x", "x_scale", "x_zero", "w", "w_scale", "w_zero", "y_scale",
              "y_zero", "bias"},
             "y");
  const auto real = [](const Dims& dims, std::vector<double> values) {
    return Array::Reals(proto::ELEMENT_F32, dims, std::move(values));
  };
  const std::vector<Array> y = Outputs(
      model,
      {Array::Integers(proto::ELEMENT_U8, {1, 1, 1, 2}, {12, 8}),
       real({}, {0.5}), Array::Integers(proto::ELEMENT_U8, {}, {10}),
       Array::Integers(proto::ELEMENT_I8, {2, 1, 1, 1}, {3, -2}),
       real({2}, {1, 2}), Array::Integers(proto::ELEMENT_I8, {2}, {1, 0}),
       real({}, {0.5}), Array::Integers(proto::ELEMENT_U8, {}, {5}),
       Array::Integers(proto::ELEMENT_I32, {2}, {1, 3})});
  ASSERT_EQ(y.size(), 1);
  // Filter 0: (2 * 2 + 1) and (-2 * 2 + 1), times .5 * 1 / .5, plus 5.
  // Filter 1: (2 * -2 + 3) and (-2 * -2 + 3), times .5 * 2 / .5, plus 5.
  EXPECT_EQ(y[0].integers, (std::vector<int64_t>{10, 2, 3, 19}));
}

// ONNX's first case with a shape counts places in a smaller one.
TEST(MaxUnpoolTest, PutsMaximaBackWherePoolingFoundThem) {
  ModelBuilder model;
  model.Input("x", {1, 1, 3, 5}).Ints("shape", {1, 1, 3, 5}).Output("z");
  auto& pool = model.Node("MaxPool", {"x"}, "y");
  pool.add_output("at");
  ModelBuilder::SetInts(pool, "kernel_shape", {1, 2});
  ModelBuilder::SetInts(pool, "strides", {1, 2});
  auto& unpool = model.Node("MaxUnpool", {"y", "at", "shape"}, "z");
  ModelBuilder::SetInts(unpool, "kernel_shape", {1, 2});
  ModelBuilder::SetInts(unpool, "strides", {1, 2});
  const std::vector<Array> z = Outputs(
      model, {Array::Reals(proto::ELEMENT_F32, {1, 1, 3, 5},
                           {1, 2, 4, 3, 9, 5, 6, 8, 7, 9, 1, 0, 2, 3, 9})});
  ASSERT_EQ(z.size(), 1);
  EXPECT_EQ(z[0].reals,
            (std::vector<double>{0, 2, 4, 0, 0, 0, 6, 8, 0, 0, 1, 0, 0, 3, 0}));
}

TEST(FourierTest, TheInverseOfATransformIsTheSignalWithZerosBehind) {
  ModelBuilder model;
  model.Input("x", {1, 5, 2}).Ints("length", {7}).Output("z");
  model.graph().mutable_initializer(0)->clear_dims();
  model.Node("DFT", {"x", "length"}, "y");
  ModelBuilder::Set(model.Node("DFT", {"y"}, "z"), "inverse", 1);
  const std::vector<double> x = {1, -2, 3, 0.5, 0, 4, -1, 1, 2, 2};
  const std::vector<Array> z =
      Outputs(model, {Array::Reals(proto::ELEMENT_F32, {1, 5, 2}, x)});
  ASSERT_EQ(z.size(), 1);
  ASSERT_EQ(z[0].type.dims, (Dims{1, 7, 2}));
  for (int64_t i = 0; i < 14; ++i) {
    EXPECT_NEAR(z[0].reals[i], i < 10 ? x[i] : 0, 1e-5) << i;
  }
}

TEST(FourierTest, AMatrixThatIsTooLargeIsNotCovered) {
  ModelBuilder model;
  model.Input("x", {1, int64_t{1} << 39, 2}).Output("y");
  model.Node("DFT", {"x"}, "y");
  const auto imported = model.Import();
  ASSERT_TRUE(imported.ok()) << imported.status();
  ASSERT_EQ(imported->uncovered.size(), 1);
  EXPECT_SAYS(imported->uncovered[0].reason, "a transform of 549755813888");
}

// Written out: what a bin is by the definition, one pixel after the other.
TEST(RoiAlignTest, BinsAreMeansOfPlacesBetweenPixels) {
  ModelBuilder model;
  model.Input("x", {2, 1, 3, 4}).Input("boxes", {3, 4});
  model.Input("images", {3}, onnx::TensorProto::INT64).Output("y");
  auto& node = model.Node("RoiAlign", {"x", "boxes", "images"}, "y");
  ModelBuilder::Set(node, "output_height", 2);
  ModelBuilder::Set(node, "output_width", 2);
  ModelBuilder::Set(node, "sampling_ratio", 3);
  std::vector<double> x;
  for (int i = 0; i < 24; ++i) x.push_back(i * i % 17);
  // The last one reaches beyond the image.
  const std::vector<double> boxes = {0, 0, 3, 2, 1, 0.5, 2.5, 3, -3, -2, 7, 1};
  const std::vector<int64_t> images = {1, 0, 1};
  const std::vector<Array> y =
      Outputs(model, {Array::Reals(proto::ELEMENT_F32, {2, 1, 3, 4}, x),
                      Array::Reals(proto::ELEMENT_F32, {3, 4}, boxes),
                      Array::Integers(proto::ELEMENT_I64, {3}, images)});
  ASSERT_EQ(y.size(), 1);
  const auto pixel = [&](int64_t image, double row, double col) {
    if (row < -1 || row > 3 || col < -1 || col > 4) return 0.0;
    row = std::min(std::max(row, 0.0), 2.0);
    col = std::min(std::max(col, 0.0), 3.0);
    double sum = 0;
    for (int r = 0; r < 3; ++r) {
      for (int c = 0; c < 4; ++c) {
        sum += std::max(0.0, 1 - std::fabs(row - r)) *
               std::max(0.0, 1 - std::fabs(col - c)) *
               x[image * 12 + r * 4 + c];
      }
    }
    return sum;
  };
  for (int b = 0; b < 3; ++b) {
    const double left = boxes[b * 4] - 0.5, top = boxes[b * 4 + 1] - 0.5;
    const double width = boxes[b * 4 + 2] - 0.5 - left;
    const double height = boxes[b * 4 + 3] - 0.5 - top;
    for (int bin = 0; bin < 4; ++bin) {
      double sum = 0;
      for (int i = 0; i < 3; ++i) {
        for (int j = 0; j < 3; ++j) {
          sum += pixel(images[b], top + height / 2 * (bin / 2 + (i + 0.5) / 3),
                       left + width / 2 * (bin % 2 + (j + 0.5) / 3));
        }
      }
      EXPECT_NEAR(y[0].reals[b * 4 + bin], sum / 9, 1e-4) << b << " " << bin;
    }
  }
}

TEST(LossTest, TargetsThatAreIgnoredMayNameNoClass) {
  ModelBuilder model;
  model.Input("x", {3, 2}).Input("at", {3}, onnx::TensorProto::INT64);
  model.Output("y");
  auto& node = model.Node("NegativeLogLikelihoodLoss", {"x", "at"}, "y");
  ModelBuilder::Set(node, "ignore_index", -100);
  const std::vector<Array> y = Outputs(
      model,
      {Array::Reals(proto::ELEMENT_F32, {3, 2}, {-1, -2, -3, -4, -5, -6}),
       Array::Integers(proto::ELEMENT_I64, {3}, {1, -100, 0})});
  ASSERT_EQ(y.size(), 1);
  EXPECT_NEAR(y[0].At(0), (2 + 5) / 2., 1e-6);
}

// Class 0 is read in place of the one that is ignored; its probability is 0.
TEST(LossTest, AnInfiniteLogarithmOfAnIgnoredTargetCountsForNothing) {
  ModelBuilder model;
  model.Input("x", {2, 2}).Input("at", {2}, onnx::TensorProto::INT64);
  model.Output("y");
  auto& node = model.Node("NegativeLogLikelihoodLoss", {"x", "at"}, "y");
  ModelBuilder::Set(node, "ignore_index", -100);
  const double infinity = std::numeric_limits<double>::infinity();
  const std::vector<Array> y = Outputs(
      model, {Array::Reals(proto::ELEMENT_F32, {2, 2}, {-1, -2, -infinity, 0}),
              Array::Integers(proto::ELEMENT_I64, {2}, {1, -100})});
  ASSERT_EQ(y.size(), 1);
  EXPECT_NEAR(y[0].At(0), 2, 1e-6);
}

}  // namespace
}  // namespace optrail::graph

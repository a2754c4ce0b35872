#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "base/random.h"
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

// Boxes of known places, with as many samples in a bin as it has pixels: the
// loops of ONNX Runtime, from which these modes come.
TEST(RoiAlignTest, CountsSamplesByBoxesAndTakesTheLargest) {
  Rng rng(11);
  std::vector<double> x(2 * 3 * 8 * 9);
  for (double& value : x) value = rng.UniformReal() * 4 - 2;
  // One is in part outside, one has no width.
  const std::vector<double> boxes = {0.6, 1.2, 7.1, 6.9, -3, 2,
                                     4,   12,  2,   3,   2,  7.5};
  const std::vector<int64_t> images = {1, 0, 1};
  const auto expected = [&](bool is_max, int64_t ratio, int box, int channel,
                            int row, int col) {
    const double* const b = &boxes[4 * box];
    const double left = b[0] * .5 - .5, top = b[1] * .5 - .5;
    const double height = (b[3] * .5 - .5 - top) / 3;
    const double width = (b[2] * .5 - .5 - left) / 2;
    const double down =
        ratio > 0 ? static_cast<double>(ratio) : std::ceil(height);
    const double across =
        ratio > 0 ? static_cast<double>(ratio) : std::ceil(width);
    double sum = 0, largest = 0;
    bool is_first = true;
    for (int i = 0; i < down; ++i) {
      for (int j = 0; j < across; ++j) {
        double y = top + row * height + (i + .5) * height / down;
        double at = left + col * width + (j + .5) * width / across;
        double largest_here = 0;
        if (y >= -1 && y <= 8 && at >= -1 && at <= 9) {
          y = std::clamp(y, 0., 7.);
          at = std::clamp(at, 0., 8.);
          largest_here = -1e9;
          for (int k = 0; k < 4; ++k) {
            const int r = std::min(static_cast<int>(y) + k / 2, 7);
            const int c = std::min(static_cast<int>(at) + k % 2, 8);
            const double dy = y - static_cast<int>(y);
            const double dx = at - static_cast<int>(at);
            const double value =
                (k / 2 == 0 ? 1 - dy : dy) * (k % 2 == 0 ? 1 - dx : dx) *
                x[((images[box] * 3 + channel) * 8 + r) * 9 + c];
            sum += value;
            largest_here = std::max(largest_here, value);
          }
        }
        largest = is_first ? largest_here : std::max(largest, largest_here);
        is_first = false;
      }
    }
    return is_max ? largest : sum / std::max(1., down * across);
  };
  for (const bool is_max : {false, true}) {
    for (const int64_t ratio : {0, 2}) {
      ModelBuilder model;
      model.Input("x", {2, 3, 8, 9}).Output("y").Ints("images", images);
      auto& tensor = *model.graph().add_initializer();
      tensor.set_name("boxes");
      tensor.set_data_type(onnx::TensorProto::FLOAT);
      for (const int64_t dim : {3, 4}) tensor.add_dims(dim);
      for (const double value : boxes) {
        tensor.add_float_data(static_cast<float>(value));
      }
      auto& node = model.Node("RoiAlign", {"x", "boxes", "images"}, "y");
      ModelBuilder::Set(node, "output_height", 3);
      ModelBuilder::Set(node, "output_width", 2);
      ModelBuilder::Set(node, "sampling_ratio", ratio);
      auto& scale = *node.add_attribute();
      scale.set_name("spatial_scale");
      scale.set_type(onnx::AttributeProto::FLOAT);
      scale.set_f(.5);
      auto& mode = *node.add_attribute();
      mode.set_name("mode");
      mode.set_type(onnx::AttributeProto::STRING);
      mode.set_s(is_max ? "max" : "avg");
      const std::vector<Array> y =
          Outputs(model, {Array::Reals(proto::ELEMENT_F32, {2, 3, 8, 9}, x)});
      ASSERT_EQ(y.size(), 1);
      for (int i = 0; i < 3 * 3 * 6; ++i) {
        EXPECT_NEAR(
            y[0].At(i),
            expected(is_max, ratio, i / 18, i / 6 % 3, i / 2 % 3, i % 2), 1e-5)
            << i << " max " << is_max << " ratio " << ratio;
      }
    }
  }
}

TEST(RoiAlignTest, SamplesOfComputedBoxesAreNotCounted) {
  ModelBuilder model;
  model.Input("x", {1, 1, 4, 4}).Input("boxes", {1, 4}).Ints("images", {0});
  model.Output("y");
  model.Node("RoiAlign", {"x", "boxes", "images"}, "y");
  const auto imported = model.Import();
  ASSERT_TRUE(imported.ok()) << imported.status();
  ASSERT_EQ(imported->uncovered.size(), 1);
  EXPECT_SAYS(imported->uncovered[0].reason, "sampling_ratio=0 needs known");
}

// By its definition, over all permutations.
double Determinant(const std::vector<double>& a, int n) {
  std::vector<int> order(n);
  for (int i = 0; i < n; ++i) order[i] = i;
  double sum = 0;
  do {
    double product = 1;
    for (int i = 0; i < n; ++i) {
      product *= a[i * n + order[i]];
      for (int j = 0; j < i; ++j) product *= order[j] > order[i] ? -1 : 1;
    }
    sum += product;
  } while (std::next_permutation(order.begin(), order.end()));
  return sum;
}

TEST(DetTest, IsThatOfEachMatrix) {
  Rng rng(5);
  for (const int n : {1, 2, 3, 6}) {
    ModelBuilder model;
    model.Input("x", {4, n, n}).Output("y");
    model.Node("Det", {"x"}, "y");
    std::vector<double> x(4 * n * n);
    for (double& value : x) value = rng.UniformReal() * 2 - 1;
    for (int i = 0; i < n; ++i) {
      for (int j = 0; j < n; ++j) {
        // Ones beside the diagonal, which has none; and a column of zeros.
        x[n * n + i * n + j] = j == (i + 1) % n ? 1 : 0;
        if (j == n / 2) x[2 * n * n + i * n + j] = 0;
      }
    }
    const std::vector<Array> y =
        Outputs(model, {Array::Reals(proto::ELEMENT_F32, {4, n, n}, x)});
    ASSERT_EQ(y.size(), 1);
    ASSERT_EQ(y[0].type.dims, Dims{4});
    for (int m = 0; m < 4; ++m) {
      const auto begin = x.begin() + m * n * n;
      EXPECT_NEAR(y[0].At(m), Determinant({begin, begin + n * n}, n), 1e-6)
          << n << " " << m;
    }
  }
  ModelBuilder wrong;
  wrong.Input("x", {3, 4}).Output("y");
  wrong.Node("Det", {"x"}, "y");
  EXPECT_SAYS(wrong.Error(), "expected square matrices");
}

// Two parts of x, the first of which goes; then stacked with -x.
TEST(SequenceTest, ListsOfTensorsLeaveNothingOfThemselves) {
  ModelBuilder model;
  model.Input("x", {5, 2}).Output("y").Output("length");
  model.Ints("first", {0}).Ints("split", {2, 3}).Ints("place", {-1});
  model.Node("SplitToSequence", {"x", "split"}, "parts");
  // A function hands a sequence through as any value.
  model.Function("Same", {"a"}, {"a"});
  model.Call("Same", {"parts"}, "same");
  model.Node("SequenceErase", {"same", "first"}, "rest");
  model.Node("SequenceAt", {"same", "place"}, "last");
  model.Node("Neg", {"last"}, "negative");
  model.Node("SequenceInsert", {"rest", "negative", "first"}, "both");
  auto& concat = model.Node("ConcatFromSequence", {"both"}, "y");
  ModelBuilder::Set(concat, "axis", 1);
  ModelBuilder::Set(concat, "new_axis", 1);
  model.Node("SequenceLength", {"both"}, "length");
  const std::vector<double> x = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9};
  const std::vector<Array> y =
      Outputs(model, {Array::Reals(proto::ELEMENT_F32, {5, 2}, x)});
  ASSERT_EQ(y.size(), 2);
  EXPECT_EQ(y[0].type.dims, (Dims{3, 2, 2}));
  EXPECT_EQ(y[0].reals,
            (std::vector<double>{-4, -5, 4, 5, -6, -7, 6, 7, -8, -9, 8, 9}));
  EXPECT_EQ(y[1].At(0), 2);
}

TEST(SequenceTest, WithoutAMeaningAreErrors) {
  const auto error = [](const Dims& split, int64_t place) {
    ModelBuilder model;
    model.Input("x", {5, 2}).Output("y");
    model.Ints("split", split).Ints("place", {place});
    model.Node("SplitToSequence", {"x", "split"}, "parts");
    model.Node("SequenceAt", {"parts", "place"}, "y");
    return model.Error();
  };
  EXPECT_EQ(error({2, 3}, 1), "no error");
  EXPECT_SAYS(error({2, 2}, 1), "the parts have 4 rows of 5");
  EXPECT_SAYS(error({2, 4}, 1), "the parts do not add up to the 5 rows");
  EXPECT_SAYS(error({-1, 6}, 1), "the parts do not add up to the 5 rows");
  EXPECT_SAYS(error({2, 3}, 2), "expected one place in a sequence of 2");
  EXPECT_SAYS(error({2, 3}, -3), "expected one place in a sequence of 2");
  ModelBuilder tensor;
  tensor.Input("x", {5}).Output("y");
  tensor.Node("SequenceLength", {"x"}, "y");
  EXPECT_SAYS(tensor.Error(), "(SequenceLength): input 0 is no sequence");
}

TEST(SequenceTest, WhatOtherOperatorsReadIsNotCovered) {
  ModelBuilder model;
  model.Input("x", {5}).Output("s").Output("y");
  model.Node("SequenceConstruct", {"x", "x"}, "s");
  model.Node("Relu", {"s"}, "y");
  const auto imported = model.Import();
  ASSERT_TRUE(imported.ok()) << imported.status();
  ASSERT_EQ(imported->uncovered.size(), 2);
  EXPECT_EQ(imported->uncovered[0].node, "the_y");
  EXPECT_EQ(imported->uncovered[0].reason, "reads a sequence");
  EXPECT_EQ(imported->uncovered[1].reason, "is a sequence");
}

// An insertion each, which would be 10^10 entries in all.
TEST(SequenceTest, ManyLongOnesAreNotCovered) {
  ModelBuilder model;
  model.Input("x", {5}).Output("y");
  model.Node("SequenceConstruct", {"x"}, "s0");
  constexpr int kNodes = 100'000;
  for (int i = 0; i < kNodes; ++i) {
    model.Node("SequenceInsert", {absl::StrCat("s", i), "x"},
               absl::StrCat("s", i + 1));
  }
  model.Node("SequenceLength", {absl::StrCat("s", kNodes)}, "y");
  const auto imported = model.Import();
  ASSERT_TRUE(imported.ok()) << imported.status();
  ASSERT_EQ(imported->uncovered.size(), 1);
  EXPECT_SAYS(imported->uncovered[0].reason, "a sequence of more than 4096");
}

}  // namespace
}  // namespace optrail::graph

#include <gtest/gtest.h>

#include <cmath>

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

}  // namespace
}  // namespace optrail::graph

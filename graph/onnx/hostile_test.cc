#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <functional>
#include <string>

#include "absl/strings/str_cat.h"
#include "base/file/file.h"
#include "base/random.h"
#include "graph/onnx/import.h"
#include "graph/onnx/testing/model_builder.h"

namespace optrail::graph {
namespace {

using onnx::TensorProto;

TEST(HostileTest, ACycleIsNamed) {
  ModelBuilder model;
  model.Input("x", {4}).Output("b");
  model.Node("Add", {"x", "b"}, "a");
  model.Node("Relu", {"a"}, "b");
  EXPECT_SAYS(model.Error(), "node \"the_a\" (Add): is part of a cycle");
}

TEST(HostileTest, AnInputThatNobodyComputesIsNamed) {
  ModelBuilder model;
  model.Input("x", {4}).Output("y");
  model.Node("Add", {"x", "ghost"}, "y");
  EXPECT_SAYS(model.Error(), "node \"the_y\" (Add): reads \"ghost\"");
}

TEST(HostileTest, AMissingOperandIsNamed) {
  ModelBuilder model;
  model.Input("x", {4}).Output("y");
  model.Node("Add", {"x"}, "y");
  EXPECT_SAYS(model.Error(), "node \"the_y\" (Add): input 1 is missing");
}

TEST(HostileTest, AResultThatTwoNodesComputeIsNamed) {
  ModelBuilder model;
  model.Input("x", {4}).Output("y");
  model.Node("Relu", {"x"}, "y");
  model.Node("Neg", {"x"}, "y");
  EXPECT_SAYS(model.Error(), "computes \"y\", as does node \"the_y\"");
}

TEST(HostileTest, TypesThatDisagreeAreNamed) {
  ModelBuilder model;
  model.Input("x", {4}).Input("i", {4}, TensorProto::INT64).Output("y");
  model.Node("Add", {"x", "i"}, "y");
  EXPECT_SAYS(model.Error(), "types differ: f32[4] and i64[4]");
}

TEST(HostileTest, AnOutputOfAnotherShapeThanDeclaredIsNamed) {
  ModelBuilder model;
  model.Input("x", {4});
  model.Node("Relu", {"x"}, "y");
  model.Output("y");
  auto& type = *model.graph().mutable_output(0)->mutable_type();
  type.mutable_tensor_type()->set_elem_type(TensorProto::FLOAT);
  type.mutable_tensor_type()->mutable_shape()->add_dim()->set_dim_value(5);
  EXPECT_SAYS(model.Error(), "output \"y\" is declared as f32[5]");
}

TEST(HostileTest, HugeAndNegativeDimensionsAreNamed) {
  ModelBuilder huge;
  huge.Input("x", {int64_t{1} << 40, int64_t{1} << 40}).Output("y");
  huge.Node("Relu", {"x"}, "y");
  EXPECT_SAYS(huge.Error(), "input \"x\"");
  ModelBuilder negative;
  negative.Input("x", {-3}).Output("y");
  negative.Node("Relu", {"x"}, "y");
  const auto imported = negative.Import();
  ASSERT_TRUE(imported.ok());
  ASSERT_EQ(imported->uncovered.size(), 1);
  EXPECT_SAYS(imported->uncovered[0].reason, "a dimension of -3");
  ModelBuilder expanded;
  expanded.Input("x", {1}).Output("y");
  expanded.Ints("shape", {int64_t{1} << 62, int64_t{1} << 62});
  expanded.Node("Expand", {"x", "shape"}, "y");
  EXPECT_SAYS(expanded.Error(), "node \"the_y\" (Expand)");
}

TEST(HostileTest, AttributesOutOfRangeAreErrors) {
  const auto error = [](const std::function<void(ModelBuilder&)>& build) {
    ModelBuilder model;
    model.Input("x", {1, 2, 8, 8}).Input("w", {4, 2, 3, 3}).Output("y");
    build(model);
    return model.Error();
  };
  const int64_t huge = int64_t{1} << 62;
  for (const char* name : {"strides", "dilations", "pads"}) {
    for (const int64_t value : {huge, -huge, int64_t{0}}) {
      if (value == 0 && std::string(name) == "pads") continue;
      const int count = std::string(name) == "pads" ? 4 : 2;
      EXPECT_SAYS(error([&](ModelBuilder& model) {
                    auto& node = model.Node("Conv", {"x", "w"}, "y");
                    ModelBuilder::SetInts(node, name, Dims(count, value));
                  }),
                  "node \"the_y\" (Conv)");
      EXPECT_SAYS(error([&](ModelBuilder& model) {
                    auto& node = model.Node("MaxPool", {"x"}, "y");
                    ModelBuilder::SetInts(node, "kernel_shape", {2, 2});
                    ModelBuilder::SetInts(node, name, Dims(count, value));
                  }),
                  "node \"the_y\" (MaxPool)");
    }
  }
  EXPECT_SAYS(error([&](ModelBuilder& model) {
                auto& node = model.Node("Softmax", {"x"}, "y");
                ModelBuilder::Set(node, "axis", huge);
              }),
              "axis 4611686018427387904 of 4 dimensions");
  EXPECT_SAYS(error([&](ModelBuilder& model) {
                auto& node = model.Node("Transpose", {"x"}, "y");
                ModelBuilder::SetInts(node, "perm", {0, 1, 1, huge});
              }),
              "is no order of the dimensions");
}

// Each channel has a parameter, and these tensors have no channels.
TEST(HostileTest, ParametersAlongAbsentDimensionsAreNamed) {
  ModelBuilder instance;
  instance.Input("x", {4}).Input("s", {1}).Output("y");
  instance.Node("InstanceNormalization", {"x", "s", "s"}, "y");
  EXPECT_SAYS(instance.Error(),
              "node \"the_y\" (InstanceNormalization): axis 1 of 1 dimensions");
  ModelBuilder batch;
  batch.Input("x", {4}).Input("s", {1}).Output("y");
  auto& node = batch.Node("BatchNormalization", {"x", "s", "s", "s", "s"}, "y");
  ModelBuilder::Set(node, "training_mode", 1);
  EXPECT_SAYS(batch.Error(),
              "node \"the_y\" (BatchNormalization): axis 1 of 1 dimensions");
}

TEST(HostileTest, TensorsWhoseBytesDoNotFitAreNamed) {
  ModelBuilder model;
  model.Input("x", {4}).Output("y");
  model.Node("Relu", {"x"}, "y");
  TensorProto& tensor = *model.graph().add_initializer();
  tensor.set_name("w");
  tensor.set_data_type(TensorProto::FLOAT);
  tensor.add_dims(1000);
  tensor.set_raw_data("four");
  EXPECT_SAYS(model.Error(), "tensor \"w\": 4 bytes; expected 4000");
}

TEST(HostileTest, FilesOutsideTheModelsFolderAreNotRead) {
  const std::string folder = JoinPath(testing::TempDir(), "model");
  const std::string secret = JoinPath(testing::TempDir(), "secret.bin");
  ASSERT_TRUE(CreateDirectories(folder).ok());
  ASSERT_TRUE(WriteFileAtomically(secret, std::string(16, 'x')).ok());
  const std::string link = JoinPath(folder, "link.bin");
  unlink(link.c_str());
  ASSERT_EQ(symlink(secret.c_str(), link.c_str()), 0);
  for (const std::string& location :
       {std::string("../secret.bin"), secret, std::string("link.bin"),
        std::string("a/../../secret.bin"), std::string("")}) {
    ModelBuilder model;
    model.Input("x", {4}).Output("y");
    model.Node("Add", {"x", "w"}, "y");
    TensorProto& tensor = *model.graph().add_initializer();
    tensor.set_name("w");
    tensor.set_data_type(TensorProto::FLOAT);
    tensor.add_dims(4);
    tensor.set_data_location(TensorProto::EXTERNAL);
    auto& entry = *tensor.add_external_data();
    entry.set_key("location");
    entry.set_value(location);
    const std::string path = JoinPath(folder, "model.onnx");
    ASSERT_TRUE(WriteFileAtomically(path, model.Bytes()).ok());
    const auto imported = ImportOnnx(path);
    ASSERT_FALSE(imported.ok()) << location;
    EXPECT_SAYS(std::string(imported.status().message()),
                "expected a file below the model's folder");
  }
}

TEST(HostileTest, TruncatedAndDamagedFilesAreErrorsOrModels) {
  const auto whole = ReadFile("graph/testdata/tiny_resnet_bn.onnx");
  ASSERT_TRUE(whole.ok());
  Rng rng(7);
  for (int i = 0; i < 300; ++i) {
    std::string damaged = *whole;
    if (i % 2 == 0) {
      damaged.resize(rng.UniformInt(static_cast<int64_t>(damaged.size())));
    } else {
      for (int k = 0; k < 8; ++k) {
        // The nodes are at the end.
        const int64_t at =
            static_cast<int64_t>(damaged.size()) - 1 -
            rng.UniformInt(std::min<int64_t>(4000, damaged.size()));
        damaged[at] = static_cast<char>(rng());
      }
    }
    const auto model = ParseOnnxModel(damaged, "");
    if (!model.ok()) continue;
    const auto imported = ImportOnnxModel(*model);
    if (imported.ok()) {
      EXPECT_TRUE(Validate(imported->graph).ok());
    }
  }
}

TEST(HostileTest, ManyNodesAreImported) {
  ModelBuilder model;
  model.Input("x0", {4});
  constexpr int kNodes = 100'000;
  for (int i = 0; i < kNodes; ++i) {
    model.Node("Relu", {absl::StrCat("x", i)}, absl::StrCat("x", i + 1));
  }
  model.Output(absl::StrCat("x", kNodes));
  const auto imported = model.Import();
  ASSERT_TRUE(imported.ok()) << imported.status();
  EXPECT_EQ(imported->graph.nodes.size(), kNodes);
}

// Each branch sees all names before it, of which there is one copy.
TEST(HostileTest, ManyBranchesAreImported) {
  ModelBuilder model;
  model.Input("x0", {4});
  ModelBuilder::TrueIn(model.graph(), "is");
  constexpr int kBranches = 20'000;
  for (int i = 0; i < kBranches; ++i) {
    auto& branch = ModelBuilder::GraphOf(
        model.Node("If", {"is"}, absl::StrCat("x", i + 1)), "then_branch", "t");
    ModelBuilder::NodeOf(branch, "Relu", {absl::StrCat("x", i)}, "t");
  }
  model.Output(absl::StrCat("x", kBranches));
  const auto imported = model.Import();
  ASSERT_TRUE(imported.ok()) << imported.status();
  EXPECT_EQ(imported->graph.nodes.size(), kBranches);
}

// Loops within loops, or branches in them, make many nodes out of few.
TEST(HostileTest, NestedLoopsEndAtTheBoundOfAGraph) {
  for (const bool branches : {false, true}) {
    ModelBuilder model;
    model.Input("x", {4}).Ints("count", {4096});
    ModelBuilder::TrueIn(model.graph(), "is");
    const auto loop = [](onnx::GraphProto& owner,
                         int depth) -> onnx::GraphProto& {
      auto& node = ModelBuilder::NodeOf(owner, "Loop", {"count", "is"},
                                        absl::StrCat("stack", depth));
      const std::string go_on = absl::StrCat("go_on", depth);
      auto& body = ModelBuilder::GraphOf(node, "body", go_on);
      body.add_input()->set_name(absl::StrCat("i", depth));
      body.add_input()->set_name(absl::StrCat("is", depth));
      ModelBuilder::NodeOf(body, "Identity", {absl::StrCat("is", depth)},
                           go_on);
      const std::string result = absl::StrCat("result", depth);
      ModelBuilder::NodeOf(body, "Relu", {"x"}, result);
      body.add_output()->set_name(result);
      return body;
    };
    auto& outer = loop(model.graph(), 0);
    if (branches) {
      auto& branch = ModelBuilder::GraphOf(
          ModelBuilder::NodeOf(outer, "If", {"is"}, "chosen"), "then_branch",
          "n999");
      for (int i = 0; i < 1000; ++i) {
        ModelBuilder::NodeOf(branch, "Neg", {"x"}, absl::StrCat("n", i));
      }
    } else {
      loop(outer, 1);
    }
    model.Output("stack0");
    EXPECT_SAYS(model.Error(), "the graph has more than 1048576 values");
  }
}

}  // namespace
}  // namespace optrail::graph

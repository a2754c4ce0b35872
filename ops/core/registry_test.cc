#include "ops/core/registry.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace optrail::ops {
namespace {

using testing::HasSubstr;

class Named : public Operator {
 public:
  explicit Named(std::string name) : name_(std::move(name)) {}
  std::string name() const override { return name_; }
  std::vector<std::string> dims() const override { return {}; }
  absl::StatusOr<std::vector<OperandSpec>> Operands(
      const proto::Shape& shape) const override {
    return std::vector<OperandSpec>();
  }
  double Flop(const proto::Shape& shape) const override { return 0; }
  double MovedBytes(const proto::Shape& shape) const override { return 0; }
  std::vector<std::vector<double>> Reference(
      const proto::Shape& shape,
      absl::Span<const std::vector<double>> operands) const override {
    return {};
  }
  Tolerance ToleranceFor(const proto::Shape& shape) const override {
    return {};
  }

 private:
  const std::string name_;
};

class NoKernel : public Kernel {
 public:
  absl::StatusOr<std::unique_ptr<Invocation>> Prepare(
      const proto::Shape& shape, const proto::Config& config,
      Device& device) const override {
    return absl::UnimplementedError("no kernel");
  }
};

Registry::MacroFiles Files(bool test_only) {
  Registry::MacroFiles files;
  files.package = "ops/x";
  files.space = {"ops/x/x.space.textproto", "knob"};
  files.kernel_ids[proto::CPU] = "id";
  files.test_only = test_only;
  return files;
}

TEST(Registry, PartsMayArriveInAnyOrder) {
  Registry registry;
  registry.AddFiles("b", Files(false));
  registry.AddKernel("b", proto::CPU, std::make_shared<NoKernel>());
  EXPECT_EQ(registry.Find("b"), nullptr) << "no operator yet";
  registry.AddOperator(std::make_shared<Named>("b"));
  const OperatorEntry* const entry = registry.Find("b");
  ASSERT_NE(entry, nullptr);
  EXPECT_EQ(entry->package, "ops/x");
  EXPECT_EQ(entry->kernels.at(proto::CPU).id, "id");
  EXPECT_NE(entry->kernels.at(proto::CPU).kernel, nullptr);
}

TEST(Registry, ListsByNameAndTestOnlyOperatorsOnRequest) {
  Registry registry;
  registry.AddOperator(std::make_shared<Named>("b"));
  registry.AddOperator(std::make_shared<Named>("a"));
  registry.AddOperator(std::make_shared<Named>("t"));
  registry.AddFiles("t", Files(true));
  ASSERT_EQ(registry.List().size(), 2);
  EXPECT_EQ(registry.List()[0]->op->name(), "a");
  EXPECT_EQ(registry.List()[1]->op->name(), "b");
  EXPECT_EQ(registry.List(/*with_test_only=*/true).size(), 3);
  EXPECT_NE(registry.Find("t"), nullptr);
}

TEST(Registry, NamesTheOperatorsThereAre) {
  Registry registry;
  registry.AddOperator(std::make_shared<Named>("add"));
  registry.AddOperator(std::make_shared<Named>("matmul"));
  const absl::Status status = registry.UnknownOperator("sofmax");
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(
      std::string(status.message()),
      HasSubstr("no operator \"sofmax\"; this binary has: add, matmul"));
}

TEST(RegistryDeathTest, APartGivenTwiceStopsTheProcess) {
  Registry registry;
  registry.AddOperator(std::make_shared<Named>("add"));
  EXPECT_DEATH(registry.AddOperator(std::make_shared<Named>("add")),
               "operator \"add\" is registered twice");
  registry.AddKernel("add", proto::CPU, std::make_shared<NoKernel>());
  EXPECT_DEATH(
      registry.AddKernel("add", proto::CPU, std::make_shared<NoKernel>()),
      "operator \"add\" has two kernels for device cpu");
  registry.AddFiles("add", Files(false));
  EXPECT_DEATH(registry.AddFiles("add", Files(false)),
               "two `operator` macros are named \"add\"");
}

TEST(KernelId, DependsOnSourcesAndCompiler) {
  EXPECT_EQ(KernelId("a", "12.2").size(), 16);
  EXPECT_EQ(KernelId("a", "12.2"), KernelId("a", "12.2"));
  EXPECT_NE(KernelId("a", "12.2"), KernelId("b", "12.2"));
  EXPECT_NE(KernelId("a", "12.2"), KernelId("a", "12.3"));
}

}  // namespace
}  // namespace optrail::ops

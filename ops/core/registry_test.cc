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

class NoKernel : public Backend {
 public:
  explicit NoKernel(std::string name = "cpu",
                    proto::DeviceKind kind = proto::CPU)
      : name_(std::move(name)), kind_(kind) {}
  std::string name() const override { return name_; }
  proto::DeviceKind kind() const override { return kind_; }
  absl::StatusOr<std::string> Id(const Target& target) const override {
    return files().sources_hash;
  }
  absl::StatusOr<Recipe> Describe(
      const CompileRequest& request) const override {
    return Recipe();
  }
  absl::StatusOr<std::unique_ptr<Invocation>> Load(
      const Artifact& artifact, const proto::Shape& shape,
      const proto::Config& config, Device& device) const override {
    return absl::UnimplementedError("no kernel");
  }

 private:
  const std::string name_;
  const proto::DeviceKind kind_;
};

Registry::MacroFiles Files(bool test_only) {
  Registry::MacroFiles files;
  files.package = "ops/x";
  files.space = {"ops/x/x.space.textproto", "knob"};
  files.backends["cpu"].sources_hash = "id";
  files.test_only = test_only;
  return files;
}

TEST(Registry, PartsMayArriveInAnyOrder) {
  Registry registry;
  registry.AddFiles("b", Files(false));
  registry.AddBackend("b", std::make_shared<NoKernel>());
  EXPECT_EQ(registry.Find("b"), nullptr) << "no operator yet";
  registry.AddOperator(std::make_shared<Named>("b"));
  const OperatorEntry* const entry = registry.Find("b");
  ASSERT_NE(entry, nullptr);
  EXPECT_EQ(entry->package, "ops/x");
  const auto own = entry->FindBackend(proto::CPU, "");
  ASSERT_TRUE(own.ok()) << own.status();
  EXPECT_EQ(*(*own)->Id({}), "id");
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

TEST(Registry, ListsTheOwnBackendFirstAndNamesThemWhereOneIsMissing) {
  Registry registry;
  registry.AddOperator(std::make_shared<Named>("b"));
  registry.AddBackend("b", std::make_shared<NoKernel>("blas"));
  registry.AddBackend("b", std::make_shared<NoKernel>("cpu"));
  registry.AddBackend("b", std::make_shared<NoKernel>("cublas", proto::CUDA));
  const OperatorEntry* const entry = registry.Find("b");
  const auto list = entry->BackendsOf(proto::CPU);
  ASSERT_EQ(list.size(), 2);
  EXPECT_EQ(list[0]->name(), "cpu");
  EXPECT_EQ(list[1]->name(), "blas");
  EXPECT_EQ((*entry->FindBackend(proto::CPU, "blas"))->name(), "blas");
  EXPECT_THAT(
      std::string(entry->FindBackend(proto::CPU, "cublas").status().message()),
      HasSubstr("operator b has no backend cublas for cpu; it has: cpu, blas"));
}

TEST(Registry, TellsWhatIsOnlyDeclaredOrOnlyRegistered) {
  Registry registry;
  registry.AddOperator(std::make_shared<Named>("b"));
  registry.AddBackend("b", std::make_shared<NoKernel>("blas"));
  registry.AddFiles("b", Files(false));
  EXPECT_EQ(registry.DeclaredOnly("b"), std::vector<std::string>{"cpu"});
  EXPECT_EQ(registry.RegisteredOnly("b"), std::vector<std::string>{"blas"});
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
  registry.AddBackend("add", std::make_shared<NoKernel>());
  EXPECT_DEATH(registry.AddBackend("add", std::make_shared<NoKernel>()),
               "operator \"add\" has two backends named \"cpu\"");
  EXPECT_DEATH(registry.AddBackend("add", std::make_shared<NoKernel>("best")),
               "neither \"best\" nor \"all\"");
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

// Parameters of a kernel of the test's own as data.

#include "ops/device/cuda/exported.h"

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "base/status_macros.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace optrail::ops::cuda {
namespace {

using ::testing::HasSubstr;
using ::testing::SizeIs;

using Operands = absl::Span<void* const>;

class TestBackend : public CudaBackend {
 public:
  using Add = std::function<absl::Status(const Driver&, Operands, void*,
                                         CudaArguments*)>;
  TestBackend(CudaPlan plan, Add add)
      : plan_(std::move(plan)), add_(std::move(add)) {}

  absl::StatusOr<CudaPlan> Plan(const proto::Shape&, const proto::Config&,
                                const proto::Hardware&) const override {
    return plan_;
  }
  absl::Status Arguments(const CudaPlan&, const proto::Shape&,
                         const proto::Config&, Operands operands,
                         void* workspace, const Driver& driver,
                         CudaArguments* arguments) const override {
    return add_(driver, operands, workspace, arguments);
  }
  void ArgumentsBefore(const CudaPlan&, const proto::Shape&,
                       const proto::Config&, Operands operands, void*,
                       CudaArguments* arguments) const override {
    arguments->Add(operands[1]);
  }

  absl::StatusOr<ExportedPlan> Export(int operands) const {
    return ExportPlan(*this, proto::Shape(), proto::Config(), proto::Hardware(),
                      operands);
  }

 private:
  const CudaPlan plan_;
  const Add add_;
};

TEST(Exported, AddressesStandAnywhereInAParameter) {
  CudaPlan plan;
  plan.function = "f";
  plan.workspace_bytes = 4096;
  struct Matrix {
    int64_t rows;
    void* from;
    void* to;
    void* nothing;
    int64_t columns;
  };
  const TestBackend backend(plan, [](const Driver&, Operands operands,
                                     void* workspace,
                                     CudaArguments* arguments) {
    arguments->Add(7);
    arguments->Add(Matrix{3, static_cast<char*>(operands[1]) + 40,
                          static_cast<char*>(workspace) + 1024, nullptr, 5});
    return absl::OkStatus();
  });
  const auto exported = backend.Export(2);
  ASSERT_TRUE(exported.ok()) << exported.status();
  EXPECT_EQ(exported->workspace_bytes, 4096);
  ASSERT_THAT(exported->launches, SizeIs(1));
  const auto& parameters = exported->launches[0].parameters;
  ASSERT_THAT(parameters, SizeIs(2));
  EXPECT_EQ(parameters[0].bytes, std::string("\7\0\0\0", 4));
  EXPECT_THAT(parameters[0].addresses, SizeIs(0));
  ASSERT_THAT(parameters[1].addresses, SizeIs(2));
  EXPECT_EQ(parameters[1].addresses[0].at, 8);
  EXPECT_EQ(parameters[1].addresses[0].address.operand, 1);
  EXPECT_EQ(parameters[1].addresses[0].address.plus, 40);
  EXPECT_EQ(parameters[1].addresses[1].at, 16);
  EXPECT_EQ(parameters[1].addresses[1].address.operand, -1);
  EXPECT_EQ(parameters[1].addresses[1].address.plus, 1024);
  EXPECT_EQ(parameters[1].bytes.substr(8, 24), std::string(24, '\0'));
}

TEST(Exported, ALaunchBeforeComesFirst) {
  CudaPlan plan;
  plan.function = "f";
  plan.before.function = "copy";
  plan.before.grid_x = 9;
  const TestBackend backend(plan, [](const Driver&, Operands operands, void*,
                                     CudaArguments* arguments) {
    arguments->Add(operands[0]);
    return absl::OkStatus();
  });
  const auto exported = backend.Export(2);
  ASSERT_TRUE(exported.ok()) << exported.status();
  ASSERT_THAT(exported->launches, SizeIs(2));
  EXPECT_EQ(exported->launches[0].launch.function, "copy");
  EXPECT_EQ(exported->launches[0].launch.grid_x, 9u);
  EXPECT_EQ(exported->launches[0].parameters[0].addresses[0].address.operand,
            1);
  EXPECT_EQ(exported->launches[1].parameters[0].addresses[0].address.operand,
            0);
}

TEST(Exported, TensorMapsAreRecorded) {
  CudaPlan plan;
  plan.function = "f";
  struct Maps {
    TensorMap a, b;
  };
  const TestBackend backend(plan, [](const Driver& driver, Operands operands,
                                     void*, CudaArguments* arguments) {
    Maps maps;
    OPTRAIL_RETURN_IF_ERROR(
        EncodeMatrix(driver, operands[1], 40, 64, proto::BF16, 16, &maps.b));
    OPTRAIL_RETURN_IF_ERROR(
        EncodeMatrices(driver, operands[0], 3, 20, 8, proto::F16, 4, &maps.a));
    arguments->Add(maps);
    return absl::OkStatus();
  });
  const auto exported = backend.Export(2);
  ASSERT_TRUE(exported.ok()) << exported.status();
  const auto& maps = exported->launches[0].parameters[0].tensor_maps;
  ASSERT_THAT(maps, SizeIs(2));
  EXPECT_EQ(maps[0].at, 0);
  EXPECT_EQ(maps[0].map.address.operand, 0);
  EXPECT_EQ(maps[0].map.dims, (std::vector<uint64_t>{8, 20, 3}));
  EXPECT_EQ(maps[1].at, 128);
  EXPECT_EQ(maps[1].map.address.operand, 1);
  EXPECT_EQ(maps[1].map.stride_bytes, (std::vector<uint64_t>{128}));
  EXPECT_EQ(maps[1].map.box, (std::vector<uint32_t>{64, 16}));
}

TEST(Exported, WhatIsNoAddressIsRefused) {
  CudaPlan plan;
  plan.function = "f";
  const TestBackend backend(plan, [](const Driver&, Operands operands, void*,
                                     CudaArguments* arguments) {
    arguments->Add(reinterpret_cast<uintptr_t>(operands[0]) >> 4);
    return absl::OkStatus();
  });
  const auto exported = backend.Export(1);
  EXPECT_EQ(exported.status().code(), absl::StatusCode::kUnimplemented);
  EXPECT_THAT(exported.status().message(),
              HasSubstr("not exportable: parameter 0 of f"));
}

}  // namespace
}  // namespace optrail::ops::cuda

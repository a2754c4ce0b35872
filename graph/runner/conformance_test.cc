// Every case of ONNX's own that the import claims, executed on the CPU, and on
// a GPU where there is one, and not only by the reference: generated kernels,
// views, our operators. Many cases make one graph, since each graph takes a run
// of the compiler.

#include <iostream>
#include <map>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "graph/onnx/testing/conformance_cases.h"
#include "graph/runner/runner.h"
#include "gtest/gtest.h"
#include "ops/core/device_type.h"
#include "ops/device/cpu/device.h"

namespace optrail::graph {
namespace {

constexpr size_t kGraphs = 16;

struct Batch {
  Graph graph;
  std::vector<std::string> folders;
  std::vector<Array> inputs;
  std::vector<std::vector<Array>> expected;  // of each case

  // Its values and nodes behind those that are there.
  void Add(const std::string& folder, ConformanceCase one) {
    const int offset = static_cast<int>(graph.values.size());
    const int nodes = static_cast<int>(graph.nodes.size());
    const auto moved = [&](std::vector<int> values) {
      for (int& value : values) value = value < 0 ? value : value + offset;
      return values;
    };
    for (Value value : one.graph.values) {
      if (value.producer >= 0) value.producer += nodes;
      graph.values.push_back(std::move(value));
    }
    for (Node node : one.graph.nodes) {
      node.name = absl::StrCat(folder, " ", node.name);
      node.inputs = moved(std::move(node.inputs));
      node.outputs = moved(std::move(node.outputs));
      graph.nodes.push_back(std::move(node));
    }
    for (const int input : moved(one.graph.inputs)) {
      graph.inputs.push_back(input);
    }
    for (const int output : moved(one.graph.outputs)) {
      graph.outputs.push_back(output);
    }
    for (Array& input : one.inputs) inputs.push_back(std::move(input));
    folders.push_back(folder);
    expected.push_back(std::move(one.expected));
  }
};

// The device, whether rules apply, and the graph's number.
using Run = std::tuple<const char*, bool, size_t>;

absl::StatusOr<std::unique_ptr<ops::Device>> DeviceNamed(
    const std::string& name) {
  if (name == "cpu") return ops::MakeCpuDevice(1);
  OPTRAIL_ASSIGN_OR_RETURN(const ops::DeviceType* const type,
                           ops::FindDeviceTypeNamed(name));
  return type->Make({});
}

class ConformanceRunTest : public testing::TestWithParam<Run> {
 protected:
  absl::Status RunOn(ops::Device& device, const Batch& batch) {
    OPTRAIL_RETURN_IF_ERROR(Validate(batch.graph));
    RunnerOptions options;
    options.fuse = std::get<1>(GetParam());
    OPTRAIL_ASSIGN_OR_RETURN(const std::unique_ptr<Runner> runner,
                             Runner::Create(batch.graph, device, options));
    for (const RunnerStep& step : runner->steps()) ++kernels_[step.kernel];
    OPTRAIL_RETURN_IF_ERROR(runner->SetInputs(batch.inputs));
    OPTRAIL_RETURN_IF_ERROR(runner->Run());
    OPTRAIL_ASSIGN_OR_RETURN(const std::vector<Array> outputs,
                             runner->Outputs());
    auto next = outputs.begin();
    for (size_t i = 0; i < batch.folders.size(); ++i) {
      const auto end = next + static_cast<int>(batch.expected[i].size());
      const std::string mismatch =
          Mismatch(std::vector<Array>(next, end), batch.expected[i]);
      EXPECT_EQ(mismatch, "") << batch.folders[i];
      passed_ += mismatch.empty() ? 1 : 0;
      next = end;
    }
    return absl::OkStatus();
  }

  std::map<std::string, int> kernels_;
  int passed_ = 0;
};

TEST_P(ConformanceRunTest, EveryClaimedCaseRuns) {
  const auto& [name, fuse, number] = GetParam();
  const auto cases = FindConformanceCases();
  if (absl::IsNotFound(cases.status())) GTEST_SKIP() << cases.status();
  ASSERT_TRUE(cases.ok()) << cases.status();
  const auto device = DeviceNamed(name);
  if (!device.ok() && std::string(name) != "cpu") {
    GTEST_SKIP() << device.status();
  }
  ASSERT_TRUE(device.ok()) << device.status();
  Batch batch;
  for (size_t i = number; i < cases->claimed.size(); i += kGraphs) {
    auto one = LoadConformanceCase(cases->claimed[i]);
    ASSERT_TRUE(one.ok()) << cases->claimed[i] << ": " << one.status();
    batch.Add(cases->claimed[i], *std::move(one));
  }
  const absl::Status status = RunOn(**device, batch);
  EXPECT_TRUE(status.ok()) << status;
  std::cout << "conformance on " << name << ": " << passed_ << " passed of "
            << batch.folders.size() << "; steps:";
  for (const auto& [kernel, count] : kernels_) {
    std::cout << " " << count << " " << kernel;
  }
  std::cout << "\n";
}

INSTANTIATE_TEST_SUITE_P(Devices, ConformanceRunTest,
                         testing::Combine(testing::Values("cpu", "cuda"),
                                          testing::Bool(),
                                          testing::Range(size_t{0}, kGraphs)));

}  // namespace
}  // namespace optrail::graph

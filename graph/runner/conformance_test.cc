// Every case of ONNX's own that the import claims, executed on the CPU, and on
// a GPU where there is one, and not only by the reference: generated kernels,
// views, our operators. Many cases make one graph, since each graph takes a run
// of the compiler.
//
//   conformance_test --device=cuda --cases=FOLDER
//
// is the same on a GPU alone, which has to be there.

#include <iostream>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "absl/flags/flag.h"
#include "absl/flags/parse.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "graph/onnx/testing/conformance_cases.h"
#include "graph/runner/runner.h"
#include "gtest/gtest.h"
#include "ops/core/device_type.h"
#include "ops/device/cpu/device.h"

ABSL_FLAG(std::string, device, "",
          "only this kind of device, cpu or cuda, which must be there; empty: "
          "the CPU, and a GPU where there is one");
ABSL_FLAG(std::string, cases, optrail::graph::kConformanceFolder,
          "the folder of libonnx-testdata that has node/, simple/, "
          "pytorch-operator/ and pytorch-converted/");

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

std::string NameOf(const Run& run) {
  const auto& [device, fuse, number] = run;
  return absl::StrCat(device, fuse ? "_fused_" : "_unfused_", number);
}

// The account of all graphs on one device, fused or not.
struct Summary {
  size_t cases = 0, passed = 0;
  std::map<std::string, int> kernels;
  // Cases that leave a node to the host, by what it is.
  std::map<std::string, std::set<std::string>> on_host;

  void Print(const std::string& where) const {
    std::set<std::string> with_host;
    for (const auto& [what, folders] : on_host) {
      with_host.insert(folders.begin(), folders.end());
    }
    std::cout << "conformance on " << where << ": " << passed << " of " << cases
              << " passed; the reference computes nodes of " << with_host.size()
              << " of them on the host; steps:";
    for (const auto& [kernel, count] : kernels) {
      std::cout << " " << count << " " << kernel;
    }
    std::cout << "\n";
    for (const auto& [what, folders] : on_host) {
      std::cout << "  " << what << ": " << folders.size() << " cases, e.g. "
                << *folders.begin() << "\n";
    }
  }
};

std::map<std::string, Summary>& Summaries() {
  static auto* const summaries = new std::map<std::string, Summary>();
  return *summaries;
}

absl::StatusOr<std::unique_ptr<ops::Device>> DeviceNamed(
    const std::string& name) {
  if (name == "cpu") return ops::MakeCpuDevice(1);
  OPTRAIL_ASSIGN_OR_RETURN(const ops::DeviceType* const type,
                           ops::FindDeviceTypeNamed(name));
  return type->Make({});
}

class ConformanceRunTest : public testing::TestWithParam<Run> {
 protected:
  static void TearDownTestSuite() {
    for (const auto& [where, summary] : Summaries()) summary.Print(where);
  }

  absl::Status RunOn(ops::Device& device, const Batch& batch) {
    OPTRAIL_RETURN_IF_ERROR(Validate(batch.graph));
    RunnerOptions options;
    options.fuse = std::get<1>(GetParam());
    OPTRAIL_ASSIGN_OR_RETURN(const std::unique_ptr<Runner> runner,
                             Runner::Create(batch.graph, device, options));
    for (const RunnerStep& step : runner->steps()) Count(step);
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
      summary().passed += mismatch.empty() ? 1 : 0;
      next = end;
    }
    return absl::OkStatus();
  }

  static Summary& summary() {
    const auto& [device, fuse, number] = GetParam();
    return Summaries()[absl::StrCat(device, fuse ? ", fused" : ", unfused")];
  }

 private:
  static void Count(const RunnerStep& step) {
    ++summary().kernels[step.kernel];
    if (step.kernel != "reference") return;
    // The name of a step begins with the folder of its case.
    const std::string folder = step.name.substr(0, step.name.find(' '));
    summary().on_host[step.what].insert(folder.substr(folder.rfind('/') + 1));
  }
};

TEST_P(ConformanceRunTest, EveryClaimedCaseRuns) {
  const auto& [name, fuse, number] = GetParam();
  const std::string folder = absl::GetFlag(FLAGS_cases);
  const bool is_wanted = !absl::GetFlag(FLAGS_device).empty();
  const auto cases = FindConformanceCases(folder);
  if (absl::IsNotFound(cases.status()) && !is_wanted) {
    GTEST_SKIP() << cases.status();
  }
  ASSERT_TRUE(cases.ok()) << cases.status();
  const auto device = DeviceNamed(name);
  if (!device.ok() && std::string(name) != "cpu" && !is_wanted) {
    GTEST_SKIP() << device.status();
  }
  ASSERT_TRUE(device.ok()) << device.status();
  Batch batch;
  for (size_t i = number; i < cases->claimed.size(); i += kGraphs) {
    auto one = LoadConformanceCase(cases->claimed[i]);
    ASSERT_TRUE(one.ok()) << cases->claimed[i] << ": " << one.status();
    batch.Add(cases->claimed[i], *std::move(one));
  }
  ASSERT_FALSE(batch.folders.empty()) << folder << " has too few cases";
  summary().cases += batch.folders.size();
  const absl::Status status = RunOn(**device, batch);
  EXPECT_TRUE(status.ok()) << status;
}

INSTANTIATE_TEST_SUITE_P(Devices, ConformanceRunTest,
                         testing::Combine(testing::Values("cpu", "cuda"),
                                          testing::Bool(),
                                          testing::Range(size_t{0}, kGraphs)),
                         [](const testing::TestParamInfo<Run>& info) {
                           return NameOf(info.param);
                         });

}  // namespace
}  // namespace optrail::graph

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  absl::ParseCommandLine(argc, argv);
  const std::string device = absl::GetFlag(FLAGS_device);
  if (device == "cpu" || device == "cuda") {
    GTEST_FLAG_SET(filter, absl::StrCat("*/", device, "_*"));
  } else if (!device.empty()) {
    std::cerr << "--device=" << device << ": expected cpu or cuda\n";
    return 2;
  }
  return RUN_ALL_TESTS();
}

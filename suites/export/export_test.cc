// Kernels as files for programs without our runtime, compiled by an NVRTC that
// has no compiler (ops/device/cuda/testing/fake_nvrtc.cc).

#include "suites/export/export.h"

#include <sstream>
#include <string>

#include "base/file/file.h"
#include "base/text/json.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ops/core/device_type.h"

namespace optrail::suites {
namespace {

using ::testing::HasSubstr;

class ExportTest : public ::testing::Test {
 protected:
  ExportTest() {
    command_.context.hardware = (*ops::FindDeviceType(proto::CUDA))->Declared();
    command_.context.workspace = ::testing::TempDir();
    command_.context.store = JoinPath(::testing::TempDir(), "store");
    command_.context.state = JoinPath(::testing::TempDir(), "state");
    command_.out = JoinPath(
        ::testing::TempDir(),
        ::testing::UnitTest::GetInstance()->current_test_info()->name());
  }

  void Add(const std::string& op, const std::string& shape,
           const std::string& backend = "") {
    TaskSelection selection;
    selection.op_regex = op;
    selection.shape_regex = shape;
    selection.device = proto::CUDA;
    selection.backend = backend;
    const auto tasks = SelectTasks(selection, command_.context.hardware);
    ASSERT_TRUE(tasks.ok()) << tasks.status();
    for (const TaskEntry& task : *tasks) command_.tasks.push_back(task);
  }
  nlohmann::json Export(int expected_code) {
    const auto code = RunExport(command_, out_, notes_);
    EXPECT_TRUE(code.ok()) << code.status();
    EXPECT_EQ(code.value_or(-1), expected_code) << notes_.str();
    const auto text = ReadFile(JoinPath(command_.out, kManifestName));
    EXPECT_TRUE(text.ok()) << text.status();
    const auto manifest = ParseJson(text.value_or("{}"), kManifestName);
    EXPECT_TRUE(manifest.ok()) << manifest.status();
    return manifest.value_or(nlohmann::json());
  }

  ExportCommand command_;
  std::ostringstream out_, notes_;
};

TEST_F(ExportTest, WritesCubinAndManifest) {
  Add("relu", "n=1001/f32");
  const nlohmann::json manifest = Export(0);
  EXPECT_EQ(manifest["hardware"], command_.context.hardware.id());
  EXPECT_EQ(manifest["compiler"], "nvrtc 13.0");
  ASSERT_EQ(manifest["kernels"].size(), 1);
  const nlohmann::json& kernel = manifest["kernels"][0];
  EXPECT_EQ(kernel["operator"], "relu");
  EXPECT_EQ(kernel["shape"], "n=1001/f32");
  EXPECT_EQ(kernel["source"], "default config");
  EXPECT_EQ(kernel["operands"][0]["role"], "input");
  EXPECT_EQ(kernel["operands"][1]["bytes"], 4004);
  ASSERT_EQ(kernel["launches"].size(), 1);
  const nlohmann::json& launch = kernel["launches"][0];
  EXPECT_EQ(launch["function"], "map");
  // x, y, vectors of four, and the workspace, which there is none of.
  ASSERT_EQ(launch["parameters"].size(), 4);
  EXPECT_EQ(launch["parameters"][0]["addresses"][0]["of"], 0);
  EXPECT_EQ(launch["parameters"][1]["addresses"][0]["of"], 1);
  EXPECT_EQ(launch["parameters"][2]["hex"], "fa00000000000000");
  EXPECT_TRUE(launch["parameters"][3]["addresses"].empty());
  const auto cubin =
      ReadFile(JoinPath(command_.out, launch["cubin"].get<std::string>()));
  ASSERT_TRUE(cubin.ok()) << cubin.status();
  EXPECT_THAT(*cubin, HasSubstr("-arch=sm_90"));
}

TEST_F(ExportTest, TensorMapsAreArgumentsOfTheDriver) {
  Add("matmul", "m=4096,n=4096,k=4096/bf16");
  const nlohmann::json manifest = Export(0);
  int maps = 0;
  for (const nlohmann::json& parameter :
       manifest["kernels"][0]["launches"].back()["parameters"]) {
    for (const nlohmann::json& map : parameter["tensor_maps"]) {
      ++maps;
      EXPECT_EQ(map["encode"], "cuTensorMapEncodeTiled");
      EXPECT_EQ(map["data_type"], 9);
      EXPECT_EQ(map["dims"].size(), map["box"].size());
    }
  }
  EXPECT_GE(maps, 2);
}

TEST_F(ExportTest, SaysWhichKernelsAreALibrarys) {
  Add("softmax", "rows=64,cols=256/bf16");
  Add("matmul", "m=512,n=512,k=512/bf16", "cublas");
  const nlohmann::json manifest = Export(1);
  EXPECT_EQ(manifest["kernels"].size(), 1);
  ASSERT_EQ(manifest["refused"].size(), 1);
  EXPECT_EQ(manifest["refused"][0]["operator"], "matmul");
  EXPECT_THAT(manifest["refused"][0]["why"].get<std::string>(),
              HasSubstr("not exportable"));
  EXPECT_THAT(notes_.str(), HasSubstr("brings its own launches"));
}

// A layer that nobody computes on a GPU is no reason to be silent about it.
TEST_F(ExportTest, SaysWhichLayersHaveNoKernel) {
  const std::string workload =
      JoinPath(::testing::TempDir(), "mix.workload.textproto");
  ASSERT_TRUE(WriteFileAtomically(workload,
                                  "name: \"mix\"\n"
                                  "layer { operator_name: \"matmul\" shape: "
                                  "\"m=64,n=64,k=64/f32\" }\n"
                                  "layer { operator_name: \"softmax\" shape: "
                                  "\"rows=64,cols=256/bf16\" }\n")
                  .ok());
  TaskSelection selection;
  selection.workload = workload;
  selection.device = proto::CUDA;
  const auto tasks =
      SelectTasks(selection, command_.context.hardware, &command_.left_out);
  ASSERT_TRUE(tasks.ok()) << tasks.status();
  command_.tasks = *tasks;
  const nlohmann::json manifest = Export(1);
  EXPECT_EQ(manifest["kernels"].size(), 1);
  ASSERT_EQ(manifest["refused"].size(), 1);
  EXPECT_EQ(manifest["refused"][0]["operator"], "matmul");
  EXPECT_EQ(manifest["refused"][0]["shape"], "m=64,n=64,k=64/f32");
  EXPECT_THAT(notes_.str(), HasSubstr("it computes: "));
}

TEST_F(ExportTest, WritesNothingWhereNothingCanBeExported) {
  Add("matmul", "m=512,n=512,k=512/bf16", "cublas");
  const auto code = RunExport(command_, out_, notes_);
  EXPECT_EQ(code.status().code(), absl::StatusCode::kUnimplemented)
      << code.status();
  EXPECT_FALSE(FileExists(command_.out));
}

TEST_F(ExportTest, CubinsAreForGpus) {
  command_.context.hardware.set_device_kind(proto::CPU);
  const auto code = RunExport(command_, out_, notes_);
  EXPECT_THAT(code.status().message(), HasSubstr("expected cuda"));
}

}  // namespace
}  // namespace optrail::suites

// A model served on CUDA, by driver and compiler of tests
// (ops/device/cuda/testing), whose kernels do nothing: each batch goes there
// and its outputs come back. The device is found as on any machine, so that
// this binary starts once more with these libraries in its path.

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <sstream>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "nlohmann/json.hpp"
#include "ops/device/cuda/testing/fake_driver.h"
#include "suites/graph/serve_graph.h"
#include "tracker/history/history.h"

namespace optrail::suites {
namespace {

using ops::cuda::Script;

// Asks the fake driver for one of its counts.
int Count(const char* function) {
  void* const library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
  if (library == nullptr) return -1;
  return reinterpret_cast<int (*)()>(dlsym(library, function))();
}

class ServeCudaTest : public testing::Test {
 protected:
  ServeCudaTest() {
    command_.model.path = "graph/testdata/tiny_dlrm.onnx";
    command_.model.device = "cuda";
    command_.model.format = OutputFormat::kJson;
    command_.load.load = 500;
    command_.load.batch = 4;
    command_.load.workers = 2;
    command_.load.duration = absl::Milliseconds(400);
  }

  absl::StatusOr<nlohmann::json> Serve() {
    std::ostringstream out;
    const auto code = ServeGraph(command_, out);
    if (!code.ok()) return code.status();
    return nlohmann::json::parse(out.str());
  }

  GraphServeCommand command_;
};

TEST_F(ServeCudaTest, AnswersWithWhatTheDeviceComputed) {
  const int read_before = Count("FakeBytesRead");
  const auto rows = Serve();
  ASSERT_TRUE(rows.ok()) << rows.status();
  ASSERT_EQ(rows->size(), 1);
  const nlohmann::json& row = (*rows)[0];
  EXPECT_EQ(row["batch"], 4);
  EXPECT_EQ(row["workers"], 2);
  EXPECT_TRUE(row["threads"].is_null()) << "a GPU has no threads of workers";
  EXPECT_GT(row["latency_p50"], 0) << row;
  // An answer is given when its outputs are in the host's memory.
  const int requests = 100;  // far fewer than arrive in that time
  EXPECT_GT(Count("FakeBytesRead") - read_before,
            requests * static_cast<int>(sizeof(float)) / 4);
}

TEST_F(ServeCudaTest, FindsAndRecordsTheHighestLoad) {
  command_.load.load = 0;
  command_.load.workers = 1;
  command_.load.duration = absl::Milliseconds(200);
  command_.p99_limit = absl::Milliseconds(10);
  command_.model.record = true;
  command_.model.history = absl::StrCat(testing::TempDir(), "/served");
  const auto rows = Serve();
  ASSERT_TRUE(rows.ok()) << rows.status();
  if ((*rows)[0]["load"] == 0) GTEST_SKIP() << "the machine is too busy";
  const auto history = tracker::History::Open(command_.model.history);
  ASSERT_TRUE(history.ok()) << history.status();
  const auto runs = history->ListRuns();
  ASSERT_TRUE(runs.ok()) << runs.status();
  if (runs->runs.empty()) GTEST_SKIP() << "too few requests were served";
  EXPECT_EQ(runs->runs[0].header.hardware().device_kind(), proto::CUDA);
}

TEST_F(ServeCudaTest, SaysWhatTheDriverRefuses) {
  for (const char* call : {"cuMemcpyDtoH", "cuLaunchKernel"}) {
    const Script script(absl::StrCat(call, "=700"));
    const absl::Status status = Serve().status();
    EXPECT_FALSE(status.ok()) << call;
    EXPECT_NE(status.message().find(call), absl::string_view::npos) << status;
  }
}

}  // namespace
}  // namespace optrail::suites

int main(int argc, char** argv) {
  const std::filesystem::path folder =
      std::filesystem::path(std::getenv("TEST_TMPDIR")) / "libraries";
  const char* const path = std::getenv("LD_LIBRARY_PATH");
  if (path == nullptr || folder != path) {
    const std::filesystem::path testing =
        std::filesystem::absolute("ops/device/cuda/testing");
    std::filesystem::create_directories(folder);
    std::filesystem::create_symlink(testing / "libfake_cuda.so",
                                    folder / "libcuda.so.1");
    std::filesystem::create_symlink(testing / "libnvrtc.so.13",
                                    folder / "libnvrtc.so.13");
    setenv("LD_LIBRARY_PATH", folder.c_str(), 1);
    execv("/proc/self/exe", argv);
    return 1;
  }
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}

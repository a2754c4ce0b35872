// Compilation on a machine without the device, measurement on the device: two
// pilots that run this very program. One has a compiler and no GPU, the other a
// GPU by the driver of tests; a third only looks whether anything was added to
// the folder of compiled code that they share.

#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/file/file.h"
#include "base/process/subprocess.h"
#include "fleet/testing/fleet_fixture.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tracker/history/history.h"

namespace optrail::fleet {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr char kTesting[] = "ops/device/cuda/testing/";

class CompileFirstTest : public FleetTest {
 protected:
  // A folder with this library under the name by which it is looked for.
  std::string Library(const std::string& from, const std::string& name) {
    const std::string folder = absl::StrCat(Folder(), "/", name);
    std::filesystem::create_directories(folder);
    std::filesystem::copy_file(absl::StrCat(kTesting, from),
                               absl::StrCat(folder, "/", name));
    return folder;
  }
  // A pilot whose tasks find that library.
  PilotOptions PilotWith(const std::string& library,
                         const std::string& hardware) {
    PilotOptions options =
        Pilot({"env", absl::StrCat("LD_LIBRARY_PATH=", library),
               std::filesystem::absolute("cli/optrail")});
    options.info.hardware_id = hardware;
    // Another user may not be able to read this program.
    options.run_as = "root";
    options.lease = absl::Seconds(20);
    return options;
  }
  std::set<std::string> Compiled() const {
    const auto names = ListDirectory(cache_);
    EXPECT_TRUE(names.ok()) << names.status();
    return {names->begin(), names->end()};
  }
  static void Await(pid_t pilot) {
    int status = 0;
    ASSERT_EQ(waitpid(pilot, &status, 0), pilot);
    EXPECT_EQ(status, 0);
  }

  std::string cache_;
};

TEST_F(CompileFirstTest, TheDevicesPilotCompilesNothing) {
  cache_ = Folder() + "/compiled";
  ASSERT_TRUE(CreateDirectories(cache_).ok());
  ASSERT_EQ(setenv("OPTRAIL_COMPILE_CACHE", cache_.c_str(), 1), 0);
  const auto submitted =
      RunCommand({"cli/optrail", "fleet", "submit", "--history=" + url_,
                  "--hardware=the-gpu", "--compile_on=the-cpu", "--hw=sm_90a",
                  "tune --op=relu --device=cuda --shape=n=4096/f32 --trials=4 "
                  "--strategy=random --proof_time=1s --processes=1 --quiet"});
  ASSERT_TRUE(submitted.ok()) << submitted.status();
  ASSERT_TRUE(submitted->exit.ok()) << submitted->stderr_text;
  EXPECT_THAT(submitted->stdout_text, HasSubstr("job 1: 2 tasks"));
  // The GPU is there first, and waits.
  const pid_t gpu = StartPilot(
      PilotWith(Library("libfake_cuda.so", "libcuda.so.1"), "the-gpu"));
  WaitFor("SELECT count(*) FROM optrail.pilots", "1");
  Await(StartPilot(
      PilotWith(Library("libnvrtc.so.13", "libnvrtc.so.13"), "the-cpu")));
  const std::set<std::string> ahead = Compiled();
  EXPECT_EQ(ahead.size(), 5) << "the default and four trials";
  Await(gpu);
  ASSERT_EQ(unsetenv("OPTRAIL_COMPILE_CACHE"), 0);
  JobQueue queue = Open();
  EXPECT_EQ(queue.Status()->jobs[0].done, 2) << *queue.Logs(1);
  EXPECT_EQ(Compiled(), ahead) << "what is compiled is kept there";
  const auto history = tracker::History::Open(url_);
  ASSERT_TRUE(history.ok()) << history.status();
  const auto sessions = history->ListSessions();
  ASSERT_TRUE(sessions.ok()) << sessions.status();
  ASSERT_EQ(sessions->sessions.size(), 1) << *queue.Logs(1);
  const auto session = history->ReadSession(sessions->sessions[0].id());
  ASSERT_TRUE(session.ok()) << session.status();
  EXPECT_EQ(session->trials_size(), 4);
  for (const proto::Trial& trial : session->trials()) {
    EXPECT_EQ(trial.outcome(), proto::OK) << trial.detail();
  }
}

TEST_F(CompileFirstTest, SaysWhatItNeeds) {
  const auto submit = [this](std::vector<std::string> words) {
    words.insert(words.begin(), {"cli/optrail", "fleet", "submit",
                                 "--history=" + url_, "--compile_on=the-cpu"});
    const auto result = RunCommand(words);
    EXPECT_TRUE(result.ok()) << result.status();
    EXPECT_EQ(result->exit.code, 2) << result->stdout_text;
    return result->stderr_text;
  };
  EXPECT_THAT(submit({"tune --op=relu"}), HasSubstr("--hardware=ID"));
  EXPECT_THAT(submit({"--hardware=x", "gate"}),
              HasSubstr("a tune or bench that compiles"));
  EXPECT_THAT(submit({"--hardware=x", "tune --preset=recommender"}),
              HasSubstr("--preset=recommender stands for"));
  EXPECT_EQ(One("SELECT count(*) FROM optrail.jobs"), "0");
}

}  // namespace
}  // namespace optrail::fleet

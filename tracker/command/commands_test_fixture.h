#ifndef OPTRAIL_TRACKER_COMMAND_COMMANDS_TEST_FIXTURE_H_
#define OPTRAIL_TRACKER_COMMAND_COMMANDS_TEST_FIXTURE_H_

// CommandsTest is a scratch folder with a history, into which runs are
// imported, for tests of the commands over it.
//
//   Import(Hash('a'), 100);  // a run of commit aaaa... that took 100 ns
//   const auto [code, text] = Call(RunLog, log);

#include <cstdint>
#include <cstdlib>
#include <sstream>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "base/file/file.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tracker/command/command_support.h"
#include "tracker/import/import_command.h"

namespace optrail::tracker {

inline constexpr int64_t kNow = 1795000000LL * 1000000000;

// A folder that is no git work tree, with a history in it.
class CommandsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = ::testing::TempDir() + "/commands_XXXXXX";
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    dir_ = pattern;
    // Whatever is above the folder is not its work tree.
    setenv("GIT_CEILING_DIRECTORIES", ::testing::TempDir().c_str(), 1);
    common_.history = JoinPath(dir_, "history");
    common_.workspace = dir_;
    common_.now_unix_ns = kNow;
  }

  std::string Write(const std::string& name, const std::string& text) {
    const std::string path = JoinPath(dir_, name);
    EXPECT_TRUE(WriteFileAtomically(path, text).ok());
    return path;
  }

  // A Google Benchmark file: BM_Sort took `ns`, BM_Copy 50.
  std::string WriteResults(const std::string& name, double ns) {
    return Write(
        name,
        absl::StrCat(R"({"context": {"date": "2026-11-20T10:0)", imported_,
                     R"(:00+00:00",)",
                     R"("num_cpus": 2, "caches": []}, "benchmarks": [)",
                     Entry("BM_Sort", ns), ",", Entry("BM_Copy", 50), "]}"));
  }

  static std::string Entry(const std::string& name, double ns) {
    return absl::StrCat(R"({"name": ")", name, R"(", "run_name": ")", name,
                        R"(", "run_type": "iteration", "iterations": 1000,)",
                        R"("real_time": )", ns, R"(, "cpu_time": )", ns,
                        R"(, "time_unit": "ns"})");
  }

  // Records a run of `commit` whose five processes took about `ns`.
  void Import(const std::string& commit, double ns) {
    ImportCommand import;
    import.common = common_;
    import.common.now_unix_ns += ++imported_ * 60'000'000'000;
    for (int i = 0; i < 5; ++i) {
      import.files.push_back(WriteResults(absl::StrCat("r", i, ".json"),
                                          ns * (1 + .001 * (i - 2))));
    }
    import.suite = "micro";
    import.hardware_id = "test-2c";
    import.commit = commit;
    import.branch = "main";
    import.files_are_processes = true;
    std::ostringstream out;
    const absl::StatusOr<int> code = RunImport(import, out);
    ASSERT_TRUE(code.ok()) << code.status();
    EXPECT_EQ(*code, 0);
    EXPECT_THAT(out.str(), ::testing::HasSubstr("micro"));
  }

  static std::string Hash(char digit) { return std::string(40, digit); }

  std::string dir_;
  CommonOptions common_;
  int imported_ = 0;
};

// The exit code of a command, and what it printed.
template <typename Run, typename Options>
std::pair<absl::StatusOr<int>, std::string> Call(Run run,
                                                 const Options& options) {
  std::ostringstream out;
  absl::StatusOr<int> code = run(options, out);
  return {std::move(code), out.str()};
}

}  // namespace optrail::tracker

#endif  // OPTRAIL_TRACKER_COMMAND_COMMANDS_TEST_FIXTURE_H_

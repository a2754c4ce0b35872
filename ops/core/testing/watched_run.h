#ifndef OPTRAIL_OPS_CORE_TESTING_WATCHED_RUN_H_
#define OPTRAIL_OPS_CORE_TESTING_WATCHED_RUN_H_

// Tests in a child process, so that the config that takes it down is named: a
// kernel may end it in any way, also one that looks like success, or hang.
//
//   int main() {
//     return WatchTests([] { return RUN_ALL_TESTS(); });
//   }
//
// Each config runs within a ConfigScope. --config_deadline says when it hangs;
// --watched=false runs the tests in this process, for tools that look into one.

#include <condition_variable>
#include <functional>
#include <mutex>
#include <string>
#include <thread>

namespace optrail::ops {

// Runs the tests in a child, and prints the config that it died of. Returns the
// exit code of the process.
int WatchTests(const std::function<int()>& run_tests);

// A config runs while this lives. One that does not return within the deadline
// ends the process, which says so: nobody can stop a kernel.
class ConfigScope {
 public:
  explicit ConfigScope(const std::string& what);
  ~ConfigScope();
  ConfigScope(const ConfigScope&) = delete;
  ConfigScope& operator=(const ConfigScope&) = delete;

 private:
  void Watch();

  const std::string what_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool done_ = false;
  std::thread thread_;
};

}  // namespace optrail::ops

#endif  // OPTRAIL_OPS_CORE_TESTING_WATCHED_RUN_H_

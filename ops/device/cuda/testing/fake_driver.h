#ifndef OPTRAIL_OPS_DEVICE_CUDA_TESTING_FAKE_DRIVER_H_
#define OPTRAIL_OPS_DEVICE_CUDA_TESTING_FAKE_DRIVER_H_

// Script says what the fake driver (fake_driver.cc) does, for as long as it
// lives.
//
//   const Script script("cuMemAlloc=2");

#include <cstdlib>
#include <string>

namespace optrail::ops::cuda {

class Script {
 public:
  explicit Script(const std::string& text) { Change(text); }
  ~Script() { unsetenv("OPTRAIL_FAKE_CUDA"); }
  Script(const Script&) = delete;
  Script& operator=(const Script&) = delete;

  void Change(const std::string& text) {
    setenv("OPTRAIL_FAKE_CUDA", text.c_str(), 1);
  }
};

}  // namespace optrail::ops::cuda

#endif  // OPTRAIL_OPS_DEVICE_CUDA_TESTING_FAKE_DRIVER_H_

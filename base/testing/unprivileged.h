#ifndef OPTRAIL_BASE_TESTING_UNPRIVILEGED_H_
#define OPTRAIL_BASE_TESTING_UNPRIVILEGED_H_

// For tests of what happens without a permission: while the object lives, the
// calling thread has only those that file modes give it, also where root runs
// the test (as containers do).
//
//   ASSERT_EQ(chmod(folder.c_str(), 0500), 0);
//   const Unprivileged unprivileged;
//   EXPECT_FALSE(WriteFileAtomically(folder + "/x", "").ok());
//
// It is no sandbox: processes that the test starts are root again.

#include <cstdint>

namespace optrail {

class Unprivileged {
 public:
  // Stops the process if the system refuses.
  Unprivileged();
  ~Unprivileged();
  Unprivileged(const Unprivileged&) = delete;
  Unprivileged& operator=(const Unprivileged&) = delete;

 private:
  uint32_t effective_before_ = 0;
};

}  // namespace optrail

#endif  // OPTRAIL_BASE_TESTING_UNPRIVILEGED_H_

#ifndef OPTRAIL_BASE_CHECK_H_
#define OPTRAIL_BASE_CHECK_H_

// OPTRAIL_CHECK stops the process when an invariant of Optrail's own code is
// broken. It is not for bad input or failed I/O: those are absl::Status.
//
//   OPTRAIL_CHECK(index < size()) << "index " << index;

#include <cstdlib>
#include <iostream>
#include <sstream>

namespace optrail::internal_check {

class Failure {
 public:
  Failure(const char* file, int line, const char* condition) {
    message_ << file << ":" << line << ": check failed: " << condition << " ";
  }
  [[noreturn]] ~Failure() {
    std::cerr << message_.str() << std::endl;
    std::abort();
  }
  std::ostream& stream() { return message_; }

 private:
  std::ostringstream message_;
};

// Lower precedence than <<, higher than ?:, so that the macro is an expression.
struct Voidify {
  void operator&(std::ostream&) {}
};

}  // namespace optrail::internal_check

#define OPTRAIL_CHECK(condition)                                               \
  (condition)                                                                  \
      ? (void)0                                                                \
      : ::optrail::internal_check::Voidify() &                                 \
            ::optrail::internal_check::Failure(__FILE__, __LINE__, #condition) \
                .stream()

#endif  // OPTRAIL_BASE_CHECK_H_

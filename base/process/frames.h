#ifndef OPTRAIL_BASE_PROCESS_FRAMES_H_
#define OPTRAIL_BASE_PROCESS_FRAMES_H_

// The bytes of the messages that Subprocess and FrameChannel (subprocess.h)
// exchange, and private to them: the length in 4 bytes, little-endian, and the
// message.

#include <sys/types.h>

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace optrail {

inline constexpr int kFrameHeaderBytes = 4;

// The message with its header. InvalidArgument above kMaxFrameBytes.
absl::StatusOr<std::string> FrameOf(absl::string_view payload);
uint32_t DecodeLength(const char* header);

// write(2) that answers EPIPE without the signal.
ssize_t WriteWithoutSignal(int fd, absl::string_view data);

// The argument of poll(2), rounded up; an hour at the most.
int PollTimeoutMs(absl::Duration duration);

}  // namespace optrail

#endif  // OPTRAIL_BASE_PROCESS_FRAMES_H_

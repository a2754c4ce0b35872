#include "base/process/frames.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <ctime>
#include <memory>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "base/process/subprocess.h"
#include "base/status_macros.h"

namespace optrail {

absl::StatusOr<std::string> FrameOf(absl::string_view payload) {
  if (static_cast<int64_t>(payload.size()) > kMaxFrameBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("sending a message of ", payload.size(),
                     " bytes; the most is ", kMaxFrameBytes));
  }
  std::string frame;
  frame.reserve(kFrameHeaderBytes + payload.size());
  for (int i = 0; i < kFrameHeaderBytes; ++i) {
    frame.push_back(static_cast<char>(payload.size() >> (8 * i)));
  }
  frame.append(payload.data(), payload.size());
  return frame;
}

uint32_t DecodeLength(const char* header) {
  uint32_t length = 0;
  for (int i = kFrameHeaderBytes - 1; i >= 0; --i) {
    length = (length << 8) | static_cast<unsigned char>(header[i]);
  }
  return length;
}

// SIGPIPE goes to the thread that writes, so it is enough to block it here and
// to take it back.
ssize_t WriteWithoutSignal(int fd, absl::string_view data) {
  sigset_t pipe_signal, before, pending;
  sigemptyset(&pipe_signal);
  sigaddset(&pipe_signal, SIGPIPE);
  sigpending(&pending);
  const bool was_pending = sigismember(&pending, SIGPIPE) == 1;
  pthread_sigmask(SIG_BLOCK, &pipe_signal, &before);
  const ssize_t written = write(fd, data.data(), data.size());
  const int error_number = errno;
  if (written < 0 && error_number == EPIPE && !was_pending) {
    const timespec no_wait = {0, 0};
    while (sigtimedwait(&pipe_signal, nullptr, &no_wait) < 0 &&
           errno == EINTR) {
    }
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  errno = error_number;
  return written;
}

int PollTimeoutMs(absl::Duration duration) {
  if (duration <= absl::ZeroDuration()) return 0;
  const int64_t ms =
      absl::ToInt64Milliseconds(absl::Ceil(duration, absl::Milliseconds(1)));
  return static_cast<int>(std::min<int64_t>(ms, 3600 * 1000));
}

absl::StatusOr<std::unique_ptr<FrameChannel>>
FrameChannel::TakeStandardStreams() {
  const int in = fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
  const int out = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
  const int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
  if (in < 0 || out < 0 || null < 0 || dup2(null, STDIN_FILENO) < 0 ||
      dup2(STDERR_FILENO, STDOUT_FILENO) < 0) {
    return absl::ErrnoToStatus(errno, "taking over the standard streams");
  }
  close(null);
  return std::make_unique<FrameChannel>(in, out);
}

FrameChannel::~FrameChannel() {
  close(read_fd_);
  if (write_fd_ != read_fd_) close(write_fd_);
}

bool FrameChannel::WaitReadable(absl::Duration wait) {
  const absl::Duration deadline =
      absl::Nanoseconds(Clock::Real()->NowNs()) + wait;
  while (true) {
    const absl::Duration left =
        deadline - absl::Nanoseconds(Clock::Real()->NowNs());
    pollfd polled = {read_fd_, POLLIN, 0};
    const int ready = poll(&polled, 1, PollTimeoutMs(left));
    if (ready > 0) return true;
    if (ready < 0 && errno != EINTR) return true;  // Read says what it is
    if (left <= absl::ZeroDuration()) return false;
  }
}

absl::StatusOr<std::string> FrameChannel::Read() {
  // Reads exactly `size_bytes` unless the input ends.
  auto read_exactly = [this](char* data, size_t size_bytes) -> ssize_t {
    size_t received = 0;
    while (received < size_bytes) {
      const ssize_t n = read(read_fd_, data + received, size_bytes - received);
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) return -1;
      if (n == 0) break;
      received += static_cast<size_t>(n);
    }
    return static_cast<ssize_t>(received);
  };
  char header[kFrameHeaderBytes];
  const ssize_t n = read_exactly(header, kFrameHeaderBytes);
  if (n < 0) return absl::ErrnoToStatus(errno, "reading a message");
  if (n == 0) return absl::OutOfRangeError("the other side has closed");
  const uint32_t length = n == kFrameHeaderBytes ? DecodeLength(header) : 0;
  std::string payload;
  if (n < kFrameHeaderBytes || length > kMaxFrameBytes) {
    return absl::DataLossError("reading a message: its header is broken");
  }
  payload.resize(length);
  if (read_exactly(&payload[0], length) != static_cast<ssize_t>(length)) {
    return absl::DataLossError("the other side closed within a message");
  }
  return payload;
}

absl::Status FrameChannel::Write(absl::string_view payload) {
  OPTRAIL_ASSIGN_OR_RETURN(const std::string frame, FrameOf(payload));
  absl::string_view rest = frame;
  while (!rest.empty()) {
    const ssize_t n = WriteWithoutSignal(write_fd_, rest);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return absl::ErrnoToStatus(errno, "writing a message");
    rest.remove_prefix(static_cast<size_t>(n));
  }
  return absl::OkStatus();
}

}  // namespace optrail

#include "suites/evaluation/line_peer.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <iostream>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "absl/time/clock.h"

namespace optrail::suites {

absl::StatusOr<std::unique_ptr<LinePeer>> LinePeer::Start(
    const std::string& command, absl::Duration patience) {
  // A peer that has ended is an answer, not our end.
  signal(SIGPIPE, SIG_IGN);
  int in[2], out[2];
  if (pipe2(in, O_CLOEXEC) != 0) return absl::ErrnoToStatus(errno, "pipe");
  if (pipe2(out, O_CLOEXEC) != 0) {
    close(in[0]);
    close(in[1]);
    return absl::ErrnoToStatus(errno, "pipe");
  }
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, in[0], 0);
  posix_spawn_file_actions_adddup2(&actions, out[1], 1);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  posix_spawnattr_setpgroup(&attributes, 0);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
  std::unique_ptr<LinePeer> peer(new LinePeer);
  peer->patience_ = patience;
  peer->in_fd_ = in[1];
  peer->out_fd_ = out[0];
  // No shell in between: a device's monitor knows its siblings by their parent.
  const std::string replaced = absl::StrCat("exec ", command);
  const char* const words[] = {"/bin/sh", "-c", replaced.c_str(), nullptr};
  const int error = posix_spawn(&peer->pid_, words[0], &actions, &attributes,
                                const_cast<char* const*>(words), environ);
  posix_spawn_file_actions_destroy(&actions);
  posix_spawnattr_destroy(&attributes);
  close(in[0]);
  close(out[1]);
  if (error != 0) {
    peer->pid_ = -1;
    return absl::ErrnoToStatus(error, absl::StrCat("starting ", command));
  }
  return peer;
}

LinePeer::~LinePeer() {
  if (in_fd_ >= 0) close(in_fd_);
  if (out_fd_ >= 0) close(out_fd_);
  if (pid_ <= 0) return;
  kill(-pid_, SIGKILL);
  waitpid(pid_, nullptr, 0);
}

absl::StatusOr<double> LinePeer::Ask(absl::string_view question) {
  const std::string line = absl::StrCat(question, "\n");
  if (write(in_fd_, line.data(), line.size()) !=
      static_cast<ssize_t>(line.size())) {
    return absl::UnavailableError("the peer has ended");
  }
  const absl::Time deadline = absl::Now() + patience_;
  while (true) {
    for (size_t end; (end = unread_.find('\n')) != std::string::npos;) {
      const std::string answer = unread_.substr(0, end);
      unread_.erase(0, end + 1);
      double value = 0;
      if (absl::SimpleAtod(answer, &value)) return value;
      if (absl::StartsWith(answer, "error: ")) {
        return absl::InternalError(absl::StripPrefix(answer, "error: "));
      }
      std::cerr << "peer: " << answer << "\n";
    }
    pollfd readable = {out_fd_, POLLIN, 0};
    const auto wait_ms = absl::ToInt64Milliseconds(deadline - absl::Now());
    if (wait_ms <= 0 || poll(&readable, 1, static_cast<int>(wait_ms)) == 0) {
      return absl::DeadlineExceededError("the peer does not answer");
    }
    char buffer[4096];
    const ssize_t got = read(out_fd_, buffer, sizeof(buffer));
    if (got == 0) return absl::UnavailableError("the peer has ended");
    if (got > 0) unread_.append(buffer, static_cast<size_t>(got));
  }
}

}  // namespace optrail::suites

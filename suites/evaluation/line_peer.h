#ifndef OPTRAIL_SUITES_EVALUATION_LINE_PEER_H_
#define OPTRAIL_SUITES_EVALUATION_LINE_PEER_H_

// Another program that measures when it is asked: a line in, a line with a
// number out.
//
//   OPTRAIL_ASSIGN_OR_RETURN(auto peer, LinePeer::Start("python3 peers.py",
//                                                       absl::Minutes(1)));
//   const absl::StatusOr<double> us = peer->Ask("matmul m=1,n=1,k=1 hot
//   torch");

#include <sys/types.h>

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace optrail::suites {

class LinePeer {
 public:
  // `command` is one program, in the shell's words.
  static absl::StatusOr<std::unique_ptr<LinePeer>> Start(
      const std::string& command, absl::Duration patience);
  // Ends it.
  ~LinePeer();
  LinePeer(const LinePeer&) = delete;
  LinePeer& operator=(const LinePeer&) = delete;

  // Lines that are no answer go to standard error. DeadlineExceeded after
  // `patience`; Unavailable once the program has ended; Internal for an answer
  // "error: ...". After the first two nothing more can be asked.
  absl::StatusOr<double> Ask(absl::string_view question);

 private:
  LinePeer() = default;

  pid_t pid_ = -1;
  int in_fd_ = -1, out_fd_ = -1;
  absl::Duration patience_;
  std::string unread_;
};

}  // namespace optrail::suites

#endif  // OPTRAIL_SUITES_EVALUATION_LINE_PEER_H_

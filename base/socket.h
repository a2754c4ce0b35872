#ifndef OPTRAIL_BASE_SOCKET_H_
#define OPTRAIL_BASE_SOCKET_H_

// Stream sockets by address, for frames between processes and machines:
//
//   OPTRAIL_ASSIGN_OR_RETURN(const int listener, ListenOn("unix:/tmp/worker"));
//   OPTRAIL_ASSIGN_OR_RETURN(const int fd, AcceptFrom(listener));
//   FrameChannel channel(fd, fd);                      // base/subprocess.h
//   ... and elsewhere ...
//   OPTRAIL_ASSIGN_OR_RETURN(const int fd, ConnectTo("unix:/tmp/worker"));
//
// An address is "unix:PATH", which the rights of the folder guard, or
// "HOST:PORT". Nothing is encrypted and nobody is asked who he is: over a
// network, tunnel it (ssh -L).

#include <string>

#include "absl/status/statusor.h"

namespace optrail {

// The descriptors are the caller's to close. Errors name the address.
absl::StatusOr<int> ListenOn(const std::string& address);
absl::StatusOr<int> AcceptFrom(int listener);
absl::StatusOr<int> ConnectTo(const std::string& address);

}  // namespace optrail

#endif  // OPTRAIL_BASE_SOCKET_H_

#ifndef OPTRAIL_BASE_PROCESS_SOCKET_H_
#define OPTRAIL_BASE_PROCESS_SOCKET_H_

// Stream sockets by address, for frames between processes and machines:
//
//   OPTRAIL_ASSIGN_OR_RETURN(const int listener, ListenOn("unix:/tmp/worker"));
//   OPTRAIL_ASSIGN_OR_RETURN(const int fd, AcceptFrom(listener));
//   FrameChannel channel(fd, fd);  // base/process/subprocess.h
//   // Elsewhere:
//   OPTRAIL_ASSIGN_OR_RETURN(const int there, ConnectTo("unix:/tmp/worker"));
//
// An address is "unix:PATH", a socket that its owner alone may connect to, or
// "HOST:PORT", by default on this machine alone (":7070" is "localhost:7070").
// Nothing is encrypted and nobody is asked who he is: over a network, tunnel it
// (ssh -L).

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace optrail {

// InvalidArgument for what is no address by its form; nothing is looked up.
absl::Status CheckAddress(const std::string& address);

// The descriptors are the caller's to close. Errors name the address. What a
// listener that was killed left of its unix socket is replaced. Who has sent
// half of a message and then nothing for half a minute is an error to who reads
// it.
absl::StatusOr<int> ListenOn(const std::string& address);
absl::StatusOr<int> AcceptFrom(int listener);
absl::StatusOr<int> ConnectTo(const std::string& address);

// Returns whether other machines than this one could connect to it.
bool IsForeign(const std::string& address);

}  // namespace optrail

#endif  // OPTRAIL_BASE_PROCESS_SOCKET_H_

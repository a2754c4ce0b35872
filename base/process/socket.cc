#include "base/process/socket.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>

#include "absl/algorithm/container.h"
#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "base/status_macros.h"

namespace optrail {
namespace {

constexpr absl::string_view kUnix = "unix:";
constexpr int kBacklog = 16;

struct Address {
  sockaddr_storage bytes = {};
  socklen_t size_bytes = 0;
};

absl::StatusOr<Address> Resolve(const std::string& text) {
  OPTRAIL_RETURN_IF_ERROR(CheckAddress(text));
  Address address;
  if (absl::StartsWith(text, kUnix)) {
    auto* const local = reinterpret_cast<sockaddr_un*>(&address.bytes);
    const std::string path = text.substr(kUnix.size());
    local->sun_family = AF_UNIX;
    std::memcpy(local->sun_path, path.c_str(), path.size() + 1);
    address.size_bytes = sizeof(sockaddr_un);
    return address;
  }
  const size_t colon = text.rfind(':');
  addrinfo hints = {};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  // Without a host, getaddrinfo answers with this machine's own address.
  const std::string host = text.substr(0, colon);
  const int error = getaddrinfo(host.empty() ? nullptr : host.c_str(),
                                text.substr(colon + 1).c_str(), &hints, &found);
  if (error != 0) {
    return absl::NotFoundError(
        absl::StrCat("address '", text, "': ", gai_strerror(error)));
  }
  std::memcpy(&address.bytes, found->ai_addr, found->ai_addrlen);
  address.size_bytes = found->ai_addrlen;
  freeaddrinfo(found);
  return address;
}

// Requests and answers are small and each is waited for. Whoever is gone is
// noticed, also where his machine did not say so.
void Configure(int fd) {
  const int on = 1;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
  setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
  const timeval patience = {30, 0};
  setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
  setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
}

// Binds, for nobody but the owner where it is a path; 0 or an errno.
int BindPrivately(int fd, const Address& address) {
  const mode_t before = umask(0177);
  const int result = bind(fd, reinterpret_cast<const sockaddr*>(&address.bytes),
                          address.size_bytes);
  const int error = result == 0 ? 0 : errno;
  umask(before);
  return error;
}

// A socket in the file system stays when its listener is killed.
bool IsAbandoned(const std::string& text) {
  if (!absl::StartsWith(text, kUnix)) return false;
  struct stat found = {};
  if (lstat(text.c_str() + kUnix.size(), &found) != 0) return false;
  if (!S_ISSOCK(found.st_mode)) return false;
  const absl::StatusOr<int> fd = ConnectTo(text);
  if (fd.ok()) close(*fd);
  return !fd.ok();
}

}  // namespace

absl::Status CheckAddress(const std::string& text) {
  if (absl::StartsWith(text, kUnix)) {
    const size_t most = sizeof(sockaddr_un::sun_path) - 1;
    const size_t size = text.size() - kUnix.size();
    if (size >= 1 && size <= most) return absl::OkStatus();
    return absl::InvalidArgumentError(absl::StrCat(
        "address '", text, "': expected unix:PATH with a path of 1 to ", most,
        " characters"));
  }
  const size_t colon = text.rfind(':');
  if (colon == std::string::npos) {
    return absl::InvalidArgumentError(
        absl::StrCat("address '", text, "': expected unix:PATH or HOST:PORT"));
  }
  const std::string port = text.substr(colon + 1);
  int number = 0;
  if (absl::c_all_of(port, absl::ascii_isdigit) &&
      absl::SimpleAtoi(port, &number) && number >= 1 && number <= 65535) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      absl::StrCat("address '", text, "': the port '", port,
                   "': expected a number from 1 to 65535"));
}

absl::StatusOr<int> ListenOn(const std::string& text) {
  OPTRAIL_ASSIGN_OR_RETURN(const Address address, Resolve(text));
  const int fd = socket(address.bytes.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const int on = 1;
  if (fd >= 0) setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  int error = fd < 0 ? errno : BindPrivately(fd, address);
  if (error == EADDRINUSE && IsAbandoned(text)) {
    unlink(text.c_str() + kUnix.size());
    error = BindPrivately(fd, address);
  }
  if (error == 0 && listen(fd, kBacklog) != 0) error = errno;
  if (error != 0) {
    const absl::Status status =
        absl::ErrnoToStatus(error, absl::StrCat("listening on ", text));
    if (fd >= 0) close(fd);
    return status;
  }
  return fd;
}

absl::StatusOr<int> AcceptFrom(int listener) {
  while (true) {
    const int fd = accept4(listener, nullptr, nullptr, SOCK_CLOEXEC);
    if (fd >= 0) {
      Configure(fd);
      return fd;
    }
    if (errno != EINTR && errno != ECONNABORTED) {
      return absl::ErrnoToStatus(errno, "accepting a connection");
    }
  }
}

absl::StatusOr<int> ConnectTo(const std::string& text) {
  OPTRAIL_ASSIGN_OR_RETURN(const Address address, Resolve(text));
  const int fd = socket(address.bytes.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0 || connect(fd, reinterpret_cast<const sockaddr*>(&address.bytes),
                        address.size_bytes) != 0) {
    const absl::Status status =
        absl::ErrnoToStatus(errno, absl::StrCat("connecting to ", text));
    if (fd >= 0) close(fd);
    return status;
  }
  Configure(fd);
  return fd;
}

bool IsForeign(const std::string& text) {
  const absl::StatusOr<Address> address = Resolve(text);
  if (!address.ok()) return false;
  switch (address->bytes.ss_family) {
    case AF_INET: {
      const auto* const ip =
          reinterpret_cast<const sockaddr_in*>(&address->bytes);
      return ntohl(ip->sin_addr.s_addr) >> 24 != 127;
    }
    case AF_INET6: {
      const auto* const ip =
          reinterpret_cast<const sockaddr_in6*>(&address->bytes);
      return !IN6_IS_ADDR_LOOPBACK(&ip->sin6_addr);
    }
    default:
      return false;
  }
}

}  // namespace optrail

#include "fleet/evaluation/holding_proxy.h"

#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "base/file/file.h"
#include "base/status_macros.h"

namespace optrail::fleet {
namespace {

constexpr char kBelow[] = "/held";

sockaddr_un AddressOf(const std::string& path) {
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  std::strncpy(address.sun_path, path.c_str(), sizeof(address.sun_path) - 1);
  return address;
}

int Connect(const std::string& path) {
  const int socket = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const sockaddr_un address = AddressOf(path);
  if (connect(socket, reinterpret_cast<const sockaddr*>(&address),
              sizeof(address)) == 0) {
    return socket;
  }
  close(socket);
  return -1;
}

// Passes on what there is. False at the end of either side.
bool Pass(int from, int to) {
  char bytes[1 << 16];
  const ssize_t count = read(from, bytes, sizeof(bytes));
  if (count <= 0) return false;
  for (ssize_t sent = 0; sent < count;) {
    const ssize_t some =
        send(to, bytes + sent, static_cast<size_t>(count - sent), MSG_NOSIGNAL);
    if (some <= 0) return false;
    sent += some;
  }
  return true;
}

[[noreturn]] void Serve(int listener, const std::string& server) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  std::vector<pollfd> polled = {{listener, POLLIN, 0}};
  while (true) {
    poll(polled.data(), polled.size(), -1);
    // Both ends of a connection stand side by side.
    for (size_t i = 1; i < polled.size();) {
      const int a = polled[i].fd, b = polled[i + 1].fd;
      if ((polled[i].revents != 0 && !Pass(a, b)) ||
          (polled[i + 1].revents != 0 && !Pass(b, a))) {
        close(a);
        close(b);
        polled.erase(polled.begin() + static_cast<ptrdiff_t>(i),
                     polled.begin() + static_cast<ptrdiff_t>(i) + 2);
      } else {
        i += 2;
      }
    }
    if (polled[0].revents == 0) continue;
    const int client = accept4(listener, nullptr, nullptr, SOCK_CLOEXEC);
    if (client < 0) continue;
    const int there = Connect(server);
    if (there < 0) {
      close(client);  // the server was killed
      continue;
    }
    polled.push_back({client, POLLIN, 0});
    polled.push_back({there, POLLIN, 0});
  }
}

}  // namespace

absl::StatusOr<std::unique_ptr<HoldingProxy>> HoldingProxy::Start(
    const std::string& folder) {
  OPTRAIL_ASSIGN_OR_RETURN(const std::vector<std::string> names,
                           ListDirectory(folder));
  for (const std::string& name : names) {
    if (!absl::StartsWith(name, ".s.PGSQL.") || absl::EndsWith(name, ".lock")) {
      continue;
    }
    const std::string place = folder + kBelow;
    OPTRAIL_RETURN_IF_ERROR(CreateDirectories(place));
    const sockaddr_un address = AddressOf(JoinPath(place, name));
    const int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    (void)unlink(address.sun_path);
    if (bind(listener, reinterpret_cast<const sockaddr*>(&address),
             sizeof(address)) != 0 ||
        listen(listener, 128) != 0) {
      close(listener);
      return absl::InternalError(absl::StrCat("listening in ", place));
    }
    const pid_t pid = fork();
    if (pid == 0) Serve(listener, JoinPath(folder, name));
    close(listener);
    return std::unique_ptr<HoldingProxy>(new HoldingProxy(folder, pid));
  }
  return absl::NotFoundError(absl::StrCat("no socket in ", folder));
}

HoldingProxy::~HoldingProxy() {
  kill(pid_, SIGKILL);
  waitpid(pid_, nullptr, 0);
}

std::string HoldingProxy::UrlOf(const std::string& url) const {
  return absl::StrReplaceAll(url, {{absl::StrCat("host=", folder_),
                                    absl::StrCat("host=", folder_, kBelow)}});
}

void HoldingProxy::Hold() { kill(pid_, SIGSTOP); }
void HoldingProxy::Release() { kill(pid_, SIGCONT); }

}  // namespace optrail::fleet

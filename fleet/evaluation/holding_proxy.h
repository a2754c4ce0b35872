#ifndef OPTRAIL_FLEET_EVALUATION_HOLDING_PROXY_H_
#define OPTRAIL_FLEET_EVALUATION_HOLDING_PROXY_H_

// A network that stalls: what goes through a HoldingProxy to a server's Unix
// socket is held, and arrives later.
//
//   OPTRAIL_ASSIGN_OR_RETURN(const auto proxy, HoldingProxy::Start(folder));
//   auto db = Postgres::Connect(proxy->UrlOf(server.Url("postgres", "db")));
//   proxy->Hold();     // bytes of both directions wait
//   proxy->Release();  // and go on
//
// It is a process of its own, which is stopped and continued: no connection
// breaks, and nothing is lost.

#include <sys/types.h>

#include <memory>
#include <string>

#include "absl/status/statusor.h"

namespace optrail::fleet {

class HoldingProxy {
 public:
  // `folder` holds the one socket of the server.
  static absl::StatusOr<std::unique_ptr<HoldingProxy>> Start(
      const std::string& folder);
  ~HoldingProxy();

  // The same database through the proxy.
  std::string UrlOf(const std::string& url) const;
  void Hold();
  void Release();

 private:
  HoldingProxy(std::string folder, pid_t pid)
      : folder_(std::move(folder)), pid_(pid) {}

  const std::string folder_;
  const pid_t pid_;
};

}  // namespace optrail::fleet

#endif  // OPTRAIL_FLEET_EVALUATION_HOLDING_PROXY_H_

#ifndef OPTRAIL_TRACKER_HISTORY_POSTGRES_TESTING_POSTGRES_SERVER_H_
#define OPTRAIL_TRACKER_HISTORY_POSTGRES_TESTING_POSTGRES_SERVER_H_

// For tests: a PostgreSQL server of their own on a Unix socket.
//
//   auto server = PostgresServer::Start();
//   if (absl::IsUnimplemented(server.status())) GTEST_SKIP() <<
//   server.status(); auto db = Postgres::Connect((*server)->Url("postgres",
//   "postgres"));
//
// It ends with the test, also where that is killed. PostgreSQL refuses to run
// as root: then the server runs as the user "postgres".

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/process/subprocess.h"

namespace optrail::tracker {

class PostgresServer {
 public:
  // Unimplemented, "unsupported here: no PostgreSQL", unless it is installed.
  // With `disk_mib` its data is on a file system of that size in memory, which
  // root alone can mount.
  static absl::StatusOr<std::unique_ptr<PostgresServer>> Start(
      int disk_mib = 0);
  ~PostgresServer();

  // Everybody is trusted on the socket, but for the role "guarded", whose
  // password is asked. On TCP, TLS is required.
  std::string Url(const std::string& user, const std::string& database) const;
  std::string TcpUrl(const std::string& user, const std::string& database,
                     const std::string& parameters) const;
  // The certificate of the server, which signed itself.
  std::string certificate() const { return folder_ + "/server.crt"; }
  const std::string& folder() const { return folder_; }
  std::string data() const { return folder_ + "/data"; }

  // Processor time of all its processes, also of those that have ended.
  double ProcessorSeconds() const;

  // kill -9 of all its processes; Run starts it again, which recovers.
  absl::Status Kill();
  absl::Status Run();

 private:
  PostgresServer(std::string folder, int disk_mib)
      : folder_(std::move(folder)), disk_mib_(disk_mib) {}
  absl::Status Init();

  const std::string folder_;
  const int disk_mib_;
  std::unique_ptr<Subprocess> server_;
};

}  // namespace optrail::tracker

#endif  // OPTRAIL_TRACKER_HISTORY_POSTGRES_TESTING_POSTGRES_SERVER_H_

#include "tracker/history/postgres/testing/postgres_server.h"

#include <pwd.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "base/file/file.h"
#include "base/process/process_tree.h"
#include "base/status_macros.h"
#include "tracker/history/postgres/postgres.h"

namespace optrail::tracker {
namespace {

constexpr char kBinaries[] = "/usr/lib/postgresql/15/bin";

// Below the ports that the kernel gives to clients, one of which could hold
// this one while the server is away.
std::string Port() { return absl::StrCat(20000 + getpid() % 12000); }

// `argv` as a user whom PostgreSQL takes, ended with the test.
std::vector<std::string> AsServer(std::vector<std::string> argv) {
  std::vector<std::string> all = {"setpriv", "--pdeathsig=KILL"};
  if (geteuid() == 0) {
    for (const char* option :
         {"--reuid=postgres", "--regid=postgres", "--clear-groups"}) {
      all.push_back(option);
    }
  }
  all.insert(all.end(), argv.begin(), argv.end());
  return all;
}

absl::Status RunToEnd(const std::vector<std::string>& argv) {
  CommandOptions options;
  options.timeout = absl::Minutes(2);
  OPTRAIL_ASSIGN_OR_RETURN(const CommandResult result,
                           RunCommand(argv, options));
  if (result.exit.ok()) return absl::OkStatus();
  return absl::InternalError(absl::StrCat(argv[0], ": ", result.exit.ToString(),
                                          ": ", result.stderr_text));
}

}  // namespace

absl::StatusOr<std::unique_ptr<PostgresServer>> PostgresServer::Start(
    int disk_mib) {
  if (!FileExists(JoinPath(kBinaries, "postgres"))) {
    return absl::UnimplementedError("unsupported here: no PostgreSQL");
  }
  // Not in TEST_TMPDIR: a socket's path has at most 107 characters, and
  // another user must reach it.
  std::string folder = "/tmp/optrail_postgres_XXXXXX";
  if (mkdtemp(folder.data()) == nullptr) {
    return absl::InternalError(absl::StrCat("making ", folder));
  }
  // Its certificate and what tests put beside it are for other users, too.
  if (chmod(folder.c_str(), 0711) != 0) {
    return absl::InternalError(absl::StrCat("opening ", folder));
  }
  std::unique_ptr<PostgresServer> server(new PostgresServer(folder, disk_mib));
  OPTRAIL_RETURN_IF_ERROR(server->Init());
  OPTRAIL_RETURN_IF_ERROR(server->Run());
  return server;
}

PostgresServer::~PostgresServer() {
  if (server_ != nullptr) (void)Kill();
  if (disk_mib_ > 0) (void)RunToEnd({"umount", "--lazy", data()});
  (void)RunToEnd({"rm", "-rf", folder_});
}

absl::Status PostgresServer::Init() {
  if (geteuid() == 0) {
    const passwd* const user = getpwnam("postgres");
    if (user == nullptr ||
        chown(folder_.c_str(), user->pw_uid, user->pw_gid) != 0) {
      return absl::UnimplementedError(
          "unsupported here: no PostgreSQL: there is no user postgres");
    }
  }
  if (disk_mib_ > 0) {
    OPTRAIL_RETURN_IF_ERROR(CreateDirectories(data()));
    OPTRAIL_RETURN_IF_ERROR(RunToEnd(
        {"mount", "-t", "tmpfs", "-o",
         absl::StrCat("mode=700,uid=postgres,gid=postgres,size=", disk_mib_,
                      "m"),
         "tmpfs", data()}));
  }
  OPTRAIL_RETURN_IF_ERROR(RunToEnd(
      AsServer({JoinPath(kBinaries, "initdb"), "-D", data(), "-U", "postgres",
                "-A", "trust", "--no-sync", "-E", "UTF8", "--locale=C"})));
  OPTRAIL_RETURN_IF_ERROR(RunToEnd(AsServer(
      {"openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days",
       "30", "-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1",
       "-keyout", folder_ + "/server.key", "-out", certificate()})));
  return WriteFileAtomically(data() + "/pg_hba.conf",
                             "local all guarded scram-sha-256\n"
                             "local all all trust\n"
                             "hostssl all all 127.0.0.1/32 trust\n");
}

absl::Status PostgresServer::Run() {
  const std::string log = folder_ + "/log";
  std::vector<std::string> argv = {"sh", "-c",
                                   absl::StrCat("exec \"$@\" 2>", log), "sh"};
  const std::vector<std::string> server =
      AsServer({JoinPath(kBinaries, "postgres"),
                "-D",
                data(),
                "-k",
                folder_,
                "-p",
                Port(),
                "-c",
                "listen_addresses=127.0.0.1",
                "-c",
                "ssl=on",
                "-c",
                absl::StrCat("ssl_cert_file=", certificate()),
                "-c",
                absl::StrCat("ssl_key_file=", folder_, "/server.key"),
                "-c",
                "max_connections=200",
                "-c",
                "recovery_init_sync_method=syncfs",
                "-c",
                "logging_collector=off",
                "-c",
                "log_destination=stderr"});
  argv.insert(argv.end(), server.begin(), server.end());
  if (disk_mib_ > 0) {
    for (const char* word :
         {"-c", "min_wal_size=32MB", "-c", "max_wal_size=64MB"}) {
      argv.emplace_back(word);
    }
  }
  // Until it takes connections: after a kill -9 it recovers first. It gives up
  // while a process that the killed one had just forked holds its memory, and
  // is started again then.
  const absl::Time deadline = absl::Now() + absl::Minutes(1);
  absl::Status answered;
  do {
    if (server_ == nullptr || server_->HasOutput()) {
      OPTRAIL_ASSIGN_OR_RETURN(server_, Subprocess::Start(argv));
    }
    answered = Postgres::Connect(Url("postgres", "postgres")).status();
    if (!absl::IsUnavailable(answered)) return answered;
    absl::SleepFor(absl::Milliseconds(100));
  } while (absl::Now() < deadline);
  return absl::UnavailableError(absl::StrCat(
      answered.message(), "; the server says: ", ReadFile(log).value_or("")));
}

double PostgresServer::ProcessorSeconds() const {
  if (server_ == nullptr) return 0;
  int64_t ticks = 0;
  for (const TreeProcess& process : ListProcessTree(server_->pid()).processes) {
    const auto text = ReadFile(absl::StrCat("/proc/", process.pid, "/stat"));
    if (!text.ok()) continue;  // it ended just now
    // Behind the name, which may hold anything: state is the third field of
    // proc(5), the times of the process and of what it waited for follow.
    const std::vector<std::string> fields =
        absl::StrSplit(text->substr(text->rfind(')') + 1), ' ');
    for (size_t i = 12; i < 16 && i < fields.size(); ++i) {
      int64_t value = 0;
      if (absl::SimpleAtoi(fields[i], &value)) ticks += value;
    }
  }
  return static_cast<double>(ticks) / sysconf(_SC_CLK_TCK);
}

absl::Status PostgresServer::Kill() {
  if (server_ == nullptr) return absl::OkStatus();
  // Its children leave the process group, and would hold the memory that the
  // next server wants.
  for (const TreeProcess& process : ListProcessTree(server_->pid()).processes) {
    (void)kill(process.pid, SIGKILL);
  }
  server_->KillAndWait();
  server_.reset();
  return absl::OkStatus();
}

std::string PostgresServer::Url(const std::string& user,
                                const std::string& database) const {
  return absl::StrCat("postgresql://", user, "@/", database, "?host=", folder_,
                      "&port=", Port());
}

std::string PostgresServer::TcpUrl(const std::string& user,
                                   const std::string& database,
                                   const std::string& parameters) const {
  return absl::StrCat("postgresql://", user, "@127.0.0.1:", Port(), "/",
                      database, "?", parameters);
}

}  // namespace optrail::tracker

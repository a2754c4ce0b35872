// Runs a command beside a PostgreSQL server of its own:
//
//   with_postgres optrail fleet status
//
// The command finds the address of an empty database in OPTRAIL_TEST_DATABASE.
// Exit code 77, as of a test that is skipped, without PostgreSQL; 1 where the
// server does not start or the command is killed; else that of the command.

#include <cstdlib>
#include <iostream>
#include <string>
#include <vector>

#include "base/process/subprocess.h"
#include "tracker/history/postgres/testing/postgres_server.h"

int main(int argc, char** argv) {
  const auto server = optrail::tracker::PostgresServer::Start();
  if (!server.ok()) {
    std::cerr << server.status().message() << "\n";
    return absl::IsUnimplemented(server.status()) ? 77 : 1;
  }
  setenv("OPTRAIL_TEST_DATABASE",
         (*server)->Url("postgres", "postgres").c_str(), /*overwrite=*/1);
  const auto result =
      optrail::RunCommand(std::vector<std::string>(argv + 1, argv + argc));
  if (!result.ok()) {
    std::cerr << result.status().message() << "\n";
    return 1;
  }
  std::cout << result->stdout_text;
  std::cerr << result->stderr_text;
  if (result->exit.kind == optrail::ExitInfo::Kind::kExited) {
    return result->exit.code;
  }
  std::cerr << argv[1] << ": " << result->exit.ToString() << "\n";
  return 1;
}

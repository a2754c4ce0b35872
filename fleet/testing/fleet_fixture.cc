#include "fleet/testing/fleet_fixture.h"

#include <sys/stat.h>
#include <unistd.h>

#include <iostream>
#include <sstream>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/file/file.h"
#include "base/testing/wrong_clock.h"
#include "tracker/history/postgres/postgres.h"

namespace optrail::fleet {

using tracker::Postgres;

int FleetTest::pilots_ = 0;
int FleetTest::scripts_ = 0;

void FleetTest::SetUp() {
  PostgresTest::SetUp();
  if (IsSkipped() || HasFatalFailure()) return;
  url_ = Url();
  const absl::Status ready = InitFleet(url_);
  ASSERT_TRUE(ready.ok()) << ready;
}

JobQueue FleetTest::Open(absl::Duration lease) {
  auto queue = JobQueue::Open(url_, lease);
  EXPECT_TRUE(queue.ok()) << queue.status();
  return *std::move(queue);
}

PilotInfo FleetTest::Named(const std::string& id) {
  return {id, "host", "hw", ""};
}

void FleetTest::Sql(const std::string& sql) {
  const absl::Status status = (*Postgres::Connect(url_))->Execute(sql.c_str());
  EXPECT_TRUE(status.ok()) << status;
}

std::string FleetTest::One(const std::string& sql) {
  const auto rows = (*Postgres::Connect(url_))->Query(sql, {});
  EXPECT_TRUE(rows.ok()) << rows.status();
  return rows.ok() && !rows->empty() ? (*rows)[0][0].value_or("NULL") : "";
}

void FleetTest::WaitFor(const std::string& sql, const std::string& value) {
  const absl::Time until = absl::Now() + absl::Minutes(2);
  while (One(sql) != value) {
    ASSERT_LT(absl::Now(), until)
        << sql << " is " << One(sql) << ", expected " << value;
    absl::SleepFor(absl::Milliseconds(5));
  }
}

std::string FleetTest::Script(const std::string& text) const {
  const std::string path = absl::StrCat(Folder(), "/script", ++scripts_, ".sh");
  EXPECT_TRUE(WriteFileAtomically(path, text).ok());
  EXPECT_EQ(chmod(path.c_str(), 0644), 0);
  return path;
}

PilotOptions FleetTest::Pilot(const std::vector<std::string>& program) {
  PilotOptions options;
  options.url = url_;
  options.info = Named("");
  options.run_as = "nobody";
  options.folder = absl::StrCat(Folder(), "/pilot", ++pilots_);
  options.program = program;
  options.poll = absl::Milliseconds(50);
  options.lease = absl::Seconds(2);
  options.until_idle = true;
  return options;
}

pid_t FleetTest::StartPilot(const PilotOptions& options,
                            absl::Duration clock_error) {
  const pid_t pid = fork();
  if (pid != 0) return pid;
  SetWallClockError(clock_error);
  std::ostringstream log;
  const auto report = RunPilot(options, log);
  if (!report.ok()) std::cerr << report.status() << "\n";
  _exit(report.ok() ? 0 : 1);
}

}  // namespace optrail::fleet

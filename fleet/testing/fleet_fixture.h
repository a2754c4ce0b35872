#ifndef OPTRAIL_FLEET_TESTING_FLEET_FIXTURE_H_
#define OPTRAIL_FLEET_TESTING_FLEET_FIXTURE_H_

// FleetTest has a database with a queue on a PostgreSQL server of its own, and
// starts pilots. Pilots are processes of the test's program, so that they can
// be killed.
//
//   TEST_F(FleetTest, ATaskIsDoneOnce) {
//     JobQueue queue = Open();
//     ASSERT_TRUE(queue.Submit({"job", {"bench a"}}).ok());
//     const pid_t pilot = StartPilot(Pilot({"sh", Script("exit 0\n")}));
//
// Tests are skipped where there is no PostgreSQL.

#include <sys/types.h>

#include <string>
#include <vector>

#include "absl/time/time.h"
#include "fleet/pilot.h"
#include "fleet/queue.h"
#include "tracker/history/postgres/testing/postgres_fixture.h"

namespace optrail::fleet {

class FleetTest : public tracker::PostgresTest {
 protected:
  void SetUp() override;

  JobQueue Open(absl::Duration lease = absl::Seconds(60));
  static PilotInfo Named(const std::string& id);
  void Sql(const std::string& sql);
  // The first value of the first row; "" for none.
  std::string One(const std::string& sql);
  // Until One(sql) is `value`; a failure of the test after two minutes, so that
  // what hangs is told by its name.
  void WaitFor(const std::string& sql, const std::string& value);

  // A folder that others may read, gone with the server's.
  std::string Folder() const { return server_->folder(); }
  // Writes a script of sh that the user of tasks may read; its path.
  std::string Script(const std::string& text) const;

  PilotOptions Pilot(const std::vector<std::string>& program);
  // In a process of its own, on a machine whose clock may be wrong.
  static pid_t StartPilot(const PilotOptions& options,
                          absl::Duration clock_error = absl::ZeroDuration());

  static int pilots_, scripts_;
  std::string url_;
};

}  // namespace optrail::fleet

#endif  // OPTRAIL_FLEET_TESTING_FLEET_FIXTURE_H_

#ifndef OPTRAIL_TRACKER_HISTORY_POSTGRES_TESTING_POSTGRES_FIXTURE_H_
#define OPTRAIL_TRACKER_HISTORY_POSTGRES_TESTING_POSTGRES_FIXTURE_H_

// PostgresTest gives each test an empty database, on a PostgreSQL server that
// all tests of a suite share.
//
//   class StoreTest : public PostgresTest {};
//   TEST_F(StoreTest, ARunComesBack) { auto history = History::Open(Url()); }
//
// Tests are skipped where there is no PostgreSQL. A SetUp() of a derived class
// calls this one first, and returns if IsSkipped() or HasFatalFailure().

#include <string>

#include "absl/status/status.h"
#include "gtest/gtest.h"
#include "tracker/history/postgres/testing/postgres_server.h"

namespace optrail::tracker {

class PostgresTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite();
  static void TearDownTestSuite();
  void SetUp() override;

  // The address of this test's database.
  std::string Url(const std::string& user = "postgres") const;
  // Runs `sql` as the superuser.
  static void Sql(const std::string& database, const std::string& sql);
  // A role that may log in and is member of `group`.
  std::string NewRole(const std::string& group) const;

  static PostgresServer* server_;
  std::string database_;

 private:
  static const absl::Status* why_not_;
  static int databases_, roles_;
};

}  // namespace optrail::tracker

#endif  // OPTRAIL_TRACKER_HISTORY_POSTGRES_TESTING_POSTGRES_FIXTURE_H_

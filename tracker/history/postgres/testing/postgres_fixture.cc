#include "tracker/history/postgres/testing/postgres_fixture.h"

#include "absl/strings/str_cat.h"
#include "tracker/history/postgres/postgres.h"

namespace optrail::tracker {

PostgresServer* PostgresTest::server_ = nullptr;
const absl::Status* PostgresTest::why_not_ = nullptr;
int PostgresTest::databases_ = 0;
int PostgresTest::roles_ = 0;

void PostgresTest::SetUpTestSuite() {
  auto started = PostgresServer::Start();
  if (started.ok()) {
    server_ = started->release();
  } else {
    why_not_ = new absl::Status(started.status());
  }
}

void PostgresTest::TearDownTestSuite() {
  delete server_;
  server_ = nullptr;
}

void PostgresTest::SetUp() {
  if (server_ == nullptr) {
    if (absl::IsUnimplemented(*why_not_)) GTEST_SKIP() << *why_not_;
    FAIL() << *why_not_;
  }
  database_ = absl::StrCat("db", ++databases_);
  Sql("postgres", absl::StrCat("CREATE DATABASE ", database_));
}

std::string PostgresTest::Url(const std::string& user) const {
  return server_->Url(user, database_);
}

void PostgresTest::Sql(const std::string& database, const std::string& sql) {
  const auto db = Postgres::Connect(server_->Url("postgres", database));
  ASSERT_TRUE(db.ok()) << db.status();
  const absl::Status status = (*db)->Execute(sql.c_str());
  EXPECT_TRUE(status.ok()) << status;
}

std::string PostgresTest::NewRole(const std::string& group) const {
  const std::string name = absl::StrCat("role", ++roles_);
  Sql(database_, absl::StrCat("CREATE ROLE ", name, " LOGIN IN ROLE ", group));
  return name;
}

}  // namespace optrail::tracker

#ifndef OPTRAIL_TRACKER_HISTORY_POSTGRES_POSTGRES_H_
#define OPTRAIL_TRACKER_HISTORY_POSTGRES_POSTGRES_H_

// PostgreSQL as a Database (tracker/history/sql.h):
//
//   OPTRAIL_ASSIGN_OR_RETURN(auto db, Postgres::Connect("postgresql://h/db"));
//   OPTRAIL_ASSIGN_OR_RETURN(Statement get, db->Prepare("SELECT now()"));
//
// libpq is loaded when the first connection is made: a program that never asks
// for PostgreSQL does not need it. The URL is libpq's: host, port, database,
// user, sslmode, sslrootcert; passwords belong in ~/.pgpass, not in the URL.
//
// A connection that is silent for half a minute within a transaction is ended
// by the server, and one whose network is dead by the client, so that nobody
// waits for it for longer.
//
// Source: https://www.postgresql.org/docs/15/libpq.html.

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/optional.h"
#include "postgresql/libpq-fe.h"
#include "tracker/history/sql.h"

namespace optrail::tracker {

class Postgres : public Database {
 public:
  // Unimplemented without libpq, Unavailable without the server,
  // Unauthenticated for a refused user or password, InvalidArgument for a URL
  // that would not be read as it was meant (tracker/history/store_url.h).
  static absl::StatusOr<std::shared_ptr<Postgres>> Connect(
      absl::string_view url);

  ~Postgres() override;

  absl::Status Execute(const char* sql) override;
  absl::StatusOr<Statement> Prepare(absl::string_view sql) override;
  absl::StatusOr<Statement> PrepareInsert(absl::string_view table,
                                          absl::string_view columns) override;
  const char* begin_writing() const override;
  const char* begin_reading() const override;

  // The rows of one statement with `$1`, `$2` for parameters, which nothing
  // remembers: right through a pool that gives each transaction another
  // connection. NULL is nullopt, of parameters and in rows.
  using Value = absl::optional<std::string>;
  using Row = std::vector<Value>;
  absl::StatusOr<std::vector<Row>> Query(const std::string& sql,
                                         const std::vector<Value>& parameters);

  // Who is connected, for messages.
  std::string user() const;

 private:
  class PreparedStatement;
  class CopyStatement;
  struct Parameter {
    bool is_null = true;
    int format = 0;  // 0: text, 1: binary
    std::string bytes;
  };

  Postgres(PGconn* connection, std::string name)
      : connection_(connection), name_(std::move(name)) {}

  absl::Status ErrorOf(const PGresult* result) const;
  // Sends the rows that wait to be copied.
  absl::Status Settle();

  PGconn* connection_;
  std::string name_;
  int prepared_ = 0;
  // Rows that wait, in COPY's binary format, by what begins the copy.
  std::map<std::string, std::string> copies_;
};

}  // namespace optrail::tracker

#endif  // OPTRAIL_TRACKER_HISTORY_POSTGRES_POSTGRES_H_

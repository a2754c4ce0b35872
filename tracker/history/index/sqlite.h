#ifndef OPTRAIL_TRACKER_HISTORY_INDEX_SQLITE_H_
#define OPTRAIL_TRACKER_HISTORY_INDEX_SQLITE_H_

// SQLite with statuses and destructors:
//
//   OPTRAIL_ASSIGN_OR_RETURN(Database db, Database::Open(path, flags));
//   OPTRAIL_RETURN_IF_ERROR(db.Execute("BEGIN IMMEDIATE"));
//   OPTRAIL_ASSIGN_OR_RETURN(Statement get, db.Prepare("SELECT ... = ?"));
//   get.With(text);
//   while (true) {
//     OPTRAIL_ASSIGN_OR_RETURN(const bool row, get.Step());
//     if (!row) break;
//     Use(get.Bytes(0));
//   }
//   get.Reset();
//
// DataLoss says that the file is damaged or no database, Unavailable that
// somebody else holds it, PermissionDenied that it can't be written.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "sqlite3.h"

namespace optrail::tracker {

struct Blob {
  absl::string_view bytes;
};

class Statement {
 public:
  // Binds integers, texts, Blobs and nullptr to ?1, ?2 and so on. Texts and
  // blobs must live until Reset.
  template <typename... Values>
  Statement& With(const Values&... values) {
    int index = 0;
    (Bind(++index, values), ...);
    return *this;
  }

  // True if there is a row, false at the end.
  absl::StatusOr<bool> Step();
  // Runs a statement without rows, and resets it.
  absl::Status Run();
  // Ready to be bound and stepped again.
  void Reset();

  // Return a column of the row, from 0; valid until the next Step or Reset.
  int64_t Int(int column) const;
  absl::string_view Bytes(int column) const;

 private:
  friend class Database;
  void Bind(int index, int64_t value);
  void Bind(int index, std::nullptr_t);
  void Bind(int index, absl::string_view text);
  void Bind(int index, Blob blob);
  struct Finalize {
    void operator()(sqlite3_stmt* statement) const {
      sqlite3_finalize(statement);
    }
  };
  explicit Statement(sqlite3_stmt* statement) : statement_(statement) {}

  std::unique_ptr<sqlite3_stmt, Finalize> statement_;
};

class Database {
 public:
  // `name`: a path, ":memory:" or a URI; `flags`: as for sqlite3_open_v2.
  static absl::StatusOr<Database> Open(const std::string& name, int flags);

  absl::Status Execute(const char* sql);
  absl::StatusOr<Statement> Prepare(absl::string_view sql);
  int64_t last_insert_rowid() const;

 private:
  struct Close {
    void operator()(sqlite3* db) const { sqlite3_close_v2(db); }
  };
  explicit Database(sqlite3* db) : db_(db) {}

  std::unique_ptr<sqlite3, Close> db_;
};

// Ends a transaction that was not committed.
class Transaction {
 public:
  explicit Transaction(Database& db) : db_(db) {}
  ~Transaction();
  Transaction(const Transaction&) = delete;
  Transaction& operator=(const Transaction&) = delete;

  absl::Status Begin(const char* sql);
  absl::Status Commit();

 private:
  Database& db_;
  bool open_ = false;
};

}  // namespace optrail::tracker

#endif  // OPTRAIL_TRACKER_HISTORY_INDEX_SQLITE_H_

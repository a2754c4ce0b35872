#ifndef OPTRAIL_TRACKER_HISTORY_SQL_H_
#define OPTRAIL_TRACKER_HISTORY_SQL_H_

// SQL with statuses and destructors, over SQLite (index/sqlite.h) or PostgreSQL
// (postgres/postgres.h):
//
//   OPTRAIL_RETURN_IF_ERROR(db.Execute("BEGIN"));
//   OPTRAIL_ASSIGN_OR_RETURN(Statement get, db.Prepare(query));
//   get.With(text);
//   while (true) {
//     OPTRAIL_ASSIGN_OR_RETURN(const bool row, get.Step());
//     if (!row) break;
//     Use(get.Bytes(0));
//   }
//   get.Reset();
//
// Parameters are `?`, or `?1`, `?2` where one is used twice.
//
// Errors: DataLoss for a damaged database, Unavailable for one that cannot be
// reached or that somebody else holds, PermissionDenied for missing rights,
// AlreadyExists for a key that is taken, ResourceExhausted for a full disk.
// Thread safety: none. A statement must not outlive its database.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace optrail::tracker {

struct Blob {
  absl::string_view bytes;
};

class Statement {
 public:
  // One database's implementation. Indexes of parameters begin with 1.
  class Engine {
   public:
    virtual ~Engine() = default;
    virtual void Bind(int index, int64_t value) = 0;
    virtual void Bind(int index, double value) = 0;
    virtual void Bind(int index, std::nullptr_t) = 0;
    virtual void Bind(int index, absl::string_view text) = 0;
    virtual void Bind(int index, Blob blob) = 0;
    virtual absl::StatusOr<bool> Step() = 0;
    virtual absl::Status Run() = 0;
    virtual void Reset() = 0;
    virtual int64_t Int(int column) const = 0;
    virtual absl::string_view Bytes(int column) const = 0;
  };
  explicit Statement(std::unique_ptr<Engine> engine)
      : engine_(std::move(engine)) {}

  // Binds integers, numbers, texts, Blobs and nullptr to the parameters in
  // turn. Texts and blobs must live until Reset.
  template <typename... Values>
  Statement& With(const Values&... values) {
    int index = 0;
    (BindOne(++index, values), ...);
    return *this;
  }

  // True if there is a row, false at the end.
  absl::StatusOr<bool> Step() { return engine_->Step(); }
  // Runs a statement without rows, and resets it. PostgreSQL may report its
  // error at the next call that waits for an answer, at the latest at COMMIT.
  absl::Status Run() { return engine_->Run(); }
  // Makes it ready to be bound and stepped again.
  void Reset() { engine_->Reset(); }

  // A column of the row, counted from 0; 0 and "" for NULL. Valid until the
  // next Step or Reset.
  int64_t Int(int column) const { return engine_->Int(column); }
  absl::string_view Bytes(int column) const { return engine_->Bytes(column); }

 private:
  void BindOne(int index, int value) { engine_->Bind(index, int64_t{value}); }
  template <typename Value>
  void BindOne(int index, const Value& value) {
    engine_->Bind(index, value);
  }

  std::unique_ptr<Engine> engine_;
};

class Database {
 public:
  virtual ~Database() = default;

  // One or several statements without parameters and rows.
  virtual absl::Status Execute(const char* sql) = 0;
  virtual absl::StatusOr<Statement> Prepare(absl::string_view sql) = 0;
  // For Run(): adds a row to a table. `columns` ("a, b") take int64_t, double,
  // Blob and nullptr as they are: PostgreSQL copies them in binary.
  virtual absl::StatusOr<Statement> PrepareInsert(absl::string_view table,
                                                  absl::string_view columns) {
    std::string values = "?";
    for (const char c : columns) {
      if (c == ',') values += ", ?";
    }
    return Prepare("INSERT INTO " + std::string(table) + " (" +
                   std::string(columns) + ") VALUES (" + values + ")");
  }
  // Begins a transaction that writes: one at a time, the others wait.
  virtual const char* begin_writing() const = 0;
  // Begins a transaction that sees one state of the database.
  virtual const char* begin_reading() const = 0;
};

// Ends a transaction that was not committed.
class Transaction {
 public:
  explicit Transaction(Database& db) : db_(db) {}
  ~Transaction() {
    if (open_) (void)db_.Execute("ROLLBACK");
  }
  Transaction(const Transaction&) = delete;
  Transaction& operator=(const Transaction&) = delete;

  absl::Status Begin(const char* sql) {
    const absl::Status status = db_.Execute(sql);
    open_ = status.ok();
    return status;
  }
  absl::Status Commit() {
    const absl::Status status = db_.Execute("COMMIT");
    if (status.ok()) open_ = false;
    return status;
  }

 private:
  Database& db_;
  bool open_ = false;
};

}  // namespace optrail::tracker

#endif  // OPTRAIL_TRACKER_HISTORY_SQL_H_

#include "tracker/history/index/sqlite.h"

#include "absl/strings/str_cat.h"

namespace optrail::tracker {
namespace {

// How long another process may hold the database.
constexpr int kBusyTimeoutMs = 60'000;

absl::Status ErrorOf(sqlite3* db, int code) {
  const std::string message = absl::StrCat(
      "index: ", db == nullptr ? sqlite3_errstr(code) : sqlite3_errmsg(db));
  switch (code & 0xff) {
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
      return absl::DataLossError(message);
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
      return absl::UnavailableError(message);
    case SQLITE_READONLY:
    case SQLITE_CANTOPEN:
    case SQLITE_PERM:
      return absl::PermissionDeniedError(message);
    case SQLITE_FULL:
      return absl::ResourceExhaustedError(message);
    default:
      return absl::InternalError(message);
  }
}

class SqliteStatement : public Statement::Engine {
 public:
  explicit SqliteStatement(sqlite3_stmt* statement) : statement_(statement) {}

  void Bind(int index, int64_t value) override {
    sqlite3_bind_int64(statement_.get(), index, value);
  }
  void Bind(int index, double value) override {
    sqlite3_bind_double(statement_.get(), index, value);
  }
  void Bind(int index, std::nullptr_t) override {
    sqlite3_bind_null(statement_.get(), index);
  }
  void Bind(int index, absl::string_view text) override {
    // A null pointer would bind NULL, not the empty text.
    const char* data = text.data() == nullptr ? "" : text.data();
    sqlite3_bind_text64(statement_.get(), index, data, text.size(),
                        SQLITE_STATIC, SQLITE_UTF8);
  }
  void Bind(int index, Blob blob) override {
    sqlite3_bind_blob64(statement_.get(), index, blob.bytes.data(),
                        blob.bytes.size(), SQLITE_STATIC);
  }

  absl::StatusOr<bool> Step() override {
    const int code = sqlite3_step(statement_.get());
    if (code == SQLITE_ROW) return true;
    if (code == SQLITE_DONE) return false;
    return ErrorOf(sqlite3_db_handle(statement_.get()), code);
  }
  absl::Status Run() override {
    const absl::Status status = Step().status();
    Reset();
    return status;
  }
  void Reset() override { sqlite3_reset(statement_.get()); }

  int64_t Int(int column) const override {
    return sqlite3_column_int64(statement_.get(), column);
  }
  absl::string_view Bytes(int column) const override {
    // First the pointer: asking for it may convert, and change the size.
    const void* data = sqlite3_column_blob(statement_.get(), column);
    const int size = sqlite3_column_bytes(statement_.get(), column);
    return {static_cast<const char*>(data), static_cast<size_t>(size)};
  }

 private:
  struct Finalize {
    void operator()(sqlite3_stmt* statement) const {
      sqlite3_finalize(statement);
    }
  };
  std::unique_ptr<sqlite3_stmt, Finalize> statement_;
};

class SqliteDatabase : public Database {
 public:
  explicit SqliteDatabase(sqlite3* db) : db_(db) {}

  absl::Status Execute(const char* sql) override {
    const int code = sqlite3_exec(db_.get(), sql, nullptr, nullptr, nullptr);
    return code == SQLITE_OK ? absl::OkStatus() : ErrorOf(db_.get(), code);
  }

  absl::StatusOr<Statement> Prepare(absl::string_view sql) override {
    sqlite3_stmt* statement = nullptr;
    const int code =
        sqlite3_prepare_v2(db_.get(), sql.data(), static_cast<int>(sql.size()),
                           &statement, nullptr);
    // Our statements are right: it is the tables that are not ours.
    if (code == SQLITE_ERROR) {
      return absl::DataLossError(
          absl::StrCat("index: ", sqlite3_errmsg(db_.get())));
    }
    if (code != SQLITE_OK) return ErrorOf(db_.get(), code);
    return Statement(std::make_unique<SqliteStatement>(statement));
  }

  const char* begin_writing() const override { return "BEGIN IMMEDIATE"; }
  const char* begin_reading() const override { return "BEGIN"; }

 private:
  struct Close {
    void operator()(sqlite3* db) const { sqlite3_close_v2(db); }
  };
  std::unique_ptr<sqlite3, Close> db_;
};

}  // namespace

absl::StatusOr<std::shared_ptr<Database>> OpenSqlite(const std::string& name,
                                                     int flags) {
  sqlite3* raw = nullptr;
  const int code = sqlite3_open_v2(name.c_str(), &raw, flags, nullptr);
  auto db = std::make_shared<SqliteDatabase>(raw);
  if (code != SQLITE_OK) return ErrorOf(raw, code);
  sqlite3_busy_timeout(raw, kBusyTimeoutMs);
  return db;
}

}  // namespace optrail::tracker

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

}  // namespace

void Statement::Bind(int index, int64_t value) {
  sqlite3_bind_int64(statement_.get(), index, value);
}

void Statement::Bind(int index, std::nullptr_t) {
  sqlite3_bind_null(statement_.get(), index);
}

void Statement::Bind(int index, absl::string_view text) {
  // A null pointer would bind NULL, not the empty text.
  const char* data = text.data() == nullptr ? "" : text.data();
  sqlite3_bind_text64(statement_.get(), index, data, text.size(), SQLITE_STATIC,
                      SQLITE_UTF8);
}

void Statement::Bind(int index, Blob blob) {
  sqlite3_bind_blob64(statement_.get(), index, blob.bytes.data(),
                      blob.bytes.size(), SQLITE_STATIC);
}

absl::StatusOr<bool> Statement::Step() {
  const int code = sqlite3_step(statement_.get());
  if (code == SQLITE_ROW) return true;
  if (code == SQLITE_DONE) return false;
  return ErrorOf(sqlite3_db_handle(statement_.get()), code);
}

absl::Status Statement::Run() {
  const absl::Status status = Step().status();
  Reset();
  return status;
}

void Statement::Reset() { sqlite3_reset(statement_.get()); }

int64_t Statement::Int(int column) const {
  return sqlite3_column_int64(statement_.get(), column);
}

absl::string_view Statement::Bytes(int column) const {
  // First the pointer: asking for it may convert, and change the size.
  const void* data = sqlite3_column_blob(statement_.get(), column);
  const int size = sqlite3_column_bytes(statement_.get(), column);
  return {static_cast<const char*>(data), static_cast<size_t>(size)};
}

absl::StatusOr<Database> Database::Open(const std::string& name, int flags) {
  sqlite3* raw = nullptr;
  const int code = sqlite3_open_v2(name.c_str(), &raw, flags, nullptr);
  Database db(raw);
  if (code != SQLITE_OK) return ErrorOf(raw, code);
  sqlite3_busy_timeout(raw, kBusyTimeoutMs);
  return db;
}

absl::Status Database::Execute(const char* sql) {
  const int code = sqlite3_exec(db_.get(), sql, nullptr, nullptr, nullptr);
  return code == SQLITE_OK ? absl::OkStatus() : ErrorOf(db_.get(), code);
}

absl::StatusOr<Statement> Database::Prepare(absl::string_view sql) {
  sqlite3_stmt* statement = nullptr;
  const int code = sqlite3_prepare_v2(
      db_.get(), sql.data(), static_cast<int>(sql.size()), &statement, nullptr);
  // Our statements are right: it is the tables that are not ours.
  if (code == SQLITE_ERROR) {
    return absl::DataLossError(
        absl::StrCat("index: ", sqlite3_errmsg(db_.get())));
  }
  if (code != SQLITE_OK) return ErrorOf(db_.get(), code);
  return Statement(statement);
}

int64_t Database::last_insert_rowid() const {
  return sqlite3_last_insert_rowid(db_.get());
}

Transaction::~Transaction() {
  if (open_) (void)db_.Execute("ROLLBACK");
}

absl::Status Transaction::Begin(const char* sql) {
  const absl::Status status = db_.Execute(sql);
  open_ = status.ok();
  return status;
}

absl::Status Transaction::Commit() {
  const absl::Status status = db_.Execute("COMMIT");
  if (status.ok()) open_ = false;
  return status;
}

}  // namespace optrail::tracker

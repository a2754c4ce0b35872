#include "tracker/history/postgres/postgres.h"

#include <dlfcn.h>

#include <cstring>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/status_macros.h"
#include "tracker/history/store_url.h"

namespace optrail::tracker {
namespace {

// Rows wait until so many bytes are together.
constexpr size_t kMostCopied = 4 << 20;
// https://www.postgresql.org/docs/15/sql-copy.html, "Binary Format".
constexpr char kCopyHeader[] = "PGCOPY\n\377\r\n\0\0\0\0\0\0\0\0\0";

// Any number that nothing else in a database takes.
constexpr char kBeginWriting[] =
    "BEGIN; SELECT pg_advisory_xact_lock(7310577365311121);";

#define OPTRAIL_LIBPQ_FUNCTIONS(F) \
  F(PQconnectdbParams)             \
  F(PQfinish)                      \
  F(PQstatus)                      \
  F(PQerrorMessage)                \
  F(PQuser)                        \
  F(PQexec)                        \
  F(PQexecParams)                  \
  F(PQprepare)                     \
  F(PQexecPrepared)                \
  F(PQputCopyData)                 \
  F(PQputCopyEnd)                  \
  F(PQgetResult)                   \
  F(PQresultStatus)                \
  F(PQresultErrorField)            \
  F(PQclear)                       \
  F(PQntuples)                     \
  F(PQnfields)                     \
  F(PQgetvalue)                    \
  F(PQgetlength)                   \
  F(PQgetisnull)                   \
  F(PQsetNoticeProcessor)

struct Libpq {
#define OPTRAIL_MEMBER(name) decltype(&::name) name = nullptr;
  OPTRAIL_LIBPQ_FUNCTIONS(OPTRAIL_MEMBER)
#undef OPTRAIL_MEMBER
};

absl::StatusOr<Libpq> FindLibpq() {
  void* const library = dlopen("libpq.so.5", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    const char* const why = dlerror();
    return absl::UnimplementedError(absl::StrCat(
        "unsupported here: PostgreSQL: ", why == nullptr ? "" : why,
        "; on Debian: apt install libpq5"));
  }
  Libpq pq;
#define OPTRAIL_FIND(name)                                              \
  pq.name = reinterpret_cast<decltype(pq.name)>(dlsym(library, #name)); \
  if (pq.name == nullptr) {                                             \
    return absl::UnimplementedError(                                    \
        "unsupported here: PostgreSQL: libpq.so.5 has no " #name        \
        ", expected version 14 or later");                              \
  }
  OPTRAIL_LIBPQ_FUNCTIONS(OPTRAIL_FIND)
#undef OPTRAIL_FIND
  return pq;
}

absl::StatusOr<const Libpq*> LoadLibpq() {
  static const auto& loaded = *new absl::StatusOr<Libpq>(FindLibpq());
  if (!loaded.ok()) return loaded.status();
  return &*loaded;
}

// Once a connection was made.
const Libpq& Pq() { return **LoadLibpq(); }

struct Clear {
  void operator()(PGresult* result) const { Pq().PQclear(result); }
};
using Result = std::unique_ptr<PGresult, Clear>;

bool IsFine(const PGresult* result) {
  const ExecStatusType status = Pq().PQresultStatus(result);
  return status == PGRES_COMMAND_OK || status == PGRES_TUPLES_OK;
}

std::string OneLine(const char* text) {
  std::string line(absl::StripAsciiWhitespace(text == nullptr ? "" : text));
  for (char& c : line) {
    if (c == '\n' || c == '\t') c = ' ';
  }
  return line;
}

// `?` and `?1` as `$1`, `$2`. Our statements hold no question mark besides.
std::string WithDollars(absl::string_view sql) {
  std::string text;
  int next = 0;
  for (size_t i = 0; i < sql.size(); ++i) {
    if (sql[i] != '?') {
      text.push_back(sql[i]);
    } else if (i + 1 < sql.size() &&
               absl::ascii_isdigit(static_cast<unsigned char>(sql[i + 1]))) {
      text.push_back('$');
    } else {
      absl::StrAppend(&text, "$", ++next);
    }
  }
  return text;
}

}  // namespace

class Postgres::PreparedStatement : public Statement::Engine {
 public:
  PreparedStatement(Postgres* db, std::string name)
      : db_(db), name_(std::move(name)) {}

  void Bind(int index, int64_t value) override {
    Set(index, 0, absl::StrCat(value));
  }
  void Bind(int index, double value) override {
    Set(index, 0, absl::StrFormat("%.17g", value));
  }
  void Bind(int index, std::nullptr_t) override { At(index) = Parameter(); }
  void Bind(int index, absl::string_view text) override {
    Set(index, 1, std::string(text));
  }
  void Bind(int index, Blob blob) override {
    Set(index, 1, std::string(blob.bytes));
  }

  // The first step fetches all rows.
  absl::StatusOr<bool> Step() override {
    if (result_ == nullptr) {
      OPTRAIL_RETURN_IF_ERROR(db_->Settle());
      std::vector<const char*> values;
      std::vector<int> lengths, formats;
      Fill(parameters_, &values, &lengths, &formats);
      result_.reset(Pq().PQexecPrepared(
          db_->connection_, name_.c_str(), static_cast<int>(values.size()),
          values.data(), lengths.data(), formats.data(), /*resultFormat=*/1));
      row_ = -1;
      if (!IsFine(result_.get())) {
        const absl::Status error = db_->ErrorOf(result_.get());
        result_.reset();
        return error;
      }
    }
    return ++row_ < Pq().PQntuples(result_.get());
  }

  absl::Status Run() override {
    OPTRAIL_RETURN_IF_ERROR(Step().status());
    result_.reset();
    return absl::OkStatus();
  }

  void Reset() override { result_.reset(); }

  // Integers come as two, four or eight bytes, the highest first.
  int64_t Int(int column) const override {
    const absl::string_view bytes = Bytes(column);
    uint64_t value = 0;
    for (const char c : bytes) value = value << 8 | static_cast<uint8_t>(c);
    if (bytes.size() == 4) return static_cast<int32_t>(value);
    if (bytes.size() == 2) return static_cast<int16_t>(value);
    return static_cast<int64_t>(value);
  }
  absl::string_view Bytes(int column) const override {
    return {Pq().PQgetvalue(result_.get(), row_, column),
            static_cast<size_t>(Pq().PQgetlength(result_.get(), row_, column))};
  }

  static void Fill(const std::vector<Parameter>& parameters,
                   std::vector<const char*>* values, std::vector<int>* lengths,
                   std::vector<int>* formats) {
    for (const Parameter& parameter : parameters) {
      values->push_back(parameter.is_null ? nullptr : parameter.bytes.c_str());
      lengths->push_back(static_cast<int>(parameter.bytes.size()));
      formats->push_back(parameter.format);
    }
  }

 private:
  Parameter& At(int index) {
    if (parameters_.size() < static_cast<size_t>(index)) {
      parameters_.resize(index);
    }
    return parameters_[index - 1];
  }
  void Set(int index, int format, std::string bytes) {
    At(index) = {/*is_null=*/false, format, std::move(bytes)};
  }

  Postgres* db_;
  std::string name_;
  std::vector<Parameter> parameters_;
  Result result_;
  int row_ = -1;
};

// Each Run is a row of a COPY, which is sent when something else is.
class Postgres::CopyStatement : public Statement::Engine {
 public:
  CopyStatement(Postgres* db, std::string begin)
      : db_(db), begin_(std::move(begin)) {}

  void Bind(int index, int64_t value) override {
    std::string& field = Clear(index);
    Append(8, 4, field);
    Append(static_cast<uint64_t>(value), 8, field);
  }
  void Bind(int index, double value) override {
    uint64_t bits = 0;
    std::memcpy(&bits, &value, sizeof(bits));
    std::string& field = Clear(index);
    Append(8, 4, field);
    Append(bits, 8, field);
  }
  void Bind(int index, std::nullptr_t) override {
    Append(~uint64_t{0}, 4, Clear(index));
  }
  void Bind(int index, absl::string_view text) override {
    std::string& field = Clear(index);
    Append(text.size(), 4, field);
    field.append(text.data(), text.size());
  }
  void Bind(int index, Blob blob) override { Bind(index, blob.bytes); }

  absl::StatusOr<bool> Step() override {
    OPTRAIL_RETURN_IF_ERROR(Run());
    return false;
  }
  absl::Status Run() override {
    std::string& rows = db_->copies_[begin_];
    if (rows.empty()) rows.assign(kCopyHeader, sizeof(kCopyHeader) - 1);
    Append(fields_.size(), 2, rows);
    for (const std::string& field : fields_) rows += field;
    return rows.size() < kMostCopied ? absl::OkStatus() : db_->Settle();
  }
  void Reset() override {}
  int64_t Int(int) const override { return 0; }
  absl::string_view Bytes(int) const override { return ""; }

 private:
  // The highest byte first.
  static void Append(uint64_t value, int bytes, std::string& text) {
    char big_endian[8];
    for (int i = 0; i < bytes; ++i) {
      big_endian[i] = static_cast<char>(value >> (8 * (bytes - 1 - i)));
    }
    text.append(big_endian, static_cast<size_t>(bytes));
  }
  // Fields keep their memory from row to row.
  std::string& Clear(int index) {
    if (fields_.size() < static_cast<size_t>(index)) fields_.resize(index);
    fields_[index - 1].clear();
    return fields_[index - 1];
  }

  Postgres* db_;
  std::string begin_;
  std::vector<std::string> fields_;  // each with its length before it
};

absl::StatusOr<std::shared_ptr<Postgres>> Postgres::Connect(
    absl::string_view url) {
  OPTRAIL_RETURN_IF_ERROR(CheckStoreUrl(url));
  OPTRAIL_ASSIGN_OR_RETURN(const Libpq* const pq, LoadLibpq());
  const std::string text(url);
  // What the URL says wins over what stands before it.
  const char* const keys[] = {"connect_timeout",
                              "keepalives_idle",
                              "keepalives_interval",
                              "tcp_user_timeout",
                              "application_name",
                              "dbname",
                              nullptr};
  const char* const values[] = {"10",      "30",         "10",   "30000",
                                "optrail", text.c_str(), nullptr};
  std::shared_ptr<Postgres> db(new Postgres(
      pq->PQconnectdbParams(keys, values, /*expand_dbname=*/1), ShownUrl(url)));
  if (pq->PQstatus(db->connection_) == CONNECTION_OK) {
    // Notices ("already exists, skipping") are no news.
    pq->PQsetNoticeProcessor(
        db->connection_, [](void*, const char*) {}, nullptr);
    return db;
  }
  const std::string why = OneLine(pq->PQerrorMessage(db->connection_));
  for (const char* refusal : {"authentication failed", "no password supplied",
                              "role \"", "no pg_hba.conf entry"}) {
    if (!absl::StrContains(why, refusal)) continue;
    return absl::UnauthenticatedError(
        absl::StrCat(db->name_, ": ", why,
                     "; next: check the user, ~/.pgpass and pg_hba.conf"));
  }
  if (absl::StrContains(why, "invalid") && absl::StrContains(why, "URI")) {
    return absl::InvalidArgumentError(absl::StrCat(
        db->name_, ": ", why,
        "; expected postgresql://user@host:5432/database?sslmode=verify-full"));
  }
  return absl::UnavailableError(
      absl::StrCat(db->name_, ": ", why,
                   "; next: check that the server runs and the address is "
                   "right"));
}

Postgres::~Postgres() { Pq().PQfinish(connection_); }

std::string Postgres::user() const { return Pq().PQuser(connection_); }

absl::Status Postgres::ErrorOf(const PGresult* result) const {
  const char* const field =
      result == nullptr ? nullptr
                        : Pq().PQresultErrorField(result, PG_DIAG_SQLSTATE);
  const absl::string_view code = field == nullptr ? "" : field;
  const char* const primary =
      result == nullptr
          ? nullptr
          : Pq().PQresultErrorField(result, PG_DIAG_MESSAGE_PRIMARY);
  const std::string message = absl::StrCat(
      name_, ": ",
      OneLine(primary != nullptr ? primary : Pq().PQerrorMessage(connection_)));
  if (Pq().PQstatus(connection_) != CONNECTION_OK || code.empty() ||
      absl::StartsWith(code, "08") || absl::StartsWith(code, "57P")) {
    return absl::UnavailableError(message);
  }
  if (code == "42501") {
    return absl::PermissionDeniedError(
        absl::StrCat(message, " (as ", user(),
                     "); next: ask for a role: docs/reference/fleet.md#roles"));
  }
  if (code == "3F000" || code == "42P01" || code == "42703") {
    return absl::FailedPreconditionError(
        absl::StrCat(message,
                     ": it holds no history of this version; next: "
                     "optrail history init --history=",
                     name_));
  }
  if (code == "23505") return absl::AlreadyExistsError(message);
  if (code == "25006") return absl::PermissionDeniedError(message);
  if (code == "53100") {
    return absl::ResourceExhaustedError(
        absl::StrCat(message, "; next: make room on the disk of the database"));
  }
  if (code == "53200") {
    return absl::ResourceExhaustedError(absl::StrCat(
        message, "; next: make room in the memory of the database's machine"));
  }
  if (code == "40001" || code == "40P01" || code == "55P03") {
    return absl::AbortedError(message);
  }
  if (absl::StartsWith(code, "22") || absl::StartsWith(code, "23")) {
    return absl::InvalidArgumentError(message);
  }
  return absl::InternalError(absl::StrCat(message, " (SQLSTATE ", code, ")"));
}

absl::Status Postgres::Settle() {
  std::map<std::string, std::string> copies;
  copies.swap(copies_);
  for (auto& [begin, rows] : copies) {
    const Result started(Pq().PQexec(connection_, begin.c_str()));
    if (Pq().PQresultStatus(started.get()) != PGRES_COPY_IN) {
      return ErrorOf(started.get());
    }
    rows.append("\xff\xff", 2);  // the end
    if (Pq().PQputCopyData(connection_, rows.data(),
                           static_cast<int>(rows.size())) != 1 ||
        Pq().PQputCopyEnd(connection_, nullptr) != 1) {
      return ErrorOf(nullptr);
    }
    absl::Status ended;
    while (Result result{Pq().PQgetResult(connection_)}) {
      if (ended.ok() && !IsFine(result.get())) ended = ErrorOf(result.get());
    }
    OPTRAIL_RETURN_IF_ERROR(ended);
  }
  return absl::OkStatus();
}

absl::Status Postgres::Execute(const char* sql) {
  if (absl::string_view(sql) == "ROLLBACK") copies_.clear();
  OPTRAIL_RETURN_IF_ERROR(Settle());
  const Result result(Pq().PQexec(connection_, sql));
  return IsFine(result.get()) ? absl::OkStatus() : ErrorOf(result.get());
}

absl::StatusOr<Statement> Postgres::Prepare(absl::string_view sql) {
  OPTRAIL_RETURN_IF_ERROR(Settle());
  std::string name = absl::StrCat("optrail_", ++prepared_);
  const Result result(Pq().PQprepare(connection_, name.c_str(),
                                     WithDollars(sql).c_str(), 0, nullptr));
  if (!IsFine(result.get())) return ErrorOf(result.get());
  return Statement(std::make_unique<PreparedStatement>(this, std::move(name)));
}

absl::StatusOr<Statement> Postgres::PrepareInsert(absl::string_view table,
                                                  absl::string_view columns) {
  return Statement(std::make_unique<CopyStatement>(
      this, absl::StrCat("COPY ", table, " (", columns,
                         ") FROM STDIN WITH (FORMAT binary)")));
}

const char* Postgres::begin_writing() const { return kBeginWriting; }

const char* Postgres::begin_reading() const {
  return "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY";
}

absl::StatusOr<std::vector<Postgres::Row>> Postgres::Query(
    const std::string& sql, const std::vector<Value>& parameters) {
  OPTRAIL_RETURN_IF_ERROR(Settle());
  std::vector<const char*> values;
  for (const Value& parameter : parameters) {
    values.push_back(parameter.has_value() ? parameter->c_str() : nullptr);
  }
  const Result result(Pq().PQexecParams(
      connection_, sql.c_str(), static_cast<int>(values.size()), nullptr,
      values.data(), nullptr, nullptr, /*resultFormat=*/0));
  if (!IsFine(result.get())) return ErrorOf(result.get());
  std::vector<Row> rows(Pq().PQntuples(result.get()));
  for (size_t i = 0; i < rows.size(); ++i) {
    for (int column = 0; column < Pq().PQnfields(result.get()); ++column) {
      const int row = static_cast<int>(i);
      if (Pq().PQgetisnull(result.get(), row, column)) {
        rows[i].push_back(absl::nullopt);
      } else {
        rows[i].push_back(std::string(
            Pq().PQgetvalue(result.get(), row, column),
            static_cast<size_t>(Pq().PQgetlength(result.get(), row, column))));
      }
    }
  }
  return rows;
}

}  // namespace optrail::tracker

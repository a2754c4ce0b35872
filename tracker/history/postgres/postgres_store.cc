#include "tracker/history/postgres/postgres_store.h"

#include <algorithm>
#include <mutex>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/types/optional.h"
#include "base/file/file.h"
#include "base/status_macros.h"
#include "tracker/history/index/index_writer.h"
#include "tracker/history/postgres/schema.h"
#include "tracker/history/record.h"
#include "tracker/history/store_url.h"

namespace optrail::tracker {
namespace {

constexpr char kLockImports[] = "SELECT pg_advisory_lock(7310577365311122)";

absl::StatusOr<std::shared_ptr<Postgres>> ConnectToHistory(
    const std::string& url) {
  OPTRAIL_ASSIGN_OR_RETURN(auto db, Postgres::Connect(url));
  OPTRAIL_RETURN_IF_ERROR(UseHistorySchema(*db));
  return db;
}

// One connection and what was prepared on it.
struct Session {
  static absl::StatusOr<std::unique_ptr<Session>> Open(const std::string& url) {
    auto session = std::make_unique<Session>();
    OPTRAIL_ASSIGN_OR_RETURN(session->db, ConnectToHistory(url));
    const std::pair<absl::optional<Statement>*, const char*> statements[] = {
        {&session->list,
         "SELECT id, octet_length(bytes)::bigint FROM records "
         "WHERE folder = ? ORDER BY id"},
        {&session->read,
         "SELECT bytes FROM records WHERE folder = ? AND id = ?"},
        {&session->has, "SELECT FROM records WHERE folder = ? AND id = ?"},
        {&session->put,
         "INSERT INTO records (folder, id, bytes) VALUES (?, ?, ?) "
         "ON CONFLICT DO NOTHING RETURNING 1"},
    };
    for (const auto& [statement, sql] : statements) {
      OPTRAIL_ASSIGN_OR_RETURN(*statement, session->db->Prepare(sql));
    }
    return session;
  }

  std::shared_ptr<Postgres> db;
  absl::optional<Statement> list, read, has, put;
  // Remembers rows of series; forgotten with a transaction that failed, and
  // where somebody else has built the index anew since.
  absl::optional<IndexWriter> writer;
};

// The name of a record within a store.
struct Key {
  std::string folder;
  std::string id;
  std::string path;  // below the store, as the index knows it
};

class PostgresStore : public RecordStore {
 public:
  explicit PostgresStore(const std::string& url)
      : RecordStore(ShownUrl(url)), url_(url) {}

  absl::StatusOr<RecordFiles> List(absl::string_view folder) const override {
    return With<RecordFiles>(
        [&](Session& session) -> absl::StatusOr<RecordFiles> {
          RecordFiles found;
          session.list->Reset();
          session.list->With(folder);
          while (true) {
            OPTRAIL_ASSIGN_OR_RETURN(const bool more, session.list->Step());
            if (!more) break;
            RecordFile file;
            OPTRAIL_ASSIGN_OR_RETURN(
                file.path, PlaceOf(dir(), folder, session.list->Bytes(0)));
            file.info.is_regular = true;
            file.info.size_bytes = session.list->Int(1);
            found.files.push_back(std::move(file));
          }
          session.list->Reset();
          return found;
        });
  }

  absl::StatusOr<std::string> Read(const std::string& place) const override {
    OPTRAIL_ASSIGN_OR_RETURN(const Key key, KeyOf(place));
    return With<std::string>(
        [&](Session& session) -> absl::StatusOr<std::string> {
          return ReadIn(session, key, place);
        });
  }

  absl::StatusOr<bool> Has(const std::string& place) const override {
    OPTRAIL_ASSIGN_OR_RETURN(const Key key, KeyOf(place));
    return With<bool>([&](Session& session) -> absl::StatusOr<bool> {
      session.has->Reset();
      return session.has->With(key.folder, key.id).Step();
    });
  }

  absl::Status Put(const std::string& place,
                   const std::string& bytes) const override {
    OPTRAIL_ASSIGN_OR_RETURN(const Key key, KeyOf(place));
    bool sent_before = false;
    return With<bool>([&](Session& session) -> absl::StatusOr<bool> {
             const absl::Status put = PutIn(session, key, bytes);
             if (absl::IsAlreadyExists(put) && sent_before) {
               OPTRAIL_ASSIGN_OR_RETURN(const std::string present,
                                        ReadIn(session, key, place));
               if (present == bytes) return true;
             }
             sent_before = true;
             if (!put.ok()) return put;
             return true;
           })
        .status();
  }

  absl::Status PutAll(
      const std::vector<PlacedRecord>& records,
      const std::function<absl::Status(Postgres&)>& also) const {
    const bool writes_index = std::any_of(
        records.begin(), records.end(),
        [](const PlacedRecord& record) { return record.folder == "runs"; });
    return With<bool>([&](Session& session) -> absl::StatusOr<bool> {
             OPTRAIL_RETURN_IF_ERROR(InTransaction(
                 session, writes_index ? session.db->begin_writing() : "BEGIN",
                 [&] { return PutAllIn(session, records, also); }));
             return true;
           })
        .status();
  }

  absl::Status Replace(const std::string& place,
                       const std::string& bytes) const override {
    return Change(place,
                  "UPDATE records SET bytes = ?3 WHERE folder = ?1 AND "
                  "id = ?2 RETURNING 1",
                  &bytes, nullptr);
  }

  absl::Status Remove(const std::string& place) const override {
    return Change(place,
                  "DELETE FROM records WHERE folder = ?1 AND id = ?2 "
                  "RETURNING 1",
                  nullptr, nullptr);
  }

  absl::StatusOr<std::string> MoveToQuarantine(
      const std::string& place, absl::string_view reason) const override {
    OPTRAIL_ASSIGN_OR_RETURN(const Key key, KeyOf(place));
    const std::string why(reason);
    OPTRAIL_RETURN_IF_ERROR(
        Change(place,
               "WITH moved AS (DELETE FROM records WHERE folder = ?1 AND "
               "id = ?2 RETURNING folder, id, bytes) "
               "INSERT INTO quarantine (folder, id, bytes, reason) "
               "SELECT folder, id, bytes, ?3 FROM moved RETURNING 1",
               nullptr, &why));
    return JoinPath(dir(), "quarantine", key.path);
  }

  absl::Status CheckIsWritable() const override {
    OPTRAIL_ASSIGN_OR_RETURN(const auto db, ConnectToHistory(url_));
    OPTRAIL_ASSIGN_OR_RETURN(
        const auto rows,
        db->Query("SELECT has_table_privilege('optrail.records', 'INSERT')",
                  {}));
    if (!rows.empty() && rows[0][0] == "t") return absl::OkStatus();
    return absl::PermissionDeniedError(absl::StrCat(
        dir(), ": ", db->user(),
        " may not record here; next: GRANT optrail_recorder TO ", db->user()));
  }

  absl::StatusOr<std::shared_ptr<void>> Lock() const override {
    OPTRAIL_ASSIGN_OR_RETURN(auto db, ConnectToHistory(url_));
    OPTRAIL_RETURN_IF_ERROR(db->Execute(kLockImports));
    return std::shared_ptr<void>(db);
  }

  absl::StatusOr<std::shared_ptr<Database>> OpenIndex() const override {
    OPTRAIL_ASSIGN_OR_RETURN(auto db, ConnectToHistory(url_));
    return std::shared_ptr<Database>(db);
  }

  absl::Status RebuildIndex() const override {
    OPTRAIL_ASSIGN_OR_RETURN(const RecordFiles files, List("runs"));
    return With<bool>([&](Session& session) -> absl::StatusOr<bool> {
             return RebuildIn(session, files);
           })
        .status();
  }

 private:
  absl::StatusOr<Key> KeyOf(const std::string& place) const {
    Key key;
    const std::string prefix = absl::StrCat(dir(), "/");
    if (absl::StartsWith(place, prefix)) {
      key.path = place.substr(prefix.size());
      key.folder = key.path.substr(0, key.path.find('/'));
      const size_t name = key.path.rfind('/') + 1;
      key.id = key.path.substr(name, key.path.rfind('.') - name);
      const auto expected = PlaceOf(dir(), key.folder, key.id);
      if (expected.ok() && *expected == place) return key;
    }
    return absl::InvalidArgumentError(
        absl::StrCat(place, ": expected the place of a record in ", dir()));
  }

  // Calls `act`, and once more over a new connection where the first broke.
  template <typename Answer, typename Act>
  absl::StatusOr<Answer> With(const Act& act) const {
    const std::lock_guard<std::mutex> lock(mutex_);
    absl::StatusOr<Answer> answer = absl::UnknownError("");
    for (int attempt = 0; attempt < 2; ++attempt) {
      if (session_ == nullptr) {
        OPTRAIL_ASSIGN_OR_RETURN(session_, Session::Open(url_));
      }
      answer = act(*session_);
      if (!absl::IsUnavailable(answer.status())) break;
      session_.reset();
    }
    return answer;
  }

  static absl::StatusOr<std::string> ReadIn(Session& session, const Key& key,
                                            const std::string& place) {
    session.read->Reset();
    OPTRAIL_ASSIGN_OR_RETURN(const bool found,
                             session.read->With(key.folder, key.id).Step());
    if (!found) {
      return absl::NotFoundError(
          absl::StrCat("reading ", place, ": there is no such record"));
    }
    std::string bytes(session.read->Bytes(0));
    session.read->Reset();
    return bytes;
  }

  static absl::Status AddToIndex(Session& session, const Key& key,
                                 const std::string& bytes) {
    proto::Run run;
    OPTRAIL_RETURN_IF_ERROR(DecodeRecord(bytes, &run));
    if (!session.writer.has_value()) {
      OPTRAIL_ASSIGN_OR_RETURN(session.writer,
                               IndexWriter::Create(*session.db, nullptr));
    }
    return session.writer->AddRun(key.path, std::move(run));
  }

  static absl::Status ForgetGoneRows(Session& session) {
    if (!session.writer.has_value()) return absl::OkStatus();
    OPTRAIL_ASSIGN_OR_RETURN(const bool is_current,
                             session.writer->IsCurrent());
    if (!is_current) session.writer.reset();
    return absl::OkStatus();
  }

  // Runs `act` in a transaction; where that fails, what the writer remembers
  // may not be there.
  template <typename Act>
  static absl::Status InTransaction(Session& session, const Act& act) {
    return InTransaction(session, session.db->begin_writing(), act);
  }
  // `begin` may let others write at the same time where the index stays as it
  // is.
  template <typename Act>
  static absl::Status InTransaction(Session& session, const char* begin,
                                    const Act& act) {
    Transaction transaction(*session.db);
    absl::Status status = transaction.Begin(begin);
    if (status.ok()) status = ForgetGoneRows(session);
    if (status.ok()) status = act();
    if (status.ok()) status = transaction.Commit();
    if (!status.ok()) session.writer.reset();
    return status;
  }

  static absl::Status Insert(Session& session, const Key& key,
                             const std::string& bytes) {
    session.put->Reset();
    OPTRAIL_ASSIGN_OR_RETURN(
        const bool added,
        session.put->With(key.folder, key.id, Blob{bytes}).Step());
    session.put->Reset();
    if (!added) {
      return absl::AlreadyExistsError(
          absl::StrCat(key.path, ": this id is taken"));
    }
    return key.folder == "runs" ? AddToIndex(session, key, bytes)
                                : absl::OkStatus();
  }

  static absl::Status PutIn(Session& session, const Key& key,
                            const std::string& bytes) {
    if (key.folder != "runs") return Insert(session, key, bytes);
    return InTransaction(session, [&] { return Insert(session, key, bytes); });
  }

  absl::Status PutAllIn(
      Session& session, const std::vector<PlacedRecord>& records,
      const std::function<absl::Status(Postgres&)>& also) const {
    OPTRAIL_RETURN_IF_ERROR(also(*session.db));
    for (const PlacedRecord& record : records) {
      OPTRAIL_ASSIGN_OR_RETURN(const std::string place,
                               PlaceOf(dir(), record.folder, record.id));
      OPTRAIL_ASSIGN_OR_RETURN(const Key key, KeyOf(place));
      const absl::Status put = Insert(session, key, record.bytes);
      if (!put.ok() && !absl::IsAlreadyExists(put)) return put;
    }
    return absl::OkStatus();
  }

  // Runs `sql`, with a record's folder and id and one more value, if there is
  // one; the index follows.
  absl::Status Change(const std::string& place, const char* sql,
                      const std::string* bytes, const std::string* text) const {
    OPTRAIL_ASSIGN_OR_RETURN(const Key key, KeyOf(place));
    const auto act = [&](Session& session) -> absl::Status {
      OPTRAIL_ASSIGN_OR_RETURN(Statement change, session.db->Prepare(sql));
      change.With(key.folder, key.id);
      if (bytes != nullptr) change.With(key.folder, key.id, Blob{*bytes});
      if (text != nullptr) change.With(key.folder, key.id, *text);
      OPTRAIL_ASSIGN_OR_RETURN(const bool found, change.Step());
      if (!found) {
        return absl::NotFoundError(
            absl::StrCat(place, ": there is no such record"));
      }
      if (key.folder != "runs") return absl::OkStatus();
      for (const char* forget : {"DELETE FROM observations WHERE run = "
                                 "(SELECT run FROM runs WHERE path = $1)",
                                 "DELETE FROM runs WHERE path = $1"}) {
        OPTRAIL_RETURN_IF_ERROR(session.db->Query(forget, {key.path}).status());
      }
      return bytes == nullptr ? absl::OkStatus()
                              : AddToIndex(session, key, *bytes);
    };
    return With<bool>([&](Session& session) -> absl::StatusOr<bool> {
             OPTRAIL_RETURN_IF_ERROR(
                 InTransaction(session, [&] { return act(session); }));
             return true;
           })
        .status();
  }

  absl::StatusOr<bool> RebuildIn(Session& session,
                                 const RecordFiles& files) const {
    session.writer.reset();
    OPTRAIL_RETURN_IF_ERROR(InTransaction(session, [&]() -> absl::Status {
      OPTRAIL_RETURN_IF_ERROR(
          session.db->Execute("DELETE FROM observations; DELETE FROM runs;"
                              "DELETE FROM series; DELETE FROM attributes;"
                              "DELETE FROM folds; DELETE FROM digests"));
      for (const RecordFile& file : files.files) {
        OPTRAIL_ASSIGN_OR_RETURN(const Key key, KeyOf(file.path));
        const auto bytes = ReadIn(session, key, file.path);
        if (absl::IsNotFound(bytes.status())) continue;  // removed since
        if (!bytes.ok()) return bytes.status();
        const absl::Status added = AddToIndex(session, key, *bytes);
        // A damaged record: `optrail history verify` names it.
        if (!added.ok() && !absl::IsDataLoss(added)) return added;
      }
      return absl::OkStatus();
    }));
    return true;
  }

  const std::string url_;
  mutable std::mutex mutex_;
  mutable std::unique_ptr<Session> session_;
};

const bool kIsRegistered = RegisterUrlStore(&OpenPostgresStore);

}  // namespace

absl::Status PutTogether(const RecordStore& store,
                         const std::vector<PlacedRecord>& records,
                         const std::function<absl::Status(Postgres&)>& also) {
  const auto* const shared = dynamic_cast<const PostgresStore*>(&store);
  if (shared == nullptr) {
    return absl::InvalidArgumentError(
        absl::StrCat(store.dir(), ": expected a history in PostgreSQL"));
  }
  return shared->PutAll(records, also);
}

absl::StatusOr<std::shared_ptr<const RecordStore>> OpenPostgresStore(
    absl::string_view url) {
  (void)kIsRegistered;
  const std::string text(url);
  // Better known now than at the first record.
  OPTRAIL_RETURN_IF_ERROR(ConnectToHistory(text).status());
  return std::make_shared<const PostgresStore>(text);
}

}  // namespace optrail::tracker

// Documents beside the records of a history in PostgreSQL: the table
// `documents`.

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "base/status_macros.h"
#include "tracker/history/documents.h"
#include "tracker/history/postgres/postgres.h"
#include "tracker/history/postgres/schema.h"
#include "tracker/history/store_url.h"

namespace optrail::tracker {
namespace {

class PostgresDocuments : public Documents {
 public:
  PostgresDocuments(absl::string_view url, absl::string_view folder,
                    std::shared_ptr<Postgres> db)
      : Documents(absl::StrCat(ShownUrl(url), "/", folder)),
        folder_(folder),
        db_(std::move(db)) {}

  // Optrail itself never removes a document.
  std::string HowToRemove(absl::string_view name) const override {
    const auto quoted = [](absl::string_view text) {
      return absl::StrCat("'", absl::StrReplaceAll(text, {{"'", "''"}}), "'");
    };
    return absl::StrCat(
        "let a maintainer say in psql: DELETE FROM optrail.documents WHERE "
        "folder = ",
        quoted(folder_), " AND name = ", quoted(name));
  }

  absl::StatusOr<std::vector<std::string>> List() const override {
    OPTRAIL_ASSIGN_OR_RETURN(
        Statement list,
        db_->Prepare("SELECT name FROM documents WHERE folder = ? "
                     "ORDER BY name COLLATE \"C\""));
    list.With(folder_);
    std::vector<std::string> names;
    while (true) {
      OPTRAIL_ASSIGN_OR_RETURN(const bool more, list.Step());
      if (!more) return names;
      names.emplace_back(list.Bytes(0));
    }
  }

  absl::StatusOr<std::string> Read(const std::string& name) const override {
    OPTRAIL_ASSIGN_OR_RETURN(
        Statement read,
        db_->Prepare(
            "SELECT bytes FROM documents WHERE folder = ? AND name = ?"));
    OPTRAIL_ASSIGN_OR_RETURN(const bool found, read.With(folder_, name).Step());
    if (!found) {
      return absl::NotFoundError(
          absl::StrCat("reading ", PlaceOf(name), ": there is no such file"));
    }
    return std::string(read.Bytes(0));
  }

  absl::Status Put(const std::string& name,
                   const std::string& bytes) const override {
    OPTRAIL_ASSIGN_OR_RETURN(
        Statement put,
        db_->Prepare("INSERT INTO documents (folder, name, bytes) "
                     "VALUES (?, ?, ?) ON CONFLICT DO NOTHING RETURNING 1"));
    OPTRAIL_ASSIGN_OR_RETURN(const bool added,
                             put.With(folder_, name, Blob{bytes}).Step());
    if (added) return absl::OkStatus();
    return absl::AlreadyExistsError(
        absl::StrCat(PlaceOf(name), ": this name is taken"));
  }

 private:
  const std::string folder_;
  const std::shared_ptr<Postgres> db_;
};

absl::StatusOr<std::unique_ptr<Documents>> OpenPostgresDocuments(
    absl::string_view url, absl::string_view folder) {
  OPTRAIL_ASSIGN_OR_RETURN(auto db, Postgres::Connect(url));
  OPTRAIL_RETURN_IF_ERROR(UseHistorySchema(*db));
  return std::make_unique<PostgresDocuments>(url, folder, std::move(db));
}

[[maybe_unused]] const bool kIsRegistered =
    RegisterUrlDocuments(&OpenPostgresDocuments);

}  // namespace
}  // namespace optrail::tracker

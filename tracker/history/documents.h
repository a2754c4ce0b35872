#ifndef OPTRAIL_TRACKER_HISTORY_DOCUMENTS_H_
#define OPTRAIL_TRACKER_HISTORY_DOCUMENTS_H_

// Documents keeps small files beside the records of a history, such as its
// certificates: in a folder of the history, or in PostgreSQL.
//
//   OPTRAIL_ASSIGN_OR_RETURN(
//       const auto documents,
//       OpenDocuments("postgresql://host/db", "certificates"));
//   OPTRAIL_RETURN_IF_ERROR(documents->Put("one.json", json));
//
// A document never changes. Nobody looks into it here: who keeps documents
// checks them. Methods may be called by several processes at once, and by
// several threads on objects of their own.

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace optrail::tracker {

class Documents {
 public:
  virtual ~Documents() = default;

  // Returns where people find a document: a path, or a URL without password.
  std::string PlaceOf(absl::string_view name) const;

  // What people do to be rid of a document, for the end of a message: "move it
  // out of the folder".
  virtual std::string HowToRemove(absl::string_view name) const = 0;

  // The names that are there, sorted.
  virtual absl::StatusOr<std::vector<std::string>> List() const = 0;
  // NotFound where nothing is.
  virtual absl::StatusOr<std::string> Read(const std::string& name) const = 0;
  // AlreadyExists, and nothing is changed, where the name is taken.
  virtual absl::Status Put(const std::string& name,
                           const std::string& bytes) const = 0;

 protected:
  explicit Documents(std::string place) : place_(std::move(place)) {}

 private:
  const std::string place_;
};

// `history`: the name of a history, a folder or a URL with its password if it
// has one. `folder`: which documents, such as "certificates". A folder that
// does not exist is empty, and created by the first document.
absl::StatusOr<std::unique_ptr<Documents>> OpenDocuments(
    absl::string_view history, absl::string_view folder);

// Registers the engine for URLs, once, when a program starts.
using DocumentsOpener = absl::StatusOr<std::unique_ptr<Documents>> (*)(
    absl::string_view url, absl::string_view folder);
bool RegisterUrlDocuments(DocumentsOpener opener);

}  // namespace optrail::tracker

#endif  // OPTRAIL_TRACKER_HISTORY_DOCUMENTS_H_

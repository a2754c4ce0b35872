#ifndef OPTRAIL_TRACKER_HISTORY_RECORD_STORE_H_
#define OPTRAIL_TRACKER_HISTORY_RECORD_STORE_H_

// RecordStore keeps the bytes of a history's records: in a folder of files, or
// in PostgreSQL (postgres/postgres_store.h). A record is known by its place, as
// PlaceOf (history_files.h) builds it from the store's name:
//
//   OPTRAIL_ASSIGN_OR_RETURN(const auto store, OpenRecordStore(".optrail/h"));
//   OPTRAIL_ASSIGN_OR_RETURN(const std::string place,
//                            PlaceOf(store->dir(), "runs", run_id));
//   OPTRAIL_RETURN_IF_ERROR(store->Put(place, EncodeRecord(run)));
//
// It does not look into records: history.h does, whatever the store. Methods
// may be called from several threads, and by several processes at once.

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "base/file/file_system.h"
#include "tracker/history/history_files.h"

namespace optrail::tracker {

class Database;

class RecordStore {
 public:
  virtual ~RecordStore() = default;

  // The name by which people know the history: a folder, or a URL without its
  // password. Every place begins with it.
  const std::string& dir() const { return dir_; }

  // What lies below `folder` ("runs"), by place; empty where nothing does.
  virtual absl::StatusOr<RecordFiles> List(absl::string_view folder) const = 0;
  // NotFound where nothing is.
  virtual absl::StatusOr<std::string> Read(const std::string& place) const = 0;
  // Returns whether something is there, intact or not.
  virtual absl::StatusOr<bool> Has(const std::string& place) const = 0;

  // On return with OK the record survives a power loss. AlreadyExists, and
  // nothing is changed, where the place is taken.
  virtual absl::Status Put(const std::string& place,
                           const std::string& bytes) const = 0;
  // Readers see the old record or the new one.
  virtual absl::Status Replace(const std::string& place,
                               const std::string& bytes) const = 0;
  virtual absl::Status Remove(const std::string& place) const = 0;

  // Puts a damaged record where no reader looks, and `reason` with it; its new
  // place.
  virtual absl::StatusOr<std::string> MoveToQuarantine(
      const std::string& place, absl::string_view reason) const = 0;

  // What writers that were killed left behind; harmless, never read.
  virtual std::vector<std::string> Leftovers() const { return {}; }

  // An error that says what to do where a record could not be put here.
  virtual absl::Status CheckIsWritable() const = 0;

  // Held by one process at a time, until it is destroyed; null where locks are
  // not offered. Importers take it to find what they imported before.
  virtual absl::StatusOr<std::shared_ptr<void>> Lock() const = 0;

  // The folder for an index made of the store's records; "" where it is to be
  // held in memory.
  virtual std::string index_folder() const { return ""; }

  // The database in which the store keeps an index of its runs beside them,
  // always current; null if it keeps none (index/history_index.h makes one).
  virtual absl::StatusOr<std::shared_ptr<Database>> OpenIndex() const;
  virtual absl::Status RebuildIndex() const;

 protected:
  explicit RecordStore(std::string dir) : dir_(std::move(dir)) {}

 private:
  std::string dir_;
};

// Opens the store that `name` says: a folder, or a URL whose engine this binary
// holds. A folder that does not exist is an empty store, created by the first
// record. FailedPrecondition if it is a file.
absl::StatusOr<std::shared_ptr<const RecordStore>> OpenRecordStore(
    absl::string_view name, FileSystem* fs = FileSystem::Real());

// Whether `name` is a URL and no folder.
bool IsStoreUrl(absl::string_view name);

// OK if results would find their place in the history of that name: better
// known before an hour of measuring than after it.
absl::Status CheckHistoryIsWritable(const std::string& name);

// Registers the engine for URLs, once, when a program starts.
using StoreOpener =
    absl::StatusOr<std::shared_ptr<const RecordStore>> (*)(absl::string_view);
bool RegisterUrlStore(StoreOpener opener);

}  // namespace optrail::tracker

#endif  // OPTRAIL_TRACKER_HISTORY_RECORD_STORE_H_

// Merging records that another history has beyond this one: History::MergeFrom.

#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "tracker/history/history.h"
#include "tracker/history/history_files.h"
#include "tracker/history/record_kinds.h"

namespace optrail::tracker {
namespace {

class Merger {
 public:
  Merger(const History& from, const History& to, const MergeOptions& options)
      : from_(from), to_(to), options_(options) {}

  absl::StatusOr<MergeReport> Merge() {
    // First, so that what is interrupted here never revives what is buried.
    OPTRAIL_ASSIGN_OR_RETURN(before_, to_.LoadTombstones());
    OPTRAIL_RETURN_IF_ERROR(MergeFolder<TombstonesKind>());
    OPTRAIL_ASSIGN_OR_RETURN(buried_, to_.LoadTombstones());
    OPTRAIL_RETURN_IF_ERROR(MergeFolder<RunKind>());
    OPTRAIL_RETURN_IF_ERROR(MergeFolder<SessionKind>());
    OPTRAIL_RETURN_IF_ERROR(MergeFolder<TriageKind>());
    OPTRAIL_RETURN_IF_ERROR(MergeFolder<DiagnosisKind>());
    return std::move(report_);
  }

 private:
  template <typename Kind>
  absl::Status MergeFolder() {
    OPTRAIL_ASSIGN_OR_RETURN(RecordFiles found,
                             from_.store().List(Kind::kFolder));
    for (BadFile& bad : found.bad_files) {
      report_.bad_files.push_back(std::move(bad));
    }
    for (const RecordFile& file : found.files) {
      typename Kind::Message message;
      BadFile bad;
      // The bytes themselves are copied, so that both files stay equal.
      std::string bytes;
      absl::Status status =
          ReadWhole<Kind>(from_.store(), file.path, &message, &bad, &bytes);
      if (status.ok()) {
        OPTRAIL_ASSIGN_OR_RETURN(
            const std::string target,
            PlaceOf(to_.dir(), Kind::kFolder, Kind::Id(message)));
        OPTRAIL_ASSIGN_OR_RETURN(const bool wanted,
                                 Wants(message, file.path, target));
        if (!wanted) continue;
        OPTRAIL_ASSIGN_OR_RETURN(status,
                                 Copy(Kind::Id(message), bytes, target));
        // One that differs: not damaged, but not what is here either.
        bad.damage = Damage::kMisplaced;
      }
      if (!status.ok()) {
        report_.bad_files.push_back(Named(std::move(bad), file.path, status));
      }
    }
    return absl::OkStatus();
  }

  template <typename Message>
  absl::StatusOr<bool> Wants(const Message&, const std::string&,
                             const std::string&) {
    return true;
  }

  absl::StatusOr<bool> Wants(const proto::Run& run, const std::string&,
                             const std::string&) {
    const auto tombstone = buried_.by_run.find(run.run_id());
    if (tombstone == buried_.by_run.end() ||
        tombstone->second != proto::REMOVED) {
      return true;
    }
    ++report_.buried;
    return false;
  }

  // Tombstones from elsewhere must not take away what is here unasked.
  absl::StatusOr<bool> Wants(const proto::Tombstones& tombstones,
                             const std::string& path,
                             const std::string& target) {
    if (options_.accept_removals) return true;
    OPTRAIL_ASSIGN_OR_RETURN(const bool is_here, to_.store().Has(target));
    if (is_here) return true;
    HeldBack held = {path, 0, 0, ""};
    for (const proto::Tombstone& tombstone : tombstones.tombstones()) {
      const auto known = before_.by_run.find(tombstone.run_id());
      const bool is_known =
          known != before_.by_run.end() && (known->second == proto::REMOVED ||
                                            known->second == tombstone.kind());
      if (is_known) continue;
      OPTRAIL_ASSIGN_OR_RETURN(const bool has, to_.HasRun(tombstone.run_id()));
      if (!has) continue;
      ++(tombstone.kind() == proto::REMOVED ? held.removes : held.thins);
      if (held.example.empty()) held.example = tombstone.run_id();
    }
    if (held.example.empty()) return true;
    report_.held_back.push_back(std::move(held));
    return false;
  }

  // What is wrong with the record, where it can't be copied; an error where
  // nothing can.
  absl::StatusOr<absl::Status> Copy(const std::string& id,
                                    const std::string& bytes,
                                    const std::string& target) {
    const absl::Status written = to_.store().Put(target, bytes);
    if (written.ok()) {
      ++report_.copied;
      return absl::OkStatus();
    }
    if (!absl::IsAlreadyExists(written)) return written;
    const absl::StatusOr<std::string> present = to_.store().Read(target);
    if (present.ok() && *present == bytes) {
      ++report_.already_there;
      return absl::OkStatus();
    }
    if (buried_.by_run.count(id) > 0) {
      // One of the two is thinned: this one stays as it is.
      ++report_.buried;
      return absl::OkStatus();
    }
    return absl::StatusOr<absl::Status>(
        absl::in_place, absl::AlreadyExistsError(absl::StrCat(
                            "differs from ", target, " of the same id")));
  }

  const History& from_;
  const History& to_;
  const MergeOptions options_;
  LoadedTombstones before_, buried_;
  MergeReport report_;
};

}  // namespace

absl::StatusOr<MergeReport> History::MergeFrom(
    const History& other, const MergeOptions& options) const {
  return Merger(other, *this, options).Merge();
}

}  // namespace optrail::tracker

#include "tracker/history/copy.h"

#include <map>
#include <set>

#include "absl/strings/str_cat.h"
#include "base/hash/sha256.h"
#include "base/status_macros.h"
#include "tracker/history/record_kinds.h"

namespace optrail::tracker {
namespace {

using Take = std::function<absl::Status(absl::string_view, const std::string&,
                                        const std::string&)>;

template <typename Kind>
absl::Status ForEachOf(const RecordStore& store,
                       std::vector<BadFile>* bad_files, const Take& take) {
  OPTRAIL_ASSIGN_OR_RETURN(RecordFiles found, store.List(Kind::kFolder));
  for (BadFile& bad : found.bad_files) bad_files->push_back(std::move(bad));
  for (const RecordFile& file : found.files) {
    typename Kind::Message message;
    BadFile bad;
    std::string bytes;
    const absl::Status read =
        ReadWhole<Kind>(store, file.path, &message, &bad, &bytes);
    if (!read.ok()) {
      bad_files->push_back(Named(std::move(bad), file.path, read));
      continue;
    }
    OPTRAIL_RETURN_IF_ERROR(take(Kind::kFolder, Kind::Id(message), bytes));
  }
  return absl::OkStatus();
}

// The digest of each record's bytes by its place below the history.
using Digests = std::map<std::string, std::string>;

std::string DigestOf(const Digests& digests) {
  std::string text;
  for (const auto& [place, digest] : digests) {
    absl::StrAppend(&text, place, " ", digest, "\n");
  }
  return Sha256Hex(text);
}

// Every record that is there, intact or not.
absl::StatusOr<Digests> DigestsIn(const RecordStore& store) {
  Digests digests;
  for (const absl::string_view folder :
       {TombstonesKind::kFolder, RunKind::kFolder, SessionKind::kFolder,
        TriageKind::kFolder, DiagnosisKind::kFolder}) {
    OPTRAIL_ASSIGN_OR_RETURN(const RecordFiles files, store.List(folder));
    for (const RecordFile& file : files.files) {
      OPTRAIL_ASSIGN_OR_RETURN(const std::string bytes, store.Read(file.path));
      digests[file.path.substr(store.dir().size())] = Sha256Hex(bytes);
    }
  }
  return digests;
}

}  // namespace

absl::Status ForEachRecord(const RecordStore& store,
                           std::vector<BadFile>* bad_files,
                           const std::function<absl::Status(
                               absl::string_view folder, const std::string& id,
                               const std::string& bytes)>& take) {
  // Tombstones first, as a merge copies them.
  OPTRAIL_RETURN_IF_ERROR(ForEachOf<TombstonesKind>(store, bad_files, take));
  OPTRAIL_RETURN_IF_ERROR(ForEachOf<RunKind>(store, bad_files, take));
  OPTRAIL_RETURN_IF_ERROR(ForEachOf<SessionKind>(store, bad_files, take));
  OPTRAIL_RETURN_IF_ERROR(ForEachOf<TriageKind>(store, bad_files, take));
  return ForEachOf<DiagnosisKind>(store, bad_files, take);
}

absl::StatusOr<CopyReport> CopyHistory(const History& from, const History& to) {
  CopyReport report;
  Digests here;
  OPTRAIL_RETURN_IF_ERROR(ForEachRecord(
      from.store(), &report.bad_files,
      [&](absl::string_view folder, const std::string& id,
          const std::string& bytes) -> absl::Status {
        OPTRAIL_ASSIGN_OR_RETURN(const std::string source,
                                 PlaceOf(from.dir(), folder, id));
        here[source.substr(from.dir().size())] = Sha256Hex(bytes);
        OPTRAIL_ASSIGN_OR_RETURN(const std::string target,
                                 PlaceOf(to.dir(), folder, id));
        OPTRAIL_ASSIGN_OR_RETURN(const bool is_there, to.store().Has(target));
        const absl::Status put = is_there ? absl::AlreadyExistsError("")
                                          : to.store().Put(target, bytes);
        if (!put.ok() && !absl::IsAlreadyExists(put)) return put;
        ++(put.ok() ? report.copied : report.already_there);
        return absl::OkStatus();
      }));
  OPTRAIL_ASSIGN_OR_RETURN(const Digests there, DigestsIn(to.store()));
  report.records = static_cast<int64_t>(here.size());
  std::set<std::string> places;
  for (const auto& [place, digest] : here) places.insert(place);
  for (const auto& [place, digest] : there) places.insert(place);
  for (const std::string& place : places) {
    const auto ours = here.find(place);
    const auto theirs = there.find(place);
    if (ours == here.end() || theirs == there.end() ||
        ours->second != theirs->second) {
      report.unequal.push_back(place);
    }
  }
  report.from_digest = DigestOf(here);
  report.to_digest = DigestOf(there);
  return report;
}

}  // namespace optrail::tracker

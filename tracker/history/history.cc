#include "tracker/history/history.h"

#include <algorithm>
#include <cstddef>
#include <initializer_list>
#include <iterator>
#include <limits>
#include <numeric>
#include <random>
#include <tuple>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/time.h"
#include "base/file/file.h"
#include "base/process/parallel_for.h"
#include "base/status_macros.h"
#include "tracker/history/record.h"
#include "tracker/history/record_kinds.h"

namespace optrail::tracker {
namespace {

bool HoldsRecords(absl::string_view dir) {
  return absl::c_any_of(
      std::initializer_list<absl::string_view>{
          RunKind::kFolder, SessionKind::kFolder, TriageKind::kFolder,
          DiagnosisKind::kFolder, TombstonesKind::kFolder},
      [&](absl::string_view kind) { return FileExists(JoinPath(dir, kind)); });
}

// A folder that is full of other things was mistaken for a history; an empty
// one is a history that has just begun, as is one that only git knows of
// (.gitkeep).
absl::Status CheckHoldsRecords(absl::string_view dir) {
  const absl::StatusOr<std::vector<std::string>> names =
      ListDirectory(std::string(dir));
  // History::Open says what is wrong with a folder that cannot be listed.
  if (!names.ok() || HoldsRecords(dir) ||
      absl::c_all_of(*names, [](absl::string_view name) {
        return absl::StartsWith(name, ".");
      })) {
    return absl::OkStatus();
  }
  for (const char* inside : {"history", ".optrail/history"}) {
    const std::string path = JoinPath(dir, inside);
    if (!HoldsRecords(path)) continue;
    return absl::NotFoundError(
        absl::StrCat("--history=", dir,
                     ": that folder is no history; next: --history=", path));
  }
  return absl::NotFoundError(absl::StrCat(
      "--history=", dir,
      ": that folder is no history: it holds none of runs, sessions and "
      "triage; next: look for a typing error, or fill an empty folder with "
      "optrail import --history=FOLDER FILE..."));
}

template <typename Kind>
absl::Status Append(const RecordStore& store,
                    const typename Kind::Message& message) {
  OPTRAIL_ASSIGN_OR_RETURN(const std::string bytes,
                           EncodeWhole<Kind>(store.dir(), message));
  OPTRAIL_ASSIGN_OR_RETURN(
      const std::string path,
      PlaceOf(store.dir(), Kind::kFolder, Kind::Id(message)));
  return store.Put(path, bytes);
}

template <typename Kind>
absl::StatusOr<typename Kind::Message> ReadById(const RecordStore& store,
                                                absl::string_view id) {
  OPTRAIL_ASSIGN_OR_RETURN(const std::string path,
                           PlaceOf(store.dir(), Kind::kFolder, id));
  typename Kind::Message message;
  const absl::Status status = ReadWhole<Kind>(store, path, &message);
  if (status.ok()) return message;
  return absl::Status(status.code(),
                      absl::StrCat(path, ": ", status.message()));
}

// What `read` makes of the intact files of a folder, by path; what the others
// are goes to `bad_files`.
template <typename Item, typename Read>
absl::StatusOr<std::vector<Item>> ReadFolder(const RecordStore& store,
                                             absl::string_view folder,
                                             int threads,
                                             std::vector<BadFile>* bad_files,
                                             const Read& read) {
  OPTRAIL_ASSIGN_OR_RETURN(RecordFiles found, store.List(folder));
  std::move(found.bad_files.begin(), found.bad_files.end(),
            std::back_inserter(*bad_files));
  const int count = static_cast<int>(found.files.size());
  std::vector<Item> items(found.files.size());
  std::vector<BadFile> bad(found.files.size());
  std::vector<absl::Status> statuses(found.files.size());
  ParallelFor(count, threads, [&](int i) {
    statuses[i] = read(found.files[i], &items[i], &bad[i]);
  });
  std::vector<Item> intact;
  for (int i = 0; i < count; ++i) {
    if (statuses[i].ok()) {
      intact.push_back(std::move(items[i]));
    } else {
      bad_files->push_back(
          Named(std::move(bad[i]), found.files[i].path, statuses[i]));
    }
  }
  return intact;
}

template <typename Kind>
absl::StatusOr<std::vector<typename Kind::Message>> ReadRecords(
    const RecordStore& store, int threads, std::vector<BadFile>* bad_files) {
  using Message = typename Kind::Message;
  return ReadFolder<Message>(
      store, Kind::kFolder, threads, bad_files,
      [&](const RecordFile& file, Message* message, BadFile* bad) {
        return ReadWhole<Kind>(store, file.path, message, bad);
      });
}

// The same without the records' large field.
template <typename Kind, typename Info>
absl::StatusOr<std::vector<Info>> ReadHeaders(const RecordStore& store,
                                              int large_field, int Info::*count,
                                              std::vector<BadFile>* bad_files) {
  return ReadFolder<Info>(
      store, Kind::kFolder, /*threads=*/1, bad_files,
      [&](const RecordFile& file, Info* info, BadFile* bad) -> absl::Status {
        info->path = file.path;
        OPTRAIL_ASSIGN_OR_RETURN(const std::string content,
                                 store.Read(file.path));
        bad->damage = DamageOf(content);
        OPTRAIL_RETURN_IF_ERROR(DecodeRecordWithout(
            {large_field}, content, &info->header, &(info->*count)));
        return CheckPlace<Kind>(store.dir(), file.path, info->header, bad);
      });
}

template <typename Kind>
absl::Status VerifyFolder(const RecordStore& store, int threads, int64_t* count,
                          VerifyReport* report) {
  OPTRAIL_ASSIGN_OR_RETURN(
      const std::vector<int64_t> sizes,
      ReadFolder<int64_t>(
          store, Kind::kFolder, threads, &report->bad_files,
          [&](const RecordFile& file, int64_t* size_bytes, BadFile* bad) {
            typename Kind::Message message;
            *size_bytes = file.info.size_bytes;
            return ReadWhole<Kind>(store, file.path, &message, bad);
          }));
  *count = static_cast<int64_t>(sizes.size());
  report->bytes = std::accumulate(sizes.begin(), sizes.end(), report->bytes);
  return absl::OkStatus();
}

std::tuple<int64_t, absl::string_view> TimeAndId(const proto::Run& run) {
  return {run.started_unix_ns(), run.run_id()};
}

}  // namespace

std::string NewRecordId(int64_t started_unix_ns) {
  std::random_device random;
  const uint64_t bits = (uint64_t{random()} << 32 | random()) & 0xffffffffffffu;
  return absl::StrFormat(
      "%s-%012x",
      absl::FormatTime("%Y%m%dT%H%M%SZ", absl::FromUnixNanos(started_unix_ns),
                       absl::UTCTimeZone()),
      bits);
}

void SortInSeriesOrder(std::vector<const proto::Run*>& runs) {
  const auto by_time = [](const proto::Run* a, const proto::Run* b) {
    return TimeAndId(*a) < TimeAndId(*b);
  };
  std::sort(runs.begin(), runs.end(), by_time);
  std::vector<const proto::Run*> placed, unplaced;
  for (const proto::Run* run : runs) {
    (run->commit().has_first_parent_position() ? placed : unplaced)
        .push_back(run);
  }
  std::stable_sort(placed.begin(), placed.end(),
                   [](const proto::Run* a, const proto::Run* b) {
                     return a->commit().first_parent_position() <
                            b->commit().first_parent_position();
                   });
  // A run without a position goes before the first placed run up to which time
  // has passed it; the running maximum keeps that monotone when a clock ran
  // backwards.
  runs.clear();
  size_t next = 0;
  int64_t reached_ns = std::numeric_limits<int64_t>::min();
  for (const proto::Run* run : placed) {
    reached_ns = std::max(reached_ns, run->started_unix_ns());
    while (next < unplaced.size() &&
           unplaced[next]->started_unix_ns() < reached_ns) {
      runs.push_back(unplaced[next++]);
    }
    runs.push_back(run);
  }
  runs.insert(runs.end(), unplaced.begin() + next, unplaced.end());
}

bool Matches(const RunFilter& filter, const proto::Run& run) {
  return (filter.suite.empty() || run.suite() == filter.suite) &&
         (filter.hardware_id.empty() ||
          run.hardware().id() == filter.hardware_id) &&
         (filter.branch.empty() || run.commit().branch() == filter.branch) &&
         absl::StartsWith(run.commit().id(), filter.commit_prefix) &&
         (!filter.started_from_unix_ns.has_value() ||
          run.started_unix_ns() >= *filter.started_from_unix_ns) &&
         (!filter.started_before_unix_ns.has_value() ||
          run.started_unix_ns() < *filter.started_before_unix_ns);
}

void SortInSeriesOrder(std::vector<RunInfo>& runs) {
  std::vector<const proto::Run*> order;
  std::map<const proto::Run*, size_t> index;
  for (size_t i = 0; i < runs.size(); ++i) {
    order.push_back(&runs[i].header);
    index[&runs[i].header] = i;
  }
  SortInSeriesOrder(order);
  std::vector<RunInfo> sorted;
  sorted.reserve(runs.size());
  for (const proto::Run* run : order) {
    sorted.push_back(std::move(runs[index[run]]));
  }
  runs = std::move(sorted);
}

absl::Status CheckHistoryFolder(absl::string_view dir) {
  if (IsStoreUrl(dir)) return absl::OkStatus();
  if (FileExists(std::string(dir))) return CheckHoldsRecords(dir);
  return absl::NotFoundError(absl::StrCat(
      "--history=", dir,
      ": there is no such folder; next: look for a typing error, or fill it "
      "with optrail import --history=",
      dir, " FILE..."));
}

std::string EmptyHistoryText(absl::string_view dir, absl::string_view what) {
  return absl::StrCat("there are no ", what, " in ", dir,
                      " yet; next: optrail bench --op=softmax --record, "
                      "optrail import FILE... or optrail demo");
}

absl::StatusOr<History> History::Open(absl::string_view dir, FileSystem* fs) {
  OPTRAIL_ASSIGN_OR_RETURN(auto store, OpenRecordStore(dir, fs));
  return History(std::move(store));
}

absl::Status History::AppendRun(const proto::Run& run) const {
  if (const absl::Status names = CheckRunNames(run); !names.ok()) {
    return absl::Status(names.code(), absl::StrCat("run ", run.run_id(), ": ",
                                                   names.message()));
  }
  return Append<RunKind>(*store_, run);
}

absl::Status History::AppendSession(const proto::Session& session) const {
  return Append<SessionKind>(*store_, session);
}

absl::Status History::AppendTriage(const proto::TriageRecord& record) const {
  return Append<TriageKind>(*store_, record);
}

absl::Status History::AppendDiagnosis(const proto::Diagnosis& diagnosis) const {
  return Append<DiagnosisKind>(*store_, diagnosis);
}

absl::Status History::AppendTombstones(
    const proto::Tombstones& tombstones) const {
  return Append<TombstonesKind>(*store_, tombstones);
}

absl::Status History::ReplaceRun(const proto::Run& run) const {
  OPTRAIL_ASSIGN_OR_RETURN(const std::string bytes,
                           EncodeWhole<RunKind>(dir(), run));
  OPTRAIL_ASSIGN_OR_RETURN(const std::string path,
                           PlaceOf(dir(), RunKind::kFolder, run.run_id()));
  return store_->Replace(path, bytes);
}

absl::Status History::RemoveRun(absl::string_view run_id) const {
  OPTRAIL_ASSIGN_OR_RETURN(const std::string path,
                           PlaceOf(dir(), RunKind::kFolder, run_id));
  return store_->Remove(path);
}

absl::StatusOr<bool> History::HasRun(absl::string_view run_id) const {
  const auto path = PlaceOf(dir(), RunKind::kFolder, run_id);
  if (!path.ok()) return false;
  return store_->Has(*path);
}

absl::StatusOr<LoadedTombstones> History::LoadTombstones() const {
  LoadedTombstones loaded;
  OPTRAIL_ASSIGN_OR_RETURN(
      const std::vector<proto::Tombstones> all,
      ReadRecords<TombstonesKind>(*store_, /*threads=*/1, &loaded.bad_files));
  for (const proto::Tombstones& tombstones : all) {
    for (const proto::Tombstone& tombstone : tombstones.tombstones()) {
      proto::TombstoneKind& kind = loaded.by_run[tombstone.run_id()];
      if (kind != proto::REMOVED) kind = tombstone.kind();
    }
  }
  return loaded;
}

absl::StatusOr<LoadedTriage> History::LoadTriage() const {
  LoadedTriage loaded;
  OPTRAIL_ASSIGN_OR_RETURN(
      loaded.records,
      ReadRecords<TriageKind>(*store_, /*threads=*/1, &loaded.bad_files));
  std::sort(loaded.records.begin(), loaded.records.end(),
            [](const proto::TriageRecord& a, const proto::TriageRecord& b) {
              return std::make_tuple(a.created_unix_ns(), a.record_id()) <
                     std::make_tuple(b.created_unix_ns(), b.record_id());
            });
  return loaded;
}

absl::StatusOr<LoadedDiagnoses> History::LoadDiagnoses() const {
  LoadedDiagnoses loaded;
  OPTRAIL_ASSIGN_OR_RETURN(
      loaded.diagnoses,
      ReadRecords<DiagnosisKind>(*store_, /*threads=*/1, &loaded.bad_files));
  std::sort(loaded.diagnoses.begin(), loaded.diagnoses.end(),
            [](const proto::Diagnosis& a, const proto::Diagnosis& b) {
              return std::make_tuple(a.created_unix_ns(), a.diagnosis_id()) <
                     std::make_tuple(b.created_unix_ns(), b.diagnosis_id());
            });
  return loaded;
}

absl::StatusOr<RunList> History::ListRuns(const RunFilter& filter) const {
  if (run_lister_) {
    absl::StatusOr<RunList> list = run_lister_(filter);
    if (list.ok()) return list;
  }
  RunList list;
  OPTRAIL_ASSIGN_OR_RETURN(
      list.runs, ReadHeaders<RunKind>(*store_, proto::Run::kResultsFieldNumber,
                                      &RunInfo::result_count, &list.bad_files));
  const auto unwanted = [&](const RunInfo& info) {
    return !Matches(filter, info.header);
  };
  list.runs.erase(std::remove_if(list.runs.begin(), list.runs.end(), unwanted),
                  list.runs.end());
  SortInSeriesOrder(list.runs);
  return list;
}

absl::StatusOr<SessionList> History::ListSessions() const {
  SessionList list;
  OPTRAIL_ASSIGN_OR_RETURN(
      list.sessions,
      ReadHeaders<SessionKind>(*store_, proto::Session::kTrialsFieldNumber,
                               &SessionInfo::trial_count, &list.bad_files));
  for (SessionInfo& info : list.sessions) info.header.clear_finalists();
  std::sort(list.sessions.begin(), list.sessions.end(),
            [](const SessionInfo& a, const SessionInfo& b) {
              return std::make_tuple(a.header.started_unix_ns(), a.id()) <
                     std::make_tuple(b.header.started_unix_ns(), b.id());
            });
  return list;
}

absl::StatusOr<proto::Run> History::ReadRun(absl::string_view run_id) const {
  return ReadById<RunKind>(*store_, run_id);
}

absl::StatusOr<proto::Run> History::ReadRunFile(const std::string& path) const {
  proto::Run run;
  OPTRAIL_RETURN_IF_ERROR(ReadWhole<RunKind>(*store_, path, &run));
  return run;
}

absl::StatusOr<proto::Session> History::ReadSession(
    absl::string_view session_id) const {
  return ReadById<SessionKind>(*store_, session_id);
}

absl::StatusOr<LoadedRuns> History::LoadRuns(const RunFilter& filter,
                                             int threads) const {
  LoadedRuns loaded;
  OPTRAIL_ASSIGN_OR_RETURN(
      std::vector<proto::Run> runs,
      ReadRecords<RunKind>(*store_, threads, &loaded.bad_files));
  std::vector<const proto::Run*> order;
  for (const proto::Run& run : runs) {
    if (Matches(filter, run)) order.push_back(&run);
  }
  SortInSeriesOrder(order);
  loaded.runs.reserve(order.size());
  for (const proto::Run* run : order) {
    loaded.runs.push_back(std::move(const_cast<proto::Run&>(*run)));
  }
  return loaded;
}

absl::StatusOr<VerifyReport> History::Verify(int threads) const {
  VerifyReport report;
  OPTRAIL_RETURN_IF_ERROR(
      VerifyFolder<RunKind>(*store_, threads, &report.runs, &report));
  OPTRAIL_RETURN_IF_ERROR(
      VerifyFolder<SessionKind>(*store_, threads, &report.sessions, &report));
  OPTRAIL_RETURN_IF_ERROR(VerifyFolder<TriageKind>(
      *store_, threads, &report.triage_records, &report));
  OPTRAIL_RETURN_IF_ERROR(VerifyFolder<DiagnosisKind>(
      *store_, threads, &report.diagnoses, &report));
  OPTRAIL_RETURN_IF_ERROR(VerifyFolder<TombstonesKind>(
      *store_, threads, &report.tombstone_files, &report));
  report.leftover_temporary_files = store_->Leftovers();
  return report;
}

}  // namespace optrail::tracker

#include "tracker/history/history.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <map>
#include <random>
#include <set>
#include <tuple>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "absl/time/time.h"
#include "base/file.h"
#include "base/parallel_for.h"
#include "base/status_macros.h"
#include "tracker/history/record.h"

namespace optrail::tracker {
namespace {

constexpr absl::string_view kSuffix = ".pb";

// What distinguishes the two kinds of record.
struct RunKind {
  using Message = proto::Run;
  static constexpr absl::string_view kFolder = "runs";
  static constexpr absl::string_view kName = "run";
  static const std::string& Id(const Message& run) { return run.run_id(); }
  static absl::Status Validate(const Message& run) { return ValidateRun(run); }
};

struct SessionKind {
  using Message = proto::Session;
  static constexpr absl::string_view kFolder = "sessions";
  static constexpr absl::string_view kName = "session";
  static const std::string& Id(const Message& session) {
    return session.session_id();
  }
  static absl::Status Validate(const Message& session) {
    return ValidateSession(session);
  }
};

struct TriageKind {
  using Message = proto::TriageRecord;
  static constexpr absl::string_view kFolder = "triage";
  static constexpr absl::string_view kName = "triage record";
  static const std::string& Id(const Message& record) {
    return record.record_id();
  }
  static absl::Status Validate(const Message& record) {
    if (std::isfinite(record.effect())) return absl::OkStatus();
    return absl::InvalidArgumentError(absl::StrCat(
        "effect is ", record.effect(), ", expected a finite number"));
  }
};
static_assert(proto::TriageRecord::kChecksumFieldNumber ==
              proto::Run::kChecksumFieldNumber);

struct TombstonesKind {
  using Message = proto::Tombstones;
  static constexpr absl::string_view kFolder = "tombstones";
  static constexpr absl::string_view kName = "tombstones";
  static const std::string& Id(const Message& tombstones) {
    return tombstones.tombstones_id();
  }
  static absl::Status Validate(const Message& tombstones) {
    for (const proto::Tombstone& tombstone : tombstones.tombstones()) {
      if (!IsRecordId(tombstone.run_id())) {
        return absl::InvalidArgumentError(
            absl::StrCat("run_id '", tombstone.run_id(),
                         "', expected the form 20261120T090807Z-1a2b3c4d5e6f"));
      }
    }
    return absl::OkStatus();
  }
};
static_assert(proto::Tombstones::kChecksumFieldNumber ==
              proto::Run::kChecksumFieldNumber);

template <typename Kind>
std::string FolderOf(const std::string& dir) {
  return JoinPath(dir, Kind::kFolder);
}

template <typename Kind>
std::string PathOf(const std::string& dir, absl::string_view id) {
  return JoinPath(FolderOf<Kind>(dir), id.substr(0, 4),
                  absl::StrCat(id, kSuffix));
}

absl::Status NamingFile(const absl::Status& status, absl::string_view path) {
  if (status.ok()) return status;
  return absl::Status(status.code(),
                      absl::StrCat(path, ": ", status.message()));
}

// A record must be where its id says: then no id is taken twice.
template <typename Kind>
absl::Status CheckPlace(const std::string& dir, const std::string& path,
                        const typename Kind::Message& message) {
  const std::string& id = Kind::Id(message);
  if (!IsRecordId(id)) {
    return absl::DataLossError(absl::StrCat("its id '", id,
                                            "' is not of the form ",
                                            "20261120T090807Z-1a2b3c4d5e6f"));
  }
  if (PathOf<Kind>(dir, id) != path) {
    return absl::DataLossError(absl::StrCat("it holds ", Kind::kName, " ", id,
                                            ", whose place is ",
                                            PathOf<Kind>(dir, id)));
  }
  return absl::OkStatus();
}

template <typename Kind>
absl::Status ReadWhole(const std::string& dir, const std::string& path,
                       FileSystem* fs, typename Kind::Message* message,
                       int64_t* bytes = nullptr) {
  OPTRAIL_ASSIGN_OR_RETURN(const std::string content, ReadFile(path, fs));
  if (bytes != nullptr) *bytes = static_cast<int64_t>(content.size());
  OPTRAIL_RETURN_IF_ERROR(DecodeRecord(content, message));
  OPTRAIL_RETURN_IF_ERROR(CheckPlace<Kind>(dir, path, *message));
  return Kind::Validate(*message);
}

// The bytes of the record's file.
template <typename Kind>
absl::StatusOr<std::string> Encode(const typename Kind::Message& message) {
  const std::string& id = Kind::Id(message);
  if (!IsRecordId(id)) {
    return absl::InvalidArgumentError(
        absl::StrCat(Kind::kName, " id '", id, "': expected the form ",
                     "20261120T090807Z-1a2b3c4d5e6f"));
  }
  if (const absl::Status valid = Kind::Validate(message); !valid.ok()) {
    return absl::Status(valid.code(), absl::StrCat(Kind::kName, " ", id, ": ",
                                                   valid.message()));
  }
  if (message.checksum() == 0) return EncodeRecord(message);
  typename Kind::Message copy = message;
  copy.clear_checksum();
  return EncodeRecord(copy);
}

template <typename Kind>
absl::Status Append(const std::string& dir, FileSystem* fs,
                    const typename Kind::Message& message) {
  OPTRAIL_ASSIGN_OR_RETURN(const std::string bytes, Encode<Kind>(message));
  const std::string path = PathOf<Kind>(dir, Kind::Id(message));
  OPTRAIL_RETURN_IF_ERROR(CreateDirectories(DirectoryOf(path), fs));
  return WriteNewFileAtomically(path, bytes, fs);
}

std::string ReasonOf(const absl::Status& status) {
  return std::string(status.message());
}

std::tuple<int64_t, absl::string_view> TimeAndId(const proto::Run& run) {
  return {run.started_unix_ns(), run.run_id()};
}

// "latest" is 0, "latest~2" is 2, anything else nullopt.
absl::optional<int> StepsBeforeLatest(absl::string_view selector) {
  if (!absl::ConsumePrefix(&selector, "latest")) return absl::nullopt;
  if (selector.empty()) return 0;
  int steps = 0;
  if (!absl::ConsumePrefix(&selector, "~") ||
      !absl::SimpleAtoi(selector, &steps) || steps < 0) {
    return absl::nullopt;
  }
  return steps;
}

bool IdMatches(absl::string_view id, absl::string_view selector) {
  const size_t dash = id.find('-');
  return absl::StartsWith(id, selector) ||
         (dash != absl::string_view::npos &&
          absl::StartsWith(id.substr(dash + 1), selector));
}

std::string DescribeRun(const RunInfo& run) {
  return absl::StrCat(run.id(), " (", run.header.suite(), " at ",
                      run.header.commit().id().empty()
                          ? "no commit"
                          : run.header.commit().id().substr(0, 12),
                      ")");
}

absl::Status Ambiguous(absl::string_view selector,
                       const std::set<std::string>& meanings) {
  constexpr size_t kShown = 5;
  std::vector<std::string> shown(meanings.begin(), meanings.end());
  const size_t all = shown.size();
  if (all > kShown) {
    shown.resize(kShown);
    shown.push_back(absl::StrCat("and ", all - kShown, " more"));
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "'", selector, "' could be any of: ", absl::StrJoin(shown, ", ")));
}

// Collects the names of temporary files below `dir`; folders that can't be
// listed have been reported by then.
void FindTemporaries(const std::string& dir, FileSystem* fs,
                     std::vector<std::string>* found) {
  std::vector<std::string> names;
  if (fs->List(dir, &names) != 0) return;
  std::sort(names.begin(), names.end());
  for (const std::string& name : names) {
    const std::string path = JoinPath(dir, name);
    FileInfo info;
    if (IsTemporaryName(name)) {
      found->push_back(path);
    } else if (fs->Stat(path, &info) == 0 && info.is_directory) {
      FindTemporaries(path, fs, found);
    }
  }
}

template <typename Kind>
absl::Status VerifyFolder(const std::string& dir, FileSystem* fs, int threads,
                          int64_t* count, VerifyReport* report) {
  OPTRAIL_ASSIGN_OR_RETURN(const std::vector<std::string> paths,
                           ListRecursively(FolderOf<Kind>(dir), kSuffix, fs));
  std::vector<absl::Status> statuses(paths.size());
  std::vector<int64_t> sizes(paths.size());
  ParallelFor(static_cast<int64_t>(paths.size()), threads, [&](int64_t i) {
    typename Kind::Message message;
    statuses[i] = ReadWhole<Kind>(dir, paths[i], fs, &message, &sizes[i]);
  });
  for (size_t i = 0; i < paths.size(); ++i) {
    report->bytes += sizes[i];
    if (statuses[i].ok()) {
      ++*count;
    } else {
      report->bad_files.push_back({paths[i], ReasonOf(statuses[i])});
    }
  }
  return absl::OkStatus();
}

template <typename Kind>
absl::Status MergeFolder(const std::string& from, FileSystem* from_fs,
                         const std::string& to, FileSystem* to_fs,
                         const LoadedTombstones& buried, MergeReport* report) {
  OPTRAIL_ASSIGN_OR_RETURN(
      const std::vector<std::string> paths,
      ListRecursively(FolderOf<Kind>(from), kSuffix, from_fs));
  for (const std::string& path : paths) {
    typename Kind::Message message;
    absl::Status status = ReadWhole<Kind>(from, path, from_fs, &message);
    if (status.ok()) {
      // The bytes themselves are copied, so that both files stay equal.
      const absl::StatusOr<std::string> bytes = ReadFile(path, from_fs);
      if (!bytes.ok()) return bytes.status();
      const std::string target = PathOf<Kind>(to, Kind::Id(message));
      const auto tombstone = buried.by_run.find(Kind::Id(message));
      const bool is_buried = tombstone != buried.by_run.end();
      if (is_buried && tombstone->second == proto::REMOVED) {
        ++report->buried;
        continue;
      }
      OPTRAIL_RETURN_IF_ERROR(CreateDirectories(DirectoryOf(target), to_fs));
      status = WriteNewFileAtomically(target, *bytes, to_fs);
      if (status.ok()) {
        ++report->copied;
        continue;
      }
      if (!absl::IsAlreadyExists(status)) return status;
      const absl::StatusOr<std::string> present = ReadFile(target, to_fs);
      if (present.ok() && *present == *bytes) {
        ++report->already_there;
        continue;
      }
      if (is_buried) {  // one of the two is thinned: this one stays as it is
        ++report->buried;
        continue;
      }
      status = absl::AlreadyExistsError(
          absl::StrCat("differs from ", target, " of the same id"));
    }
    report->bad_files.push_back({path, ReasonOf(status)});
  }
  return absl::OkStatus();
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

bool IsRecordId(absl::string_view id) {
  constexpr absl::string_view kForm = "00000000T000000Z-";
  if (id.size() <= kForm.size() || id.size() > 64) return false;
  for (size_t i = 0; i < id.size(); ++i) {
    const bool digit = absl::ascii_isdigit(id[i]);
    if (i >= kForm.size()) {
      if (!digit && (id[i] < 'a' || id[i] > 'f')) return false;
    } else if (kForm[i] == '0' ? !digit : id[i] != kForm[i]) {
      return false;
    }
  }
  return true;
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
  if (FileExists(std::string(dir))) return absl::OkStatus();
  return absl::NotFoundError(absl::StrCat(
      "--history=", dir,
      ": there is no such folder; next: look for a typing error, or fill it "
      "with optrail import --history=",
      dir, " FILE..."));
}

std::string EmptyHistoryText(absl::string_view dir, absl::string_view what) {
  return absl::StrCat("there are no ", what, " in ", dir,
                      " yet; next: bazel run //suites:smoke, optrail bench "
                      "--record, or optrail import FILE...");
}

absl::StatusOr<History> History::Open(absl::string_view dir, FileSystem* fs) {
  const std::string path(dir);
  if (path.empty()) {
    return absl::InvalidArgumentError(
        "history: expected the path of a folder, found ''");
  }
  FileInfo info;
  if (fs->Stat(path, &info) == 0 && !info.is_directory) {
    return absl::FailedPreconditionError(
        absl::StrCat("history ", path, ": expected a folder, found a file"));
  }
  return History(path, fs);
}

absl::Status History::AppendRun(const proto::Run& run) const {
  return Append<RunKind>(dir_, fs_, run);
}

absl::Status History::AppendSession(const proto::Session& session) const {
  return Append<SessionKind>(dir_, fs_, session);
}

absl::Status History::AppendTriage(const proto::TriageRecord& record) const {
  return Append<TriageKind>(dir_, fs_, record);
}

absl::Status History::AppendTombstones(
    const proto::Tombstones& tombstones) const {
  return Append<TombstonesKind>(dir_, fs_, tombstones);
}

absl::Status History::ReplaceRun(const proto::Run& run) const {
  OPTRAIL_ASSIGN_OR_RETURN(const std::string bytes, Encode<RunKind>(run));
  return WriteFileAtomically(PathOf<RunKind>(dir_, run.run_id()), bytes, fs_);
}

absl::Status History::RemoveRun(absl::string_view run_id) const {
  if (!IsRecordId(run_id)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "run id '", run_id, "': expected 20261120T090807Z-1a2b3c4d5e6f"));
  }
  return RemoveFile(PathOf<RunKind>(dir_, run_id), fs_);
}

absl::StatusOr<LoadedTombstones> History::LoadTombstones() const {
  OPTRAIL_ASSIGN_OR_RETURN(
      const std::vector<std::string> paths,
      ListRecursively(FolderOf<TombstonesKind>(dir_), kSuffix, fs_));
  LoadedTombstones loaded;
  for (const std::string& path : paths) {
    proto::Tombstones tombstones;
    const absl::Status status =
        ReadWhole<TombstonesKind>(dir_, path, fs_, &tombstones);
    if (!status.ok()) {
      loaded.bad_files.push_back({path, ReasonOf(status)});
      continue;
    }
    for (const proto::Tombstone& tombstone : tombstones.tombstones()) {
      proto::TombstoneKind& kind = loaded.by_run[tombstone.run_id()];
      if (kind != proto::REMOVED) kind = tombstone.kind();
    }
  }
  return loaded;
}

absl::StatusOr<LoadedTriage> History::LoadTriage() const {
  OPTRAIL_ASSIGN_OR_RETURN(
      const std::vector<std::string> paths,
      ListRecursively(FolderOf<TriageKind>(dir_), kSuffix, fs_));
  LoadedTriage loaded;
  for (const std::string& path : paths) {
    proto::TriageRecord record;
    const absl::Status status = ReadWhole<TriageKind>(dir_, path, fs_, &record);
    if (!status.ok()) {
      loaded.bad_files.push_back({path, ReasonOf(status)});
    } else {
      loaded.records.push_back(std::move(record));
    }
  }
  std::sort(loaded.records.begin(), loaded.records.end(),
            [](const proto::TriageRecord& a, const proto::TriageRecord& b) {
              return std::make_tuple(a.created_unix_ns(), a.record_id()) <
                     std::make_tuple(b.created_unix_ns(), b.record_id());
            });
  return loaded;
}

absl::StatusOr<RunList> History::ListRuns(const RunFilter& filter) const {
  if (run_lister_) {
    absl::StatusOr<RunList> list = run_lister_(filter);
    if (list.ok()) return list;
  }
  OPTRAIL_ASSIGN_OR_RETURN(
      const std::vector<std::string> paths,
      ListRecursively(FolderOf<RunKind>(dir_), kSuffix, fs_));
  RunList list;
  for (const std::string& path : paths) {
    RunInfo info;
    info.path = path;
    const absl::Status status = [&] {
      OPTRAIL_ASSIGN_OR_RETURN(const std::string content, ReadFile(path, fs_));
      OPTRAIL_RETURN_IF_ERROR(
          DecodeRecordWithout({proto::Run::kResultsFieldNumber}, content,
                              &info.header, &info.result_count));
      return CheckPlace<RunKind>(dir_, path, info.header);
    }();
    if (!status.ok()) {
      list.bad_files.push_back({path, ReasonOf(status)});
    } else if (Matches(filter, info.header)) {
      list.runs.push_back(std::move(info));
    }
  }
  SortInSeriesOrder(list.runs);
  return list;
}

absl::StatusOr<SessionList> History::ListSessions() const {
  OPTRAIL_ASSIGN_OR_RETURN(
      const std::vector<std::string> paths,
      ListRecursively(FolderOf<SessionKind>(dir_), kSuffix, fs_));
  SessionList list;
  for (const std::string& path : paths) {
    SessionInfo info;
    info.path = path;
    const absl::Status status = [&] {
      OPTRAIL_ASSIGN_OR_RETURN(const std::string content, ReadFile(path, fs_));
      OPTRAIL_RETURN_IF_ERROR(
          DecodeRecordWithout({proto::Session::kTrialsFieldNumber}, content,
                              &info.header, &info.trial_count));
      info.header.clear_finalists();
      return CheckPlace<SessionKind>(dir_, path, info.header);
    }();
    if (!status.ok()) {
      list.bad_files.push_back({path, ReasonOf(status)});
    } else {
      list.sessions.push_back(std::move(info));
    }
  }
  std::sort(list.sessions.begin(), list.sessions.end(),
            [](const SessionInfo& a, const SessionInfo& b) {
              return std::make_tuple(a.header.started_unix_ns(), a.id()) <
                     std::make_tuple(b.header.started_unix_ns(), b.id());
            });
  return list;
}

absl::StatusOr<proto::Run> History::ReadRun(absl::string_view run_id) const {
  if (!IsRecordId(run_id)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "run id '", run_id, "': expected 20261120T090807Z-1a2b3c4d5e6f"));
  }
  const std::string path = PathOf<RunKind>(dir_, run_id);
  proto::Run run;
  const absl::Status status = ReadWhole<RunKind>(dir_, path, fs_, &run);
  if (!status.ok()) return NamingFile(status, path);
  return run;
}

absl::StatusOr<proto::Run> History::ReadRunFile(const std::string& path) const {
  proto::Run run;
  OPTRAIL_RETURN_IF_ERROR(ReadWhole<RunKind>(dir_, path, fs_, &run));
  return run;
}

absl::StatusOr<proto::Session> History::ReadSession(
    absl::string_view session_id) const {
  if (!IsRecordId(session_id)) {
    return absl::InvalidArgumentError(
        absl::StrCat("session id '", session_id,
                     "': expected 20261120T090807Z-1a2b3c4d5e6f"));
  }
  const std::string path = PathOf<SessionKind>(dir_, session_id);
  proto::Session session;
  const absl::Status status = ReadWhole<SessionKind>(dir_, path, fs_, &session);
  if (!status.ok()) return NamingFile(status, path);
  return session;
}

absl::StatusOr<LoadedRuns> History::LoadRuns(const RunFilter& filter,
                                             int threads) const {
  OPTRAIL_ASSIGN_OR_RETURN(
      const std::vector<std::string> paths,
      ListRecursively(FolderOf<RunKind>(dir_), kSuffix, fs_));
  const int count = static_cast<int>(paths.size());
  std::vector<proto::Run> runs(paths.size());
  std::vector<absl::Status> statuses(paths.size());
  ParallelFor(count, threads, [&](int64_t i) {
    statuses[i] = ReadWhole<RunKind>(dir_, paths[i], fs_, &runs[i]);
  });
  LoadedRuns loaded;
  std::vector<const proto::Run*> order;
  for (int i = 0; i < count; ++i) {
    if (!statuses[i].ok()) {
      loaded.bad_files.push_back({paths[i], ReasonOf(statuses[i])});
    } else if (Matches(filter, runs[i])) {
      order.push_back(&runs[i]);
    }
  }
  SortInSeriesOrder(order);
  loaded.runs.reserve(order.size());
  for (const proto::Run* run : order) {
    loaded.runs.push_back(std::move(const_cast<proto::Run&>(*run)));
  }
  return loaded;
}

absl::StatusOr<std::vector<RunInfo>> History::Resolve(
    absl::string_view selector, const RunFilter& filter) const {
  OPTRAIL_ASSIGN_OR_RETURN(RunList list, ListRuns(filter));
  if (list.runs.empty() && list.bad_files.empty()) {
    OPTRAIL_ASSIGN_OR_RETURN(const RunList all, ListRuns());
    if (all.runs.empty()) {
      return absl::NotFoundError(
          absl::StrCat("'", selector, "': ", EmptyHistoryText(dir_)));
    }
  }
  const std::string where = absl::StrCat(
      "history ", dir_, " (", list.runs.size(),
      list.runs.size() == 1 ? " run" : " runs",
      list.bad_files.empty()
          ? ""
          : absl::StrCat(", ", list.bad_files.size(), " damaged files skipped"),
      ")");
  if (const absl::optional<int> steps = StepsBeforeLatest(selector)) {
    if (static_cast<size_t>(*steps) >= list.runs.size()) {
      return absl::NotFoundError(
          absl::StrCat("'", selector, "': not that many runs in ", where));
    }
    std::sort(list.runs.begin(), list.runs.end(),
              [](const RunInfo& a, const RunInfo& b) {
                return TimeAndId(a.header) > TimeAndId(b.header);
              });
    return std::vector<RunInfo>{std::move(list.runs[*steps])};
  }
  std::vector<RunInfo> by_id, by_commit;
  std::set<std::string> meanings, commits;
  for (RunInfo& run : list.runs) {
    if (selector.empty()) break;
    const std::string& commit = run.header.commit().id();
    if (IdMatches(run.id(), selector)) {
      meanings.insert(DescribeRun(run));
      by_id.push_back(std::move(run));
    } else if (absl::StartsWith(commit, selector)) {
      commits.insert(absl::StrCat("commit ", commit));
      by_commit.push_back(std::move(run));
    }
  }
  meanings.insert(commits.begin(), commits.end());
  if (meanings.empty()) {
    return absl::NotFoundError(absl::StrCat("'", selector,
                                            "' is no run and no commit in ",
                                            where, "; `optrail log` lists it"));
  }
  if (meanings.size() > 1) return Ambiguous(selector, meanings);
  return by_id.empty() ? by_commit : by_id;
}

absl::StatusOr<RunInfo> History::FindRun(absl::string_view selector,
                                         const RunFilter& filter) const {
  OPTRAIL_ASSIGN_OR_RETURN(std::vector<RunInfo> runs,
                           Resolve(selector, filter));
  if (runs.size() == 1) return std::move(runs[0]);
  std::set<std::string> meanings;
  for (const RunInfo& run : runs) meanings.insert(DescribeRun(run));
  return Ambiguous(selector, meanings);
}

absl::StatusOr<VerifyReport> History::Verify(int threads) const {
  VerifyReport report;
  OPTRAIL_RETURN_IF_ERROR(
      VerifyFolder<RunKind>(dir_, fs_, threads, &report.runs, &report));
  OPTRAIL_RETURN_IF_ERROR(
      VerifyFolder<SessionKind>(dir_, fs_, threads, &report.sessions, &report));
  OPTRAIL_RETURN_IF_ERROR(VerifyFolder<TriageKind>(
      dir_, fs_, threads, &report.triage_records, &report));
  OPTRAIL_RETURN_IF_ERROR(VerifyFolder<TombstonesKind>(
      dir_, fs_, threads, &report.tombstone_files, &report));
  FindTemporaries(dir_, fs_, &report.leftover_temporary_files);
  return report;
}

absl::StatusOr<MergeReport> History::MergeFrom(const History& other) const {
  MergeReport report;
  const auto merge = [&](auto kind, const LoadedTombstones& buried) {
    return MergeFolder<decltype(kind)>(other.dir_, other.fs_, dir_, fs_, buried,
                                       &report);
  };
  // First, so that what is interrupted here never revives what is buried there.
  OPTRAIL_RETURN_IF_ERROR(merge(TombstonesKind(), {}));
  OPTRAIL_ASSIGN_OR_RETURN(const LoadedTombstones buried, LoadTombstones());
  OPTRAIL_RETURN_IF_ERROR(merge(RunKind(), buried));
  OPTRAIL_RETURN_IF_ERROR(merge(SessionKind(), {}));
  OPTRAIL_RETURN_IF_ERROR(merge(TriageKind(), {}));
  return report;
}

}  // namespace optrail::tracker

#include "tracker/history/repair.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/time.h"
#include "base/status_macros.h"
#include "google/protobuf/unknown_field_set.h"
#include "tracker/history/history_files.h"

namespace optrail::tracker {
namespace {

// Clocks of machines differ by less.
constexpr absl::Duration kClockTolerance = absl::Minutes(5);

std::string UtcText(int64_t unix_ns) {
  return absl::FormatTime("%Y-%m-%d %H:%M:%S", absl::FromUnixNanos(unix_ns),
                          absl::UTCTimeZone());
}

// The numbers of unknown fields of a message and of all messages within it.
void CollectUnknown(const google::protobuf::Message& message,
                    std::set<std::string>* found) {
  const google::protobuf::Reflection* reflection = message.GetReflection();
  const google::protobuf::UnknownFieldSet& unknown =
      reflection->GetUnknownFields(message);
  for (int i = 0; i < unknown.field_count(); ++i) {
    found->insert(absl::StrCat(message.GetDescriptor()->name(), ".",
                               unknown.field(i).number()));
  }
  std::vector<const google::protobuf::FieldDescriptor*> fields;
  reflection->ListFields(message, &fields);
  for (const google::protobuf::FieldDescriptor* field : fields) {
    if (field->cpp_type() !=
        google::protobuf::FieldDescriptor::CPPTYPE_MESSAGE) {
      continue;
    }
    if (!field->is_repeated()) {
      CollectUnknown(reflection->GetMessage(message, field), found);
      continue;
    }
    for (int i = 0; i < reflection->FieldSize(message, field); ++i) {
      CollectUnknown(reflection->GetRepeatedMessage(message, field, i), found);
    }
  }
}

// Returns whether something is in that place. If the store can't be asked, the
// call that acts on the answer fails.
bool IsTaken(const std::string& path, const RecordStore& store) {
  const absl::StatusOr<bool> taken = store.Has(path);
  return !taken.ok() || *taken;
}

HistoryProblem ProblemOf(const BadFile& bad, const RecordStore& store) {
  switch (bad.damage) {
    case Damage::kUnreadable:
      return HistoryProblem::kUnreadable;
    case Damage::kNoFile:
      return HistoryProblem::kNoFile;
    case Damage::kCutOff:
      return HistoryProblem::kTruncated;
    case Damage::kChanged:
      return HistoryProblem::kChanged;
    case Damage::kImpossibleValue:
      return HistoryProblem::kImpossibleValue;
    case Damage::kNewerFormat:
      return HistoryProblem::kNewerSchema;
    case Damage::kMisplaced:
      return IsTaken(bad.place, store) ? HistoryProblem::kDuplicateId
                                       : HistoryProblem::kMisplaced;
  }
  return HistoryProblem::kUnreadable;
}

class Checker {
 public:
  Checker(const History& history, const CheckOptions& options)
      : history_(history), options_(options) {}

  absl::StatusOr<CheckReport> Check() {
    // What the readers themselves refuse, so that nothing they skip is missed.
    OPTRAIL_ASSIGN_OR_RETURN(const VerifyReport verified,
                             history_.Verify(options_.threads));
    report_.runs = verified.runs;
    report_.sessions = verified.sessions;
    report_.triage_records = verified.triage_records;
    report_.bytes = verified.bytes;
    for (const BadFile& bad : verified.bad_files) {
      report_.findings.push_back(
          {ProblemOf(bad, history_.store()), bad.path, bad.reason, bad.place});
    }
    for (const std::string& path : verified.leftover_temporary_files) {
      Add(HistoryProblem::kLeftover, path,
          "left by a writer that was killed; harmless, never read");
    }
    OPTRAIL_RETURN_IF_ERROR(CheckRuns());
    OPTRAIL_RETURN_IF_ERROR(CheckSessions());
    std::stable_sort(report_.findings.begin(), report_.findings.end(),
                     [](const HistoryFinding& a, const HistoryFinding& b) {
                       return std::make_tuple(!IsDamage(a.problem), a.path) <
                              std::make_tuple(!IsDamage(b.problem), b.path);
                     });
    return std::move(report_);
  }

 private:
  void Add(HistoryProblem problem, const std::string& path,
           std::string detail) {
    report_.findings.push_back({problem, path, std::move(detail), ""});
  }

  template <typename Message>
  void CheckSchema(const std::string& path, const Message& message) {
    std::set<std::string> unknown;
    CollectUnknown(message, &unknown);
    if (unknown.empty()) return;
    Add(HistoryProblem::kNewerSchema, path,
        absl::StrCat("written by a newer version: fields ",
                     absl::StrJoin(unknown, ", "),
                     " are not known here; they are kept"));
  }

  void CheckCommit(const std::string& path, const proto::Commit& commit) {
    if (!options_.knows_commit || commit.id().empty() || asking_ended_) return;
    auto known = known_commits_.find(commit.id());
    if (known == known_commits_.end()) {
      const absl::StatusOr<bool> answer = options_.knows_commit(commit.id());
      if (!answer.ok()) {
        asking_ended_ = true;
        report_.notes.push_back(absl::StrCat(
            "commits were not looked up in git: ", answer.status().message()));
        return;
      }
      known = known_commits_.emplace(commit.id(), *answer).first;
    }
    if (known->second) return;
    Add(HistoryProblem::kUnknownCommit, path,
        absl::StrCat("git does not know commit ", commit.id(),
                     ": its history was rewritten, or it was never fetched"));
  }

  void CheckClock(const std::string& path, int64_t started_ns,
                  const proto::Commit& commit) {
    // These saturate where integers overflow.
    const absl::Time started = absl::FromUnixNanos(started_ns);
    const absl::Time made = absl::FromUnixNanos(commit.commit_unix_ns());
    if (started_ns < 0) {
      Add(HistoryProblem::kClockBackwards, path,
          absl::StrCat("it started at ", UtcText(started_ns),
                       " UTC, before 1970"));
    } else if (commit.commit_unix_ns() > 0 && !commit.dirty() &&
               started + kClockTolerance < made) {
      Add(HistoryProblem::kClockBackwards, path,
          absl::StrCat("it started at ", UtcText(started_ns),
                       " UTC, before its commit was made (",
                       UtcText(commit.commit_unix_ns()), ")"));
    } else if (options_.now_unix_ns != 0 &&
               started > absl::FromUnixNanos(options_.now_unix_ns) +
                             kClockTolerance) {
      Add(HistoryProblem::kClockBackwards, path,
          absl::StrCat("it started at ", UtcText(started_ns),
                       " UTC, which is in the future",
                       IsInTheFuture(started_ns, options_.now_unix_ns)
                           ? ": it is not taken for the latest"
                           : ""));
    }
  }

  absl::Status CheckRuns() {
    OPTRAIL_ASSIGN_OR_RETURN(const RunList list, history_.ListRuns());
    OPTRAIL_ASSIGN_OR_RETURN(const LoadedTombstones tombstones,
                             history_.LoadTombstones());
    // By machine and branch, the latest start among the commits so far.
    struct Reached {
      int64_t position = 0;
      int64_t started_ns = 0;
      std::string commit;
    };
    std::map<std::pair<std::string, std::string>, Reached> reached;
    for (const RunInfo& info : list.runs) {
      const proto::Run& header = info.header;
      CheckClock(info.path, header.started_unix_ns(), header.commit());
      if (header.commit().has_first_parent_position()) {
        Reached& last =
            reached[{header.hardware().id(), header.commit().branch()}];
        const int64_t position = header.commit().first_parent_position();
        if (position > last.position &&
            absl::FromUnixNanos(header.started_unix_ns()) + kClockTolerance <
                absl::FromUnixNanos(last.started_ns)) {
          Add(HistoryProblem::kClockBackwards, info.path,
              absl::StrCat("it started at ", UtcText(header.started_unix_ns()),
                           " UTC, before a run of the older commit ",
                           last.commit.substr(0, 12), " (",
                           UtcText(last.started_ns),
                           "); commits decide the order"));
        }
        if (header.started_unix_ns() > last.started_ns) {
          last = {position, header.started_unix_ns(), header.commit().id()};
        }
      }
      const auto buried = tombstones.by_run.find(info.id());
      if (buried != tombstones.by_run.end() &&
          buried->second == proto::REMOVED) {
        Add(HistoryProblem::kResurrected, info.path,
            "retention removed it; `optrail history thin` does so again, "
            "unless "
            "one of its rules keeps it");
      }
      CheckCommit(info.path, header.commit());
      const absl::StatusOr<proto::Run> run = history_.ReadRun(info.id());
      if (run.ok()) CheckSchema(info.path, *run);
    }
    return absl::OkStatus();
  }

  absl::Status CheckSessions() {
    OPTRAIL_ASSIGN_OR_RETURN(const SessionList list, history_.ListSessions());
    for (const SessionInfo& info : list.sessions) {
      CheckClock(info.path, info.header.started_unix_ns(),
                 info.header.commit());
      CheckCommit(info.path, info.header.commit());
      const absl::StatusOr<proto::Session> session =
          history_.ReadSession(info.id());
      if (session.ok()) CheckSchema(info.path, *session);
    }
    return absl::OkStatus();
  }

  const History& history_;
  const CheckOptions& options_;
  CheckReport report_;
  std::map<std::string, bool> known_commits_;
  bool asking_ended_ = false;
};

// Puts an intact record where it belongs. AlreadyExists where another file has
// come there meanwhile.
absl::Status MoveToPlace(const RecordStore& store, const std::string& from,
                         const std::string& place) {
  OPTRAIL_ASSIGN_OR_RETURN(const std::string bytes, store.Read(from));
  OPTRAIL_RETURN_IF_ERROR(store.Put(place, bytes));
  return store.Remove(from);
}

}  // namespace

absl::string_view HistoryProblemName(HistoryProblem problem) {
  static constexpr absl::string_view kNames[] = {"cut off",
                                                 "bytes changed",
                                                 "unreadable",
                                                 "no file",
                                                 "impossible value",
                                                 "duplicate id",
                                                 "misplaced",
                                                 "newer schema",
                                                 "clock ran backwards",
                                                 "commit unknown to git",
                                                 "removed record is back",
                                                 "leftover"};
  static_assert(std::size(kNames) ==
                static_cast<size_t>(HistoryProblem::kLeftover) + 1);
  return kNames[static_cast<size_t>(problem)];
}

bool IsDamage(HistoryProblem problem) {
  return problem <= HistoryProblem::kMisplaced;
}

int CheckReport::CountDamaged() const {
  return static_cast<int>(std::count_if(
      findings.begin(), findings.end(),
      [](const HistoryFinding& finding) { return IsDamage(finding.problem); }));
}

absl::StatusOr<CheckReport> CheckHistory(const History& history,
                                         const CheckOptions& options) {
  return Checker(history, options).Check();
}

absl::StatusOr<std::vector<Repaired>> RepairHistory(const History& history,
                                                    const CheckReport& report) {
  const RecordStore& store = history.store();
  std::vector<Repaired> repaired;
  for (const HistoryFinding& finding : report.findings) {
    if (!IsDamage(finding.problem) || !IsTaken(finding.path, store)) continue;
    Repaired moved;
    moved.from = finding.path;
    moved.reason =
        absl::StrCat(HistoryProblemName(finding.problem), ": ", finding.detail);
    absl::Status placed = absl::AlreadyExistsError("");
    if (finding.problem == HistoryProblem::kMisplaced) {
      moved.to = finding.place;
      placed = MoveToPlace(store, moved.from, moved.to);
    }
    if (absl::IsAlreadyExists(placed)) {
      OPTRAIL_ASSIGN_OR_RETURN(
          moved.to, store.MoveToQuarantine(moved.from, moved.reason));
    } else {
      OPTRAIL_RETURN_IF_ERROR(placed);
    }
    repaired.push_back(std::move(moved));
  }
  return repaired;
}

}  // namespace optrail::tracker

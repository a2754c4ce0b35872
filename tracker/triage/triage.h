#ifndef OPTRAIL_TRACKER_TRIAGE_TRIAGE_H_
#define OPTRAIL_TRACKER_TRIAGE_TRIAGE_H_

// TriageBook answers what people have said about a change of a series.
//
//   OPTRAIL_ASSIGN_OR_RETURN(LoadedTriage loaded, history.LoadTriage());
//   const TriageBook book(loaded.records, now_unix_ns);
//   const Opinion opinion = book.OpinionOf(series, change);
//   if (opinion.state == ChangeState::kNew) Alert(change);
//
// Records are never changed: what is taken back is taken back by an UNDO
// record, which may itself be taken back. So histories merge by copying files,
// in any order.
//
// A record speaks of a change if it names the series (its canonical text, or a
// pattern that matches the whole display name) and the change. An answer names
// the suspects and the size of each change that it was given to
// (TriageRecord.answered): it covers that change, wherever among the suspects
// and however much smaller analysis sees it later, and nothing newer or larger.
// Where it names no change (the commit was not measured yet, the record is
// old), its commit is within kPlaceTolerance points of the change that it
// speaks of, since analysis may move a change when more points come. A commit
// that was not measured stands for the first measured one after it.

#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/optional.h"
#include "re2/re2.h"
#include "tracker/detect/detect.h"
#include "tracker/proto/triage.pb.h"
#include "tracker/series/series.h"

namespace optrail::tracker {

enum class ChangeState { kNew, kMuted, kExpected, kAcknowledged };
absl::string_view ChangeStateName(ChangeState state);

struct Opinion {
  ChangeState state = ChangeState::kNew;
  std::string record_id;  // that decided; empty for kNew
  std::string commit;     // that record's, short
  int64_t created_unix_ns = 0;
  std::string reason;  // its text, or why an expectation does not cover it
  // The acknowledgement names the change by its size and suspects, or names no
  // change at all and is of a commit at or before it.
  bool names_change = false;
  // Why it is not covered: a size, and not that it lies elsewhere.
  bool reason_is_size = false;
  std::vector<std::string> notes;  // beside the change, oldest first
};

enum class RecordState { kActive, kExpired, kUndone };
absl::string_view RecordStateName(RecordState state);
absl::string_view TriageKindName(proto::TriageKind kind);

class TriageBook {
 public:
  static constexpr int kPlaceTolerance = 2;

  struct Entry {
    proto::TriageRecord record;
    RecordState state = RecordState::kActive;
    std::unique_ptr<RE2> pattern;  // null: none, or one that does not parse

    // What the record says of this series; null if it names no change of it.
    const proto::AnsweredChange* AnsweredOf(const Series& series) const;
    // By series; into `record`.
    std::unordered_map<std::string, int> answered;
  };

  // Records of a kind that this build does not know, and those whose pattern
  // does not parse, are entries that speak of nothing.
  TriageBook(const std::vector<proto::TriageRecord>& records,
             int64_t now_unix_ns);

  const std::vector<Entry>& entries() const { return entries_; }

  Opinion OpinionOf(const Series& series, const ChangePoint& change) const;

  // All that the book may say of the series, whatever its points: equal texts
  // mean equal opinions.
  std::string SayingsOf(const Series& series) const;

  // The last of the first `points` points of the series at which somebody
  // acknowledged its level; nullopt if nobody did. Where the level was as
  // before then, there was nothing to acknowledge.
  absl::optional<int> LastAcknowledged(const Series& series, int points) const;

  // The last acknowledgement that says that the benchmark of `series` is gone
  // (IsRemoval) and whose commit comes after the last point with a value. Null
  // if there is none: an acknowledgement of a change never is one.
  const Entry* RemovalAcknowledged(const Series& series) const;

  // The entry whose id is `id`, begins with it, or whose random part does.
  // NotFound, or InvalidArgument that lists what it could mean.
  absl::StatusOr<const Entry*> Find(absl::string_view id) const;

 private:
  // The active entries that cover the series, by time. Those that name one are
  // looked up, so that many series cost no more than their own records.
  std::vector<const Entry*> Covering(const Series& series) const;

  std::vector<Entry> entries_;  // by time
  std::unordered_map<std::string, std::vector<int>> by_series_;
  std::vector<int> with_pattern_;
};

// Sets `series` or `pattern` from what somebody typed: the canonical text of a
// series is that series, anything else a pattern. InvalidArgument for one that
// does not parse, and for "".
absl::Status SetScope(absl::string_view text, proto::TriageRecord* record);

// Whether the record's series or pattern means this series.
bool Covers(const TriageBook::Entry& entry, const Series& series);

// The point of a series at which the record's commit is; nullopt if unknown.
absl::optional<int> PlaceOf(const proto::Commit& commit, const Series& series);

// Returns whether the answer is to a removal: it has no `last`, only the commit
// of the last measurement in `last_before`.
bool IsRemoval(const proto::AnsweredChange& answered);

// The last point of the series with a value, if an acknowledgement such as
// `record` comes after it: by position or, where one is missing, by time. Null
// if not, or if the series was measured at its commit.
const Point* LastMeasuredBefore(const proto::TriageRecord& record,
                                const Series& series);

// Returns whether a change is in the direction of an effect in [low, high] and,
// beyond what noise explains, no larger.
bool IsWithin(const ChangePoint& change, double low, double high);

// "+5%", "-2.5%" -> .05, -.025. InvalidArgument.
absl::StatusOr<double> ParseEffect(absl::string_view text);

// "2026-12-24" -> the first instant after that day, in UTC: the day itself
// belongs to what lasts until it, as in a policy. InvalidArgument.
absl::StatusOr<int64_t> ParseEndOfDay(absl::string_view text);

// The inverse: the last day that ends by then, in UTC.
std::string LastDayText(int64_t unix_ns);

}  // namespace optrail::tracker

#endif  // OPTRAIL_TRACKER_TRIAGE_TRIAGE_H_

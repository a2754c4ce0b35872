#ifndef OPTRAIL_TUNING_SESSION_SESSION_JOURNAL_H_
#define OPTRAIL_TUNING_SESSION_SESSION_JOURNAL_H_

// SessionJournal is what an interrupted tuning session resumes from: its header
// with the trials that it started from, its own trials in order, the finalists
// and their readings so far. A record counts once its Append call has returned
// OK.
//
// One file per (task, kernel, hardware, space, strategy, seed), named by a hash
// of them, so that the same command finds its own journal again and a changed
// kernel or space starts anew.

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/optional.h"
#include "absl/types/variant.h"
#include "base/file/journal.h"
#include "tuning/proto/session.pb.h"
#include "tuning/proto/session_journal.pb.h"

namespace optrail::tuning {

// What happened in the search: a config was asked, or a trial was told.
struct JournaledAsk {
  int64_t ticket = 0;
  proto::Config config;
};

// A trial and what a resumed session has to know of how it was chosen.
struct JournaledTrial {
  int64_t ticket = 0;  // of its ask; 0 in journals without asks
  proto::Trial trial;
  absl::optional<double> expected_improvement;
  int64_t thinking_ns = 0;
};

using JournaledStep = absl::variant<JournaledAsk, JournaledTrial>;

// Marks the node among `nodes` as lost. The first reason stays.
void NoteLostNode(
    const proto::MeasuringNode& lost,
    google::protobuf::RepeatedPtrField<proto::MeasuringNode>* nodes);

class SessionJournal {
 public:
  // Opens the journal of `header` in `directory`, which is empty if there is
  // none; without a directory nothing is kept. FailedPrecondition if another
  // process writes it; DataLoss names the file and the record that cannot be
  // read.
  static absl::StatusOr<std::unique_ptr<SessionJournal>> Open(
      const std::string& directory, const proto::Session& header);

  // Begins a new journal with `header`, or records that another sitting goes on
  // with the settings and the nodes of `header`. Called once, before the Append
  // calls: a sitting that is refused before leaves no record.
  absl::Status BeginSitting(const proto::Session& header);

  // OK if there is none.
  static absl::Status Remove(const std::string& directory,
                             const proto::Session& header);

  static std::string Path(const std::string& directory,
                          const proto::Session& header);

  // The header with which the session began. From BeginSitting() on it has the
  // settings on which all sittings agree, the nodes of all of them, of which
  // only those of the last one may prove, and the kernel's id of today.
  const proto::Session& header() const { return header_; }
  // True if the header's trials are those that the session started from. False
  // for journals of earlier versions, which do not tell.
  bool has_warm_start() const { return has_warm_start_; }
  // The steps of the search, in order.
  const std::vector<JournaledStep>& steps() const { return steps_; }
  int trials() const;
  // nullptr while the search goes on.
  const proto::TuneJournalRecord::FinalistsChosen* finalists() const {
    return has_finalists_ ? &finalists_ : nullptr;
  }
  const std::vector<proto::TuneJournalRecord::Reading>& readings() const {
    return readings_;
  }
  int sittings() const { return sittings_; }

  // Counts from the next of the others on, which takes it along to the disk.
  absl::Status AppendAsk(const JournaledAsk& ask);
  absl::Status AppendTrial(const JournaledTrial& trial);
  absl::Status AppendLostNode(const proto::MeasuringNode& lost);
  absl::Status AppendFinalists(
      const google::protobuf::RepeatedPtrField<proto::Finalist>& finalists,
      proto::StopReason stop_reason);
  absl::Status AppendReading(const proto::TuneJournalRecord::Reading& reading);

 private:
  explicit SessionJournal(std::unique_ptr<Journal> journal)
      : journal_(std::move(journal)) {}
  absl::Status Append(const proto::TuneJournalRecord& record);
  absl::Status Replay();
  void AddSitting(
      const proto::MeasurementSettings& settings,
      const google::protobuf::RepeatedPtrField<proto::MeasuringNode>& nodes);

  std::unique_ptr<Journal> journal_;
  proto::Session header_;
  bool has_warm_start_ = false;
  std::vector<JournaledStep> steps_;
  bool has_finalists_ = false;
  proto::TuneJournalRecord::FinalistsChosen finalists_;
  std::vector<proto::TuneJournalRecord::Reading> readings_;
  int sittings_ = 1;
};

}  // namespace optrail::tuning

#endif  // OPTRAIL_TUNING_SESSION_SESSION_JOURNAL_H_

#ifndef OPTRAIL_SUITES_TUNE_TUNE_JOURNAL_H_
#define OPTRAIL_SUITES_TUNE_TUNE_JOURNAL_H_

// TuneJournal is what an interrupted tuning session resumes from: its header
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
#include "base/journal.h"
#include "suites/proto/tune_journal.pb.h"
#include "tuning/proto/session.pb.h"

namespace optrail::suites {

// A trial and what a resumed session has to know of how it was chosen.
struct JournaledTrial {
  proto::Trial trial;
  absl::optional<double> expected_improvement;
  int64_t thinking_ns = 0;
};

class TuneJournal {
 public:
  // Opens the journal of `header` in `directory`, or starts one that begins
  // with it. FailedPrecondition if another process writes it; DataLoss names
  // the file and the record that cannot be read.
  static absl::StatusOr<std::unique_ptr<TuneJournal>> Open(
      const std::string& directory, const proto::Session& header);

  // OK if there is none.
  static absl::Status Remove(const std::string& directory,
                             const proto::Session& header);

  static std::string Path(const std::string& directory,
                          const proto::Session& header);

  // As found when it was opened, with the settings on which all sittings agree.
  const proto::Session& header() const { return header_; }
  // Whether the header's trials are those that the session started from. False
  // for journals of earlier versions, which do not tell.
  bool has_warm_start() const { return has_warm_start_; }
  const std::vector<JournaledTrial>& trials() const { return trials_; }
  // nullptr while the search goes on.
  const proto::TuneJournalRecord::FinalistsChosen* finalists() const {
    return has_finalists_ ? &finalists_ : nullptr;
  }
  const std::vector<proto::TuneJournalRecord::Reading>& readings() const {
    return readings_;
  }
  int sittings() const { return sittings_; }

  absl::Status AppendTrial(const JournaledTrial& trial);
  absl::Status AppendFinalists(
      const google::protobuf::RepeatedPtrField<proto::Finalist>& finalists,
      proto::StopReason stop_reason);
  absl::Status AppendReading(const proto::TuneJournalRecord::Reading& reading);

 private:
  explicit TuneJournal(std::unique_ptr<Journal> journal)
      : journal_(std::move(journal)) {}
  absl::Status Append(const proto::TuneJournalRecord& record);
  absl::Status Replay();
  void AddSitting(const proto::MeasurementSettings& settings);

  std::unique_ptr<Journal> journal_;
  proto::Session header_;
  bool has_warm_start_ = false;
  std::vector<JournaledTrial> trials_;
  bool has_finalists_ = false;
  proto::TuneJournalRecord::FinalistsChosen finalists_;
  std::vector<proto::TuneJournalRecord::Reading> readings_;
  int sittings_ = 1;
};

}  // namespace optrail::suites

#endif  // OPTRAIL_SUITES_TUNE_TUNE_JOURNAL_H_

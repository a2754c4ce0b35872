#ifndef OPTRAIL_SUITES_BENCH_BENCH_JOURNAL_H_
#define OPTRAIL_SUITES_BENCH_BENCH_JOURNAL_H_

// BenchJournal keeps what a bench has measured until its run is recorded, so
// that one that was interrupted or killed can go on:
//
//   OPTRAIL_ASSIGN_OR_RETURN(
//       std::unique_ptr<BenchJournal> journal,
//       BenchJournal::Open(folder, identity, header, /*resume=*/true));
//   const auto* kept = journal->Find(round, benchmarks);
//   if (kept == nullptr) OPTRAIL_RETURN_IF_ERROR(journal->Keep(readings));
//   OPTRAIL_RETURN_IF_ERROR(journal->Remove());
//
// One file per identity: a text of everything that readings depend on, so that
// another build, config or setting finds nothing of it. What is kept are the
// readings of whole groups, those that were taken side by side.

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/file/journal.h"
#include "suites/proto/bench_journal.pb.h"

namespace optrail::suites {

class BenchJournal {
 public:
  // Opens the journal of `identity` in `folder`. Without `resume`, or where
  // there is none, it begins anew with `header`. FailedPrecondition while
  // another process writes it; DataLoss or InvalidArgument, where it is to be
  // resumed, names the file and what is damaged.
  static absl::StatusOr<std::unique_ptr<BenchJournal>> Open(
      const std::string& folder, const std::string& identity,
      const proto::BenchJournalRecord::Header& header, bool resume);

  // Of the run that goes on, or that begins.
  const proto::BenchJournalRecord::Header& header() const { return header_; }
  // Processes that it held when it was opened, or would have had with `resume`.
  int found() const { return found_; }
  // Of the run so far, when it was opened.
  int64_t elapsed_ns() const { return elapsed_ns_; }

  // The readings of exactly these benchmarks in `round`; nullptr if they are
  // not kept.
  const proto::BenchJournalRecord::Readings* Find(
      int round, const std::vector<int>& benchmarks) const;

  // On the disk once it returns OK.
  absl::Status Keep(const proto::BenchJournalRecord::Readings& readings);

  // Its run is recorded, or nobody wants it recorded.
  absl::Status Remove();

 private:
  BenchJournal() = default;
  absl::Status Load(const std::string& path);
  absl::Status Read(const std::string& record);

  std::unique_ptr<Journal> journal_;
  proto::BenchJournalRecord::Header header_;
  std::map<std::pair<int, std::vector<int>>,
           proto::BenchJournalRecord::Readings>
      kept_;
  int found_ = 0;
  int64_t elapsed_ns_ = 0;
};

}  // namespace optrail::suites

#endif  // OPTRAIL_SUITES_BENCH_BENCH_JOURNAL_H_

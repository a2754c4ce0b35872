#ifndef OPTRAIL_TRACKER_JUDGE_FOLD_MEMORY_H_
#define OPTRAIL_TRACKER_JUDGE_FOLD_MEMORY_H_

// FoldMemory lets the judge go on from what it found in a series before, which
// the history's index keeps: folding is nearly all of what judging costs.
//
//   FoldMemory folds(std::move(loaded.folds));  // of LoadSeries
//   JudgeOptions options;
//   options.folds = &folds;
//   const std::vector<Judgement> judgements = JudgeAll(series, book, options);
//   KeepFolds(history, folds.changed());
//
// It changes no answer. A fold is gone on from only if the code has the same
// version (OnlineDetector::kVersion) and the series begins with exactly the
// values that were folded; then points that came since are appended. Whatever
// else happens to a history (a run in between, thinning, a replaced run) makes
// other values, and the epoch is folded anew. What people say about changes is
// no part of a fold.
//
// Thread safety: Find and Keep may be called from several threads.

#include <map>
#include <mutex>
#include <string>
#include <unordered_map>

#include "absl/types/optional.h"
#include "tracker/detect/fold.pb.h"

namespace optrail::tracker {

class FoldMemory {
 public:
  // By series' text, as the index keeps them. Without any, where nothing can be
  // kept, it finds and keeps nothing.
  explicit FoldMemory(
      absl::optional<std::unordered_map<std::string, std::string>> kept)
      : kept_(std::move(kept)) {}

  // Empty where nothing is kept that this code can use.
  proto::SeriesFolds Find(const std::string& series) const;
  void Keep(const std::string& series, proto::SeriesFolds folds);

  // Returns what Keep was called with, as the constructor takes it. Call it
  // when all have been judged.
  const std::map<std::string, std::string>& changed() const { return changed_; }

 private:
  const absl::optional<std::unordered_map<std::string, std::string>> kept_;
  std::mutex mutex_;
  std::map<std::string, std::string> changed_;
};

}  // namespace optrail::tracker

#endif  // OPTRAIL_TRACKER_JUDGE_FOLD_MEMORY_H_

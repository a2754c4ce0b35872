#include "tracker/judge/fold_memory.h"

#include <utility>

#include "tracker/detect/online.h"
#include "tracker/history/record.h"

namespace optrail::tracker {

proto::SeriesFolds FoldMemory::Find(const std::string& series) const {
  proto::SeriesFolds folds;
  if (!kept_) return folds;
  const auto kept = kept_->find(series);
  if (kept == kept_->end() || !DecodeRecord(kept->second, &folds).ok() ||
      folds.version() != OnlineDetector::kVersion) {
    return proto::SeriesFolds();
  }
  return folds;
}

void FoldMemory::Keep(const std::string& series, proto::SeriesFolds folds) {
  if (!kept_) return;
  folds.set_version(OnlineDetector::kVersion);
  folds.clear_checksum();
  std::string bytes = EncodeRecord(folds);
  const std::lock_guard<std::mutex> lock(mutex_);
  changed_[series] = std::move(bytes);
}

}  // namespace optrail::tracker

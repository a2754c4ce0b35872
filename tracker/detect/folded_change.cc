#include "tracker/detect/folded_change.h"

namespace optrail::tracker {

proto::FoldedChange ToFolded(const ChangePoint& change) {
  proto::FoldedChange folded;
  folded.set_index(change.index);
  folded.set_earliest(change.earliest);
  folded.set_latest(change.latest);
  folded.set_begin(change.begin);
  folded.set_end(change.end);
  folded.set_between(change.between);
  folded.set_confidence(change.confidence);
  folded.set_level_before(change.level_before);
  folded.set_level_after(change.level_after);
  folded.set_relative_change(change.relative_change);
  folded.set_relative_change_low(change.relative_change_low);
  folded.set_relative_change_high(change.relative_change_high);
  return folded;
}

ChangePoint FromFolded(const proto::FoldedChange& folded) {
  ChangePoint change;
  change.index = folded.index();
  change.earliest = folded.earliest();
  change.latest = folded.latest();
  change.begin = folded.begin();
  change.end = folded.end();
  change.between = folded.between();
  change.confidence = folded.confidence();
  change.level_before = folded.level_before();
  change.level_after = folded.level_after();
  change.relative_change = folded.relative_change();
  change.relative_change_low = folded.relative_change_low();
  change.relative_change_high = folded.relative_change_high();
  return change;
}

}  // namespace optrail::tracker

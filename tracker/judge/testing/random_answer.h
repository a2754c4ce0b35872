#ifndef OPTRAIL_TRACKER_JUDGE_TESTING_RANDOM_ANSWER_H_
#define OPTRAIL_TRACKER_JUDGE_TESTING_RANDOM_ANSWER_H_

// For tests that compare a judgement that was kept with one made afresh: an
// answer to whatever may be there.
//
//   answers.push_back(RandomAnswer(runs, answers.size(), kNowUnixNs, rng));

#include <cstdint>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/random.h"
#include "tracker/proto/run.pb.h"
#include "tracker/proto/triage.pb.h"

namespace optrail::tracker {

// An answer of some kind, to all series or to those of matmul, at the commit of
// one of `runs`; where it mutes, until a moment after `now_unix_ns`.
inline proto::TriageRecord RandomAnswer(const std::vector<proto::Run>& runs,
                                        int64_t id, int64_t now_unix_ns,
                                        Rng& rng) {
  static constexpr proto::TriageKind kKinds[] = {
      proto::ACKNOWLEDGE, proto::EXPECT, proto::MUTE, proto::NOTE};
  proto::TriageRecord record;
  record.set_record_id(absl::StrCat("r", id));
  record.set_created_unix_ns(id);
  record.set_kind(kKinds[rng.UniformInt(4)]);
  record.set_pattern(rng.UniformInt(2) == 0 ? ".*" : "matmul.*");
  record.set_text(absl::StrCat("because ", id));
  *record.mutable_commit() = runs[rng.UniformInt(runs.size())].commit();
  if (record.kind() == proto::MUTE) record.set_until_unix_ns(now_unix_ns + 1);
  if (record.kind() == proto::EXPECT) record.set_effect(.05);
  return record;
}

}  // namespace optrail::tracker

#endif  // OPTRAIL_TRACKER_JUDGE_TESTING_RANDOM_ANSWER_H_

#ifndef OPTRAIL_TRACKER_IMPORT_MACHINE_IDS_H_
#define OPTRAIL_TRACKER_IMPORT_MACHINE_IDS_H_

// MachineIds gives results of files the hardware id that results measured here
// have: one machine has one id, however its results came in.
//
//   OPTRAIL_ASSIGN_OR_RETURN(const MachineIds ids,
//                            MachineIds::Of(history, this_machine));
//   const std::string note = ids.Use(&run);
//
// A file is taken for one of this machine if nothing that it says of cores,
// caches and processor contradicts it. A history that knows the machine only by
// the id that an importer made ("imported-2c-32m") keeps that id, so that its
// series go on.

#include <set>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "tracker/history/history.h"
#include "tracker/proto/run.pb.h"

namespace optrail::tracker {

class MachineIds {
 public:
  // A machine without an id changes nothing.
  static absl::StatusOr<MachineIds> Of(const History& history,
                                       const proto::Hardware& machine);

  // Sets the hardware of a run that an importer named. Returns what a person
  // should know, or "".
  std::string Use(proto::Run* run) const;

 private:
  MachineIds(proto::Hardware machine, std::set<std::string> ids)
      : machine_(std::move(machine)), ids_(std::move(ids)) {}

  proto::Hardware machine_;
  std::set<std::string> ids_;  // in the history
};

}  // namespace optrail::tracker

#endif  // OPTRAIL_TRACKER_IMPORT_MACHINE_IDS_H_

#include "tracker/import/machine_ids.h"

#include <unistd.h>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"

namespace optrail::tracker {
namespace {

bool Contradict(const proto::Hardware& file, const proto::Hardware& machine) {
  // Other tools count the processors of the system; here those count that a
  // process may use.
  const bool other_cores = file.has_cores() && machine.has_cores() &&
                           file.cores() != machine.cores() &&
                           file.cores() != sysconf(_SC_NPROCESSORS_ONLN) &&
                           file.cores() != sysconf(_SC_NPROCESSORS_CONF);
  const auto other_cache = [](bool both_known, int64_t a, int64_t b) {
    return both_known && a != b;
  };
  return other_cores ||
         (!file.model().empty() && !machine.model().empty() &&
          file.model() != machine.model()) ||
         other_cache(file.has_l1d_bytes() && machine.has_l1d_bytes(),
                     file.l1d_bytes(), machine.l1d_bytes()) ||
         other_cache(file.has_l2_bytes() && machine.has_l2_bytes(),
                     file.l2_bytes(), machine.l2_bytes()) ||
         other_cache(file.has_l3_bytes() && machine.has_l3_bytes(),
                     file.l3_bytes(), machine.l3_bytes());
}

}  // namespace

absl::StatusOr<MachineIds> MachineIds::Of(const History& history,
                                          const proto::Hardware& machine) {
  std::set<std::string> ids;
  OPTRAIL_ASSIGN_OR_RETURN(const RunList list, history.ListRuns());
  for (const RunInfo& run : list.runs) ids.insert(run.header.hardware().id());
  return MachineIds(machine, std::move(ids));
}

std::string MachineIds::Use(proto::Run* run) const {
  const std::string made = run->hardware().id();
  if (machine_.id().empty()) return "";
  if (Contradict(run->hardware(), machine_)) {
    return absl::StrCat("the file tells of another machine than this one, ",
                        machine_.id(), "; its hardware is ", made,
                        " unless --hardware names it");
  }
  if (ids_.count(made) > 0 && ids_.count(machine_.id()) == 0) {
    return absl::StrCat("this machine is ", machine_.id(),
                        "; the history knows its imported results as ", made,
                        ", and this import continues them; --hardware=",
                        machine_.id(), " starts anew");
  }
  *run->mutable_hardware() = machine_;
  return "";
}

}  // namespace optrail::tracker

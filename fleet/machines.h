#ifndef OPTRAIL_FLEET_MACHINES_H_
#define OPTRAIL_FLEET_MACHINES_H_

// Reads which machines of Slurm are of which hardware, from the file that
// `optrail fleet up --machines_file` takes (fleet/machines.proto):
//
//   OPTRAIL_ASSIGN_OR_RETURN(const std::vector<PilotsOfHardware> all,
//                            ReadMachines("machines.textproto", ""));
//   for (const PilotsOfHardware& each : all) {
//     OPTRAIL_RETURN_IF_ERROR(
//         SubmitPilots(each.count, each.sbatch, pilot).status());
//   }

#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace optrail::fleet {

// How many pilots one command submits.
inline constexpr int kMostPilots = 10000;

struct PilotsOfHardware {
  std::string hardware_id;
  int count = 1;
  std::vector<std::string> sbatch;  // options of sbatch, those for all first
};

// In the order of the file; of `hardware_id` alone unless that is "".
// InvalidArgument with file, line and column for what is wrong, NotFound for
// hardware that the file lacks.
absl::StatusOr<std::vector<PilotsOfHardware>> ReadMachines(
    const std::string& path, const std::string& hardware_id);

}  // namespace optrail::fleet

#endif  // OPTRAIL_FLEET_MACHINES_H_

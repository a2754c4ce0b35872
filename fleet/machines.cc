#include "fleet/machines.h"

#include <set>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/file/file.h"
#include "base/status_macros.h"
#include "base/text/textproto.h"
#include "fleet/machines.pb.h"

namespace optrail::fleet {
namespace {

template <typename Message>
absl::Status CheckOptions(const Message& message, const TextProtoPlace& place) {
  for (int i = 0; i < message.sbatch_size(); ++i) {
    if (absl::StartsWith(message.sbatch(i), "-")) continue;
    return place.Child("sbatch", i)
        .Error(absl::StrCat("'", message.sbatch(i),
                            "': expected an option of sbatch, a word each: "
                            "\"--partition=gpu\""));
  }
  return absl::OkStatus();
}

absl::Status CheckHardware(const proto::Machines::Hardware& hardware,
                           const TextProtoPlace& place) {
  if (hardware.id().empty()) {
    return place.Error("hardware without an id; `optrail doctor` prints it");
  }
  if (hardware.has_pilots() &&
      (hardware.pilots() < 1 || hardware.pilots() > kMostPilots)) {
    return place.Child("pilots").Error(absl::StrCat(
        "pilots is ", hardware.pilots(), ", expected 1 to ", kMostPilots));
  }
  return CheckOptions(hardware, place);
}

}  // namespace

absl::StatusOr<std::vector<PilotsOfHardware>> ReadMachines(
    const std::string& path, const std::string& hardware_id) {
  OPTRAIL_ASSIGN_OR_RETURN(const std::string text, ReadRegularFile(path));
  OPTRAIL_ASSIGN_OR_RETURN(const auto parsed,
                           ParseTextProto<proto::Machines>(text, path));
  const proto::Machines& machines = parsed.message;
  OPTRAIL_RETURN_IF_ERROR(CheckOptions(machines, parsed.root()));
  std::set<std::string> ids;
  std::vector<PilotsOfHardware> all;
  for (int i = 0; i < machines.hardware_size(); ++i) {
    const proto::Machines::Hardware& hardware = machines.hardware(i);
    const TextProtoPlace place = parsed.root().Child("hardware", i);
    OPTRAIL_RETURN_IF_ERROR(CheckHardware(hardware, place));
    if (!ids.insert(hardware.id()).second) {
      return place.Child("id").Error(absl::StrCat(
          "hardware '", hardware.id(), "' is there twice, expected it once"));
    }
    if (!hardware_id.empty() && hardware.id() != hardware_id) continue;
    PilotsOfHardware pilots = {
        hardware.id(), hardware.has_pilots() ? hardware.pilots() : 1, {}};
    for (const auto* options : {&machines.sbatch(), &hardware.sbatch()}) {
      pilots.sbatch.insert(pilots.sbatch.end(), options->begin(),
                           options->end());
    }
    all.push_back(std::move(pilots));
  }
  if (!all.empty()) return all;
  if (hardware_id.empty()) {
    return parsed.root().Error(
        "no hardware, expected hardware { id: \"...\" sbatch: \"...\" }");
  }
  return absl::NotFoundError(absl::StrCat(path, ": no hardware '", hardware_id,
                                          "'; next: add hardware { id: \"",
                                          hardware_id, "\" }"));
}

}  // namespace optrail::fleet

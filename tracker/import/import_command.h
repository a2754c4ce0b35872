#ifndef OPTRAIL_TRACKER_IMPORT_IMPORT_COMMAND_H_
#define OPTRAIL_TRACKER_IMPORT_IMPORT_COMMAND_H_

// `optrail import` as a function, for the command line to fill from flags
// (tracker/command/command_support.h says how commands answer).

#include <iosfwd>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "tracker/command/command_support.h"
#include "tuning/proto/context.pb.h"

namespace optrail::tracker {

struct ImportCommand {
  CommonOptions common;
  std::vector<std::string> files;
  std::string file_format;  // "" recognises it
  std::string hardware_id;
  // This one: results of files that do not contradict it are of its id. Without
  // an id, and with hardware_id, nothing is known.
  proto::Hardware machine;
  std::string suite;
  std::string prefix;  // of the benchmarks' names
  // Any revision git knows, or a full hash; "": what the file says, else HEAD.
  std::string commit;
  std::string branch;  // "": as git says
  bool again = false;  // although a file of the same content was imported
  bool files_are_processes = false;
  bool dry_run = false;  // parse and print, record nothing
};
absl::StatusOr<int> RunImport(const ImportCommand& options, std::ostream& out);

}  // namespace optrail::tracker

#endif  // OPTRAIL_TRACKER_IMPORT_IMPORT_COMMAND_H_

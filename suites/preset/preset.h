#ifndef OPTRAIL_SUITES_PRESET_PRESET_H_
#define OPTRAIL_SUITES_PRESET_PRESET_H_

// Presets are data files that say what to tune for a kind of model and how:
// operators and shapes, strategy, objectives, constraints, limits and shares of
// the budget. They are embedded in the binary; a path to a copy works too.
//
//   ASSIGN_OR_RETURN(const Preset preset, FindPreset("recommender"));
//   for (const FlagSetting& setting : preset.settings) {
//     std::cout << "--" << setting.flag << "=" << setting.value << "\n";
//   }
//
// A preset holds values of flags and no behaviour of its own: the command line
// applies them before the flags that it was given (command_line.h). Their types
// and ranges are checked there, too.
//
// Errors: InvalidArgument "file:line:column: ..." for what is no preset,
// NotFound for a name or path that there is not. The functions may be called
// from any thread.

#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "suites/command/command_line.h"
#include "suites/proto/preset.pb.h"
#include "suites/workload/named_file.h"

namespace optrail::suites {

struct Preset {
  proto::Preset proto;
  std::string path;
  std::vector<FlagSetting> settings;  // in the order of preset.proto
  // Fractions of the total by operator; where the first of them stands.
  std::map<std::string, double> shares;
  std::string shares_place;
};

// Operators of shares have to be registered, and the workload has to be one.
absl::StatusOr<Preset> ParsePreset(absl::string_view text,
                                   absl::string_view filename);

// By the name of an embedded one, or by path (a name with '/' or '.').
absl::StatusOr<Preset> FindPreset(const std::string& name_or_path);

const std::vector<NamedFile>& EmbeddedPresets();

}  // namespace optrail::suites

#endif  // OPTRAIL_SUITES_PRESET_PRESET_H_

#ifndef OPTRAIL_SUITES_PRESET_EMBEDDED_PRESETS_H_
#define OPTRAIL_SUITES_PRESET_EMBEDDED_PRESETS_H_

// The files of suites/preset/presets as strings; the build generates the .cc.

#include <string>
#include <vector>

namespace optrail::suites {

struct EmbeddedPreset {
  std::string name;
  std::string path;
  std::string text;
};

const std::vector<EmbeddedPreset>& EmbeddedPresets();

}  // namespace optrail::suites

#endif  // OPTRAIL_SUITES_PRESET_EMBEDDED_PRESETS_H_

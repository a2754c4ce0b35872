// Turns the log of record_cuda_spaces into a Kernel Tuner cache per space and
// size:
//
//   write_caches LOG DEVICE_NAME FOLDER

#include <cstdio>
#include <fstream>
#include <string>
#include <vector>

#include "tuning/replay/recordings/kernel_tuner_cache.h"
#include "tuning/replay/recordings/recording_log.h"
#include "tuning/replay/recordings/spaces.h"

int main(int argc, char** argv) {
  using namespace optrail::tuning::recordings;  // NOLINT
  if (argc != 4) {
    std::fprintf(stderr, "usage: %s LOG DEVICE_NAME FOLDER\n", argv[0]);
    return 2;
  }
  const std::vector<LogEntry> entries = ReadLog(argv[1]);
  if (entries.empty()) {
    std::fprintf(stderr, "%s: no entries\n", argv[1]);
    return 1;
  }
  for (const Space& space : AllSpaces()) {
    for (const Size& size : space.sizes) {
      int missing = 0;
      const std::string cache =
          ToKernelTunerCache(space, size, entries, argv[2], missing);
      const int valid = ValidConfigs(space).size();
      if (missing == valid) continue;
      const std::string path =
          std::string(argv[3]) + "/" + space.name + "_" + size.name + ".json";
      std::ofstream out(path);
      out << cache;
      out.close();
      if (!out) {
        std::fprintf(stderr, "%s: can't be written\n", path.c_str());
        return 1;
      }
      std::printf("%s: %d of %d configs\n", path.c_str(), valid - missing,
                  valid);
    }
  }
  return 0;
}

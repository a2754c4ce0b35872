#ifndef OPTRAIL_TUNING_REPLAY_RECORDINGS_SPACES_H_
#define OPTRAIL_TUNING_REPLAY_RECORDINGS_SPACES_H_

// The tuning spaces that record_cuda_spaces records: knobs, restrictions, how a
// config is launched. kernels/NAME.cu reads a knob as a macro of its name in
// capitals. Nothing here needs CUDA.

#include <array>
#include <string>
#include <vector>

namespace optrail::tuning::recordings {

// What kernels and their problems have in common.
inline constexpr int kConvolutionFilter = 9;
inline constexpr int kHotspotSteps = 12;  // of a run

struct Knob {
  std::string name;
  std::vector<int> values;
};

// One value per knob, in the order of the knobs.
using Config = std::vector<int>;

// A config whose values are read by the names of their knobs.
class NamedConfig {
 public:
  NamedConfig(const std::vector<Knob>& knobs, const Config& config)
      : knobs_(knobs), config_(config) {}
  // Ends the process if there is no such knob.
  int operator[](const char* name) const;

 private:
  const std::vector<Knob>& knobs_;
  const Config& config_;
};

// The three integers that a kernel gets; what they mean is the kernel's matter.
struct Size {
  std::string name;
  std::array<int, 3> n;
};

struct Launch {
  std::array<int, 3> grid = {1, 1, 1};
  int threads = 1;
  int dynamic_shared_bytes = 0;
  // Launches that make up one run, each reading what the last one wrote.
  int passes = 1;
};

struct Space {
  std::string name;
  std::vector<Knob> knobs;
  std::vector<Size> sizes;
  bool (*valid)(const NamedConfig& c);
  Launch (*launch)(const NamedConfig& c, const Size& size);
};

const std::vector<Space>& AllSpaces();

// All configs that satisfy the restrictions, in lexicographic order.
std::vector<Config> ValidConfigs(const Space& space);

// "64,8,1".
std::string ConfigKey(const Config& config);

}  // namespace optrail::tuning::recordings

#endif  // OPTRAIL_TUNING_REPLAY_RECORDINGS_SPACES_H_

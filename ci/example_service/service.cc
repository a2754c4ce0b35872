// A service that runs its own softmax, and asks at start-up how: the example of
// docs/reference/tuned_configs.md. Usage: service TUNED_CONFIGS HARDWARE
// SHAPE...

#include <iostream>

#include "tuning/lookup.h"

int main(int argc, char** argv) {
  if (argc < 4) return 2;
  const auto lookup = optrail::tuning::Lookup::Load({argv[1]});
  if (!lookup.ok()) {
    std::cerr << lookup.status().message() << "\n";
    return 2;
  }
  optrail::tuning::Lookup::Question softmax;
  softmax.operator_name = "softmax";
  softmax.hardware_id = argv[2];
  for (int i = 3; i < argc; ++i) {
    const auto asked = optrail::tuning::Lookup::Prepare(softmax, argv[i]);
    if (!asked.ok()) {
      std::cerr << asked.status().message() << "\n";
      return 2;
    }
    const auto answer = lookup->Find(*asked);
    if (!answer.warning.empty()) std::cerr << answer.warning << "\n";
    std::cout << argv[i] << " cols_tile=" << answer.Int("cols_tile", 16)
              << " algorithm=" << answer.Variant("algorithm", "two_pass")
              << "\n";
  }
  return 0;
}

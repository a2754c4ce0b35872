#include "graph/fusion/fusion.h"

namespace optrail::graph {

const std::vector<FusionRule>& FusionRules() {
  static const auto* const rules = new std::vector<FusionRule>{
      {"matmul + bias",
       "add($p=matmul($x, $w), $b)",
       {"f32 x", "matrix w", "vector b w"},
       "linear($x, $w, $b)"},
      {"linear + relu",
       "relu($t=linear($x, $w, $b))",
       {"activation t none"},
       "linear($x, $w, $b){activation=relu}"},
      // x / sqrt(2), as PyTorch exports gelu.
      {"linear + gelu",
       "mul(mul($t=linear($x, $w, $b), add(erf(div($t, 1.41421356)), 1)), 0.5)",
       {"activation t none"},
       "linear($x, $w, $b){activation=gelu}"},
      {"rms norm",
       "mul($w, div($x, sqrt(add($m=reduce_mean(pow($x, 2)), #e))))",
       {"f32 x", "last_axis m", "row w x"},
       "rms_norm($x, $w){axis=last:x epsilon=#e}"},
      {"rms norm",
       "mul($w, mul($x, div(1, sqrt(add($m=reduce_mean(pow($x, 2)), #e)))))",
       {"f32 x", "last_axis m", "row w x"},
       "rms_norm($x, $w){axis=last:x epsilon=#e}"},
  };
  return *rules;
}

}  // namespace optrail::graph

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
      {"attention",
       "matmul($p=softmax(mul(matmul($q, $k), #s)), $v)",
       {"f32 q", "heads q k v", "scale q s", "last_axis p"},
       "attention($q, $k, $v)"},
      {"attention",
       "matmul($p=softmax(div(matmul($q, $k), #s)), $v)",
       {"f32 q", "heads q k v", "divisor q s", "last_axis p"},
       "attention($q, $k, $v)"},
      {"causal attention",
       "matmul($p=softmax(add(mul(matmul($q, $k), #s), $m)), $v)",
       {"f32 q", "heads q k v", "scale q s", "last_axis p", "causal m q k"},
       "attention($q, $k, $v){causal=yes}"},
      {"causal attention",
       "matmul($p=softmax(add(div(matmul($q, $k), #s), $m)), $v)",
       {"f32 q", "heads q k v", "divisor q s", "last_axis p", "causal m q k"},
       "attention($q, $k, $v){causal=yes}"},
      {"conv + bn + relu",
       "relu(add(mul($t=conv($x, $w), $s), $b))",
       {"f32 x", "plain_conv t", "channels s w", "channels b w"},
       "conv_bn_relu($x, $w, $s, $b){like=t}"},
      {"conv + bias + relu",
       "relu(add($t=conv($x, $w), $b))",
       {"f32 x", "plain_conv t", "channels b w"},
       "conv_bn_relu($x, $w, 1:b, $b){like=t}"},
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

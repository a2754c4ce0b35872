#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "graph/fusion/fusion.h"

namespace optrail::graph {

namespace {

// softmax(scores + mask) v, with the scores scaled in each of the ways that
// exporters have: their product, or one or both of its factors.
std::vector<FusionRule> AttentionRules() {
  const std::vector<std::pair<std::string, std::string>> scores = {
      {"mul(matmul($q, $k), #s)", "scale q s"},
      {"div(matmul($q, $k), #s)", "divisor q s"},
      {"matmul(mul($q, #s), $k)", "scale q s"},
      {"matmul(div($q, #s), $k)", "divisor q s"},
      {"matmul(mul($q, #s), mul($k, #t))", "scales q s t"}};
  std::vector<FusionRule> rules;
  for (const auto& [score, scale] : scores) {
    rules.push_back({"attention",
                     absl::StrCat("matmul($p=softmax(", score, "), $v)"),
                     {"f32 q", "heads q k v", scale, "last_axis p"},
                     "attention($q, $k, $v)"});
    rules.push_back(
        {"causal attention",
         absl::StrCat("matmul($p=softmax(add(", score, ", $m)), $v)"),
         {"f32 q", "heads q k v", scale, "last_axis p", "causal m q k"},
         "attention($q, $k, $v){causal=yes}"});
  }
  return rules;
}

std::vector<FusionRule> AllRules() {
  std::vector<FusionRule> rules = {
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
      // Q, K and V of attention, gate and up of a gated layer.
      {"layers of one factor",
       "$t=linear($x, $w, $b)",
       {"f32 x", "matrix w", "constant w", "constant b", "activation t none"},
       "linear($x, $w, $b)",
       "x"},
      {"products of one factor",
       "matmul($x, $w)",
       {"f32 x", "matrix w", "constant w"},
       "matmul($x, $w)",
       "x"},
      {"residual + layer norm",
       "$t=layer_norm($s=add($x, $r), $w, $b)",
       {"f32 x", "same x r", "constant w", "constant b"},
       "add_layer_norm($x, $r, $w, $b){like=t}",
       "",
       "s"},
      {"residual + rms norm",
       "$t=rms_norm($s=add($x, $r), $w)",
       {"f32 x", "same x r", "constant w"},
       "add_rms_norm($x, $r, $w){like=t}",
       "",
       "s"},
  };
  for (FusionRule& rule : AttentionRules()) rules.push_back(std::move(rule));
  return rules;
}

}  // namespace

const std::vector<FusionRule>& FusionRules() {
  static const auto* const rules = new std::vector<FusionRule>(AllRules());
  return *rules;
}

}  // namespace optrail::graph

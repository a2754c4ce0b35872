#ifndef OPTRAIL_GRAPH_FUSION_FUSION_H_
#define OPTRAIL_GRAPH_FUSION_FUSION_H_

// Fuse rewrites a graph by rules: where a pattern stands and its conditions
// hold, one node takes the place of several.
//
//   FusionReport report;
//   OPTRAIL_ASSIGN_OR_RETURN(const Graph fused,
//                            Fuse(graph, FusionRules(), &report));
//   for (const FusionDecision& decision : report) Use(decision.why_not);
//
// A rule is data (rules.cc):
//
//   pattern    relu($t=linear($x, $w, $b))
//   conditions "activation t none"
//   result     linear($x, $w, $b){activation=relu}
//
// $x is any value, the same wherever it stands; $t=... names what a part
// matches; a number is a constant with that one value, and #e any constant of
// one element, which attributes of the result may use; {like=t} gives it those
// of what $t matched, and 1:b is a constant of ones like $b. Operands of add
// and mul match in either order. Nothing but the pattern itself may read what
// its inner nodes compute, else it is not applied: "the result has two
// consumers".

#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "graph/ir/graph.h"

namespace optrail::graph {

struct FusionRule {
  std::string name;
  std::string pattern;
  // Each "KIND NAME ARGUMENT...": conditions.h lists them.
  std::vector<std::string> conditions;
  std::string result;
  // "x": the rule is for several nodes that read one $x. Their other operands,
  // which must be constants, are joined along the last axis, and each node's
  // result is its columns of the one that `result` makes.
  std::string shared = {};
  // "s": others may read what $s matched, the second result of `result`.
  std::string kept = {};
};

// In the order in which they are applied.
const std::vector<FusionRule>& FusionRules();

struct FusionDecision {
  std::string rule;
  std::string node;     // the last one of the pattern
  std::string why_not;  // "": applied
};
using FusionReport = std::vector<FusionDecision>;

// A place where a rule applies, by itself: what it replaces, with the views
// that lead there, and what comes instead. Images are channels-last, as a
// runner has them.
struct FusionSite {
  std::string rule;
  // "conv(f32[1,64,56,56],f32[64,64,3,3]){...}; ...": the same for equal ones.
  std::string text;
  Graph unfused, fused;
};

// Why a rule is not to be applied at a site; "": it is.
using FusionChooser =
    std::function<absl::StatusOr<std::string>(const FusionSite&)>;

// InvalidArgument names a rule that cannot be read; errors of `choose`, which
// is asked wherever a rule could be applied. Without one all are.
absl::StatusOr<Graph> Fuse(const Graph& graph,
                           const std::vector<FusionRule>& rules,
                           FusionReport* report,
                           const FusionChooser& choose = nullptr);

// What kernels want and no rule decides: a convolution's bias and a batch norm
// of constants become products and sums, which join the loops around them;
// additions of zeros and products with ones go.
absl::StatusOr<Graph> Simplify(const Graph& graph);

}  // namespace optrail::graph

#endif  // OPTRAIL_GRAPH_FUSION_FUSION_H_

#ifndef OPTRAIL_GRAPH_FUSION_CONDITIONS_H_
#define OPTRAIL_GRAPH_FUSION_CONDITIONS_H_

// Conditions are what a fusion rule asks of the values that its pattern
// matched, beside their operators:
//
//   const std::string why = WhyNot(graph, "vector b w", match);
//   if (!why.empty()) Use(why);   // "b is f32[8], not a row of 16"
//
// Each condition is "KIND NAME ARGUMENT...":
//
//   f32 x          its type
//   matrix w       two dimensions
//   constant w     known before calls
//   vector b w     as long as the rows of w; row w x is the same
//   activation t none
//   last_axis t    a reduction along the last axis that keeps it, or softmax
//   heads q k v    [b,h,m,d], [b,h,d,n] and [b,h,n,d]
//   scale q s      s is 1 / sqrt(the last dimension of q)
//   divisor q s    s is its reciprocal
//   scales q s t   s * t is that scale
//   same x r       both have one type and the same dimensions
//   causal m q k   m adds nothing up to the diagonal and hides what is beyond
//   channels s w   an element for each filter of w, along dimension 1
//   plain_conv t   two dimensions, not grouped or dilated, padded evenly

#include <map>
#include <string>

#include "graph/ir/graph.h"

namespace optrail::graph {

// The values and numbers that a pattern matched, by name.
struct MatchedNames {
  std::map<std::string, int> values;
  std::map<std::string, double> scalars;
};

// Why the condition does not hold; "" if it does.
std::string WhyNot(const Graph& graph, const std::string& condition,
                   const MatchedNames& match);

}  // namespace optrail::graph

#endif  // OPTRAIL_GRAPH_FUSION_CONDITIONS_H_

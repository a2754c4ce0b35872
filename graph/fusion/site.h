#ifndef OPTRAIL_GRAPH_FUSION_SITE_H_
#define OPTRAIL_GRAPH_FUSION_SITE_H_

// SiteOf cuts the place where a rule applies out of a graph, to be measured by
// itself.
//
//   OPTRAIL_ASSIGN_OR_RETURN(const FusionSite site,
//                            SiteOf(graph, rule, nodes, results));
//
// `nodes` are those that the rule's pattern matched, `results` the values that
// others read. Reshapes, transposes, slices and expansions before them
// come along, since kernels read through them.

#include <set>
#include <vector>

#include "absl/status/statusor.h"
#include "graph/fusion/fusion.h"
#include "graph/ir/graph.h"

namespace optrail::graph {

absl::StatusOr<FusionSite> SiteOf(const Graph& graph, const FusionRule& rule,
                                  const std::set<int>& nodes,
                                  const std::vector<int>& results);

}  // namespace optrail::graph

#endif  // OPTRAIL_GRAPH_FUSION_SITE_H_

#ifndef OPTRAIL_GRAPH_FUSION_PATTERN_H_
#define OPTRAIL_GRAPH_FUSION_PATTERN_H_

// Patterns of fusion rules: their text, and whether one stands at a value.
//
//   OPTRAIL_ASSIGN_OR_RETURN(const Term term,
//                            ParseTerm("relu($t=linear($x, $w, $b))"));
//   Match match;
//   if (Matches(graph, term, value, match)) Use(match.values.at("x"));
//
// fusion.h describes the notation.

#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "graph/fusion/conditions.h"
#include "graph/ir/graph.h"

namespace optrail::graph {

// A part of a pattern or of a result.
struct Term {
  enum class Kind { kAny, kNumber, kScalar, kNode };
  Kind kind = Kind::kAny;
  std::string name;  // of $name, #name, $name=... or 1:name
  double number = 0;
  std::string op;
  std::vector<Term> inputs;
  std::map<std::string, std::string> attributes;
};

// InvalidArgument says where something else was expected.
absl::StatusOr<Term> ParseTerm(absl::string_view text);

struct Match : MatchedNames {
  std::set<int> nodes;
};

// True if the term stands at `value`. Adds to `match`, which is of no use where
// it does not. Operands of add and mul are tried in both orders.
bool Matches(const Graph& graph, const Term& term, int value, Match& match);

}  // namespace optrail::graph

#endif  // OPTRAIL_GRAPH_FUSION_PATTERN_H_

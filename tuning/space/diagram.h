#ifndef OPTRAIL_TUNING_SPACE_DIAGRAM_H_
#define OPTRAIL_TUNING_SPACE_DIAGRAM_H_

// Diagram holds every valid config of a group of knobs that constraints tie
// together, as a multi-valued decision diagram: one layer per knob, one edge
// per level that can still lead to a valid config, and nodes that many prefixes
// share. Counting, the index-th config and exactly uniform samples cost one
// walk from the root, however many configs there are.
//
// Two prefixes share a node when the constraints still open can't tell them
// apart: when all their parts that are already determined (Expression::Cuts)
// have equal values. For `mc * kc * 4 <= hw.l2_bytes` that is the product, not
// the pair. So a space of 10^9 combinations often has some thousand nodes.
//
// The idea is that of Bryant's binary diagrams ("Graph-based algorithms for
// Boolean function manipulation", 1986), built top down with memoisation.

#include <cstdint>
#include <vector>

#include "absl/types/optional.h"
#include "absl/types/span.h"
#include "tuning/space/expression.h"

namespace optrail::tuning {

// Which configs a diagram keeps with regard to each constraint.
enum class Accept {
  kHolds,
  kHasNoValue,  // to count evaluation errors
};

class Diagram {
 public:
  // Beyond these a diagram is given up; they bound memory (about 300 MB) and
  // time (a few seconds).
  static constexpr size_t kMaxNodes = size_t{1} << 20;
  static constexpr size_t kMaxEdges = size_t{1} << 23;
  static constexpr int64_t kMaxEvaluations = int64_t{1} << 28;

  static constexpr uint32_t kLeaf = ~uint32_t{0};

  struct Edge {
    int64_t before;  // configs below the earlier edges of the node
    uint32_t child;
    uint16_t level;
  };
  struct Node {
    int64_t count;  // configs below
    uint32_t first_edge;
    uint16_t edge_count;
    uint16_t layer;
  };

  // `knobs` ascend and index `values` (one vector per knob of the space: the
  // number that expressions see for each level). `constraints` are bound, read
  // at least one knob, and only these. nullopt beyond a limit, or if the count
  // exceeds 2^62.
  static absl::optional<Diagram> Build(
      std::vector<int> knobs, absl::Span<const std::vector<int64_t>> values,
      const std::vector<Expression>& constraints,
      Accept accept = Accept::kHolds);

  const std::vector<int>& knobs() const { return knobs_; }
  int64_t count() const { return nodes_.empty() ? 0 : nodes_[root_].count; }
  // Valid unless count() is 0.
  uint32_t root() const { return root_; }

  // Children come before their parents.
  const std::vector<Node>& nodes() const { return nodes_; }
  absl::Span<const Edge> edges(uint32_t node) const {
    return absl::MakeConstSpan(edges_.data() + nodes_[node].first_edge,
                               nodes_[node].edge_count);
  }
  int64_t CountBelow(uint32_t node) const {
    return node == kLeaf ? 1 : nodes_[node].count;
  }

  // nullptr if no valid config goes there.
  const Edge* EdgeOfLevel(uint32_t node, uint16_t level) const;
  // The edge below which the index-th config of the node lies.
  const Edge& EdgeOfIndex(uint32_t node, int64_t index) const;

 private:
  friend class DiagramBuilder;
  std::vector<int> knobs_;
  std::vector<Node> nodes_;
  std::vector<Edge> edges_;
  uint32_t root_ = kLeaf;
};

}  // namespace optrail::tuning

#endif  // OPTRAIL_TUNING_SPACE_DIAGRAM_H_

#include "tuning/space/diagram.h"

#include <algorithm>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/container/inlined_vector.h"

namespace optrail::tuning {

class DiagramBuilder {
 public:
  DiagramBuilder(Diagram* diagram,
                 absl::Span<const std::vector<int64_t>> values,
                 const std::vector<Expression>& constraints, Accept accept)
      : diagram_(*diagram),
        values_(values),
        accept_(accept),
        layers_(diagram->knobs_.size()) {
    Frame frame(static_cast<int>(values.size()));
    uint64_t bound = 0;
    for (size_t layer = 0; layer < layers_.size(); ++layer) {
      const uint64_t before = bound;
      bound |= uint64_t{1} << diagram->knobs_[layer];
      absl::flat_hash_set<std::string> seen;
      for (const Expression& constraint : constraints) {
        const bool was_decided = (constraint.knobs() & ~before) == 0;
        if (was_decided) continue;
        if ((constraint.knobs() & ~bound) == 0) {
          layers_[layer].checks.push_back(frame.Compile(constraint));
        }
        for (const Expression& cut : constraint.Cuts(before)) {
          if (seen.insert(cut.CanonicalText()).second) {
            layers_[layer].cuts.push_back(frame.Compile(cut));
          }
        }
      }
    }
    slots_ = frame.slots();
  }

  // Returns true if the diagram is complete.
  bool Run() {
    const uint32_t root = Visit(0);
    if (gave_up_) return false;
    if (root == kDead) {
      diagram_.nodes_.clear();
      diagram_.edges_.clear();
    } else {
      diagram_.root_ = root;
    }
    diagram_.nodes_.shrink_to_fit();
    diagram_.edges_.shrink_to_fit();
    return true;
  }

 private:
  static constexpr uint32_t kDead = Diagram::kLeaf - 1;
  using Key = absl::InlinedVector<int64_t, 4>;

  struct Layer {
    // Decided once this layer's knob has a value.
    std::vector<SlotProgram> checks;
    // The parts of open constraints that read earlier knobs alone: Cuts().
    std::vector<SlotProgram> cuts;
    absl::flat_hash_map<Key, uint32_t> nodes;
    std::vector<Diagram::Edge> edges;  // of the node under construction
  };

  uint32_t Visit(size_t depth) {
    if (depth == layers_.size()) return Diagram::kLeaf;
    Layer& layer = layers_[depth];
    Key key = MakeKey(layer);
    const auto found = layer.nodes.find(key);
    if (found != layer.nodes.end()) return found->second;

    const int knob = diagram_.knobs_[depth];
    const std::vector<int64_t>& values = values_[knob];
    layer.edges.clear();
    int64_t count = 0;
    for (size_t level = 0; level < values.size(); ++level) {
      if (++evaluations_ > Diagram::kMaxEvaluations) gave_up_ = true;
      if (gave_up_) return kDead;
      slots_[knob] = values[level];
      if (!Accepted(layer)) continue;
      const uint32_t child = Visit(depth + 1);
      if (child == kDead) continue;
      layer.edges.push_back({count, child, static_cast<uint16_t>(level)});
      count += diagram_.CountBelow(child);
      if (count > int64_t{1} << 62) gave_up_ = true;
    }
    const uint32_t node = layer.edges.empty() ? kDead : AddNode(depth, count);
    layer.nodes.emplace(std::move(key), node);
    if (++visited_ > Diagram::kMaxNodes) gave_up_ = true;
    return node;
  }

  uint32_t AddNode(size_t depth, int64_t count) {
    const std::vector<Diagram::Edge>& edges = layers_[depth].edges;
    if (diagram_.edges_.size() + edges.size() > Diagram::kMaxEdges) {
      gave_up_ = true;
      return kDead;
    }
    diagram_.nodes_.push_back(
        {count, static_cast<uint32_t>(diagram_.edges_.size()),
         static_cast<uint16_t>(edges.size()), static_cast<uint16_t>(depth)});
    diagram_.edges_.insert(diagram_.edges_.end(), edges.begin(), edges.end());
    return static_cast<uint32_t>(diagram_.nodes_.size() - 1);
  }

  bool Accepted(const Layer& layer) {
    for (const SlotProgram& check : layer.checks) {
      const EvalError error = check.Run(slots_.data());
      const bool accepted =
          accept_ == Accept::kHolds
              ? error == EvalError::kNone && slots_[check.result()] != 0
              : error != EvalError::kNone;
      if (!accepted) return false;
    }
    return true;
  }

  // One entry per cut, then the positions of those without a value: "no value"
  // is a value of its own.
  Key MakeKey(const Layer& layer) {
    Key key;
    Key without_value;
    for (size_t i = 0; i < layer.cuts.size(); ++i) {
      const SlotProgram& cut = layer.cuts[i];
      if (cut.Run(slots_.data()) == EvalError::kNone) {
        key.push_back(slots_[cut.result()]);
      } else {
        key.push_back(0);
        without_value.push_back(static_cast<int64_t>(i));
      }
    }
    key.insert(key.end(), without_value.begin(), without_value.end());
    return key;
  }

  Diagram& diagram_;
  const absl::Span<const std::vector<int64_t>> values_;
  const Accept accept_;
  std::vector<Layer> layers_;
  std::vector<int64_t> slots_;
  int64_t evaluations_ = 0;
  size_t visited_ = 0;
  bool gave_up_ = false;
};

absl::optional<Diagram> Diagram::Build(
    std::vector<int> knobs, absl::Span<const std::vector<int64_t>> values,
    const std::vector<Expression>& constraints, Accept accept) {
  Diagram diagram;
  diagram.knobs_ = std::move(knobs);
  DiagramBuilder builder(&diagram, values, constraints, accept);
  if (!builder.Run()) return absl::nullopt;
  return diagram;
}

const Diagram::Edge* Diagram::EdgeOfLevel(uint32_t node, uint16_t level) const {
  const absl::Span<const Edge> all = edges(node);
  // Where every level has an edge, the level is its index.
  if (level < all.size() && all[level].level == level) return &all[level];
  const auto found = std::lower_bound(
      all.begin(), all.end(), level,
      [](const Edge& edge, uint16_t wanted) { return edge.level < wanted; });
  return found != all.end() && found->level == level ? &*found : nullptr;
}

const Diagram::Edge& Diagram::EdgeOfIndex(uint32_t node, int64_t index) const {
  const absl::Span<const Edge> all = edges(node);
  return *(std::upper_bound(all.begin(), all.end(), index,
                            [](int64_t wanted, const Edge& edge) {
                              return wanted < edge.before;
                            }) -
           1);
}

}  // namespace optrail::tuning

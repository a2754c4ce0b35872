#include "graph/training/recompute.h"

#include <algorithm>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/types/optional.h"
#include "base/status_macros.h"
#include "graph/fusion/copier.h"
#include "graph/ir/ops.h"

namespace optrail::graph {
namespace {

// A step that frees bytes for nothing is taken first.
constexpr double kLeastNs = 1;

// Which nodes the backward pass runs again, and what it reads instead. Of
// `keepable`, if that is given, are all values that are kept.
class Recomputation {
 public:
  Recomputation(const TrainingGraph& training, const std::set<int>& dropped,
                const std::set<int>* keepable = nullptr)
      : graph_(training.graph),
        forward_nodes_(training.forward_nodes),
        dropped_(dropped),
        keepable_(keepable) {}

  // Calls repeat(node) for every node that runs again, after those that it
  // reads, and before(node) for each node of the backward pass.
  template <class Repeat, class Before>
  absl::Status ForEach(const Repeat& repeat, const Before& before) {
    for (size_t n = forward_nodes_; n < graph_.nodes.size(); ++n) {
      for (const int input : graph_.nodes[n].inputs) {
        OPTRAIL_RETURN_IF_ERROR(Bring(input, repeat));
      }
      OPTRAIL_RETURN_IF_ERROR(before(graph_.nodes[n]));
    }
    return absl::OkStatus();
  }

  // The values of the forward pass that are read after it.
  const std::set<int>& kept() const { return kept_; }

 private:
  template <class Repeat>
  absl::Status Bring(int value, const Repeat& repeat) {
    if (value < 0 || brought_.count(value) > 0) return absl::OkStatus();
    const int producer = graph_.values[value].producer;
    if (producer < 0 || producer >= forward_nodes_) return absl::OkStatus();
    brought_.insert(value);
    const Node& node = graph_.nodes[producer];
    if (!IsView(node) && dropped_.count(value) == 0 &&
        (keepable_ == nullptr || keepable_->count(value) > 0)) {
      kept_.insert(value);
      return absl::OkStatus();
    }
    for (const int input : node.inputs) {
      OPTRAIL_RETURN_IF_ERROR(Bring(input, repeat));
    }
    return repeat(node);
  }

  const Graph& graph_;
  const int forward_nodes_;
  const std::set<int>& dropped_;
  const std::set<int>* const keepable_;
  std::set<int> brought_, kept_;
};

absl::Status Nothing(const Node& node) { return absl::OkStatus(); }

// Values that are equal but for the layer: what computes them and what reads
// them.
std::map<std::string, std::set<int>> KindsOf(const TrainingGraph& training,
                                             const std::set<int>& values) {
  const Graph& graph = training.graph;
  const std::vector<std::vector<int>> consumers = graph.Consumers();
  std::map<std::string, std::set<int>> kinds;
  for (const int value : values) {
    const Node& node = graph.nodes[graph.values[value].producer];
    std::vector<std::string> readers;
    for (const int reader : consumers[value]) {
      if (reader < training.forward_nodes) {
        readers.push_back(graph.nodes[reader].op);
      }
    }
    std::sort(readers.begin(), readers.end());
    kinds[absl::StrCat(node.op, " ", TypeText(graph.type(value)),
                       readers.empty() ? "" : ", read by ",
                       absl::StrJoin(readers, " "))]
        .insert(value);
  }
  return kinds;
}

}  // namespace

int64_t KeptBytes(const TrainingGraph& training, const std::set<int>& dropped) {
  Recomputation all(training, dropped);
  (void)all.ForEach(Nothing, Nothing);
  int64_t bytes = 0;
  for (const int value : all.kept()) {
    bytes += training.graph.type(value).bytes();
  }
  return bytes;
}

absl::StatusOr<Graph> Recompute(const TrainingGraph& training,
                                const std::set<int>& dropped) {
  const Graph& graph = training.graph;
  Copier copier(graph);
  for (int n = 0; n < training.forward_nodes; ++n) {
    OPTRAIL_RETURN_IF_ERROR(copier.CopyNode(graph.nodes[n]));
  }
  // Outputs are those of the forward pass, not what is computed again.
  std::map<int, int> first;
  for (const int output : graph.outputs) first[output] = copier.Get(output);
  std::set<int> again;
  Recomputation all(training, dropped);
  OPTRAIL_RETURN_IF_ERROR(all.ForEach(
      [&](const Node& node) {
        again.insert(node.outputs.begin(), node.outputs.end());
        return copier.CopyNode(node);
      },
      [&](const Node& node) { return copier.CopyNode(node); }));
  for (const auto& [output, value] : first) {
    if (again.count(output) > 0) copier.Alias(output, value);
  }
  return copier.Done();
}

absl::StatusOr<std::vector<RecomputePoint>> RecomputeFront(
    const TrainingGraph& training, const NodeCost& cost) {
  const Graph& graph = training.graph;
  const auto point_of = [&](std::set<int> dropped,
                            const std::set<int>* keepable) {
    RecomputePoint point;
    Recomputation all(training, dropped, keepable);
    std::set<int> again;
    (void)all.ForEach(
        [&](const Node& node) {
          if (IsView(node)) return absl::OkStatus();
          point.added_ns += cost(graph, node);
          again.insert(node.outputs.begin(), node.outputs.end());
          return absl::OkStatus();
        },
        Nothing);
    for (const int value : all.kept()) {
      point.kept_bytes += graph.type(value).bytes();
    }
    point.dropped = std::move(dropped);
    point.dropped.insert(again.begin(), again.end());
    return point;
  };
  std::vector<RecomputePoint> front = {point_of({}, nullptr)};
  front[0].what = "nothing";
  while (true) {
    const RecomputePoint& last = front.back();
    Recomputation all(training, last.dropped);
    OPTRAIL_RETURN_IF_ERROR(all.ForEach(Nothing, Nothing));
    absl::optional<RecomputePoint> best;
    double most = 0;
    for (const auto& [kind, values] : KindsOf(training, all.kept())) {
      std::set<int> dropped = last.dropped;
      dropped.insert(values.begin(), values.end());
      // Their operands are kept in their place, or are computed again from
      // what is kept now.
      const std::set<int>* const no_limit = nullptr;
      for (const std::set<int>* keepable : {no_limit, &all.kept()}) {
        RecomputePoint point = point_of(dropped, keepable);
        const auto freed =
            static_cast<double>(last.kept_bytes - point.kept_bytes);
        const double worth =
            freed / std::max(kLeastNs, point.added_ns - last.added_ns);
        if (worth <= most) continue;
        most = worth;
        point.what = absl::StrCat(values.size(), " x ", kind);
        best = std::move(point);
      }
    }
    if (!best.has_value()) return front;
    front.push_back(*std::move(best));
  }
}

}  // namespace optrail::graph

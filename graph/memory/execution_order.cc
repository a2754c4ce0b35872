#include "graph/memory/execution_order.h"

#include <algorithm>
#include <functional>
#include <queue>
#include <tuple>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/random.h"
#include "base/status_macros.h"
#include "graph/memory/problem.h"

namespace optrail::graph {
namespace {

constexpr int64_t kMostBytes = int64_t{1} << 60;

// The graph with every list without repetitions, and both directions.
struct Flow {
  std::vector<int64_t> bytes;           // of each tensor
  std::vector<std::vector<int>> reads;  // of each node
  std::vector<std::vector<int>> writes;
  std::vector<int64_t> workspace;
  std::vector<int> readers;  // of each tensor; one more if it is an output
  std::vector<std::vector<int>> before, after;  // neighbours of each node
  int64_t at_start = 0;  // bytes of tensors that no node writes

  int size() const { return static_cast<int>(reads.size()); }
};

absl::Status NodeError(const DataflowNode& node, absl::string_view what) {
  return absl::InvalidArgumentError(
      absl::StrCat("node \"", node.name, "\": ", what));
}

std::vector<int> Unique(std::vector<int> items) {
  std::sort(items.begin(), items.end());
  items.erase(std::unique(items.begin(), items.end()), items.end());
  return items;
}

absl::Status CheckTensors(const Dataflow& flow, const DataflowNode& node,
                          const std::vector<int>& tensors,
                          absl::string_view verb) {
  const int count = static_cast<int>(flow.tensor_bytes.size());
  for (const int tensor : tensors) {
    if (tensor >= 0 && tensor < count) continue;
    return NodeError(node, absl::StrCat(verb, " tensor ", tensor,
                                        ", expected 0 to ", count - 1));
  }
  return absl::OkStatus();
}

absl::Status CheckSizes(const Dataflow& flow) {
  int64_t sum = 0;
  const auto add = [&](int64_t bytes) {
    if (bytes < 0 || bytes > kMostBytes - sum) return false;
    sum += bytes;
    return true;
  };
  for (size_t i = 0; i < flow.tensor_bytes.size(); ++i) {
    if (add(flow.tensor_bytes[i])) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        "tensor ", i, ": ", flow.tensor_bytes[i],
        " bytes, expected at least 0, and at most 2^60 in all tensors"));
  }
  for (const DataflowNode& node : flow.nodes) {
    if (add(node.workspace_bytes)) continue;
    return NodeError(node, absl::StrCat("workspace of ", node.workspace_bytes,
                                        " bytes, expected at least 0, and at "
                                        "most 2^60 in all"));
  }
  return absl::OkStatus();
}

absl::StatusOr<Flow> MakeFlow(const Dataflow& from) {
  OPTRAIL_RETURN_IF_ERROR(CheckSizes(from));
  Flow flow;
  flow.bytes = from.tensor_bytes;
  flow.readers.assign(from.tensor_bytes.size(), 0);
  std::vector<int> writer(from.tensor_bytes.size(), -1);
  for (const DataflowNode& node : from.nodes) {
    OPTRAIL_RETURN_IF_ERROR(CheckTensors(from, node, node.reads, "reads"));
    OPTRAIL_RETURN_IF_ERROR(CheckTensors(from, node, node.writes, "writes"));
    flow.reads.push_back(Unique(node.reads));
    flow.writes.push_back(Unique(node.writes));
    flow.workspace.push_back(node.workspace_bytes);
    for (const int tensor : flow.reads.back()) ++flow.readers[tensor];
    for (const int tensor : flow.writes.back()) {
      if (writer[tensor] >= 0) {
        return NodeError(
            node,
            absl::StrCat("writes tensor ", tensor, ", which \"",
                         from.nodes[writer[tensor]].name, "\" writes, too"));
      }
      writer[tensor] = flow.size() - 1;
    }
  }
  for (const int tensor : Unique(from.outputs)) {
    if (tensor < 0 || tensor >= static_cast<int>(flow.bytes.size())) {
      return absl::InvalidArgumentError(
          absl::StrCat("output: tensor ", tensor, ", expected 0 to ",
                       static_cast<int64_t>(flow.bytes.size()) - 1));
    }
    ++flow.readers[tensor];
  }
  flow.before.resize(flow.size());
  flow.after.resize(flow.size());
  for (int n = 0; n < flow.size(); ++n) {
    for (const int tensor : flow.reads[n]) {
      if (writer[tensor] >= 0) flow.before[n].push_back(writer[tensor]);
    }
    flow.before[n] = Unique(std::move(flow.before[n]));
    for (const int m : flow.before[n]) flow.after[m].push_back(n);
  }
  for (size_t tensor = 0; tensor < writer.size(); ++tensor) {
    if (writer[tensor] < 0 && flow.readers[tensor] > 0) {
      flow.at_start += flow.bytes[tensor];
    }
  }
  return flow;
}

// What is live while the nodes run one after another.
class Execution {
 public:
  explicit Execution(const Flow& flow)
      : flow_(flow), readers_(flow.readers), live_(flow.at_start) {}

  // Bytes that are live while node n runs, and after it.
  std::pair<int64_t, int64_t> Preview(int n) const {
    int64_t during = live_, ended = 0;
    for (const int tensor : flow_.writes[n]) {
      during += flow_.bytes[tensor];
      if (readers_[tensor] == 0) ended += flow_.bytes[tensor];
    }
    for (const int tensor : flow_.reads[n]) {
      if (readers_[tensor] == 1) ended += flow_.bytes[tensor];
    }
    return {during + flow_.workspace[n], during - ended};
  }
  void Run(int n) {
    const auto [during, after] = Preview(n);
    peak_ = std::max(peak_, during);
    live_ = after;
    for (const int tensor : flow_.reads[n]) --readers_[tensor];
  }
  int64_t peak() const { return std::max(peak_, flow_.at_start); }

 private:
  const Flow& flow_;
  std::vector<int> readers_;  // that have not run
  int64_t live_;
  int64_t peak_ = 0;
};

int64_t PeakOf(const Flow& flow, const std::vector<int>& order) {
  Execution execution(flow);
  for (const int n : order) execution.Run(n);
  return execution.peak();
}

// Runs the ready node with the least `key`; shorter where there is a cycle.
template <typename Key>
std::vector<int> ListSchedule(const Flow& flow, Key key) {
  std::vector<int> missing;
  std::vector<int> ready, order;
  for (int n = 0; n < flow.size(); ++n) {
    missing.push_back(static_cast<int>(flow.before[n].size()));
    if (missing[n] == 0) ready.push_back(n);
  }
  Execution execution(flow);
  while (!ready.empty()) {
    size_t best = 0;
    auto best_key = key(execution, ready[0]);
    for (size_t i = 1; i < ready.size(); ++i) {
      const auto candidate = key(execution, ready[i]);
      if (candidate < best_key) {
        best = i;
        best_key = candidate;
      }
    }
    const int n = ready[best];
    ready[best] = ready.back();
    ready.pop_back();
    execution.Run(n);
    order.push_back(n);
    for (const int m : flow.after[n]) {
      if (--missing[m] == 0) ready.push_back(m);
    }
  }
  return order;
}

std::vector<int> InputOrder(const Flow& flow) {
  std::vector<int> order;
  std::vector<int> missing;
  std::priority_queue<int, std::vector<int>, std::greater<int>> ready;
  for (int n = 0; n < flow.size(); ++n) {
    missing.push_back(static_cast<int>(flow.before[n].size()));
    if (missing[n] == 0) ready.push(n);
  }
  while (!ready.empty()) {
    const int n = ready.top();
    ready.pop();
    order.push_back(n);
    for (const int m : flow.after[n]) {
      if (--missing[m] == 0) ready.push(m);
    }
  }
  return order;
}

// The least that any order needs while one node runs.
int64_t NodeBound(const Flow& flow) {
  int64_t bound = flow.at_start;
  for (int n = 0; n < flow.size(); ++n) {
    int64_t bytes = flow.workspace[n];
    for (const int tensor : flow.writes[n]) bytes += flow.bytes[tensor];
    for (const int tensor : flow.reads[n]) bytes += flow.bytes[tensor];
    bound = std::max(bound, bytes);
  }
  return bound;
}

class OrderSearch {
 public:
  OrderSearch(const Flow& flow, std::vector<int> order,
              const ExecutionOrderOptions& options)
      : flow_(flow),
        deadline_(options.time_limit),
        most_states_(options.most_states),
        local_search_(options.local_search),
        rng_(options.seed),
        best_(std::move(order)),
        peak_(PeakOf(flow, best_)),
        bound_(NodeBound(flow)) {}

  void Run() {
    const auto greedy = [](const Execution& execution, int n) {
      const auto [during, after] = execution.Preview(n);
      return std::make_tuple(after, during, n);
    };
    Keep(ListSchedule(flow_, greedy));
    if (Done()) return;
    SearchSets();
    while (local_search_ && !Done()) {
      Disturb();
      Improve();
    }
  }
  const std::vector<int>& order() const { return best_; }
  int64_t peak() const { return peak_; }
  bool is_minimal() const { return peak_ <= bound_; }

 private:
  using NodeSet = std::vector<uint64_t>;
  using Queued = std::pair<int64_t, NodeSet>;  // by peak
  struct Reached {
    int64_t peak;  // the least so far
    int last;      // the node that ran last; -1: none did
  };

  static bool Has(const NodeSet& set, int n) {
    return (set[n / 64] >> (n % 64) & 1) != 0;
  }

  bool Done() const { return peak_ <= bound_ || deadline_.Passed(); }
  void Keep(const std::vector<int>& order) {
    const int64_t peak = PeakOf(flow_, order);
    if (peak >= peak_) return;
    peak_ = peak;
    best_ = order;
  }
  // A list schedule whose preferences are off by a random share.
  void Disturb() {
    const double most = static_cast<double>(peak_) * rng_.UniformReal() / 2;
    std::vector<double> noise(flow_.size());
    for (double& one : noise) one = most * rng_.UniformReal();
    current_ = ListSchedule(flow_, [&](const Execution& execution, int n) {
      return static_cast<double>(execution.Preview(n).second) + noise[n];
    });
    Keep(current_);
    if (rng_.UniformInt(2) == 0) current_ = best_;
  }
  void Improve();
  bool MoveOne(int64_t& peak);
  void SearchSets();
  void Expand(const NodeSet& set, int64_t peak);
  std::vector<int> OrderTo(NodeSet set) const;
  Execution Replay(const NodeSet& set) const;

  const Flow& flow_;
  const ProcessorDeadline deadline_;
  const size_t most_states_;
  const bool local_search_;
  Rng rng_;
  std::vector<int> best_, current_;
  int64_t peak_;
  int64_t bound_;
  absl::flat_hash_map<NodeSet, Reached> reached_;
  std::priority_queue<Queued, std::vector<Queued>, std::greater<Queued>> queue_;
};

void OrderSearch::Improve() {
  int64_t peak = PeakOf(flow_, current_);
  for (int failures = 0; failures < 4 * flow_.size() + 50 && !Done();) {
    const int64_t before = peak;
    if (MoveOne(peak) && peak < before) {
      failures = 0;
      Keep(current_);
    } else {
      ++failures;
    }
  }
}

// Moves a random node within what its neighbours allow. A move to an order with
// the same peak stays, too.
bool OrderSearch::MoveOne(int64_t& peak) {
  const int from = static_cast<int>(rng_.UniformInt(flow_.size()));
  const int n = current_[from];
  const auto is_in = [](const std::vector<int>& nodes, int m) {
    return std::find(nodes.begin(), nodes.end(), m) != nodes.end();
  };
  int low = from, high = from;
  while (low > 0 && !is_in(flow_.before[n], current_[low - 1])) --low;
  while (high + 1 < flow_.size() &&
         !is_in(flow_.after[n], current_[high + 1])) {
    ++high;
  }
  if (low == high) return false;
  int to = low + static_cast<int>(rng_.UniformInt(high - low));
  if (to >= from) ++to;
  std::vector<int> moved = current_;
  moved.erase(moved.begin() + from);
  moved.insert(moved.begin() + to, n);
  const int64_t moved_peak = PeakOf(flow_, moved);
  if (moved_peak > peak) return false;
  peak = moved_peak;
  current_ = std::move(moved);
  return true;
}

Execution OrderSearch::Replay(const NodeSet& set) const {
  Execution execution(flow_);
  for (int n = 0; n < flow_.size(); ++n) {
    if (Has(set, n)) execution.Run(n);
  }
  return execution;
}

// The sets that may follow `set`, whose least peak is `peak`.
void OrderSearch::Expand(const NodeSet& set, int64_t peak) {
  const Execution execution = Replay(set);
  for (int n = 0; n < flow_.size(); ++n) {
    if (Has(set, n) ||
        !std::all_of(flow_.before[n].begin(), flow_.before[n].end(),
                     [&](int m) { return Has(set, m); })) {
      continue;
    }
    const int64_t next_peak = std::max(peak, execution.Preview(n).first);
    if (next_peak >= peak_) continue;
    NodeSet next = set;
    next[n / 64] |= uint64_t{1} << (n % 64);
    const auto [it, is_new] = reached_.emplace(next, Reached{next_peak, n});
    if (!is_new && it->second.peak <= next_peak) continue;
    it->second = {next_peak, n};
    queue_.push({next_peak, std::move(next)});
  }
}

// The order in which the nodes of a reached set ran.
std::vector<int> OrderSearch::OrderTo(NodeSet set) const {
  std::vector<int> order;
  for (int n; (n = reached_.at(set).last) >= 0;) {
    order.push_back(n);
    set[n / 64] &= ~(uint64_t{1} << (n % 64));
  }
  std::reverse(order.begin(), order.end());
  return order;
}

// The bytes that are live depend on the set of nodes that ran, not on their
// order, so this is a shortest path whose length is its largest edge.
void OrderSearch::SearchSets() {
  NodeSet none((flow_.size() + 63) / 64, 0);
  reached_[none] = {flow_.at_start, -1};
  queue_.push({flow_.at_start, none});
  for (int count = 0; !queue_.empty(); ++count) {
    const auto [peak, set] = queue_.top();
    queue_.pop();
    if (peak > reached_[set].peak) continue;  // reached again, at less
    if (count % 16 == 0 && deadline_.Passed()) return;
    if (reached_.size() > most_states_) return;
    std::vector<int> order = OrderTo(set);
    if (static_cast<int>(order.size()) == flow_.size()) {
      Keep(order);
      break;
    }
    Expand(set, peak);
  }
  bound_ = peak_;  // every order with a smaller peak was ruled out
}

}  // namespace

absl::StatusOr<ExecutionOrder> FindExecutionOrder(
    const Dataflow& flow, const ExecutionOrderOptions& options) {
  OPTRAIL_ASSIGN_OR_RETURN(const Flow inner, MakeFlow(flow));
  const std::vector<int> given = InputOrder(inner);
  if (static_cast<int>(given.size()) < inner.size()) {
    std::vector<bool> ran(inner.size(), false);
    for (const int n : given) ran[n] = true;
    const int n = static_cast<int>(std::find(ran.begin(), ran.end(), false) -
                                   ran.begin());
    return NodeError(flow.nodes[n],
                     "is in a cycle, or behind one; expected none");
  }
  ExecutionOrder result;
  result.peak_before_bytes = PeakOf(inner, given);
  OrderSearch search(inner, given, options);
  search.Run();
  result.nodes = search.order();
  result.peak_bytes = search.peak();
  result.is_minimal = search.is_minimal();
  return result;
}

int64_t PeakBytes(const Dataflow& flow, const std::vector<int>& order) {
  const auto inner = MakeFlow(flow);
  return inner.ok() ? PeakOf(*inner, order) : 0;
}

std::vector<MemoryBuffer> LifetimesOf(const Dataflow& flow,
                                      const std::vector<int>& order) {
  const int64_t end = std::max<int64_t>(1, order.size());
  std::vector<MemoryBuffer> buffers(flow.tensor_bytes.size());
  for (size_t t = 0; t < buffers.size(); ++t) {
    buffers[t].id = absl::StrCat("tensor ", t);
    buffers[t].upper = 1;
  }
  for (int64_t time = 0; time < static_cast<int64_t>(order.size()); ++time) {
    const DataflowNode& node = flow.nodes[order[time]];
    for (const int tensor : node.writes) {
      buffers[tensor].lower = time;
      buffers[tensor].upper = time + 1;
      buffers[tensor].size_bytes = flow.tensor_bytes[tensor];
    }
    for (const int tensor : node.reads) {
      buffers[tensor].upper = std::max(buffers[tensor].upper, time + 1);
      buffers[tensor].size_bytes = flow.tensor_bytes[tensor];
    }
    if (node.workspace_bytes == 0) continue;
    MemoryBuffer workspace;
    workspace.id = absl::StrCat("workspace of ", node.name);
    workspace.lower = time;
    workspace.upper = time + 1;
    workspace.size_bytes = node.workspace_bytes;
    buffers.push_back(std::move(workspace));
  }
  for (const int tensor : flow.outputs) {
    buffers[tensor].upper = end;
    buffers[tensor].size_bytes = flow.tensor_bytes[tensor];
  }
  return buffers;
}

}  // namespace optrail::graph

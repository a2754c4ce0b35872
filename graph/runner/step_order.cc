#include "graph/runner/step_order.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "graph/memory/plan.h"
#include "graph/runner/arena.h"

namespace optrail::graph {
namespace {

// Returns the peak of the arena, in which buffers of a group share a place.
int64_t PeakOf(const Program& program) {
  struct Life {
    int64_t lower, upper, bytes;
  };
  std::map<std::string, Life> lives;  // by group
  for (const MemoryBuffer& buffer : FindArenaBuffers(program).buffers) {
    const Life life = {buffer.lower, buffer.upper, buffer.size_bytes};
    Life& group = lives.emplace(buffer.group, life).first->second;
    group = {std::min(group.lower, life.lower),
             std::max(group.upper, life.upper),
             std::max(group.bytes, life.bytes)};
  }
  std::map<int64_t, int64_t> change;  // of the live bytes, by step
  for (const auto& [group, life] : lives) {
    change[life.lower] += life.bytes;
    change[life.upper] -= life.bytes;
  }
  int64_t live = 0, peak = 0;
  for (const auto& [step, bytes] : change) {
    live += bytes;
    peak = std::max(peak, live);
  }
  return peak;
}

// The storages that a step reads and those that it writes.
struct Touched {
  std::set<int> reads, writes;
};

Touched TouchedBy(const Step& step) {
  Touched touched;
  const size_t reads = step.operands.size() - step.results;
  for (size_t i = 0; i < step.operands.size(); ++i) {
    (i < reads ? touched.reads : touched.writes)
        .insert(step.operands[i].storage);
  }
  return touched;
}

// What each step of a call reads and writes, every tensor once. A tensor has
// one writer at most.
struct Flow {
  struct Node {
    std::vector<int> reads, writes;
  };
  std::vector<int64_t> bytes;  // of each tensor
  std::vector<Node> nodes;
};

// Returns what the steps of a call read and write of the arena. Steps that use
// a storage of several writers keep their order: each writes a tensor of no
// bytes that the next one reads.
Flow FlowOf(const Program& program, const std::vector<int>& calls) {
  Flow flow;
  for (const Storage& storage : program.storages) {
    flow.bytes.push_back(storage.kind == Storage::Kind::kArena ? storage.bytes
                                                               : 0);
  }
  std::map<int, int> writers;
  for (const int call : calls) {
    for (const int storage : TouchedBy(program.steps[call]).writes) {
      ++writers[storage];
    }
  }
  std::map<int, int> token;  // the last user's, of a storage
  for (const int call : calls) {
    const Touched touched = TouchedBy(program.steps[call]);
    Flow::Node node;
    std::set<int> all = touched.reads;
    all.insert(touched.writes.begin(), touched.writes.end());
    for (const int storage : all) {
      const auto several = writers.find(storage);
      if (several == writers.end() || several->second == 1) {
        (touched.writes.count(storage) ? node.writes : node.reads)
            .push_back(storage);
        continue;
      }
      const auto [last, is_first] = token.emplace(storage, -1);
      (is_first ? node.writes : node.reads).push_back(storage);
      if (!is_first) node.reads.push_back(last->second);
      last->second = static_cast<int>(flow.bytes.size());
      node.writes.push_back(last->second);
      flow.bytes.push_back(0);
    }
    flow.nodes.push_back(std::move(node));
  }
  return flow;
}

// List scheduling: the next node is the one that leaves the fewest bytes live.
// Ties go to the node that needs fewer bytes while it runs, then to the first.
std::vector<int> GreedyOrder(const Flow& flow, const std::set<int>& outputs) {
  std::vector<std::vector<int>> readers(flow.bytes.size());
  std::vector<int> pending(flow.bytes.size(), 0);  // readers that have not run
  std::vector<int> missing(flow.nodes.size(), 0);  // inputs not yet written
  for (const int tensor : outputs) ++pending[tensor];
  for (size_t n = 0; n < flow.nodes.size(); ++n) {
    for (const int tensor : flow.nodes[n].reads) {
      readers[tensor].push_back(static_cast<int>(n));
      ++pending[tensor];
    }
  }
  for (const Flow::Node& node : flow.nodes) {
    for (const int tensor : node.writes) {
      for (const int reader : readers[tensor]) ++missing[reader];
    }
  }
  const auto cost = [&](int n) {
    int64_t during = 0, ended = 0;
    for (const int tensor : flow.nodes[n].writes) {
      during += flow.bytes[tensor];
      if (pending[tensor] == 0) ended += flow.bytes[tensor];
    }
    for (const int tensor : flow.nodes[n].reads) {
      if (pending[tensor] == 1) ended += flow.bytes[tensor];
    }
    return std::make_tuple(during - ended, during, n);
  };
  std::set<int> ready;
  for (size_t n = 0; n < flow.nodes.size(); ++n) {
    if (missing[n] == 0) ready.insert(static_cast<int>(n));
  }
  std::vector<int> order;
  while (!ready.empty()) {
    const int next =
        *std::min_element(ready.begin(), ready.end(),
                          [&](int a, int b) { return cost(a) < cost(b); });
    ready.erase(next);
    order.push_back(next);
    for (const int tensor : flow.nodes[next].reads) --pending[tensor];
    for (const int tensor : flow.nodes[next].writes) {
      for (const int reader : readers[tensor]) {
        if (--missing[reader] == 0) ready.insert(reader);
      }
    }
  }
  return order;
}

}  // namespace

OrderGain OrderSteps(Program* program) {
  OrderGain gain;
  gain.before_bytes = gain.after_bytes = PeakOf(*program);
  std::vector<int> calls;
  Program ordered = *program;
  ordered.steps.clear();
  for (size_t i = 0; i < program->steps.size(); ++i) {
    if (program->steps[i].prepared) {
      ordered.steps.push_back(program->steps[i]);
    } else {
      calls.push_back(static_cast<int>(i));
    }
  }
  std::set<int> outputs;
  for (const View& view : program->outputs) outputs.insert(view.storage);
  for (const int place : GreedyOrder(FlowOf(*program, calls), outputs)) {
    ordered.steps.push_back(program->steps[calls[place]]);
  }
  const int64_t peak = PeakOf(ordered);
  if (peak >= gain.before_bytes) return gain;
  gain.after_bytes = peak;
  *program = std::move(ordered);
  return gain;
}

}  // namespace optrail::graph

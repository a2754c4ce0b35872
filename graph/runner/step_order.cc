#include "graph/runner/step_order.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "base/status_macros.h"
#include "graph/memory/execution_order.h"
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

// Returns what the steps of a call read and write of the arena. Steps that use
// a storage of several writers keep their order: each writes a tensor of no
// bytes that the next one reads.
Dataflow FlowOf(const Program& program, const std::vector<int>& calls) {
  Dataflow flow;
  for (const Storage& storage : program.storages) {
    flow.tensor_bytes.push_back(
        storage.kind == Storage::Kind::kArena ? storage.bytes : 0);
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
    DataflowNode node;
    node.name = program.steps[call].name;
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
      last->second = static_cast<int>(flow.tensor_bytes.size());
      node.writes.push_back(last->second);
      flow.tensor_bytes.push_back(0);
    }
    flow.nodes.push_back(std::move(node));
  }
  for (const View& view : program.outputs) {
    flow.outputs.push_back(view.storage);
  }
  return flow;
}

}  // namespace

absl::StatusOr<OrderGain> OrderSteps(Program* program) {
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
  ExecutionOrderOptions options;
  options.time_limit = absl::Seconds(10);
  options.most_states = 20'000;
  options.local_search = false;
  OPTRAIL_ASSIGN_OR_RETURN(
      const ExecutionOrder order,
      FindExecutionOrder(FlowOf(*program, calls), options));
  for (const int place : order.nodes) {
    ordered.steps.push_back(program->steps[calls[place]]);
  }
  const int64_t peak = PeakOf(ordered);
  if (peak >= gain.before_bytes) return gain;
  gain.after_bytes = peak;
  *program = std::move(ordered);
  return gain;
}

}  // namespace optrail::graph

#include "graph/runner/arena.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace optrail::graph {
namespace {

// When each storage is first and last used, in steps of a call.
struct Lifetimes {
  std::vector<const Step*> calls;
  std::vector<int> first, last;
};

Lifetimes FindLifetimes(const Program& program) {
  Lifetimes lives;
  for (const Step& step : program.steps) {
    if (!step.prepared) lives.calls.push_back(&step);
  }
  const int count = static_cast<int>(lives.calls.size());
  lives.first.assign(program.storages.size(), count);
  lives.last.assign(program.storages.size(), -1);
  for (int s = 0; s < count; ++s) {
    for (const View& view : lives.calls[s]->operands) {
      lives.first[view.storage] = std::min(lives.first[view.storage], s);
      lives.last[view.storage] = std::max(lives.last[view.storage], s);
    }
  }
  for (const View& view : program.outputs) lives.last[view.storage] = count;
  return lives;
}

// Returns whether `y` may replace `x`, both operands of the step: they are
// all of their storages, in one layout, and the step reads x in no other way.
bool Replaces(const Program& program, const Step& step, const View& x,
              const View& y) {
  const Storage& from = program.storages[x.storage];
  const Storage& to = program.storages[y.storage];
  if (from.kind != Storage::Kind::kArena || to.kind != from.kind ||
      x.offset != 0 || y.offset != 0 || !(x.type == y.type) ||
      x.strides != y.strides || from.bytes != to.bytes ||
      x.type.bytes() != from.bytes || y.type.bytes() != to.bytes) {
    return false;
  }
  return std::count_if(
             step.operands.begin(), step.operands.end(),
             [&](const View& view) { return view.storage == x.storage; }) == 1;
}

}  // namespace

ArenaBuffers FindArenaBuffers(const Program& program) {
  const Lifetimes lives = FindLifetimes(program);
  // The storage whose place another one has taken, for each.
  std::vector<int> root(program.storages.size());
  for (size_t i = 0; i < root.size(); ++i) root[i] = static_cast<int>(i);
  for (int s = 0; s < static_cast<int>(lives.calls.size()); ++s) {
    const Step& step = *lives.calls[s];
    if (!step.in_place) continue;
    const size_t reads = step.operands.size() - step.results;
    std::vector<bool> taken(reads, false);
    for (size_t y = reads; y < step.operands.size(); ++y) {
      for (size_t x = 0; x < reads; ++x) {
        const int storage = step.operands[x].storage;
        if (taken[x] || lives.last[storage] != s ||
            !Replaces(program, step, step.operands[x], step.operands[y])) {
          continue;
        }
        taken[x] = true;
        root[step.operands[y].storage] = root[storage];
        break;
      }
    }
  }
  ArenaBuffers arena;
  for (size_t i = 0; i < program.storages.size(); ++i) {
    const Storage& storage = program.storages[i];
    if (storage.kind != Storage::Kind::kArena ||
        lives.first[i] >= static_cast<int>(lives.calls.size())) {
      continue;  // nobody uses it
    }
    arena.place[static_cast<int>(i)] = arena.buffers.size();
    arena.buffers.push_back({lives.calls[lives.first[i]]->name,
                             lives.first[i],
                             lives.last[i] + 1,
                             std::max<int64_t>(storage.bytes, 1),
                             {},
                             absl::StrCat(root[i])});
    arena.unplanned_bytes += storage.bytes;
  }
  return arena;
}

}  // namespace optrail::graph

#include "graph/memory/evaluation/generated_buffers.h"

#include <algorithm>
#include <string>

#include "base/random.h"

namespace optrail::graph {
namespace {

struct Rectangle {
  int64_t left, right, bottom, top;  // in units of 512
};

// Two cuts inside (low, high), in order; low where there is no room.
std::pair<int64_t, int64_t> TwoCuts(int64_t low, int64_t high, Rng& rng) {
  if (high - low < 3) return {low, low};
  int64_t a = low + 1 + rng.UniformInt(high - low - 1);
  int64_t b = low + 1 + rng.UniformInt(high - low - 1);
  if (a > b) std::swap(a, b);
  return a == b ? std::make_pair(low, low) : std::make_pair(a, b);
}

// Cuts `whole` in two or in five. Empty where it is too small.
std::vector<Rectangle> Cut(const Rectangle& whole, Rng& rng) {
  const auto [l, r] = TwoCuts(whole.left, whole.right, rng);
  const auto [b, t] = TwoCuts(whole.bottom, whole.top, rng);
  if (l > whole.left && b > whole.bottom && rng.UniformInt(3) == 0) {
    return {{whole.left, r, whole.bottom, b},
            {r, whole.right, whole.bottom, t},
            {l, whole.right, t, whole.top},
            {whole.left, l, b, whole.top},
            {l, r, b, t}};
  }
  if (rng.UniformInt(2) == 0 && b > whole.bottom) {
    return {{whole.left, whole.right, whole.bottom, b},
            {whole.left, whole.right, b, whole.top}};
  }
  if (l > whole.left) {
    return {{whole.left, l, whole.bottom, whole.top},
            {l, whole.right, whole.bottom, whole.top}};
  }
  return {};
}

MemoryBuffer Named(size_t number, int64_t lower, int64_t upper, int64_t size) {
  MemoryBuffer buffer;
  buffer.id = std::to_string(number);
  buffer.lower = lower;
  buffer.upper = upper;
  buffer.size_bytes = size;
  return buffer;
}

}  // namespace

std::vector<MemoryBuffer> TightBuffers(int count, double dropped,
                                       uint64_t seed) {
  constexpr int64_t kUnit = 512;
  Rng rng(seed);
  std::vector<Rectangle> pieces = {
      {0, kTightCapacity / kUnit, 0, kTightCapacity / kUnit}};
  for (int tries = 0;
       static_cast<int>(pieces.size()) < count && tries < 100 * count;
       ++tries) {
    // The largest of three: pieces stay within a factor of each other.
    size_t chosen = 0;
    int64_t most = -1;
    for (int i = 0; i < 3; ++i) {
      const size_t p = rng.UniformInt(pieces.size());
      const int64_t area = (pieces[p].right - pieces[p].left) *
                           (pieces[p].top - pieces[p].bottom);
      if (area > most) {
        most = area;
        chosen = p;
      }
    }
    const std::vector<Rectangle> parts = Cut(pieces[chosen], rng);
    if (parts.empty()) continue;
    pieces[chosen] = parts[0];
    pieces.insert(pieces.end(), parts.begin() + 1, parts.end());
  }
  rng.Shuffle(pieces);
  std::vector<MemoryBuffer> buffers;
  for (const Rectangle& piece : pieces) {
    if (rng.UniformReal() < dropped) continue;
    buffers.push_back(Named(buffers.size(), piece.left * kUnit,
                            piece.right * kUnit,
                            (piece.top - piece.bottom) * kUnit));
  }
  return buffers;
}

std::vector<MemoryBuffer> TrainingBuffers(int layers, uint64_t seed) {
  constexpr int kActivations = 6;
  constexpr int kTemporaries = 5;
  constexpr int64_t kStep = 16;  // times of one layer and direction
  Rng rng(seed);
  const int64_t end = 2 * layers * kStep;
  std::vector<MemoryBuffer> buffers;
  const auto add = [&](int64_t lower, int64_t upper, int64_t size) {
    buffers.push_back(Named(buffers.size(), lower, upper, size));
  };
  // Layers of a model repeat a few shapes.
  const int64_t width = int64_t{4096} * (1 + rng.UniformInt(64));
  for (int layer = 0; layer < layers; ++layer) {
    const int64_t stage = int64_t{1} << (4 * layer / layers);
    const int64_t forward = layer * kStep;
    const int64_t backward = (2 * layers - 1 - layer) * kStep;
    add(0, end, width * stage / 2 + 512 * rng.UniformInt(3));  // weights
    add(backward, end, width * stage / 2);                     // gradient
    for (int i = 0; i < kActivations; ++i) {
      const int64_t size = width * (1 + rng.UniformInt(4)) * 8 / stage;
      const int64_t made = forward + rng.UniformInt(kStep);
      add(made, backward + 1 + rng.UniformInt(kStep), size);
    }
    for (int i = 0; i < kTemporaries; ++i) {
      const int64_t begin = rng.UniformInt(2) == 0 ? forward : backward;
      const int64_t made = begin + rng.UniformInt(kStep);
      const int64_t size = (width << rng.UniformInt(6)) / (1 << 3);
      add(made, made + 1 + rng.UniformInt(kStep), size + rng.UniformInt(256));
    }
    add(forward, forward + kStep + 1, 1 + rng.UniformInt(4096));
  }
  return buffers;
}

}  // namespace optrail::graph

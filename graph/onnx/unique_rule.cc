// Unique of known values: how many results there are depends on them.

#include <algorithm>
#include <cmath>
#include <numeric>
#include <type_traits>
#include <utility>
#include <vector>

#include "graph/onnx/node_import.h"

namespace optrail::graph {
namespace {

using Results = std::vector<int>;

// Slices of an array along its axis, each as a list of elements.
class Slices {
 public:
  Slices(const Array& array, int64_t axis)
      : array_(array), count_(array.type.dims[axis]) {
    const Dims& dims = array.type.dims;
    inner_ = Elements(Dims(dims.begin() + axis + 1, dims.end()));
    outer_ = Elements(Dims(dims.begin(), dims.begin() + axis));
  }

  int64_t count() const { return count_; }

  // The place in the array of element i of a slice.
  int64_t Place(int64_t slice, int64_t i) const {
    return (i / inner_ * count_ + slice) * inner_ + i % inner_;
  }

  // Negative where a comes first, 0 where both are equal. NaNs are equal, and
  // come last.
  int Compare(int64_t a, int64_t b) const {
    for (int64_t i = 0; i < outer_ * inner_; ++i) {
      const int64_t left = Place(a, i), right = Place(b, i);
      int order = 0;
      if (array_.is_real()) {
        order = Order(array_.reals[left], array_.reals[right]);
      } else if (array_.type.type == proto::ELEMENT_U64) {
        order = Order(static_cast<uint64_t>(array_.integers[left]),
                      static_cast<uint64_t>(array_.integers[right]));
      } else {
        order = Order(array_.integers[left], array_.integers[right]);
      }
      if (order != 0) return order;
    }
    return 0;
  }

 private:
  template <class T>
  static int Order(T a, T b) {
    if constexpr (std::is_floating_point_v<T>) {
      if (std::isnan(a) || std::isnan(b)) {
        return static_cast<int>(std::isnan(a)) -
               static_cast<int>(std::isnan(b));
      }
    }
    return a < b ? -1 : a > b ? 1 : 0;
  }

  const Array& array_;
  int64_t count_ = 0, inner_ = 1, outer_ = 1;
};

Results Unique(NodeImport& node) {
  int x = node.In(0);
  if (!node.ok()) return {};
  if (!node.HasAttribute("axis")) {
    x = node.Reshape(x, {Elements(node.dims(x))});
  }
  const int64_t axis = node.Axis(node.Int("axis", 0), node.rank(x));
  const Array array = node.Known(x, "the input");
  if (!node.ok() || !node.MayMake(array.elements())) return {};
  const Slices slices(array, axis);
  const int64_t count = slices.count();
  Dims order(count);
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
    return slices.Compare(a, b) < 0;
  });
  // Each kind of slice: where it comes first, and how often it is there.
  std::vector<std::pair<int64_t, int64_t>> kinds;
  Dims kind_of(count);
  for (int64_t i = 0; i < count; ++i) {
    if (i == 0 || slices.Compare(order[i - 1], order[i]) != 0) {
      kinds.push_back({order[i], 0});
    }
    ++kinds.back().second;
    kind_of[order[i]] = static_cast<int64_t>(kinds.size()) - 1;
  }
  Dims rank(kinds.size());  // the place of each kind among the results
  std::iota(rank.begin(), rank.end(), 0);
  if (node.Int("sorted", 1) == 0) {
    Dims by_place = rank;
    std::sort(by_place.begin(), by_place.end(), [&](int64_t a, int64_t b) {
      return kinds[a].first < kinds[b].first;
    });
    for (size_t i = 0; i < by_place.size(); ++i) {
      rank[by_place[i]] = static_cast<int64_t>(i);
    }
  }
  const int64_t found = static_cast<int64_t>(kinds.size());
  Dims first(found), times(found);
  for (size_t k = 0; k < kinds.size(); ++k) {
    first[rank[k]] = kinds[k].first;
    times[rank[k]] = kinds[k].second;
  }
  for (int64_t& kind : kind_of) kind = rank[kind];
  const int places = node.IntConstant(first, {found});
  return {node.Emit("gather", {x, places}, {{"axis", axis}}), places,
          node.IntConstant(kind_of, {count}), node.IntConstant(times, {found})};
}

}  // namespace

void AddUniqueRule(ImportRules& rules) { rules["Unique"] = Unique; }

}  // namespace optrail::graph

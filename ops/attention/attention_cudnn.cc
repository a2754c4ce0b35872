// attention by cuDNN, which knows it by the chain of operations below and
// computes all of it in one kernel.

#include <cmath>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include "ops/core/registry.h"
#include "ops/lib/cuda_frame.h"
#include "ops/vendor/cudnn/cudnn.h"

namespace optrail::ops {
namespace {

class AttentionCudnn : public CudnnBackend {
 public:
  std::vector<std::vector<proto::DataType>> data_types() const override {
    return HalfTypes();
  }

 protected:
  absl::StatusOr<CudnnGraph> GraphOf(const proto::Shape& shape) const override {
    using Function = CudnnGraph::Function;
    const int64_t batch = shape.dims(0).value();
    const int64_t heads = shape.dims(1).value();
    const int64_t queries = shape.dims(2).value();
    const int64_t keys = shape.dims(3).value();
    const int64_t d = shape.dims(4).value();
    int64_t group = 1;
    for (const proto::Attribute& attribute : shape.attributes()) {
      if (attribute.name() == "group") group = attribute.int_();
    }
    const proto::DataType type = shape.data_types(0);
    CudnnGraph graph;
    const auto q = graph.Operand(0, type, Heads(batch, heads, queries, d));
    CudnnGraph::Layout turned = Heads(batch, heads / group, keys, d);
    std::swap(turned.dims[2], turned.dims[3]);
    std::swap(turned.strides[2], turned.strides[3]);
    const auto k = graph.Operand(1, type, turned);
    const auto v = graph.Operand(2, type, Heads(batch, heads / group, keys, d));
    const auto y = graph.Operand(3, type, Heads(batch, heads, queries, d));

    const CudnnGraph::Layout layout = Heads(batch, heads, queries, keys);
    const CudnnGraph::Layout per_query = Heads(batch, heads, queries, 1);
    const auto product = graph.Between(layout);
    auto scores = graph.Between(layout);
    graph.Product(q, k, product);
    graph.Elementwise(
        Function::kMultiply,
        {product, graph.Number(1 / std::sqrt(static_cast<float>(d)), 4)},
        scores);
    // The last query sees all keys.
    if (NamedVariant(shape, "causal") == "yes" && queries > 1) {
      auto row = graph.Between(layout, proto::I32);
      graph.Index(2, scores, row);
      if (keys > queries) {
        const auto last = graph.Between(layout, proto::I32);
        const auto offset = static_cast<int32_t>(keys - queries);
        graph.Elementwise(Function::kAdd, {row, graph.Number(offset, 4)}, last);
        row = last;
      }
      const auto column = graph.Between(layout, proto::I32);
      const auto seen = graph.Between(layout, proto::BOOL);
      const auto masked = graph.Between(layout);
      graph.Index(3, scores, column);
      graph.Elementwise(Function::kAtLeast, {row, column}, seen);
      graph.Elementwise(
          Function::kSelect,
          {scores, graph.Number(std::numeric_limits<float>::lowest(), 4), seen},
          masked);
      scores = masked;
    }
    const auto max = graph.Between(per_query);
    const auto less = graph.Between(layout);
    const auto weights = graph.Between(layout);
    const auto sum = graph.Between(per_query);
    graph.Reduce(CudnnGraph::Reduction::kMax, scores, max);
    graph.Elementwise(Function::kSubtract, {scores, max}, less);
    graph.Elementwise(Function::kExp, {less}, weights);
    graph.Reduce(CudnnGraph::Reduction::kSum, weights, sum);
    // Nobody asks for it, but without it the chain is not known.
    const auto log_sum = graph.Between(per_query);
    graph.Elementwise(Function::kLog, {sum}, log_sum);
    graph.Elementwise(Function::kAdd, {max, log_sum}, graph.Between(per_query));
    const auto shares = graph.Between(layout, type);
    graph.Elementwise(Function::kDivide, {weights, sum}, shares);
    graph.Product(shares, v, y);
    return graph;
  }

 private:
  static CudnnGraph::Layout Heads(int64_t batch, int64_t heads, int64_t rows,
                                  int64_t columns) {
    return {{batch, heads, rows, columns},
            {heads * rows * columns, rows * columns, columns, 1}};
  }
};

OPTRAIL_REGISTER_BACKEND("attention", AttentionCudnn)

}  // namespace
}  // namespace optrail::ops

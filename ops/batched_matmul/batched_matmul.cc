// c[i] = a[i] * b[i] for i < batch, c [batch, m, n]. transposed=b stores b as
// [batch, n, k] and transposed=a stores a as [batch, k, m]: scores of attention
// and, with a batch of one, the backward products of a layer.

#include "ops/core/registry.h"
#include "ops/lib/product_operator.h"

namespace optrail::ops {
namespace {

class BatchedMatmul : public ProductOperator {
 public:
  BatchedMatmul() : ProductOperator("batched_matmul", /*batched=*/true) {}
};

OPTRAIL_REGISTER_OPERATOR(BatchedMatmul)

}  // namespace
}  // namespace optrail::ops

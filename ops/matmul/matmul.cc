// c[m, n] = a[m, k] * b[k, n]: the operator bound by arithmetic.

#include "ops/core/registry.h"
#include "ops/lib/product_operator.h"

namespace optrail::ops {
namespace {

class Matmul : public ProductOperator {
 public:
  Matmul() : ProductOperator("matmul", /*batched=*/false) {}
};

OPTRAIL_REGISTER_OPERATOR(Matmul)

}  // namespace
}  // namespace optrail::ops

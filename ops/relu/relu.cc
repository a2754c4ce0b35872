// y = max(x, 0); NaN stays.

#include "ops/core/registry.h"
#include "ops/elementwise/elementwise.h"

namespace optrail::ops {
namespace {

class Relu : public ElementwiseOperator {
 public:
  Relu() : ElementwiseOperator("relu") {}
  double Apply(const proto::Shape&, double x) const override {
    return x < 0 ? 0 : x;
  }
  // Nothing is rounded.
  Tolerance ToleranceFor(const proto::Shape&) const override { return {0, 0}; }
};

OPTRAIL_REGISTER_OPERATOR(Relu)

}  // namespace
}  // namespace optrail::ops

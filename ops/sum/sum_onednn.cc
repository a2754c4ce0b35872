// Sums by oneDNN.

#include "ops/vendor/onednn/onednn.h"

namespace optrail::ops {
namespace {

OPTRAIL_REGISTER_ONEDNN("sum", [](const proto::Shape& shape) {
  const int64_t rows = shape.dims(0).value();
  const int64_t cols = shape.dims(1).value();
  if (shape.attributes().empty()) return OneDnnSum(rows, cols, false);
  return shape.attributes(0).variant() == "rows"
             ? OneDnnSum(rows, cols, true)
             : OneDnnSum(1, rows * cols, false);
})

}  // namespace
}  // namespace optrail::ops

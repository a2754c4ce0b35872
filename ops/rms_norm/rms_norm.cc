// Root mean square normalization of rows: lib/norm.h has the formula.

#include "ops/core/registry.h"
#include "ops/norm/norm.h"

namespace optrail::ops {
namespace {

class RmsNorm : public NormOperator {
 public:
  RmsNorm() : NormOperator("rms_norm", /*centred=*/false) {}
};

OPTRAIL_REGISTER_OPERATOR(RmsNorm)

}  // namespace
}  // namespace optrail::ops

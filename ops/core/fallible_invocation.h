#ifndef OPTRAIL_OPS_CORE_FALLIBLE_INVOCATION_H_
#define OPTRAIL_OPS_CORE_FALLIBLE_INVOCATION_H_

// Code that checks itself: a call may come to nothing, which is something else
// than a wrong result.

#include "absl/status/status.h"
#include "ops/core/invocation.h"

namespace optrail::ops {

class FallibleInvocation : public Invocation {
 public:
  // Why the last call that failed did, once; OK if none has since.
  virtual absl::Status TakeError() = 0;
};

// OK of an invocation that cannot tell.
inline absl::Status TakeErrorOf(Invocation& invocation) {
  auto* const fallible = dynamic_cast<FallibleInvocation*>(&invocation);
  return fallible == nullptr ? absl::OkStatus() : fallible->TakeError();
}

}  // namespace optrail::ops

#endif  // OPTRAIL_OPS_CORE_FALLIBLE_INVOCATION_H_

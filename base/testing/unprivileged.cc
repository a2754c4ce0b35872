#include "base/testing/unprivileged.h"

#include <linux/capability.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/check.h"

namespace optrail {
namespace {

// Overriding file modes, for reading and for anything.
constexpr uint32_t kOverrides =
    (1u << CAP_DAC_OVERRIDE) | (1u << CAP_DAC_READ_SEARCH);

struct Capabilities {
  __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct data[2] = {};

  void Get() { OPTRAIL_CHECK(syscall(SYS_capget, &header, data) == 0); }
  void Set() { OPTRAIL_CHECK(syscall(SYS_capset, &header, data) == 0); }
};

}  // namespace

Unprivileged::Unprivileged() {
  Capabilities capabilities;
  capabilities.Get();
  effective_before_ = capabilities.data[0].effective;
  capabilities.data[0].effective &= ~kOverrides;
  capabilities.Set();
}

Unprivileged::~Unprivileged() {
  Capabilities capabilities;
  capabilities.Get();
  capabilities.data[0].effective = effective_before_;
  capabilities.Set();
}

}  // namespace optrail

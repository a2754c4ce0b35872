#include "base/process/host_name.h"

#include <unistd.h>

namespace optrail {

std::string HostName() {
  char host[256] = "";
  // The last byte stays zero: a name that is cut may have none.
  return gethostname(host, sizeof(host) - 1) == 0 ? host : "";
}

}  // namespace optrail

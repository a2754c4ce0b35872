#ifndef OPTRAIL_BASE_PROCESS_HOST_NAME_H_
#define OPTRAIL_BASE_PROCESS_HOST_NAME_H_

// The name of this machine, as it calls itself; records keep it, so that what
// one machine read can be told from what its like read.
//
//   conditions.set_host(HostName());

#include <string>

namespace optrail {

// "" where the machine does not tell.
std::string HostName();

}  // namespace optrail

#endif  // OPTRAIL_BASE_PROCESS_HOST_NAME_H_

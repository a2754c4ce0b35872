#ifndef OPTRAIL_SUITES_WORKLOAD_EMBEDDED_WORKLOADS_H_
#define OPTRAIL_SUITES_WORKLOAD_EMBEDDED_WORKLOADS_H_

// The files of suites/workload/workloads as strings; the build generates the
// .cc.

#include <string>
#include <vector>

namespace optrail::suites {

struct EmbeddedWorkload {
  std::string name;
  std::string path;
  std::string text;
};

const std::vector<EmbeddedWorkload>& EmbeddedWorkloads();

}  // namespace optrail::suites

#endif  // OPTRAIL_SUITES_WORKLOAD_EMBEDDED_WORKLOADS_H_

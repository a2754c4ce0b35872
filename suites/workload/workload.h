#ifndef OPTRAIL_SUITES_WORKLOAD_WORKLOAD_H_
#define OPTRAIL_SUITES_WORKLOAD_WORKLOAD_H_

// Workloads are data files: which operators a model runs, with which shapes and
// how often. They are embedded in the binary, so that it runs anywhere; a path
// to another file works too.
//
//   ASSIGN_OR_RETURN(const proto::Workload smoke, FindWorkload("smoke"));

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "suites/proto/workload.pb.h"
#include "suites/workload/named_file.h"

namespace optrail::suites {

// Fresh processes per benchmark: more say nothing more, and take forever.
constexpr int kMostProcesses = 1000;

// InvalidArgument with file:line:column for anything but a well-formed workload
// of registered operators and shapes that they accept, none of them twice.
absl::StatusOr<proto::Workload> ParseWorkload(absl::string_view text,
                                              absl::string_view filename);

// By the name of an embedded one, or by path (a name with '/' or '.').
// NotFound lists the names there are.
absl::StatusOr<proto::Workload> FindWorkload(const std::string& name_or_path);

const std::vector<NamedFile>& EmbeddedWorkloads();

}  // namespace optrail::suites

#endif  // OPTRAIL_SUITES_WORKLOAD_WORKLOAD_H_

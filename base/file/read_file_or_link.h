#ifndef OPTRAIL_BASE_FILE_READ_FILE_OR_LINK_H_
#define OPTRAIL_BASE_FILE_READ_FILE_OR_LINK_H_

// Reads files that somebody names, or that a deployment put where they lie by
// links: unlike ReadFile() it never waits for a pipe, and unlike
// ReadRegularFile() it takes links.
//
//   OPTRAIL_ASSIGN_OR_RETURN(const std::string text, ReadFileOrLink(path));

#include <string>

#include "absl/status/statusor.h"

namespace optrail {

// The whole contents of a regular file, or of the one that a link leads to.
// FailedPrecondition, at once, for pipes, devices, sockets and folders; else as
// ReadFile().
absl::StatusOr<std::string> ReadFileOrLink(const std::string& path);

}  // namespace optrail

#endif  // OPTRAIL_BASE_FILE_READ_FILE_OR_LINK_H_

#ifndef OPTRAIL_BASE_FILE_WRITABLE_FOLDER_H_
#define OPTRAIL_BASE_FILE_WRITABLE_FOLDER_H_

// Whether results will find their place: better known before an hour of
// measuring than after it.
//
//   OPTRAIL_RETURN_IF_ERROR(CheckFolderIsWritable(context.history));

#include <string>

#include "absl/status/status.h"
#include "base/file/file_system.h"

namespace optrail {

// Makes `folder` where it is missing, then writes and removes a file in it. A
// permission lacks, the disk is full, a file stands in the way: the error names
// the path and the cause.
absl::Status CheckFolderIsWritable(const std::string& folder,
                                   FileSystem* fs = FileSystem::Real());

// Makes the folder of results that somebody named. NotFound where the folder
// around it is missing: that is a typing error as a rule.
absl::Status CreateOutputFolder(const std::string& folder,
                                FileSystem* fs = FileSystem::Real());

}  // namespace optrail

#endif  // OPTRAIL_BASE_FILE_WRITABLE_FOLDER_H_

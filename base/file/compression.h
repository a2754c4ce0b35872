#ifndef OPTRAIL_BASE_FILE_COMPRESSION_H_
#define OPTRAIL_BASE_FILE_COMPRESSION_H_

// Unpacks data that gzip or xz compressed, with zlib and liblzma.
//
//   OPTRAIL_ASSIGN_OR_RETURN(std::string data, ReadFile(path));
//   OPTRAIL_ASSIGN_OR_RETURN(const std::string text,
//                            Decompress(std::move(data), path, 1 << 30));
//
// The first bytes decide, not the file's name. Thread-safe.

#include <cstddef>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace optrail {

// Returns `data` itself if neither gzip nor xz made it. Parts that were
// compressed one by one may follow each other. InvalidArgument, with `name` in
// front, for damaged or truncated data and if more than `max_bytes` come out (a
// few kilobytes can unpack to gigabytes).
absl::StatusOr<std::string> Decompress(std::string data, absl::string_view name,
                                       size_t max_bytes);

// `path` without the suffix of a compressed file, if it has one.
absl::string_view WithoutCompressionSuffix(absl::string_view path);

}  // namespace optrail

#endif  // OPTRAIL_BASE_FILE_COMPRESSION_H_

#ifndef OPTRAIL_TUNING_REPLAY_GUNZIP_H_
#define OPTRAIL_TUNING_REPLAY_GUNZIP_H_

// Unpacks gzip data with zlib.

#include <cstddef>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace optrail::tuning {

// Whether `data` begins as a gzip file does.
bool IsGzip(absl::string_view data);

// Fails on damaged or truncated data, and when more than `max_bytes` come out
// (a few kilobytes can unpack to gigabytes).
absl::StatusOr<std::string> Gunzip(absl::string_view data, size_t max_bytes);

}  // namespace optrail::tuning

#endif  // OPTRAIL_TUNING_REPLAY_GUNZIP_H_

#ifndef OPTRAIL_BASE_FILE_FILE_CACHE_H_
#define OPTRAIL_BASE_FILE_FILE_CACHE_H_

// Bytes kept on disk under a key, so that nothing is made twice: not by two
// processes, not after a restart.
//
//   const FileCache cache(JoinPath(state, "compiled"), ".artifact");
//   absl::StatusOr<std::string> bytes = cache.Get(key);
//   if (!bytes.ok()) cache.Put(key, Make());
//
// Many processes may share a folder: entries are written to a temporary name
// and renamed, and never change. An entry that is damaged, truncated or
// somebody else's is a miss and is removed. The folder is kept below a size:
// what was not used for longest goes first.
//
// It is no store: everything in it may be deleted at any time.

#include <cstdint>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace optrail {

class FileCache {
 public:
  static constexpr int64_t kDefaultMaxBytes = int64_t{1} << 30;

  // `suffix` tells entries from other files of the folder.
  FileCache(std::string folder, std::string suffix,
            int64_t max_bytes = kDefaultMaxBytes)
      : folder_(std::move(folder)),
        suffix_(std::move(suffix)),
        max_bytes_(max_bytes) {}

  // NotFound for a miss, whatever its reason. `key` is part of a file's name.
  absl::StatusOr<std::string> Get(absl::string_view key) const;

  // ResourceExhausted for an entry larger than the whole cache. A cache that
  // cannot be written to is an error that may be ignored.
  absl::Status Put(absl::string_view key, absl::string_view bytes) const;

 private:
  std::string PathOf(absl::string_view key) const;
  void Trim() const;

  const std::string folder_;
  const std::string suffix_;
  const int64_t max_bytes_;
};

}  // namespace optrail

#endif  // OPTRAIL_BASE_FILE_FILE_CACHE_H_

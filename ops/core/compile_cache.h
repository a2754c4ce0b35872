#ifndef OPTRAIL_OPS_CORE_COMPILE_CACHE_H_
#define OPTRAIL_OPS_CORE_COMPILE_CACHE_H_

// What compilers made, kept on disk under the hash of everything that went in
// (Recipe::Key), so that no config is compiled twice: not by two processes, not
// after a restart.
//
//   CompileCache cache(JoinPath(state, "compiled"));
//   absl::StatusOr<Artifact> artifact = cache.Get(recipe.Key());
//   if (!artifact.ok()) { ...; cache.Put(*artifact); }
//
// Many processes may share a folder: entries are written to a temporary name
// and renamed, and never change. An entry that is damaged, truncated or
// somebody else's is a miss and is removed. The folder is kept below a size:
// what was not used for longest goes first.
//
// It is no history: everything in it may be deleted at any time.

#include <cstdint>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "ops/core/backend.h"

namespace optrail::ops {

class CompileCache {
 public:
  static constexpr int64_t kDefaultMaxBytes = int64_t{1} << 30;

  explicit CompileCache(std::string folder,
                        int64_t max_bytes = kDefaultMaxBytes)
      : folder_(std::move(folder)), max_bytes_(max_bytes) {}

  // NotFound for a miss, whatever its reason.
  absl::StatusOr<Artifact> Get(absl::string_view key) const;

  // Under artifact.key. An artifact larger than the whole cache is not kept. A
  // cache that cannot be written to is an error that may be ignored.
  absl::Status Put(const Artifact& artifact) const;

 private:
  std::string PathOf(absl::string_view key) const;
  void Trim() const;

  const std::string folder_;
  const int64_t max_bytes_;
};

}  // namespace optrail::ops

#endif  // OPTRAIL_OPS_CORE_COMPILE_CACHE_H_

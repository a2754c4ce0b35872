#ifndef OPTRAIL_OPS_CORE_COMPILE_CACHE_H_
#define OPTRAIL_OPS_CORE_COMPILE_CACHE_H_

// A cache on disk of what compilers made, under the hash of everything that
// went in (Recipe::Key), so that no config is compiled twice: not by two
// processes, not after a restart.
//
//   CompileCache cache(JoinPath(state, "compiled"));
//   absl::StatusOr<Artifact> artifact = cache.Get(recipe.Key());
//   if (!artifact.ok()) { ...; cache.Put(*artifact); }
//
// Most need the two steps in one:
//
//   OPTRAIL_ASSIGN_OR_RETURN(const Artifact artifact,
//                            CompileCached(backend, request, folder));
//
// The promises of a cache of files (base/file/file_cache.h) hold here: shared
// by many processes, damaged entries are misses, the oldest go first. The
// folder is one user's; a second level (artifact_level.h) may be shared among
// users and machines. What comes from there is kept in the folder, too.

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "base/file/file_cache.h"
#include "ops/core/artifact_level.h"
#include "ops/core/backend.h"

namespace optrail::ops {

class CompileCache {
 public:
  // `shared`, which must outlive the cache, may be null: no second level.
  explicit CompileCache(std::string folder,
                        const ArtifactLevel* shared = SharedLevel(),
                        int64_t max_bytes = FileCache::kDefaultMaxBytes)
      : files_(std::move(folder), ".artifact", max_bytes), shared_(shared) {}

  // NotFound for a miss, whatever its reason. `refused`, if not null, is told
  // of an entry of the second level that is not trusted.
  absl::StatusOr<Artifact> Get(absl::string_view key,
                               absl::Status* refused = nullptr) const;

  // Under artifact.key, on both levels. Errors as FileCache::Put, else those of
  // the second level.
  absl::Status Put(const Artifact& artifact) const;

 private:
  const FileCache files_;
  const ArtifactLevel* const shared_;
};

// Returns what `backend` compiles for `request`: from the cache in `folder`
// ("": none), else compiled and kept there. Nothing that is worth keeping is an
// empty artifact. A cache that cannot be written costs time and no result;
// `kept` says so where it is not null, and names once per process an entry of
// the second level that was refused. `added` are further options of the
// compiler. Errors of Describe() and Compile(); Unimplemented for options of a
// backend that compiles nothing.
absl::StatusOr<Artifact> CompileCached(
    const Backend& backend, const CompileRequest& request,
    const std::string& folder, absl::Status* kept = nullptr,
    const std::vector<std::string>& added = {});

// The same where nothing may be compiled: FailedPrecondition for what the cache
// lacks.
absl::StatusOr<Artifact> CachedArtifact(const Backend& backend,
                                        const CompileRequest& request,
                                        const std::string& folder);

}  // namespace optrail::ops

#endif  // OPTRAIL_OPS_CORE_COMPILE_CACHE_H_

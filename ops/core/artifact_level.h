#ifndef OPTRAIL_OPS_CORE_ARTIFACT_LEVEL_H_
#define OPTRAIL_OPS_CORE_ARTIFACT_LEVEL_H_

// A second level of the compile cache (compile_cache.h) that machines or users
// share, so that a config is compiled once for all of them. An artifact is code
// that is going to run, so a level gives out only what somebody trusted wrote.
//
//   const SharedFolder level("/shared/compiled", {geteuid(), 0});
//   const CompileCache cache(JoinPath(state, "compiled"), &level);
//
// SharedLevel() is the level that the environment names:
//   OPTRAIL_COMPILE_CACHE=/shared/compiled       the folder
//   OPTRAIL_COMPILE_CACHE_TRUST=alice,bob        whose entries count, too
//
// Thread-safe, and safe among processes and machines. docs/reference/fleet.md.

#include <sys/types.h>

#include <set>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace optrail::ops {

class ArtifactLevel {
 public:
  virtual ~ArtifactLevel() = default;

  // NotFound for what is not there or damaged. PermissionDenied says whose
  // entry was refused, and what would trust them.
  virtual absl::StatusOr<std::string> Get(absl::string_view key) const = 0;
  // An error costs time and no result.
  virtual absl::Status Put(absl::string_view key,
                           absl::string_view bytes) const = 0;
  // The bytes that Get() returned are of no use, as those of another version:
  // removes one's own entry, so that the next Put() replaces it. The entry of
  // another user stays.
  virtual void Drop(absl::string_view key) const = 0;
};

// A folder on a file system whose owners of files can be believed. An entry
// counts if one of `owners` owns the file, nobody else may write it, it is no
// link, and its digest matches its key and bytes. Nothing is ever removed but
// one's own entries that are damaged or of another version.
class SharedFolder : public ArtifactLevel {
 public:
  SharedFolder(std::string folder, std::set<uid_t> owners);

  absl::StatusOr<std::string> Get(absl::string_view key) const override;
  absl::Status Put(absl::string_view key,
                   absl::string_view bytes) const override;
  void Drop(absl::string_view key) const override;

 private:
  std::string PathOf(absl::string_view key) const;

  const std::string folder_;
  const std::set<uid_t> owners_;
};

// The level of the environment as it was at the first call; nullptr: none. A
// user of OPTRAIL_COMPILE_CACHE_TRUST that this machine does not know is an
// error of every Get and Put.
const ArtifactLevel* SharedLevel();

// The owners that a list like that of OPTRAIL_COMPILE_CACHE_TRUST adds.
// InvalidArgument names the user that is not known.
absl::StatusOr<std::set<uid_t>> ParseOwners(absl::string_view users);

}  // namespace optrail::ops

#endif  // OPTRAIL_OPS_CORE_ARTIFACT_LEVEL_H_

#ifndef OPTRAIL_BASE_PROCESS_SPAWN_H_
#define OPTRAIL_BASE_PROCESS_SPAWN_H_

// Starts a process with posix_spawn; private to Subprocess (subprocess.h).

#include <sys/types.h>

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/process/subprocess.h"

namespace optrail {

// Closes *fd and makes it -1, unless it is.
void CloseDescriptor(int* fd);

// A pipe none of whose ends a concurrently started child inherits.
struct Pipe {
  int read_fd = -1;
  int write_fd = -1;
  ~Pipe() {
    CloseDescriptor(&read_fd);
    CloseDescriptor(&write_fd);
  }
  absl::Status Open();
};

// Starts `argv` with these ends of pipes as its standard streams.
absl::StatusOr<pid_t> Spawn(const std::vector<std::string>& argv,
                            const SubprocessOptions& options, const Pipe& in,
                            const Pipe& out, const Pipe& err);

}  // namespace optrail

#endif  // OPTRAIL_BASE_PROCESS_SPAWN_H_

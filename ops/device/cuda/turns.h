#ifndef OPTRAIL_OPS_DEVICE_CUDA_TURNS_H_
#define OPTRAIL_OPS_DEVICE_CUDA_TURNS_H_

// Processes that measure on one GPU take turns, whichever commands they belong
// to, so that two sessions share it and neither disturbs the other.
//
//   const absl::StatusOr<Turns> turns = Turns::Join(Turns::PathOf(gpu_uuid));
//   const Turns::Turn turn = turns->Take(SayThatItWaits);
//   ... nobody else who takes part measures now ...
//
// A turn goes to whoever waits before it comes back to the one that had it. Who
// dies, by kill -9 too, gives it back and takes part no longer: all of this is
// locks on bytes of one file, which the kernel releases (fcntl(2), open file
// description locks).
//
// It is for one user on one machine: processes of others, and in containers
// with files of their own, are seen by the monitor and disturb (monitor.h).

#include <string>
#include <utility>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"

namespace optrail::ops::cuda {

class Turns {
 public:
  // Returns the file for turns of the GPU with this UUID, in the user's cache.
  static std::string PathOf(const std::string& gpu_uuid);

  // From now on this process takes part. Unavailable where the file cannot be
  // had.
  static absl::StatusOr<Turns> Join(const std::string& path);

  Turns(Turns&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Turns& operator=(Turns&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~Turns();

  // Given back when it is destroyed, which must be before the turns are.
  class Turn {
   public:
    explicit Turn(int fd) : fd_(fd) {}
    Turn(Turn&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
    Turn& operator=(Turn&&) = delete;
    ~Turn();

   private:
    int fd_;
  };
  // Calls `waits`, once, if it has to wait.
  Turn Take(absl::FunctionRef<void()> waits) const;

  // Whether that process takes part: it computes nothing while another one has
  // the turn.
  bool TakesPart(int pid) const;

 private:
  explicit Turns(int fd) : fd_(fd) {}

  int fd_;
};

}  // namespace optrail::ops::cuda

#endif  // OPTRAIL_OPS_DEVICE_CUDA_TURNS_H_

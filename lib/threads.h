#ifndef OPTRAIL_LIB_THREADS_H_
#define OPTRAIL_LIB_THREADS_H_

// Threads that share out a call's loops: the library's own or the caller's.
//
//   OPTRAIL_ASSIGN_OR_RETURN(const auto threads, Threads::Create(4));
//   Threads::Loops loops(*threads);
//   call.stream.loops = &loops;
//   absl::Status status = invocation.Run(call);
//   status.Update(loops.status());

#include <cstdint>
#include <memory>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "lib/optrail.h"
#include "ops/core/invocation.h"
#include "ops/device/cpu/thread_pool.h"

namespace optrail::lib {

constexpr int kMostThreads = 1024;  // as a CPU device may have

// How often this process became the child of a fork() since the first question.
uint32_t Forks();

class Threads {
 public:
  // InvalidArgument unless 1 <= count <= kMostThreads; ResourceExhausted where
  // the system starts no more threads.
  static absl::StatusOr<std::unique_ptr<Threads>> Create(int count);
  static absl::StatusOr<std::unique_ptr<Threads>> Adopt(
      optrail_parallel_for parallel_for, void* context, int count);
  // In a child of fork() nobody is left to be waited for.
  ~Threads();

  int count() const { return count_; }

  // FailedPrecondition for the library's own threads in a child of fork().
  absl::Status CheckAlive() const;

  // The loops of one call. After one that was not run whole the others are left
  // out, and status() says so.
  class Loops : public ops::ParallelLoops {
   public:
    explicit Loops(const Threads& threads) : threads_(threads) {}
    void ParallelFor(int64_t count,
                     absl::FunctionRef<void(int64_t)> body) override;
    const absl::Status& status() const { return status_; }

   private:
    absl::Status RunByCaller(int64_t count,
                             absl::FunctionRef<void(int64_t)> body) const;

    const Threads& threads_;
    absl::Status status_;
  };

 private:
  explicit Threads(int count);

  const int count_;
  const uint32_t forks_;  // of this process's ancestors, so far
  std::unique_ptr<ops::ThreadPool> pool_;
  optrail_parallel_for parallel_for_ = nullptr;
  void* context_ = nullptr;
};

}  // namespace optrail::lib

#endif  // OPTRAIL_LIB_THREADS_H_

#ifndef OPTRAIL_OPS_DEVICE_CPU_THREAD_POOL_H_
#define OPTRAIL_OPS_DEVICE_CPU_THREAD_POOL_H_

// ThreadPool runs parallel loops with a few microseconds of overhead, also
// while other processes take its cores away.
//
//   ThreadPool pool(4);
//   pool.ParallelFor(rows, [&](int64_t row) { Normalise(row); });
//
// Every thread begins with a share of its own, the same in every loop of as
// many iterations: what it wrote in one is still in its core's caches in the
// next.
//
// Why it does not collapse when it loses a core: iterations are claimed one by
// one, and who is done with his share claims from others', so that a thread
// that does not run holds up nothing but the iteration it has already claimed;
// waiting threads spin for at most kSpinNs, then offer their core to others
// between looks, and from kAwakeNs on sleep in the kernel. A barrier that only
// spins burns the time slice of the very thread it waits for.
//
// It is not a task scheduler: one loop runs at a time. A loop inside a loop
// body, or of another thread meanwhile, runs on the thread that meets it.

#include <atomic>
#include <cstdint>
#include <memory>
#include <thread>
#include <vector>

#include "absl/functional/function_ref.h"

namespace optrail::ops {

class ThreadPool {
 public:
  // How long a thread looks for work, or for the end of a loop, before it
  // sleeps: several times what waking a thread costs (28 to 47 us at the median
  // on a virtual machine), so that back-to-back loops find everybody awake.
  static constexpr int64_t kAwakeNs = 300000;
  // How long of that it does not offer its core to whoever else could run.
  static constexpr int64_t kSpinNs = 20000;

  // `threads` >= 1 includes the caller of ParallelFor; `cpus`, if not empty,
  // names the core of each worker thread (that is, of threads 1, 2, ...).
  // Throws std::system_error where the system starts no more threads.
  explicit ThreadPool(int threads, const std::vector<int>& cpus = {});
  ~ThreadPool();

  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int threads() const { return threads_; }

  // Calls body(i) once for each i in [0, count) and returns when all calls have
  // returned; the caller sees what they wrote. Several threads may call it.
  void ParallelFor(int64_t count, absl::FunctionRef<void(int64_t)> body);

 private:
  using Body = absl::FunctionRef<void(int64_t)>;

  // Iterations that one thread claims first. It holds the generation of the
  // loop in the upper half and the next iteration in the lower.
  struct alignas(64) Share {
    std::atomic<uint64_t> claim{0};
  };

  void Work(int thread);
  void Stop();  // and waits for the workers
  void RunLoop(uint32_t count, int64_t offset, const Body& body);
  // Where share `share` of a loop of `count` iterations begins, and the one
  // before it ends.
  uint32_t BeginOf(int share, uint32_t count) const;
  // Claims and runs iterations of loop `generation` until none is left, of the
  // thread's own share first.
  void ClaimAndRun(int thread, uint32_t generation);
  // Those of one share. False if the loop is over.
  bool ClaimFrom(int share, uint32_t generation);
  void WaitUntilDone(uint32_t count);

  std::atomic<bool> busy_{false};  // with a loop

  // The loop being run. A thread reads the fields and then claims by
  // compare-and-swap: success proves that the generation is still the same, and
  // it cannot end before the claimed iteration has.
  std::unique_ptr<Share[]> shares_;  // of every thread
  alignas(64) std::atomic<const Body*> body_{nullptr};
  std::atomic<uint32_t> count_{0};
  std::atomic<int64_t> offset_{0};

  // Generation that workers wait to see, and how many of them sleep on it.
  alignas(64) std::atomic<uint32_t> generation_{0};
  std::atomic<int> sleeping_workers_{0};
  std::atomic<bool> stop_{false};

  // Finished iterations of this loop; the caller sleeps on it.
  alignas(64) std::atomic<uint32_t> done_{0};
  std::atomic<bool> caller_sleeps_{false};

  const int threads_;
  std::vector<std::thread> workers_;
};

}  // namespace optrail::ops

#endif  // OPTRAIL_OPS_DEVICE_CPU_THREAD_POOL_H_

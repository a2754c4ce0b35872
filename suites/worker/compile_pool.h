#ifndef OPTRAIL_SUITES_WORKER_COMPILE_POOL_H_
#define OPTRAIL_SUITES_WORKER_COMPILE_POOL_H_

// CompilePool compiles configs ahead of their measurement: several processes at
// once fill the compile cache (ops/core/compile_cache.h) while others are being
// measured, and one that takes long holds up nobody but itself. Each config has
// a deadline and a memory cap of its own, over all that its compiler starts.
//
//   CompilePool pool(options);
//   pool.Start(key, request);           // returns at once
//   pool.WaitForAny({key, other});
//   const absl::optional<proto::Evaluation> compiled = pool.Find(key);
//
// The processes keep to the cores that nothing is measured on. Where there are
// none, they share the measured ones and stand still while a CompilePause
// lives.
//
// Results are known by the key of their recipe for as long as the pool lives,
// failures too: nothing is compiled twice in vain. It chooses nothing: what is
// started runs in the order in which it came. Used by one thread.

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "base/clock.h"
#include "base/process/subprocess.h"
#include "suites/proto/worker.pb.h"
#include "suites/worker/evaluator.h"
#include "tuning/proto/trial.pb.h"

namespace optrail::suites {

struct CompilePoolOptions {
  std::string binary;  // a worker's (worker.h)
  // The deadline of one config. Time for which it is paused does not count.
  absl::Duration deadline = absl::Minutes(1);
  // The memory of the processes of one config together.
  int64_t max_bytes = int64_t{4} << 30;
  // The cores that compile, one process on each; empty: one process anywhere.
  std::vector<int> cores;
  // Something is measured on those very cores.
  bool pauses = false;
};

class CompilePool {
 public:
  explicit CompilePool(CompilePoolOptions options);
  // Ends what is being compiled.
  ~CompilePool();
  CompilePool(const CompilePool&) = delete;
  CompilePool& operator=(const CompilePool&) = delete;

  int processes() const { return static_cast<int>(slots_.size()); }

  // Nothing happens if the pool knows `key` already.
  void Start(const std::string& key, proto::WorkerRequest::Compile request);
  // The outcome, detail, facts and compile_ns of a config. OK: the cache has
  // it. COMPILE_ERROR, also of a compiler that crashes; TIMED_OUT;
  // OUT_OF_MEMORY; and what the backend says of the config. nullopt: not
  // started, or not done.
  absl::optional<proto::Evaluation> Find(const std::string& key) const;
  // Waits until one of `keys` that were started is done, or for so long.
  void WaitForAny(const std::vector<std::string>& keys,
                  absl::Duration wait = absl::InfiniteDuration()) const;
  // Forgets it, unless it was begun.
  void Drop(const std::string& key);

 private:
  friend class CompilePause;

  // The pool's time: it stands still while the pool does.
  class PausableClock : public Clock {
   public:
    int64_t NowNs() const override;
    int64_t WallNs() const override { return Clock::Real()->WallNs(); }
    void Stop();
    void GoOn();

   private:
    mutable absl::Mutex mutex_;
    int64_t stopped_ns_ ABSL_GUARDED_BY(mutex_) = 0;  // in all
    absl::optional<int64_t> stopped_at_ns_ ABSL_GUARDED_BY(mutex_);
  };
  struct Job {
    std::string key;
    proto::WorkerRequest request;
  };
  struct Slot {
    int core = -1;       // -1: any
    std::thread thread;  // begun with the first job that it can take
    // It is known as long as it lives: a process that was stopped just as its
    // job ended has to go on, too. 0: none.
    pid_t process = 0;
  };

  void Serve(Slot& slot);
  proto::Evaluation Compile(const Job& job, Slot& slot,
                            std::unique_ptr<Subprocess>* process);
  absl::StatusOr<std::unique_ptr<Subprocess>> StartProcess() const;
  void Pause();
  void Resume();
  void SignalAll(int number) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const CompilePoolOptions options_;
  PausableClock clock_;
  mutable absl::Mutex mutex_;
  std::deque<Job> waiting_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, absl::optional<proto::Evaluation>> known_
      ABSL_GUARDED_BY(mutex_);
  bool paused_ ABSL_GUARDED_BY(mutex_) = false;
  bool ending_ ABSL_GUARDED_BY(mutex_) = false;
  std::vector<std::unique_ptr<Slot>> slots_;
};

// While it lives, nothing is compiled where something is measured. `pool` may
// be null.
class CompilePause {
 public:
  explicit CompilePause(CompilePool* pool) : pool_(pool) {
    if (pool_ != nullptr) pool_->Pause();
  }
  ~CompilePause() {
    if (pool_ != nullptr) pool_->Resume();
  }
  CompilePause(const CompilePause&) = delete;
  CompilePause& operator=(const CompilePause&) = delete;

 private:
  CompilePool* const pool_;
};

}  // namespace optrail::suites

#endif  // OPTRAIL_SUITES_WORKER_COMPILE_POOL_H_

#include "ops/device/cpu/thread_pool.h"

#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <climits>
#include <system_error>

#include "base/check.h"

namespace optrail::ops {
namespace {

static_assert(sizeof(std::atomic<uint32_t>) == sizeof(uint32_t),
              "a futex word is a plain 32-bit integer");

// Sleeps while *word == expected; may return early.
void FutexWait(std::atomic<uint32_t>& word, uint32_t expected) {
  syscall(SYS_futex, reinterpret_cast<uint32_t*>(&word), FUTEX_WAIT_PRIVATE,
          expected, nullptr, nullptr, 0);
}

void FutexWake(std::atomic<uint32_t>& word, int threads) {
  syscall(SYS_futex, reinterpret_cast<uint32_t*>(&word), FUTEX_WAKE_PRIVATE,
          threads, nullptr, nullptr, 0);
}

void Pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

// Returns true as soon as `condition` holds, false after kAwakeNs.
template <typename Condition>
bool AwakeUntil(const Condition& condition) {
  using Clock = std::chrono::steady_clock;
  if (condition()) return true;
  const Clock::time_point begin = Clock::now();
  std::chrono::nanoseconds waited(0);
  do {
    for (int i = 0; i < 16; ++i) {
      Pause();
      if (condition()) return true;
    }
    if (waited.count() > ThreadPool::kSpinNs) sched_yield();
    waited = Clock::now() - begin;
  } while (waited.count() < ThreadPool::kAwakeNs);
  return false;
}

// True on a thread that is inside a loop body.
thread_local bool inside_loop = false;

void PinThisThread(int cpu) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(cpu, &set);
  // A core that was taken from this process in the meantime is no reason to
  // stop: the thread then runs where it may.
  (void)sched_setaffinity(0, sizeof(set), &set);
}

}  // namespace

ThreadPool::ThreadPool(int threads, const std::vector<int>& cpus)
    : threads_(threads) {
  OPTRAIL_CHECK(threads >= 1) << threads;
  shares_ = std::make_unique<Share[]>(threads);
  workers_.reserve(threads - 1);
  try {
    for (int i = 1; i < threads; ++i) {
      const int cpu = i - 1 < static_cast<int>(cpus.size()) ? cpus[i - 1] : -1;
      workers_.emplace_back([this, i, cpu] {
        if (cpu >= 0) PinThisThread(cpu);
        Work(i);
      });
    }
  } catch (const std::system_error&) {
    // The system starts no more of them: those that it has started end.
    Stop();
    throw;
  }
}

ThreadPool::~ThreadPool() { Stop(); }

void ThreadPool::Stop() {
  stop_.store(true);
  generation_.fetch_add(1);
  FutexWake(generation_, INT_MAX);
  for (std::thread& worker : workers_) worker.join();
}

void ThreadPool::Work(int thread) {
  inside_loop = true;
  uint32_t seen = 0;
  while (true) {
    const auto changed = [&] { return generation_.load() != seen; };
    if (!AwakeUntil(changed)) {
      // The caller changes generation_ before it looks at sleeping_workers_,
      // and the kernel compares generation_ once more: no wake-up is lost.
      sleeping_workers_.fetch_add(1);
      while (!changed()) FutexWait(generation_, seen);
      sleeping_workers_.fetch_sub(1);
    }
    if (stop_.load()) return;
    seen = generation_.load();
    ClaimAndRun(thread, seen);
  }
}

uint32_t ThreadPool::BeginOf(int share, uint32_t count) const {
  // With fewer iterations than threads, the first ones have one each.
  const uint64_t shares = std::min<uint64_t>(threads_, count);
  return static_cast<uint32_t>(std::min<uint64_t>(share, shares) * count /
                               shares);
}

bool ThreadPool::ClaimFrom(int share, uint32_t generation) {
  std::atomic<uint64_t>& next = shares_[share].claim;
  uint32_t finished = 0;
  uint64_t claim = next.load();
  while (static_cast<uint32_t>(claim >> 32) == generation) {
    const Body* const body = body_.load();
    const uint32_t count = count_.load();
    const int64_t offset = offset_.load();
    const auto index = static_cast<uint32_t>(claim);
    if (index >= BeginOf(share + 1, count)) {
      // The loop ends when all iterations are added up, so it is still this one
      // if there is something to add.
      if (finished > 0 && done_.fetch_add(finished) + finished == count &&
          caller_sleeps_.load()) {
        FutexWake(done_, 1);
      }
      return true;
    }
    if (!next.compare_exchange_weak(claim, claim + 1)) continue;

    (*body)(offset + index);

    ++finished;
    claim = next.load();
  }
  return false;
}

void ThreadPool::ClaimAndRun(int thread, uint32_t generation) {
  for (int i = 0; i < threads_; ++i) {
    if (!ClaimFrom((thread + i) % threads_, generation)) return;
  }
}

void ThreadPool::WaitUntilDone(uint32_t count) {
  if (AwakeUntil([&] { return done_.load() == count; })) return;
  caller_sleeps_.store(true);
  for (uint32_t done = done_.load(); done != count; done = done_.load()) {
    FutexWait(done_, done);
  }
  caller_sleeps_.store(false);
}

void ThreadPool::RunLoop(uint32_t count, int64_t offset, const Body& body) {
  const uint32_t generation = generation_.load() + 1;
  // First of all a claim that nobody can take: a thread that still looks at the
  // previous loop must not claim from it with the fields of this one.
  constexpr uint32_t kUsedUp = ~uint32_t{0};
  for (int i = 0; i < threads_; ++i) {
    shares_[i].claim.store(static_cast<uint64_t>(generation) << 32 | kUsedUp);
  }
  done_.store(0);
  body_.store(&body);
  count_.store(count);
  offset_.store(offset);
  for (int i = 0; i < threads_; ++i) {
    shares_[i].claim.store(static_cast<uint64_t>(generation) << 32 |
                           BeginOf(i, count));
  }
  generation_.store(generation);
  if (sleeping_workers_.load() > 0) {
    FutexWake(generation_,
              static_cast<int>(std::min<uint32_t>(count - 1, INT_MAX)));
  }
  inside_loop = true;
  ClaimAndRun(/*thread=*/0, generation);
  inside_loop = false;
  WaitUntilDone(count);
}

void ThreadPool::ParallelFor(int64_t count,
                             absl::FunctionRef<void(int64_t)> body) {
  if (count <= 0) return;
  if (count == 1 || workers_.empty() || inside_loop || busy_.exchange(true)) {
    for (int64_t i = 0; i < count; ++i) body(i);
    return;
  }
  // Indices of one loop have 32 bits.
  constexpr int64_t kMaxCount = int64_t{1} << 31;
  for (int64_t offset = 0; offset < count; offset += kMaxCount) {
    RunLoop(static_cast<uint32_t>(std::min(count - offset, kMaxCount)), offset,
            body);
  }
  busy_.store(false);
}

}  // namespace optrail::ops

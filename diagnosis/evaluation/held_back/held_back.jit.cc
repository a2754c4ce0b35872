// One kernel for each cause; they compute the same (held_back.cc).

#include <poll.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <vector>

#ifndef OPTRAIL_ATTR_TAPS
#define OPTRAIL_ATTR_TAPS 4
#endif

namespace {

constexpr int kTaps = OPTRAIL_ATTR_TAPS;
constexpr int kAmount = OPTRAIL_AMOUNT;

typedef float Wide __attribute__((vector_size(64), aligned(4)));
typedef float Narrow __attribute__((vector_size(16), aligned(4)));
typedef int WideInt __attribute__((vector_size(64), aligned(4)));

struct Problem {
  const float* x;
  const float* w;
  float* y;
  float* m;
  int64_t rows, cols;
};

// By copies, as a template's argument loses the typedef's alignment: operands
// begin anywhere.
template <class V>
inline V Load(const float* from) {
  V v;
  std::memcpy(&v, from, sizeof(v));
  return v;
}
template <class V>
inline void Store(V v, float* to) {
  std::memcpy(to, &v, sizeof(v));
}
template <class V>
inline V Larger(V a, V b) {
  return a > b ? a : b;
}
template <class V>
inline float Largest(V v) {
  float largest = v[0];
  for (size_t i = 1; i < sizeof(V) / 4; ++i) largest = std::max(largest, v[i]);
  return largest;
}

// kRows rows and kVectors vectors at a time: each value that is loaded serves
// all rows that it belongs to.
template <int kRows, int kVectors, class V = Wide>
inline void Block(const Problem& p, int64_t r, V* largest, int64_t c) {
  constexpr int64_t kLanes = sizeof(V) / 4;
  V sums[kRows][kVectors] = {};
#pragma GCC unroll 64
  for (int k = 0; k < kTaps + kRows - 1; ++k) {
#pragma GCC unroll 16
    for (int i = 0; i < kVectors; ++i) {
      const V v = Load<V>(p.x + (r + k) * p.cols + c + i * kLanes);
#pragma GCC unroll 16
      for (int j = 0; j < kRows; ++j) {
        if (k - j >= 0 && k - j < kTaps) sums[j][i] += p.w[k - j] * v;
      }
    }
  }
#pragma GCC unroll 16
  for (int j = 0; j < kRows; ++j) {
#pragma GCC unroll 16
    for (int i = 0; i < kVectors; ++i) {
      Store(sums[j][i], p.y + (r + j) * p.cols + c + i * kLanes);
      largest[j] = Larger(largest[j], sums[j][i]);
    }
  }
}

template <int kRows, int kVectors, class V = Wide>
inline void BlockOfRows(const Problem& p, int64_t r) {
  constexpr int64_t kStep = kVectors * sizeof(V) / 4;
  V largest[kRows];
  for (V& one : largest) one = V{} - HUGE_VALF;
  int64_t c = 0;
  for (; c + kStep <= p.cols; c += kStep) {
    Block<kRows, kVectors, V>(p, r, largest, c);
  }
  for (; c < p.cols; c += sizeof(V) / 4) Block<kRows, 1, V>(p, r, largest, c);
  for (int j = 0; j < kRows; ++j) p.m[r + j] = Largest(largest[j]);
}

inline void Rows(const Problem& p, int64_t begin, int64_t end) {
  int64_t r = begin;
  for (; r + 4 <= end; r += 4) BlockOfRows<4, 4>(p, r);
  for (; r < end; ++r) BlockOfRows<1, 4>(p, r);
}

inline void AllRows(const OptrailJitCall& call, const Problem& p) {
  call.ParallelFor(call.threads, [&](int64_t t) {
    Rows(p, p.rows * t / call.threads, p.rows * (t + 1) / call.threads);
  });
}

#if defined(OPTRAIL_CAUSE_SCALAR)

// The compiler must have each value by itself.
void Run(const OptrailJitCall& call, const Problem& p) {
  for (int64_t r = 0; r < p.rows; ++r) {
    float largest[4] = {-HUGE_VALF, -HUGE_VALF, -HUGE_VALF, -HUGE_VALF};
    for (int64_t c = 0; c < p.cols; ++c) {
      float v = 0;
#pragma GCC unroll 32
      for (int k = 0; k < kTaps; ++k) v += p.w[k] * p.x[(r + k) * p.cols + c];
      asm("" : "+x"(v));
      p.y[r * p.cols + c] = v;
      largest[c & 3] = std::max(largest[c & 3], v);
    }
    p.m[r] = *std::max_element(largest, largest + 4);
  }
}

#elif defined(OPTRAIL_CAUSE_NARROW)

void Run(const OptrailJitCall& call, const Problem& p) {
  for (int64_t r = 0; r < p.rows; r += 4) BlockOfRows<4, 2, Narrow>(p, r);
}

#elif defined(OPTRAIL_CAUSE_LATENCY)

// Each vector's sum begins with nothing of the one before it.
void Run(const OptrailJitCall& call, const Problem& p) {
  Wide before = {};
  for (int64_t r = 0; r < p.rows; ++r) {
    Wide largest = Wide{} - HUGE_VALF;
    for (int64_t c = 0; c < p.cols; c += 16) {
      Wide v = before * 0.f;
      for (int k = 0; k < kTaps; ++k) {
        v += p.w[k] * Load<Wide>(p.x + (r + k) * p.cols + c);
      }
      Store(v, p.y + r * p.cols + c);
      largest = Larger(largest, v);
      before = v;
    }
    p.m[r] = Largest(largest);
  }
}

#elif defined(OPTRAIL_CAUSE_SPILLS)

// Twice as many sums as there are registers.
void Run(const OptrailJitCall& call, const Problem& p) {
  for (int64_t r = 0; r < p.rows; r += 8) BlockOfRows<8, 8>(p, r);
}

#elif defined(OPTRAIL_CAUSE_CONVERSIONS)

// Every product goes through fixed point.
void Run(const OptrailJitCall& call, const Problem& p) {
  constexpr float kOne = 1 << 20;
  for (int64_t r = 0; r < p.rows; ++r) {
    Wide largest = Wide{} - HUGE_VALF;
    for (int64_t c = 0; c < p.cols; c += 16) {
      Wide v = {};
      for (int k = 0; k < kTaps; ++k) {
        const Wide product =
            p.w[k] * kOne * Load<Wide>(p.x + (r + k) * p.cols + c);
        v += __builtin_convertvector(__builtin_convertvector(product, WideInt),
                                     Wide);
      }
      v *= 1 / kOne;
      Store(v, p.y + r * p.cols + c);
      largest = Larger(largest, v);
    }
    p.m[r] = Largest(largest);
  }
}

#elif defined(OPTRAIL_CAUSE_SLOW)

// The magnitude of a product by a square root.
void Run(const OptrailJitCall& call, const Problem& p) {
  for (int64_t r = 0; r < p.rows; ++r) {
    Wide largest = Wide{} - HUGE_VALF;
    for (int64_t c = 0; c < p.cols; c += 16) {
      Wide v = {};
      for (int k = 0; k < kTaps; ++k) {
        const Wide product = p.w[k] * Load<Wide>(p.x + (r + k) * p.cols + c);
        Wide root;
        for (int i = 0; i < 16; ++i) {
          root[i] = __builtin_sqrtf(product[i] * product[i]);
        }
        v += product > 0 ? root : -root;
      }
      Store(v, p.y + r * p.cols + c);
      largest = Larger(largest, v);
    }
    p.m[r] = Largest(largest);
  }
}

#elif defined(OPTRAIL_CAUSE_BRANCHES)

// Products of either sign are added apart.
void Run(const OptrailJitCall& call, const Problem& p) {
  for (int64_t r = 0; r < p.rows; ++r) {
    float largest = -HUGE_VALF;
    for (int64_t c = 0; c < p.cols; ++c) {
      float above = 0, below = 0;
      for (int k = 0; k < kTaps; ++k) {
        const float product = p.w[k] * p.x[(r + k) * p.cols + c];
        if (product > 0) {
          above += product;
          asm volatile("" : "+x"(above));
        } else {
          below -= product;
          asm volatile("" : "+x"(below));
        }
      }
      p.y[r * p.cols + c] = above - below;
      largest = std::max(largest, above - below);
    }
    p.m[r] = largest;
  }
}

#elif defined(OPTRAIL_CAUSE_STRIDED)

// Down the columns, as the filter goes: a ring of values is kept.
void Run(const OptrailJitCall& call, const Problem& p) {
  std::fill(p.m, p.m + p.rows, -HUGE_VALF);
  for (int64_t c = 0; c < p.cols; ++c) {
    float ring[kTaps];
    for (int k = 0; k + 1 < kTaps; ++k) ring[k + 1] = p.x[k * p.cols + c];
    for (int64_t r = 0; r < p.rows; ++r) {
      for (int k = 0; k + 1 < kTaps; ++k) ring[k] = ring[k + 1];
      ring[kTaps - 1] = p.x[(r + kTaps - 1) * p.cols + c];
      float v = 0;
      for (int k = 0; k < kTaps; ++k) v += p.w[k] * ring[k];
      p.y[r * p.cols + c] = v;
      p.m[r] = std::max(p.m[r], v);
    }
  }
}

#elif defined(OPTRAIL_CAUSE_GATHER)

// Vectors in the order of a generator of random numbers with full period.
void Run(const OptrailJitCall& call, const Problem& p) {
  std::fill(p.m, p.m + p.rows, -HUGE_VALF);
  const uint64_t count = p.rows * p.cols / 16;
  uint64_t period = 1;
  while (period < count) period *= 2;
  uint64_t state = 1;
  for (uint64_t i = 0; i < period; ++i) {
    state = (state * 6364136223846793005u + 1442695040888963407u) % period;
    // The low bits of such a generator have short periods.
    const uint64_t at = (state >> 1 | (state & 1) * (period / 2)) % period;
    if (at >= count) continue;
    const int64_t first = static_cast<int64_t>(at) * 16;
    const int64_t r = first / p.cols, c = first % p.cols;
    Wide v = {};
    for (int k = 0; k < kTaps; ++k) {
      v += p.w[k] * Load<Wide>(p.x + (r + k) * p.cols + c);
    }
    Store(v, p.y + first);
    p.m[r] = std::max(p.m[r], Largest(v));
  }
}

#elif defined(OPTRAIL_CAUSE_PASSES)

// A tap at a time, over everything.
void Run(const OptrailJitCall& call, const Problem& p) {
  const int64_t count = p.rows * p.cols;
  std::memset(p.y, 0, count * sizeof(float));
  for (int k = 0; k < kTaps; ++k) {
    asm volatile("" ::: "memory");
    const float* const x = p.x + k * p.cols;
    for (int64_t i = 0; i < count; i += 16) {
      Store(Load<Wide>(p.y + i) + p.w[k] * Load<Wide>(x + i), p.y + i);
    }
  }
  for (int64_t r = 0; r < p.rows; ++r) {
    Wide largest = Wide{} - HUGE_VALF;
    for (int64_t c = 0; c < p.cols; c += 16) {
      largest = Larger(largest, Load<Wide>(p.y + r * p.cols + c));
    }
    p.m[r] = Largest(largest);
  }
}

#elif defined(OPTRAIL_CAUSE_LAUNCH)

// A plan that every call sorts anew.
void Run(const OptrailJitCall& call, const Problem& p) {
  std::vector<uint32_t> plan(1024 * kAmount);
  uint32_t state = 1;
  for (uint32_t& step : plan) step = state = state * 1664525 + 1013904223;
  std::sort(plan.begin(), plan.end());
  asm volatile("" ::"r"(plan.data()) : "memory");
  AllRows(call, p);
}

#elif defined(OPTRAIL_CAUSE_PAGE_FAULTS)

// A buffer whose pages go back to the system after every call.
void Run(const OptrailJitCall& call, const Problem& p) {
  static float* buffer = nullptr;
  static int64_t bytes = 0;
  const int64_t needed = p.rows * p.cols * static_cast<int64_t>(sizeof(float));
  if (bytes < needed) {
    if (buffer != nullptr) munmap(buffer, bytes);
    bytes = needed;
    buffer = static_cast<float*>(mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                                      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  }
  Problem into = p;
  into.y = buffer;
  AllRows(call, into);
  std::memcpy(p.y, buffer, needed);
  madvise(buffer, bytes, MADV_DONTNEED);
}

#elif defined(OPTRAIL_CAUSE_WAITING)

void Run(const OptrailJitCall& call, const Problem& p) {
  poll(nullptr, 0, kAmount);
  AllRows(call, p);
}

#elif defined(OPTRAIL_CAUSE_SYSTEM_CALLS)

// It asks for the resources used after every row.
void Run(const OptrailJitCall& call, const Problem& p) {
  for (int64_t r = 0; r < p.rows; ++r) {
    Rows(p, r, r + 1);
    rusage usage;
    for (int i = 0; i < kAmount; ++i) getrusage(RUSAGE_THREAD, &usage);
  }
}

#elif defined(OPTRAIL_CAUSE_IMBALANCE)

// Four parts, of which the first is most of the rows.
void Run(const OptrailJitCall& call, const Problem& p) {
  const int64_t first = p.rows * (8 + kAmount) / (10 + kAmount);
  call.ParallelFor(4, [&](int64_t part) {
    const int64_t rest = p.rows - first;
    Rows(p, part == 0 ? 0 : first + rest * (part - 1) / 3,
         part == 0 ? first : first + rest * part / 3);
  });
}

#elif defined(OPTRAIL_CAUSE_SYNCHRONISATION)

// The threads meet after every row.
void Run(const OptrailJitCall& call, const Problem& p) {
  const int64_t half = p.cols / 128 * 64;
  for (int64_t r = 0; r < p.rows; ++r) {
    Wide largest[2] = {Wide{} - HUGE_VALF, Wide{} - HUGE_VALF};
    call.ParallelFor(2, [&](int64_t part) {
      Wide mine = largest[part];
      for (int64_t c = part == 0 ? 0 : half; c < (part == 0 ? half : p.cols);
           c += 16) {
        Block<1, 1>(p, r, &mine, c);
      }
      largest[part] = mine;
    });
    p.m[r] = Largest(Larger(largest[0], largest[1]));
  }
}

#elif defined(OPTRAIL_CAUSE_FALSE_SHARING) || defined(OPTRAIL_CAUSE_OWN_LINES)

// Each thread keeps its largest value beside the other's, or in its own lines.
#ifdef OPTRAIL_CAUSE_FALSE_SHARING
constexpr int64_t kApart = 1;
#else
constexpr int64_t kApart = 64;
#endif
void Run(const OptrailJitCall& call, const Problem& p) {
  alignas(256) static volatile float kept[16 * kApart];
  call.ParallelFor(call.threads, [&](int64_t t) {
    for (int64_t r = p.rows * t / call.threads;
         r < p.rows * (t + 1) / call.threads; ++r) {
      kept[t * kApart] = -HUGE_VALF;
      for (int64_t c = 0; c < p.cols; c += 16) {
        Wide v = Wide{} - HUGE_VALF;
        Block<1, 1>(p, r, &v, c);
        for (int i = 0; i < 16; ++i) {
          const float before = kept[t * kApart], now = v[i];
          kept[t * kApart] = std::max(before, now);
        }
      }
      p.m[r] = kept[t * kApart];
    }
  });
}

#elif defined(OPTRAIL_CAUSE_CONTENDED_LINES)

// A lock for every vector's largest value.
void Run(const OptrailJitCall& call, const Problem& p) {
  static std::atomic_flag busy = ATOMIC_FLAG_INIT;
  call.ParallelFor(call.threads, [&](int64_t t) {
    for (int64_t r = p.rows * t / call.threads;
         r < p.rows * (t + 1) / call.threads; ++r) {
      p.m[r] = -HUGE_VALF;
      for (int64_t c = 0; c < p.cols; c += 16) {
        Wide v = Wide{} - HUGE_VALF;
        Block<1, 1>(p, r, &v, c);
        while (busy.test_and_set(std::memory_order_acquire)) {
        }
        p.m[r] = std::max(p.m[r], Largest(v));
        busy.clear(std::memory_order_release);
      }
    }
  });
}

#elif defined(OPTRAIL_CAUSE_SERIAL)

// The last rows wait until the threads are done.
void Run(const OptrailJitCall& call, const Problem& p) {
  const int64_t shared = p.rows / (2 + kAmount) / 8 * 8;
  Problem first = p;
  first.rows = shared;
  AllRows(call, first);
  Rows(p, shared, p.rows);
}

#else

void Run(const OptrailJitCall& call, const Problem& p) { AllRows(call, p); }

#endif

}  // namespace

OPTRAIL_JIT_KERNEL(call) {
  const Problem problem = {static_cast<const float*>(call.operands[0]),
                           static_cast<const float*>(call.operands[1]),
                           static_cast<float*>(call.operands[2]),
                           static_cast<float*>(call.operands[3]),
                           call.dims[0],
                           call.dims[1]};
  Run(call, problem);
}

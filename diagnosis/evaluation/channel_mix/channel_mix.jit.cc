// One kernel for each cause; they compute the same (channel_mix.cc).

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <condition_variable>
#include <cstring>
#include <map>
#include <mutex>

#ifndef OPTRAIL_ATTR_CHANNELS
#define OPTRAIL_ATTR_CHANNELS 4
#endif

namespace {

constexpr int kChannels = OPTRAIL_ATTR_CHANNELS;
constexpr int kAmount = OPTRAIL_AMOUNT;

typedef float Wide __attribute__((vector_size(64), aligned(4)));
typedef float Narrow __attribute__((vector_size(16), aligned(4)));

struct Problem {
  const float* x;
  const float* w;
  float* y;
  float* e;
  int64_t rows, cols;

  const float* X(int64_t r, int k) const {
    return x + (r * kChannels + k) * cols;
  }
  float* Y(int64_t r, int i) const { return y + (r * kChannels + i) * cols; }
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
inline float SumOf(V v) {
  float sum = 0;
  for (size_t i = 0; i < sizeof(V) / 4; ++i) sum += v[i];
  return sum;
}

// kOutputs channels of kVectors vectors: each value that is loaded serves all
// of these channels.
template <int kOutputs, int kVectors, class V = Wide>
inline void Block(const Problem& p, int64_t r, int i, int64_t c, V* sum) {
  constexpr int64_t kLanes = sizeof(V) / 4;
  V sums[kOutputs][kVectors] = {};
#pragma GCC unroll 32
  for (int k = 0; k < kChannels; ++k) {
#pragma GCC unroll 8
    for (int v = 0; v < kVectors; ++v) {
      const V x = Load<V>(p.X(r, k) + c + v * kLanes);
#pragma GCC unroll 8
      for (int j = 0; j < kOutputs; ++j) {
        sums[j][v] += p.w[(i + j) * kChannels + k] * x;
      }
    }
  }
#pragma GCC unroll 8
  for (int j = 0; j < kOutputs; ++j) {
#pragma GCC unroll 8
    for (int v = 0; v < kVectors; ++v) {
      Store(sums[j][v], p.Y(r, i + j) + c + v * kLanes);
      sum[v] += sums[j][v];
    }
  }
}

// All channels of kVectors vectors.
template <int kVectors, class V = Wide>
inline void Pixels(const Problem& p, int64_t r, int64_t c, V* sum) {
  int i = 0;
  for (; i + 4 <= kChannels; i += 4) Block<4, kVectors, V>(p, r, i, c, sum);
  for (; i < kChannels; ++i) Block<1, kVectors, V>(p, r, i, c, sum);
}

template <class V = Wide>
inline void Row(const Problem& p, int64_t r) {
  constexpr int kVectors = 4;
  V sum[kVectors] = {};
  for (int64_t c = 0; c < p.cols; c += kVectors * sizeof(V) / 4) {
    Pixels<kVectors, V>(p, r, c, sum);
  }
  p.e[r] = SumOf((sum[0] + sum[1]) + (sum[2] + sum[3]));
}

inline void Rows(const Problem& p, int64_t begin, int64_t end) {
  for (int64_t r = begin; r < end; ++r) Row(p, r);
}

inline void AllRows(const OptrailJitCall& call, const Problem& p) {
  call.ParallelFor(call.threads, [&](int64_t t) {
    Rows(p, p.rows * t / call.threads, p.rows * (t + 1) / call.threads);
  });
}

#if defined(OPTRAIL_CAUSE_SCALAR)

// The weights may be anywhere, the results as well: a pixel at a time.
__attribute__((noinline,
               optimize("no-tree-vectorize", "no-tree-slp-vectorize"))) void
Run(const OptrailJitCall& call, const Problem& p) {
  for (int64_t r = 0; r < p.rows; ++r) {
    float sums[4] = {};
    for (int i = 0; i < kChannels; ++i) {
      for (int64_t c = 0; c < p.cols; ++c) {
        float v = 0;
#pragma GCC unroll 32
        for (int k = 0; k < kChannels; ++k) {
          v += p.w[i * kChannels + k] * p.X(r, k)[c];
        }
        p.Y(r, i)[c] = v;
        sums[c & 3] += v;
      }
    }
    p.e[r] = (sums[0] + sums[1]) + (sums[2] + sums[3]);
  }
}

#elif defined(OPTRAIL_CAUSE_NARROW)

void Run(const OptrailJitCall& call, const Problem& p) {
  for (int64_t r = 0; r < p.rows; ++r) Row<Narrow>(p, r);
}

#elif defined(OPTRAIL_CAUSE_LATENCY)

// One sum for everything, as the definition says.
void Run(const OptrailJitCall& call, const Problem& p) {
  for (int64_t r = 0; r < p.rows; ++r) {
    float sum = 0;
    for (int i = 0; i < kChannels; ++i) {
      for (int64_t c = 0; c < p.cols; c += 16) {
        Wide v = {};
        for (int k = 0; k < kChannels; ++k) {
          v += p.w[i * kChannels + k] * Load<Wide>(p.X(r, k) + c);
        }
        Store(v, p.Y(r, i) + c);
        for (int lane = 0; lane < 16; ++lane) sum += v[lane];
      }
    }
    p.e[r] = sum;
  }
}

#elif defined(OPTRAIL_CAUSE_SPILLS)

// Twice as many sums as there are registers.
void Run(const OptrailJitCall& call, const Problem& p) {
  for (int64_t r = 0; r < p.rows; ++r) {
    Wide sum[4] = {};
    for (int64_t c = 0; c < p.cols; c += 64) {
      Wide sums[kChannels][4] = {};
      for (int k = 0; k < kChannels; ++k) {
#pragma GCC unroll 32
        for (int i = 0; i < kChannels; ++i) {
#pragma GCC unroll 4
          for (int v = 0; v < 4; ++v) {
            sums[i][v] +=
                p.w[i * kChannels + k] * Load<Wide>(p.X(r, k) + c + 16 * v);
          }
        }
      }
#pragma GCC unroll 32
      for (int i = 0; i < kChannels; ++i) {
#pragma GCC unroll 4
        for (int v = 0; v < 4; ++v) {
          Store(sums[i][v], p.Y(r, i) + c + 16 * v);
          sum[v] += sums[i][v];
        }
      }
    }
    p.e[r] = SumOf((sum[0] + sum[1]) + (sum[2] + sum[3]));
  }
}

#elif defined(OPTRAIL_CAUSE_CONVERSIONS)

// Weights are kept as integers, and each use converts one.
void Run(const OptrailJitCall& call, const Problem& p) {
  constexpr float kOne = 1 << 24;
  static volatile int weights[kChannels * kChannels];
  for (int i = 0; i < kChannels * kChannels; ++i) {
    weights[i] = static_cast<int>(std::lrint(p.w[i] * kOne));
  }
  for (int64_t r = 0; r < p.rows; ++r) {
    Wide sum = {};
    for (int i = 0; i < kChannels; ++i) {
      for (int64_t c = 0; c < p.cols; c += 16) {
        Wide v = {};
#pragma GCC unroll 32
        for (int k = 0; k < kChannels; ++k) {
          v += static_cast<float>(weights[i * kChannels + k]) *
               Load<Wide>(p.X(r, k) + c);
        }
        v *= 1 / kOne;
        Store(v, p.Y(r, i) + c);
        sum += v;
      }
    }
    p.e[r] = SumOf(sum);
  }
}

#elif defined(OPTRAIL_CAUSE_SLOW)

// A product by logarithms.
void Run(const OptrailJitCall& call, const Problem& p) {
  for (int64_t r = 0; r < p.rows; ++r) {
    float sums[4] = {};
    for (int i = 0; i < kChannels; ++i) {
      for (int64_t c = 0; c < p.cols; ++c) {
        float v = 0;
        for (int k = 0; k < kChannels; ++k) {
          const float product = p.w[i * kChannels + k] * p.X(r, k)[c];
          v += std::copysign(std::exp(std::log(std::fabs(product))), product);
        }
        p.Y(r, i)[c] = v;
        sums[c & 3] += v;
      }
    }
    p.e[r] = (sums[0] + sums[1]) + (sums[2] + sums[3]);
  }
}

#elif defined(OPTRAIL_CAUSE_BRANCHES)

// Results are sorted into a histogram of their magnitudes while they are summed
// up.
void Run(const OptrailJitCall& call, const Problem& p) {
  for (int64_t r = 0; r < p.rows; ++r) {
    float small = 0, large = 0, negative = 0;
    int64_t counts[3] = {};
    for (int i = 0; i < kChannels; ++i) {
      for (int64_t c = 0; c < p.cols; ++c) {
        float v = 0;
#pragma GCC unroll 32
        for (int k = 0; k < kChannels; ++k) {
          v += p.w[i * kChannels + k] * p.X(r, k)[c];
        }
        p.Y(r, i)[c] = v;
        if (v < 0) {
          negative += v;
          ++counts[0];
          asm volatile("# negative" : "+x"(negative));
        } else if (v < .25f) {
          small += v;
          ++counts[1];
          asm volatile("# small" : "+x"(small));
        } else {
          large += v;
          ++counts[2];
          asm volatile("# large" : "+x"(large));
        }
      }
    }
    asm volatile("" ::"r"(counts) : "memory");
    p.e[r] = (small + large) + negative;
  }
}

#elif defined(OPTRAIL_CAUSE_STRIDED)

// A column of pixels after the other.
void Run(const OptrailJitCall& call, const Problem& p) {
  std::fill(p.e, p.e + p.rows, 0.f);
  for (int64_t c = 0; c < p.cols; ++c) {
    for (int64_t r = 0; r < p.rows; ++r) {
      for (int i = 0; i < kChannels; ++i) {
        float v = 0;
        for (int k = 0; k < kChannels; ++k) {
          v += p.w[i * kChannels + k] * p.X(r, k)[c];
        }
        p.Y(r, i)[c] = v;
        p.e[r] += v;
      }
    }
  }
}

#elif defined(OPTRAIL_CAUSE_GATHER)

// Vectors of pixels in the order of a hash of their numbers.
void Run(const OptrailJitCall& call, const Problem& p) {
  std::fill(p.e, p.e + p.rows, 0.f);
  const uint64_t count = p.rows * p.cols / 16;
  int bits = 2;
  while (uint64_t{1} << bits < count) ++bits;
  const uint64_t mask = (uint64_t{1} << bits) - 1;
  for (uint64_t i = 0; i <= mask; ++i) {
    // Each step is a bijection of so many bits.
    uint64_t at = i * 0x9e3779b97f4a7c15u & mask;
    at ^= at >> bits / 2;
    at = at * 0xbf58476d1ce4e5b9u & mask;
    at ^= at >> bits / 2;
    if (at >= count) continue;
    const int64_t r = static_cast<int64_t>(at) * 16 / p.cols;
    const int64_t c = static_cast<int64_t>(at) * 16 % p.cols;
    Wide sum = {};
    Pixels<1>(p, r, c, &sum);
    p.e[r] += SumOf(sum);
  }
}

#elif defined(OPTRAIL_CAUSE_PASSES)

// A channel of the input at a time, over all rows.
void Run(const OptrailJitCall& call, const Problem& p) {
  std::memset(p.y, 0, p.rows * kChannels * p.cols * sizeof(float));
  for (int k = 0; k < kChannels; ++k) {
    for (int64_t r = 0; r < p.rows; ++r) {
      for (int i = 0; i < kChannels; ++i) {
        const float w = p.w[i * kChannels + k];
        for (int64_t c = 0; c < p.cols; c += 16) {
          float* const to = p.Y(r, i) + c;
          Store(Load<Wide>(to) + w * Load<Wide>(p.X(r, k) + c), to);
        }
      }
    }
  }
  for (int64_t r = 0; r < p.rows; ++r) {
    Wide sums[4] = {};
    for (int64_t c = 0; c < kChannels * p.cols; c += 64) {
      for (int v = 0; v < 4; ++v) {
        sums[v] += Load<Wide>(p.Y(r, 0) + c + 16 * v);
      }
    }
    p.e[r] = SumOf((sums[0] + sums[1]) + (sums[2] + sums[3]));
  }
}

#elif defined(OPTRAIL_CAUSE_LAUNCH)

// Every call builds a dictionary of its weights.
void Run(const OptrailJitCall& call, const Problem& p) {
  std::map<uint32_t, float> weights;
  uint32_t key = 1;
  for (int i = 0; i < 512 * kAmount; ++i) {
    key = key * 1664525 + 1013904223;
    weights[key] = p.w[i % (kChannels * kChannels)];
  }
  asm volatile("" ::"r"(&weights) : "memory");
  AllRows(call, p);
}

#elif defined(OPTRAIL_CAUSE_PAGE_FAULTS)

// Results go through memory that is new in every call.
void Run(const OptrailJitCall& call, const Problem& p) {
  const int64_t bytes =
      p.rows * kChannels * p.cols * static_cast<int64_t>(sizeof(float));
  Problem into = p;
  into.y = static_cast<float*>(mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                                    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  AllRows(call, into);
  std::memcpy(p.y, into.y, bytes);
  munmap(into.y, bytes);
}

#elif defined(OPTRAIL_CAUSE_WAITING)

// It waits for a signal that never comes.
void Run(const OptrailJitCall& call, const Problem& p) {
  static std::mutex mutex;
  static std::condition_variable ready;
  std::unique_lock<std::mutex> lock(mutex);
  ready.wait_for(lock, std::chrono::microseconds(400 * kAmount),
                 [] { return false; });
  AllRows(call, p);
}

#elif defined(OPTRAIL_CAUSE_SYSTEM_CALLS)

// The weights of each row come from a file.
void Run(const OptrailJitCall& call, const Problem& p) {
  static const int file = memfd_create("weights", 0);
  float weights[kChannels * kChannels];
  (void)!pwrite(file, p.w, sizeof(weights), 0);
  Problem read = p;
  read.w = weights;
  for (int64_t r = 0; r < p.rows; ++r) {
    for (int i = 0; i < kAmount; ++i) {
      (void)!pread(file, weights, sizeof(weights), 0);
    }
    Row(read, r);
  }
}

#elif defined(OPTRAIL_CAUSE_IMBALANCE)

// Rows are shared out as if later ones took longer.
void Run(const OptrailJitCall& call, const Problem& p) {
  const auto begin = [&](int64_t t) {
    const double part = static_cast<double>(t) / call.threads;
    return static_cast<int64_t>(p.rows * std::pow(part, 1. / (1 + kAmount)));
  };
  call.ParallelFor(call.threads, [&](int64_t t) {
    Rows(p, begin(t), t + 1 == call.threads ? p.rows : begin(t + 1));
  });
}

#elif defined(OPTRAIL_CAUSE_SYNCHRONISATION)

// A parallel loop over the channels of each vector of pixels.
void Run(const OptrailJitCall& call, const Problem& p) {
  for (int64_t r = 0; r < p.rows; ++r) {
    Wide sums[kChannels] = {};
    for (int64_t c = 0; c < p.cols; c += 64) {
      call.ParallelFor(kChannels, [&](int64_t i) {
        Wide sum[4] = {};
        Block<1, 4>(p, r, static_cast<int>(i), c, sum);
        sums[i] += (sum[0] + sum[1]) + (sum[2] + sum[3]);
      });
    }
    p.e[r] = 0;
    for (int i = 0; i < kChannels; ++i) p.e[r] += SumOf(sums[i]);
  }
}

#elif defined(OPTRAIL_CAUSE_FALSE_SHARING) || defined(OPTRAIL_CAUSE_OWN_LINES)

// Threads take every other row, and add up in the results that lie side by side
// or in lines of their own.
void Run(const OptrailJitCall& call, const Problem& p) {
  call.ParallelFor(call.threads, [&](int64_t t) {
    for (int64_t r = t; r < p.rows; r += call.threads) {
#ifdef OPTRAIL_CAUSE_FALSE_SHARING
      volatile float* const sum = p.e + r;
#else
      alignas(256) volatile float own[64];
      volatile float* const sum = own;
#endif
      *sum = 0;
      for (int64_t c = 0; c < p.cols; c += 16) {
        Wide v = {};
        Pixels<1>(p, r, c, &v);
        for (int lane = 0; lane < 16; ++lane) *sum = *sum + v[lane];
      }
      p.e[r] = *sum;
    }
  });
}

#elif defined(OPTRAIL_CAUSE_CONTENDED_LINES)

// All threads add to one sum of a row, by compare and exchange.
void Run(const OptrailJitCall& call, const Problem& p) {
  for (int64_t r = 0; r < p.rows; r += 64) {
    const int64_t end = std::min(r + 64, p.rows);
    std::fill(p.e + r, p.e + end, 0.f);
    call.ParallelFor(call.threads, [&](int64_t t) {
      const int64_t step = p.cols / 16 / call.threads * 16;
      for (int64_t row = r; row < end; ++row) {
        const int64_t last = t + 1 == call.threads ? p.cols : step * (t + 1);
        auto* const total = reinterpret_cast<std::atomic<float>*>(p.e + row);
        for (int64_t c = step * t; c < last; c += 16) {
          Wide v = {};
          Pixels<1>(p, row, c, &v);
          float before = total->load(std::memory_order_relaxed);
          const float add = SumOf(v);
          while (!total->compare_exchange_weak(before, before + add)) {
          }
        }
      }
    });
  }
}

#elif defined(OPTRAIL_CAUSE_SERIAL)

// The first rows are computed before the threads begin.
void Run(const OptrailJitCall& call, const Problem& p) {
  const int64_t alone = p.rows * kAmount / (kAmount + 2);
  Rows(p, 0, alone);
  Problem rest = p;
  rest.x = p.X(alone, 0);
  rest.y = p.Y(alone, 0);
  rest.e = p.e + alone;
  rest.rows = p.rows - alone;
  AllRows(call, rest);
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

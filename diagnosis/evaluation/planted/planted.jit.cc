// One kernel for each cause; they compute the same (planted.cc).

#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <random>
#include <vector>

#ifndef OPTRAIL_ATTR_DEPTH
#define OPTRAIL_ATTR_DEPTH 4
#endif

namespace {

constexpr int kDepth = OPTRAIL_ATTR_DEPTH;
constexpr int kAmount = OPTRAIL_AMOUNT;

template <int kLanes>
struct VectorOf {
  typedef float Type __attribute__((vector_size(kLanes * 4), aligned(4)));
};
using Wide = VectorOf<sizeof(float) * 4>::Type;

template <class V>
inline V F(V x) {
  const V half = x * .5f;
  V v = x;
  for (int step = 0; step < kDepth; ++step) v = v * half + .5f;
  return v;
}

template <class V>
inline float SumOf(V v) {
  float sum = 0;
  for (size_t i = 0; i < sizeof(V) / 4; ++i) sum += v[i];
  return sum;
}

struct Problem {
  const float* x;
  float* y;
  float* s;
  int64_t rows, cols;
};

// So many vectors step by step together, as each step waits for the one before
// it: two multipliers whose results take four cycles need eight.
template <class V, int kVectors>
inline void Together(const float* x, float* y, V (&sums)[4]) {
  constexpr int64_t kLanes = sizeof(V) / 4;
  V half[kVectors], v[kVectors];
#pragma GCC unroll 8
  for (int i = 0; i < kVectors; ++i) {
    // By a copy: a template's argument loses the typedef's alignment.
    std::memcpy(&v[i], x + i * kLanes, sizeof(V));
    half[i] = v[i] * .5f;
  }
  for (int step = 0; step < kDepth; ++step) {
#pragma GCC unroll 8
    for (int i = 0; i < kVectors; ++i) v[i] = v[i] * half[i] + .5f;
  }
#pragma GCC unroll 8
  for (int i = 0; i < kVectors; ++i) {
    std::memcpy(y + i * kLanes, &v[i], sizeof(V));
    sums[i % 4] += v[i];
  }
}

// One row by vectors.
template <class V = Wide>
inline float Row(const float* x, float* y, int64_t cols) {
  constexpr int64_t kLanes = sizeof(V) / 4;
  V sums[4] = {};
  int64_t c = 0;
  for (; c + 8 * kLanes <= cols; c += 8 * kLanes) {
    Together<V, 8>(x + c, y + c, sums);
  }
  for (; c + 4 * kLanes <= cols; c += 4 * kLanes) {
    Together<V, 4>(x + c, y + c, sums);
  }
  for (; c + kLanes <= cols; c += kLanes) Together<V, 1>(x + c, y + c, sums);
  float tail = 0;
  for (; c < cols; ++c) tail += y[c] = F(x[c]);
  return SumOf((sums[0] + sums[1]) + (sums[2] + sums[3])) + tail;
}

inline void Rows(const Problem& p, int64_t begin, int64_t end) {
  for (int64_t r = begin; r < end; ++r) {
    p.s[r] = Row(p.x + r * p.cols, p.y + r * p.cols, p.cols);
  }
}

// Rows of at most 32 elements, most of which begin within a vector: vectors run
// over all of them.
inline void ShortRows(const Problem& p) {
  Row(p.x, p.y, p.rows * p.cols);
  for (int64_t r = 0; r < p.rows; ++r) {
    p.s[r] = 0;
    for (int64_t c = 0; c < p.cols; ++c) p.s[r] += p.y[r * p.cols + c];
  }
}

inline void AllRows(const OptrailJitCall& call, const Problem& p) {
  call.ParallelFor(call.threads, [&](int64_t t) {
    Rows(p, p.rows * t / call.threads, p.rows * (t + 1) / call.threads);
  });
}

#if defined(OPTRAIL_CAUSE_SCALAR)

// Several sums, so that none waits for another, and one value at a time.
__attribute__((optimize("no-tree-vectorize", "no-tree-slp-vectorize"))) float
ScalarRow(const float* x, float* y, int64_t cols) {
  float a = 0, b = 0, c = 0, d = 0;
  for (int64_t i = 0; i < cols; i += 4) {
    a += y[i] = F(x[i]);
    b += y[i + 1] = F(x[i + 1]);
    c += y[i + 2] = F(x[i + 2]);
    d += y[i + 3] = F(x[i + 3]);
  }
  return (a + b) + (c + d);
}
void Run(const OptrailJitCall& call, const Problem& p) {
  for (int64_t r = 0; r < p.rows; ++r) {
    p.s[r] = ScalarRow(p.x + r * p.cols, p.y + r * p.cols, p.cols);
  }
}

#elif defined(OPTRAIL_CAUSE_NARROW)

void Run(const OptrailJitCall& call, const Problem& p) {
  for (int64_t r = 0; r < p.rows; ++r) {
    p.s[r] = Row<VectorOf<4>::Type>(p.x + r * p.cols, p.y + r * p.cols, p.cols);
  }
}

#elif defined(OPTRAIL_CAUSE_UNUSED_LANES)

// Vectors run along rows that fill none. Eight rows go together, as in Row.
void Run(const OptrailJitCall& call, const Problem& p) {
  constexpr int64_t kLanes = sizeof(Wide) / 4;
  constexpr int64_t kRows = 8;
  for (int64_t first = 0; first < p.rows; first += kRows) {
    const int64_t rows = std::min(kRows, p.rows - first);
    for (int64_t c = 0; c < p.cols; c += kLanes) {
      const int64_t lanes = std::min(kLanes, p.cols - c);
      float in[kRows * kLanes] = {}, out[kRows * kLanes];
      for (int64_t i = 0; i < rows; ++i) {
        std::memcpy(in + i * kLanes, p.x + (first + i) * p.cols + c,
                    lanes * sizeof(float));
      }
      Wide sums[4] = {};
      Together<Wide, kRows>(in, out, sums);
      for (int64_t i = 0; i < rows; ++i) {
        const float* const v = out + i * kLanes;
        std::memcpy(p.y + (first + i) * p.cols + c, v, lanes * sizeof(float));
        float sum = c == 0 ? 0 : p.s[first + i];
        for (int64_t lane = 0; lane < lanes; ++lane) sum += v[lane];
        p.s[first + i] = sum;
      }
    }
  }
}

#elif defined(OPTRAIL_CAUSE_LATENCY)

void Run(const OptrailJitCall& call, const Problem& p) {
  for (int64_t r = 0; r < p.rows; ++r) {
    float sum = 0;
    for (int64_t c = 0; c < p.cols; ++c) {
      const float v = F(p.x[r * p.cols + c]);
      p.y[r * p.cols + c] = v;
      sum += v;
    }
    p.s[r] = sum;
  }
}

#elif defined(OPTRAIL_CAUSE_SPILLS)

// More sums than there are registers.
constexpr int kSums = 40 + kAmount;
void Run(const OptrailJitCall& call, const Problem& p) {
  constexpr int64_t kLanes = sizeof(Wide) / 4;
  for (int64_t r = 0; r < p.rows; ++r) {
    const float* const x = p.x + r * p.cols;
    float* const y = p.y + r * p.cols;
    Wide sums[kSums] = {};
    int64_t c = 0;
    for (; c + kSums * kLanes <= p.cols; c += kSums * kLanes) {
#pragma GCC unroll 64
      for (int i = 0; i < kSums; ++i) {
        const Wide v = F(*reinterpret_cast<const Wide*>(x + c + i * kLanes));
        *reinterpret_cast<Wide*>(y + c + i * kLanes) = v;
        sums[i] += v;
      }
    }
    for (; c < p.cols; c += kLanes) {
      const Wide v = F(*reinterpret_cast<const Wide*>(x + c));
      *reinterpret_cast<Wide*>(y + c) = v;
      sums[0] += v;
    }
    float sum = 0;
    for (int i = 0; i < kSums; ++i) sum += SumOf(sums[i]);
    p.s[r] = sum;
  }
}

#elif defined(OPTRAIL_CAUSE_CONVERSIONS)

void Run(const OptrailJitCall& call, const Problem& p) {
  for (int64_t r = 0; r < p.rows; ++r) {
    double sums[16] = {};
    for (int64_t c = 0; c < p.cols; c += 16) {
      for (int i = 0; i < 16; ++i) {
        const float x = p.x[r * p.cols + c + i];
        float v = x;
        for (int step = 0; step < kDepth; ++step) {
          v = static_cast<float>(static_cast<double>(v) * x * .5 + .5);
        }
        p.y[r * p.cols + c + i] = v;
        sums[i] += v;
      }
    }
    double sum = 0;
    for (const double part : sums) sum += part;
    p.s[r] = static_cast<float>(sum);
  }
}

#elif defined(OPTRAIL_CAUSE_SLOW)

volatile float two = 2;
void Run(const OptrailJitCall& call, const Problem& p) {
  const Wide divisor = two - Wide{};
  constexpr int64_t kLanes = sizeof(Wide) / 4;
  for (int64_t r = 0; r < p.rows; ++r) {
    Wide sum = {};
    for (int64_t c = 0; c < p.cols; c += kLanes) {
      const Wide x = *reinterpret_cast<const Wide*>(p.x + r * p.cols + c);
      Wide v = x;
      for (int step = 0; step < kDepth; ++step) v = (v * x + 1.0f) / divisor;
      *reinterpret_cast<Wide*>(p.y + r * p.cols + c) = v;
      sum += v;
    }
    p.s[r] = SumOf(sum);
  }
}

#elif defined(OPTRAIL_CAUSE_BRANCHES)

void Run(const OptrailJitCall& call, const Problem& p) {
  for (int64_t r = 0; r < p.rows; ++r) {
    float sums[4] = {};
    for (int64_t c = 0; c < p.cols; ++c) {
      const float x = p.x[r * p.cols + c];
      float v;
      if (x > 0) {
        asm volatile("# above");
        v = F(x);
      } else {
        asm volatile("# below");
        v = F(x);
      }
      p.y[r * p.cols + c] = v;
      sums[c & 3] += v;
    }
    p.s[r] = (sums[0] + sums[1]) + (sums[2] + sums[3]);
  }
}

#elif defined(OPTRAIL_CAUSE_STRIDED)

void Run(const OptrailJitCall& call, const Problem& p) {
  for (int64_t r = 0; r < p.rows; ++r) p.s[r] = 0;
  for (int64_t c = 0; c < p.cols; ++c) {
    for (int64_t r = 0; r < p.rows; ++r) {
      const float v = F(p.x[r * p.cols + c]);
      p.y[r * p.cols + c] = v;
      p.s[r] += v;
    }
  }
}

#elif defined(OPTRAIL_CAUSE_GATHER)

// Groups of `amount` vectors in random order.
void Run(const OptrailJitCall& call, const Problem& p) {
  constexpr int64_t kLanes = sizeof(Wide) / 4;
  static std::vector<uint32_t> order;
  const int64_t count = p.rows * p.cols / kLanes;
  if (static_cast<int64_t>(order.size()) != count) {
    order.resize(count);
    std::mt19937 random(7);
    for (int64_t i = 0; i < count; ++i) {
      const int64_t j = static_cast<int64_t>(random()) % (i + 1);
      order[i] = order[j];
      order[j] = static_cast<uint32_t>(i);
    }
  }
  for (int64_t r = 0; r < p.rows; ++r) p.s[r] = 0;
  for (const uint32_t i : order) {
    const int64_t at = int64_t{i} * kLanes;
    const Wide v = F(*reinterpret_cast<const Wide*>(p.x + at));
    *reinterpret_cast<Wide*>(p.y + at) = v;
    p.s[at / p.cols] += SumOf(v);
  }
}

#elif defined(OPTRAIL_CAUSE_PASSES)

// One step of the polynomial at a time, over everything.
void Run(const OptrailJitCall& call, const Problem& p) {
  constexpr int64_t kLanes = sizeof(Wide) / 4;
  const int64_t count = p.rows * p.cols;
  std::memcpy(p.y, p.x, count * sizeof(float));
  for (int step = 0; step < kDepth; ++step) {
    asm volatile("" ::: "memory");
    for (int64_t i = 0; i < count; i += kLanes) {
      Wide& y = *reinterpret_cast<Wide*>(p.y + i);
      y = y * *reinterpret_cast<const Wide*>(p.x + i) * .5f + .5f;
    }
  }
  for (int64_t r = 0; r < p.rows; ++r) {
    Wide sum = {};
    for (int64_t c = 0; c < p.cols; c += kLanes) {
      sum += *reinterpret_cast<Wide*>(p.y + r * p.cols + c);
    }
    p.s[r] = SumOf(sum);
  }
}

#elif defined(OPTRAIL_CAUSE_LAUNCH)

// A table that every call makes again.
void Run(const OptrailJitCall& call, const Problem& p) {
  static volatile float table[1024];
  for (int i = 0; i < 1024 * kAmount; ++i) {
    table[i & 1023] = std::sin(static_cast<float>(i));
  }
  AllRows(call, p);
}

#elif defined(OPTRAIL_CAUSE_PAGE_FAULTS)

void Run(const OptrailJitCall& call, const Problem& p) {
  const int64_t bytes = p.rows * p.cols * static_cast<int64_t>(sizeof(float));
  auto* const buffer =
      static_cast<float*>(mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                               MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  Problem into = p;
  into.y = buffer;
  AllRows(call, into);
  std::memcpy(p.y, buffer, bytes);
  munmap(buffer, bytes);
}

#elif defined(OPTRAIL_CAUSE_WAITING)

void Run(const OptrailJitCall& call, const Problem& p) {
  const timespec time = {0, kAmount * 20000};
  nanosleep(&time, nullptr);
  AllRows(call, p);
}

#elif defined(OPTRAIL_CAUSE_SYSTEM_CALLS)

void Run(const OptrailJitCall& call, const Problem& p) {
  for (int64_t r = 0; r < p.rows; ++r) {
    for (int i = 0; i < kAmount; ++i) syscall(SYS_getppid);
    Rows(p, r, r + 1);
  }
}

#elif defined(OPTRAIL_CAUSE_IMBALANCE)

// One thread has most of the rows.
void Run(const OptrailJitCall& call, const Problem& p) {
  const int64_t cut = p.rows * (16 + kAmount) / (20 + kAmount);
  call.ParallelFor(2, [&](int64_t part) {
    Rows(p, part == 0 ? 0 : cut, part == 0 ? cut : p.rows);
  });
}

#elif defined(OPTRAIL_CAUSE_SYNCHRONISATION)

// A loop for every few rows.
void Run(const OptrailJitCall& call, const Problem& p) {
  constexpr int64_t kRows = 2;
  for (int64_t r = 0; r < p.rows; r += kRows) {
    call.ParallelFor(kRows, [&](int64_t i) {
      if (r + i < p.rows) Rows(p, r + i, r + i + 1);
    });
  }
}

#elif defined(OPTRAIL_CAUSE_FALSE_SHARING) || defined(OPTRAIL_CAUSE_OWN_LINES)

// Neighbouring sums are different threads', and stay in memory; or each thread
// keeps its sum in lines of its own.
void Run(const OptrailJitCall& call, const Problem& p) {
  constexpr int64_t kLanes = sizeof(Wide) / 4;
  call.ParallelFor(call.threads, [&](int64_t t) {
    for (int64_t r = t; r < p.rows; r += call.threads) {
#ifdef OPTRAIL_CAUSE_OWN_LINES
      alignas(256) float own[64];
      volatile float* const sum = own;
#else
      volatile float* const sum = p.s + r;
#endif
      *sum = 0;
      for (int64_t c = 0; c < p.cols; c += kLanes) {
        const Wide v = F(*reinterpret_cast<const Wide*>(p.x + r * p.cols + c));
        *reinterpret_cast<Wide*>(p.y + r * p.cols + c) = v;
        for (int64_t i = 0; i < kLanes; ++i) *sum = *sum + v[i];
      }
#ifdef OPTRAIL_CAUSE_OWN_LINES
      p.s[r] = *sum;
#endif
    }
  });
}

#elif defined(OPTRAIL_CAUSE_CONTENDED_LINES)

// Progress is counted in one place.
std::atomic<int64_t> progress;
void Run(const OptrailJitCall& call, const Problem& p) {
  constexpr int64_t kLanes = sizeof(Wide) / 4;
  call.ParallelFor(call.threads, [&](int64_t t) {
    for (int64_t r = p.rows * t / call.threads;
         r < p.rows * (t + 1) / call.threads; ++r) {
      Wide sum = {};
      for (int64_t c = 0; c < p.cols; c += kLanes) {
        const Wide v = F(*reinterpret_cast<const Wide*>(p.x + r * p.cols + c));
        *reinterpret_cast<Wide*>(p.y + r * p.cols + c) = v;
        sum += v;
        progress.fetch_add(1);
      }
      p.s[r] = SumOf(sum);
    }
  });
}

#elif defined(OPTRAIL_CAUSE_SERIAL)

// The first rows are shared out, the others not.
void Run(const OptrailJitCall& call, const Problem& p) {
  Problem first = p;
  first.rows = p.rows / (2 + kAmount / 4);
  AllRows(call, first);
  Rows(p, first.rows, p.rows);
}

#elif defined(OPTRAIL_CAUSE_MISALIGNED) || defined(OPTRAIL_CAUSE_ALIGNED)

// Vectors begin at the second element of a row, or at the first. In both one
// vector more computes the first element, and one the last ones.
#ifdef OPTRAIL_CAUSE_MISALIGNED
constexpr int64_t kFirst = 1;
#else
constexpr int64_t kFirst = 0;
#endif
void Run(const OptrailJitCall& call, const Problem& p) {
  constexpr int64_t kLanes = sizeof(Wide) / 4;
  for (int64_t r = 0; r < p.rows; ++r) {
    const float* const x = p.x + r * p.cols;
    float* const y = p.y + r * p.cols;
    Wide sums = {};
    const auto add = [&](int64_t c, int64_t begin, int64_t end) {
      const Wide v = F(*reinterpret_cast<const Wide*>(x + c));
      *reinterpret_cast<Wide*>(y + c) = v;
      for (int64_t i = 0; i < kLanes; ++i) {
        sums[i] += i >= begin && i < end ? v[i] : 0;
      }
    };
    const int64_t last = p.cols - kLanes;
    add(0, 0, kFirst);
    add(last, kFirst, kLanes);
    for (int64_t c = kFirst; c < last; c += kLanes) {
      const Wide v = F(*reinterpret_cast<const Wide*>(x + c));
      *reinterpret_cast<Wide*>(y + c) = v;
      sums += v;
    }
    p.s[r] = SumOf(sums);
  }
}

#else

void Run(const OptrailJitCall& call, const Problem& p) {
  if (p.cols % 64 != 0) return ShortRows(p);
  AllRows(call, p);
}

#endif

}  // namespace

OPTRAIL_JIT_KERNEL(call) {
  const Problem problem = {static_cast<const float*>(call.operands[0]),
                           static_cast<float*>(call.operands[1]),
                           static_cast<float*>(call.operands[2]), call.dims[0],
                           call.dims[1]};
  Run(call, problem);
}

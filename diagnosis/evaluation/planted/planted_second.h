// A second kernel for each cause, written otherwise than the first
// (planted.jit.cc): the score of the first set may be overfitted, this one was
// not looked at while the method was developed. They compute the same.

namespace {

constexpr int64_t kWideLanes = sizeof(Wide) / 4;

inline Wide& At(float* y) { return *reinterpret_cast<Wide*>(y); }
inline const Wide& At(const float* x) {
  return *reinterpret_cast<const Wide*>(x);
}

#if defined(OPTRAIL_CAUSE_SCALAR2)

// A call that the compiler cannot see through, for each element.
__attribute__((noinline)) float Value(float x) {
  asm volatile("");
  return F(x);
}
void Run(const OptrailJitCall& call, const Problem& p) {
  for (int64_t r = 0; r < p.rows; ++r) {
    float sums[8] = {};
    for (int64_t c = 0; c < p.cols; c += 8) {
      for (int i = 0; i < 8; ++i) {
        const int64_t at = r * p.cols + c + i;
        sums[i] += p.y[at] = Value(p.x[at]);
      }
    }
    p.s[r] = ((sums[0] + sums[1]) + (sums[2] + sums[3])) +
             ((sums[4] + sums[5]) + (sums[6] + sums[7]));
  }
}

#elif defined(OPTRAIL_CAUSE_NARROW2)

// Vectors of half a register: the compiler was told to prefer them.
__attribute__((optimize("tree-vectorize"), target("prefer-vector-width=128")))
void Run(const OptrailJitCall& call, const Problem& p) {
  for (int64_t r = 0; r < p.rows; ++r) {
    float sums[16] = {};
    for (int64_t c = 0; c < p.cols; c += 16) {
      for (int i = 0; i < 16; ++i) {
        const float x = p.x[r * p.cols + c + i];
        float v = x;
        for (int step = 0; step < kDepth; ++step) v = v * x * .5f + .5f;
        p.y[r * p.cols + c + i] = v;
        sums[i] += v;
      }
    }
    float sum = 0;
    for (const float part : sums) sum += part;
    p.s[r] = sum;
  }
}

#elif defined(OPTRAIL_CAUSE_LATENCY2)

// Vectors, and one sum that each of them waits for, after the values.
void Run(const OptrailJitCall& call, const Problem& p) {
  for (int64_t r = 0; r < p.rows; ++r) {
    float* const y = p.y + r * p.cols;
    for (int64_t c = 0; c < p.cols; c += kWideLanes) {
      At(y + c) = F(At(p.x + r * p.cols + c));
    }
    float sum = 0;
    for (int64_t c = 0; c < p.cols; ++c) sum += y[c];
    p.s[r] = sum;
  }
}

#elif defined(OPTRAIL_CAUSE_CONVERSIONS2)

// Through 64-bit values, by vectors of eight.
typedef double Doubles __attribute__((vector_size(64)));
typedef float Eight __attribute__((vector_size(32), aligned(4)));
void Run(const OptrailJitCall& call, const Problem& p) {
  for (int64_t r = 0; r < p.rows; ++r) {
    Doubles sum = {};
    for (int64_t c = 0; c < p.cols; c += 8) {
      const Eight x = *reinterpret_cast<const Eight*>(p.x + r * p.cols + c);
      Eight v = x;
      for (int step = 0; step < kDepth; ++step) {
        v = __builtin_convertvector(
            __builtin_convertvector(v * x, Doubles) * .5 + .5, Eight);
      }
      *reinterpret_cast<Eight*>(p.y + r * p.cols + c) = v;
      sum += __builtin_convertvector(v, Doubles);
    }
    double total = 0;
    for (int i = 0; i < 8; ++i) total += sum[i];
    p.s[r] = static_cast<float>(total);
  }
}

#elif defined(OPTRAIL_CAUSE_SLOW2)

// A root that is squared again, in each step.
void Run(const OptrailJitCall& call, const Problem& p) {
  for (int64_t r = 0; r < p.rows; ++r) {
    float sums[16] = {};
    for (int64_t c = 0; c < p.cols; c += 16) {
      for (int i = 0; i < 16; ++i) {
        const float x = p.x[r * p.cols + c + i];
        float v = x;
        for (int step = 0; step < kDepth; ++step) {
          const float next = v * x * .5f + .5f;
          const float root = std::sqrt(std::fabs(next));
          v = std::copysign(root * root, next);
        }
        p.y[r * p.cols + c + i] = v;
        sums[i] += v;
      }
    }
    float sum = 0;
    for (const float part : sums) sum += part;
    p.s[r] = sum;
  }
}

#elif defined(OPTRAIL_CAUSE_BRANCHES2)

// One of four cases for each element, by a jump table.
void Run(const OptrailJitCall& call, const Problem& p) {
  for (int64_t r = 0; r < p.rows; ++r) {
    float sums[4] = {};
    for (int64_t c = 0; c < p.cols; ++c) {
      const float x = p.x[r * p.cols + c];
      float v = 0;
      switch (static_cast<int>(std::fabs(x) * 64) & 3) {
        case 0: asm volatile("# 0"); v = F(x); break;
        case 1: asm volatile("# 1"); v = F(x); break;
        case 2: asm volatile("# 2"); v = F(x); break;
        default: asm volatile("# 3"); v = F(x);
      }
      p.y[r * p.cols + c] = v;
      sums[c & 3] += v;
    }
    p.s[r] = (sums[0] + sums[1]) + (sums[2] + sums[3]);
  }
}

#elif defined(OPTRAIL_CAUSE_STRIDED2)

// Columns in pairs, from the last to the first.
void Run(const OptrailJitCall& call, const Problem& p) {
  for (int64_t r = 0; r < p.rows; ++r) p.s[r] = 0;
  for (int64_t c = p.cols - 2; c >= 0; c -= 2) {
    for (int64_t r = p.rows - 1; r >= 0; --r) {
      const float a = F(p.x[r * p.cols + c]), b = F(p.x[r * p.cols + c + 1]);
      p.y[r * p.cols + c] = a;
      p.y[r * p.cols + c + 1] = b;
      p.s[r] += a + b;
    }
  }
}

#elif defined(OPTRAIL_CAUSE_GATHER2)

// A walk from vector to vector by a linear congruence over all of them.
void Run(const OptrailJitCall& call, const Problem& p) {
  const uint64_t count = p.rows * p.cols / kWideLanes;
  uint64_t size = 1;
  while (size < count) size *= 2;
  for (int64_t r = 0; r < p.rows; ++r) p.s[r] = 0;
  uint64_t i = 0;
  for (uint64_t n = 0; n < size; ++n) {
    i = (i * 0x5851f42d4c957f2d + 0x14057b7ef767814f) & (size - 1);
    if (i >= count) continue;
    const int64_t at = static_cast<int64_t>(i) * kWideLanes;
    const Wide v = F(At(p.x + at));
    At(p.y + at) = v;
    p.s[at / p.cols] += SumOf(v);
  }
}

#elif defined(OPTRAIL_CAUSE_PASSES2)

// The values, then their sums row by row, then each again from the input, as
// often as there are steps.
void Run(const OptrailJitCall& call, const Problem& p) {
  for (int pass = 0; pass < 2 + kAmount / 2; ++pass) {
    asm volatile("" ::: "memory");
    for (int64_t r = 0; r < p.rows; ++r) {
      Wide sum = {};
      for (int64_t c = 0; c < p.cols; c += kWideLanes) {
        const Wide v = F(At(p.x + r * p.cols + c));
        At(p.y + r * p.cols + c) = v;
        sum += v;
      }
      p.s[r] = SumOf(sum);
    }
  }
}

#elif defined(OPTRAIL_CAUSE_LAUNCH2)

// A text is formatted and parsed, as of a plan that every call reads again.
void Run(const OptrailJitCall& call, const Problem& p) {
  char text[64];
  double sum = 0;
  for (int i = 0; i < 100 * kAmount; ++i) {
    snprintf(text, sizeof(text), "%d %.9g", i, 1.0 / (i + 1));
    sum += strtod(text + 2, nullptr);
  }
  asm volatile("" ::"g"(&sum) : "memory");
  AllRows(call, p);
}

#elif defined(OPTRAIL_CAUSE_PAGE_FAULTS2)

// Pages are given back while the mapping stays.
void Run(const OptrailJitCall& call, const Problem& p) {
  static float* buffer = nullptr;
  static int64_t bytes = 0;
  const int64_t needed = p.rows * p.cols * static_cast<int64_t>(sizeof(float));
  if (bytes < needed) {
    bytes = needed;
    buffer = static_cast<float*>(mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                                      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  }
  std::memcpy(buffer, p.x, needed);
  Problem from = p;
  from.x = buffer;
  AllRows(call, from);
  madvise(buffer, bytes, MADV_DONTNEED);
}

#elif defined(OPTRAIL_CAUSE_WAITING2)

// Waits for a descriptor that never becomes ready, in short slices.
void Run(const OptrailJitCall& call, const Problem& p) {
  for (int i = 0; i < kAmount; ++i) {
    const timespec time = {0, 15000};
    ppoll(nullptr, 0, &time, nullptr);
    Rows(p, p.rows * i / kAmount, p.rows * (i + 1) / kAmount);
  }
}

#elif defined(OPTRAIL_CAUSE_SYSTEM_CALLS2)

// The input comes through a pipe, a row at a time.
void Run(const OptrailJitCall& call, const Problem& p) {
  static int ends[2] = {-1, -1};
  if (ends[0] < 0 && pipe(ends) != 0) return;
  std::vector<float> row(p.cols);
  const size_t bytes = p.cols * sizeof(float);
  for (int64_t r = 0; r < p.rows; ++r) {
    if (write(ends[1], p.x + r * p.cols, bytes) < 0) return;
    if (read(ends[0], row.data(), bytes) < 0) return;
    p.s[r] = Row(row.data(), p.y + r * p.cols, p.cols);
  }
}

#elif defined(OPTRAIL_CAUSE_IMBALANCE2)

// Three pieces for two threads, one much larger, and the last to begin.
void Run(const OptrailJitCall& call, const Problem& p) {
  const int64_t small = p.rows / (8 + kAmount);
  call.ParallelFor(3, [&](int64_t part) {
    const int64_t begin = part * small;
    Rows(p, begin, part == 2 ? p.rows : begin + small);
  });
}

#elif defined(OPTRAIL_CAUSE_SYNCHRONISATION2)

// A loop over parts of each row.
void Run(const OptrailJitCall& call, const Problem& p) {
  for (int64_t r = 0; r < p.rows; ++r) {
    float sums[2];
    const int64_t half = p.cols / 2;
    call.ParallelFor(2, [&](int64_t i) {
      sums[i] = Row<VectorOf<8>::Type>(p.x + r * p.cols + i * half,
                                       p.y + r * p.cols + i * half, half);
    });
    p.s[r] = sums[0] + sums[1];
  }
}

#elif defined(OPTRAIL_CAUSE_FALSE_SHARING2)

// Each thread counts its vectors in its own element of one line.
void Run(const OptrailJitCall& call, const Problem& p) {
  static volatile int64_t counts[8];
  call.ParallelFor(call.threads, [&](int64_t t) {
    for (int64_t r = p.rows * t / call.threads;
         r < p.rows * (t + 1) / call.threads; ++r) {
      Wide sum = {};
      for (int64_t c = 0; c < p.cols; c += kWideLanes) {
        const Wide v = F(At(p.x + r * p.cols + c));
        At(p.y + r * p.cols + c) = v;
        sum += v;
        counts[t & 7] = counts[t & 7] + 1;
        counts[t & 7] = counts[t & 7] + 1;
      }
      p.s[r] = SumOf(sum);
    }
  });
}

#elif defined(OPTRAIL_CAUSE_CONTENDED_LINES2)

// A lock around each vector's sum.
std::atomic<bool> locked{false};
void Run(const OptrailJitCall& call, const Problem& p) {
  call.ParallelFor(call.threads, [&](int64_t t) {
    for (int64_t r = p.rows * t / call.threads;
         r < p.rows * (t + 1) / call.threads; ++r) {
      Wide sum = {};
      for (int64_t c = 0; c < p.cols; c += kWideLanes) {
        const Wide v = F(At(p.x + r * p.cols + c));
        At(p.y + r * p.cols + c) = v;
        while (locked.exchange(true, std::memory_order_acquire)) {
        }
        sum += v;
        locked.store(false, std::memory_order_release);
      }
      p.s[r] = SumOf(sum);
    }
  });
}

#elif defined(OPTRAIL_CAUSE_SERIAL2)

// The values by all threads, then the sums again by one.
void Run(const OptrailJitCall& call, const Problem& p) {
  AllRows(call, p);
  for (int pass = 0; pass < 1 + kAmount / 4; ++pass) {
    for (int64_t r = 0; r < p.rows; ++r) {
      p.s[r] = Row(p.x + r * p.cols, p.y + r * p.cols, p.cols);
    }
  }
}

#elif defined(OPTRAIL_CAUSE_SPILLS2)

// Many values of each row are alive at once.
void Run(const OptrailJitCall& call, const Problem& p) {
  constexpr int kValues = 40 + kAmount;
  for (int64_t r = 0; r < p.rows; ++r) {
    const float* const x = p.x + r * p.cols;
    float* const y = p.y + r * p.cols;
    Wide sum = {};
    int64_t c = 0;
    for (; c + kValues * kWideLanes <= p.cols; c += kValues * kWideLanes) {
      Wide values[kValues];
#pragma GCC unroll 64
      for (int i = 0; i < kValues; ++i) values[i] = At(x + c + i * kWideLanes);
      for (int step = 0; step < kDepth; ++step) {
#pragma GCC unroll 64
        for (int i = 0; i < kValues; ++i) {
          values[i] = values[i] * At(x + c + i * kWideLanes) * .5f + .5f;
        }
        asm volatile("" ::: "memory");
      }
#pragma GCC unroll 64
      for (int i = 0; i < kValues; ++i) {
        At(y + c + i * kWideLanes) = values[i];
        sum += values[i];
      }
    }
    for (; c < p.cols; c += kWideLanes) {
      const Wide v = F(At(x + c));
      At(y + c) = v;
      sum += v;
    }
    p.s[r] = SumOf(sum);
  }
}

#elif defined(OPTRAIL_CAUSE_HEALTHY2)

// Rows in blocks of four, with sums in registers.
void Run(const OptrailJitCall& call, const Problem& p) {
  call.ParallelFor(call.threads, [&](int64_t t) {
    const int64_t end = p.rows * (t + 1) / call.threads;
    int64_t r = p.rows * t / call.threads;
    for (; r + 4 <= end; r += 4) {
      Wide sums[4] = {};
      for (int64_t c = 0; c < p.cols; c += kWideLanes) {
        for (int i = 0; i < 4; ++i) {
          const int64_t at = (r + i) * p.cols + c;
          const Wide v = F(At(p.x + at));
          At(p.y + at) = v;
          sums[i] += v;
        }
      }
      for (int i = 0; i < 4; ++i) p.s[r + i] = SumOf(sums[i]);
    }
    Rows(p, r, end);
  });
}

#endif

}  // namespace

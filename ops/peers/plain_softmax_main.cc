// Softmax as one writes it down, compiled with everything the compiler offers
// for this machine. It is a program of its own, so that -march=native reaches
// no code that has to run elsewhere. It reads lines from standard input and
// answers on standard output:
//
//   shape ROWS COLS   ->  the sum of the first row of a result, which is 1
//   time CALLS        ->  nanoseconds that CALLS calls spent on a core

#include <sys/mman.h>
#include <time.h>

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>

namespace {

void Softmax(const float* x, float* y, int64_t rows, int64_t cols) {
  for (int64_t r = 0; r < rows; ++r, x += cols, y += cols) {
    float max = x[0];
    for (int64_t c = 1; c < cols; ++c) max = x[c] > max ? x[c] : max;
    float sum = 0;
    for (int64_t c = 0; c < cols; ++c) {
      y[c] = std::exp(x[c] - max);
      sum += y[c];
    }
    const float scale = 1 / sum;
    for (int64_t c = 0; c < cols; ++c) y[c] *= scale;
  }
}

// On huge pages, as the buffers it is compared with.
float* Allocate(int64_t count) {
  constexpr size_t kHugePage = size_t{2} << 20;
  const size_t bytes =
      (count * sizeof(float) + kHugePage - 1) / kHugePage * kHugePage;
  void* memory = std::aligned_alloc(kHugePage, bytes);
  if (memory == nullptr) std::exit(1);
  madvise(memory, bytes, MADV_HUGEPAGE);
  return static_cast<float*>(memory);
}

// What this thread spent on a core, as ElapsedNs (interleaved.h) has it.
double CoreTimeNs() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) * 1e9 +
         static_cast<double>(now.tv_nsec);
}

}  // namespace

int main() {
  int64_t rows = 0, cols = 0;
  float* x = nullptr;
  float* y = nullptr;
  char line[128];
  while (std::fgets(line, sizeof(line), stdin) != nullptr) {
    long long a = 0, b = 0;
    if (std::sscanf(line, "shape %lld %lld", &a, &b) == 2 && a > 0 && b > 0) {
      std::free(x);
      std::free(y);
      rows = a;
      cols = b;
      x = Allocate(rows * cols);
      y = Allocate(rows * cols);
      uint32_t state = 1;
      for (int64_t i = 0; i < rows * cols; ++i) {  // uniform in [-1, 1)
        state = state * 1664525u + 1013904223u;
        x[i] = static_cast<float>(state >> 8) * 0x1.0p-23f - 1.0f;
      }
      Softmax(x, y, rows, cols);
      double sum = 0;
      for (int64_t c = 0; c < cols; ++c) sum += y[c];
      std::printf("%.6f\n", sum);
    } else if (std::sscanf(line, "time %lld", &a) == 1 && x != nullptr) {
      const double start_ns = CoreTimeNs();
      for (long long i = 0; i < a; ++i) Softmax(x, y, rows, cols);
      std::printf("%.0f\n", CoreTimeNs() - start_ns);
    } else {
      std::fprintf(stderr, "expected \"shape ROWS COLS\" or \"time CALLS\"\n");
      return 2;
    }
    std::fflush(stdout);
  }
  return 0;
}

#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "problems.h"

namespace optrail::tuning::recordings {
namespace {

#define CHECK_CUDA(call)                                                  \
  do {                                                                    \
    const cudaError_t error = (call);                                     \
    if (error != cudaSuccess) {                                           \
      std::fprintf(stderr, "%s: %s\n", #call, cudaGetErrorString(error)); \
      std::exit(3);                                                       \
    }                                                                     \
  } while (false)

constexpr int kThreads = 256;
constexpr int kFilter = kConvolutionFilter;

int Blocks(size_t n) { return static_cast<int>((n + kThreads - 1) / kThreads); }

__host__ __device__ unsigned Hash(unsigned x) {
  x ^= x >> 16;
  x *= 0x7feb352du;
  x ^= x >> 15;
  x *= 0x846ca68bu;
  return x ^ x >> 16;
}

// In [-1, 1).
__device__ float Uniform(unsigned i, unsigned seed) {
  return Hash(i * 2654435761u + seed) * (2.0f / 4294967296.0f) - 1.0f;
}

__device__ size_t GlobalThread() {
  return static_cast<size_t>(blockIdx.x) * blockDim.x + threadIdx.x;
}

__global__ void FillFloats(float* out, size_t n, unsigned seed) {
  const size_t i = GlobalThread();
  if (i < n) out[i] = Uniform(i, seed);
}

__global__ void FillHalves(__half* out, size_t n, unsigned seed) {
  const size_t i = GlobalThread();
  if (i < n) out[i] = __float2half(Uniform(i, seed));
}

// Skewed: the smaller a byte the likelier.
__global__ void FillBytes(unsigned char* out, size_t n, bool skewed) {
  const size_t i = GlobalThread();
  if (i >= n) return;
  const float u = 0.5f + 0.5f * Uniform(i, 7);
  out[i] = static_cast<unsigned char>(255.99f * (skewed ? u * u * u * u : u));
}

__global__ void BodiesToArrays(const float4* bodies, float* arrays, int n) {
  const size_t i = GlobalThread();
  if (i >= n) return;
  const float4 body = bodies[i];
  arrays[i] = body.x;
  arrays[n + i] = body.y;
  arrays[2 * n + i] = body.z;
  arrays[3 * n + i] = body.w;
}

__global__ void GemmF32(const float* a, const float* b, float* c, int m, int n,
                        int k) {
  const size_t i = GlobalThread();
  if (i >= static_cast<size_t>(m) * n) return;
  float sum = 0;
  for (int kk = 0; kk < k; ++kk) {
    sum += a[static_cast<size_t>(kk) * m + i / n] *
           b[static_cast<size_t>(kk) * n + i % n];
  }
  c[i] = sum;
}

__global__ void GemmF16(const __half* a, const __half* b, float* c, int m,
                        int n, int k) {
  const size_t i = GlobalThread();
  if (i >= static_cast<size_t>(m) * n) return;
  float sum = 0;
  for (int kk = 0; kk < k; ++kk) {
    sum += __half2float(a[i / n * k + kk]) *
           __half2float(b[static_cast<size_t>(kk) * n + i % n]);
  }
  c[i] = sum;
}

__global__ void Convolution(const float* in, const float* filter, float* out,
                            int width, int height) {
  const size_t i = GlobalThread();
  if (i >= static_cast<size_t>(width) * height) return;
  const int x = i % width;
  const int y = i / width;
  float sum = 0;
  for (int fy = 0; fy < kFilter; ++fy) {
    for (int fx = 0; fx < kFilter; ++fx) {
      sum += in[(y + fy) * (width + kFilter - 1) + x + fx] *
             filter[fy * kFilter + fx];
    }
  }
  out[i] = sum;
}

__global__ void HotspotStep(const float* in, const float* power, float* out,
                            int width, int height) {
  const size_t i = GlobalThread();
  if (i >= static_cast<size_t>(width) * height) return;
  const int x = i % width;
  const int y = i / width;
  const float center = in[i];
  const float north = in[y > 0 ? i - width : i];
  const float south = in[y < height - 1 ? i + width : i];
  const float west = in[x > 0 ? i - 1 : i];
  const float east = in[x < width - 1 ? i + 1 : i];
  out[i] = center + 0.05f * power[i] + 0.2f * (north + south - 2 * center) +
           0.2f * (west + east - 2 * center) + 0.01f * (0.5f - center);
}

__global__ void Nbody(const float4* bodies, float* out, int n) {
  const size_t i = GlobalThread();
  if (i >= n) return;
  const float4 self = bodies[i];
  double x = 0, y = 0, z = 0;
  for (int j = 0; j < n; ++j) {
    const float4 other = bodies[j];
    const float dx = other.x - self.x;
    const float dy = other.y - self.y;
    const float dz = other.z - self.z;
    const float inverse = 1 / sqrtf(dx * dx + dy * dy + dz * dz + 0.01f);
    const float scale = other.w * inverse * inverse * inverse;
    x += dx * scale;
    y += dy * scale;
    z += dz * scale;
  }
  out[i] = x;
  out[n + i] = y;
  out[2 * n + i] = z;
}

__global__ void Softmax(const float* in, float* out, int rows, int cols) {
  const size_t row = GlobalThread();
  if (row >= rows) return;
  const float* from = in + row * cols;
  float max = from[0];
  for (int i = 1; i < cols; ++i) max = fmaxf(max, from[i]);
  float sum = 0;
  for (int i = 0; i < cols; ++i) sum += expf(from[i] - max);
  for (int i = 0; i < cols; ++i)
    out[row * cols + i] = expf(from[i] - max) / sum;
}

__global__ void Transpose(const float* in, float* out, int width, int height) {
  const size_t i = GlobalThread();
  if (i >= static_cast<size_t>(width) * height) return;
  out[i % width * height + i / width] = in[i];
}

__global__ void Histogram(const unsigned char* in, unsigned* out, size_t n) {
  const size_t i = GlobalThread();
  if (i < n) atomicAdd(out + in[i], 1u);
}

__global__ void Stencil3d(const float* in, float* out, int nx, int ny, int nz) {
  const size_t i = GlobalThread();
  if (i >= static_cast<size_t>(nx) * ny * nz) return;
  const int x = i % nx;
  const int y = i / nx % ny;
  const int z = i / nx / ny;
  const auto at = [=](int dx, int dy, int dz) {
    const int cx = min(max(x + dx, 0), nx - 1);
    const int cy = min(max(y + dy, 0), ny - 1);
    const int cz = min(max(z + dz, 0), nz - 1);
    return in[(cz * ny + cy) * nx + cx];
  };
  const float weights[3] = {0.4f, 0.12f, -0.02f};
  float sum = weights[0] * in[i];
  for (int r = 1; r <= 2; ++r) {
    sum += weights[r] * (at(-r, 0, 0) + at(r, 0, 0) + at(0, -r, 0) +
                         at(0, r, 0) + at(0, 0, -r) + at(0, 0, r));
  }
  out[i] = sum;
}

__global__ void Spmv(const int* structure, const float* values, float* out,
                     int rows) {
  const size_t row = GlobalThread();
  if (row >= rows) return;
  float sum = 0;
  for (int i = structure[row]; i < structure[row + 1]; ++i) {
    sum += values[rows + i] * values[structure[rows + 1 + i]];
  }
  out[row] = sum;
}

__global__ void CountWrong(const unsigned* out, const unsigned* expected,
                           size_t n, bool integers, float tolerance,
                           unsigned long long* wrong) {
  const size_t i = GlobalThread();
  if (i >= n) return;
  bool right = out[i] == expected[i];
  if (!integers) {
    const float a = __uint_as_float(out[i]);
    const float b = __uint_as_float(expected[i]);
    right = fabsf(a - b) <= tolerance * (1 + fabsf(b));  // false for NaN
  }
  if (!right) atomicAdd(wrong, 1ull);
}

__global__ void Spin(int64_t cycles) {
  const int64_t start = clock64();
  while (clock64() - start < cycles) {
  }
}

void* Allocate(size_t bytes) {
  void* memory = nullptr;
  CHECK_CUDA(cudaMalloc(&memory, bytes));
  return memory;
}

float* NewFloats(size_t n, unsigned seed) {
  auto* const floats = static_cast<float*>(Allocate(n * sizeof(float)));
  FillFloats<<<Blocks(n), kThreads>>>(floats, n, seed);
  return floats;
}

__half* NewHalves(size_t n, unsigned seed) {
  auto* const halves = static_cast<__half*>(Allocate(n * sizeof(__half)));
  FillHalves<<<Blocks(n), kThreads>>>(halves, n, seed);
  return halves;
}

void AllocateOutputs(Problem& problem, size_t words) {
  problem.out_words = words;
  problem.out = Allocate(words * 4);
  problem.scratch = Allocate(words * 4);
  problem.expected = Allocate(words * 4);
}

// Offsets and columns of a square matrix in compressed rows, its entries within
// 4096 columns of the diagonal. Skewed: one row of 64 is 49 times as long as
// the others.
std::vector<int> RandomSparseStructure(int rows, int mean_length, bool skewed) {
  std::vector<int> offsets = {0};
  std::vector<int> columns;
  for (int row = 0; row < rows; ++row) {
    int length = mean_length / 2 + Hash(row) % (mean_length + 1);
    if (skewed) {
      length = Hash(row) % 64 == 0 ? mean_length * 28 : mean_length * 4 / 7;
    }
    for (int i = 0; i < length; ++i) {
      const int offset = static_cast<int>(Hash(columns.size()) % 8192) - 4096;
      columns.push_back(std::min(std::max(row + offset, 0), rows - 1));
    }
    offsets.push_back(columns.size());
  }
  offsets.insert(offsets.end(), columns.begin(), columns.end());
  return offsets;
}

unsigned long long* WrongCounter() {
  static auto* const counter =
      static_cast<unsigned long long*>(Allocate(sizeof(unsigned long long)));
  return counter;
}

}  // namespace

Problem MakeProblem(const std::string& space, const Size& size) {
  Problem problem;
  const size_t n0 = size.n[0];
  const size_t n1 = size.n[1];
  const size_t n2 = size.n[2];
  if (space == "gemm_f32") {
    problem.in0 = NewFloats(n0 * n2, 1);
    problem.in1 = NewFloats(n1 * n2, 2);
    AllocateOutputs(problem, n0 * n1);
    problem.tolerance = 1e-3f;
    GemmF32<<<Blocks(n0 * n1), kThreads>>>(
        static_cast<float*>(problem.in0), static_cast<float*>(problem.in1),
        static_cast<float*>(problem.expected), n0, n1, n2);
  } else if (space == "gemm_f16") {
    problem.in0 = NewHalves(n0 * n2, 1);
    problem.in1 = NewHalves(n1 * n2, 2);
    AllocateOutputs(problem, n0 * n1);
    problem.tolerance = 2e-3f;
    GemmF16<<<Blocks(n0 * n1), kThreads>>>(
        static_cast<__half*>(problem.in0), static_cast<__half*>(problem.in1),
        static_cast<float*>(problem.expected), n0, n1, n2);
  } else if (space == "convolution") {
    problem.in0 = NewFloats((n0 + kFilter - 1) * (n1 + kFilter - 1), 1);
    problem.in1 = NewFloats(kFilter * kFilter, 2);
    AllocateOutputs(problem, n0 * n1);
    problem.tolerance = 1e-4f;
    Convolution<<<Blocks(n0 * n1), kThreads>>>(
        static_cast<float*>(problem.in0), static_cast<float*>(problem.in1),
        static_cast<float*>(problem.expected), n0, n1);
  } else if (space == "hotspot") {
    problem.in0 = NewFloats(n0 * n1, 1);
    problem.in1 = NewFloats(n0 * n1, 2);
    AllocateOutputs(problem, n0 * n1);
    problem.tolerance = 1e-4f;
    const float* from = static_cast<float*>(problem.in0);
    for (int step = 0; step < kHotspotSteps; ++step) {
      float* const to = static_cast<float*>(
          (kHotspotSteps - step) % 2 == 1 ? problem.expected : problem.scratch);
      HotspotStep<<<Blocks(n0 * n1), kThreads>>>(
          from, static_cast<float*>(problem.in1), to, n0, n1);
      from = to;
    }
  } else if (space == "nbody") {
    problem.in0 = NewFloats(4 * n0, 1);
    problem.in1 = Allocate(4 * n0 * sizeof(float));
    BodiesToArrays<<<Blocks(n0), kThreads>>>(static_cast<float4*>(problem.in0),
                                             static_cast<float*>(problem.in1),
                                             n0);
    AllocateOutputs(problem, 3 * n0);
    problem.tolerance = 1e-2f;
    Nbody<<<Blocks(n0), kThreads>>>(static_cast<float4*>(problem.in0),
                                    static_cast<float*>(problem.expected), n0);
  } else if (space == "softmax") {
    problem.in0 = NewFloats(n0 * n1, 1);
    AllocateOutputs(problem, n0 * n1);
    problem.tolerance = 1e-6f;
    Softmax<<<Blocks(n0), kThreads>>>(static_cast<float*>(problem.in0),
                                      static_cast<float*>(problem.expected), n0,
                                      n1);
  } else if (space == "transpose") {
    problem.in0 = NewFloats(n0 * n1, 1);
    AllocateOutputs(problem, n0 * n1);
    problem.integers = true;
    Transpose<<<Blocks(n0 * n1), kThreads>>>(
        static_cast<float*>(problem.in0), static_cast<float*>(problem.expected),
        n0, n1);
  } else if (space == "histogram") {
    problem.in0 = Allocate(n0 * 4);
    FillBytes<<<Blocks(n0 * 4), kThreads>>>(
        static_cast<unsigned char*>(problem.in0), n0 * 4, n1 != 0);
    AllocateOutputs(problem, 256);
    problem.integers = true;
    problem.accumulates = true;
    CHECK_CUDA(cudaMemset(problem.expected, 0, 256 * 4));
    Histogram<<<Blocks(n0 * 4), kThreads>>>(
        static_cast<unsigned char*>(problem.in0),
        static_cast<unsigned*>(problem.expected), n0 * 4);
  } else if (space == "stencil3d") {
    problem.in0 = NewFloats(n0 * n1 * n2, 1);
    AllocateOutputs(problem, n0 * n1 * n2);
    problem.tolerance = 1e-5f;
    Stencil3d<<<Blocks(n0 * n1 * n2), kThreads>>>(
        static_cast<float*>(problem.in0), static_cast<float*>(problem.expected),
        n0, n1, n2);
  } else if (space == "spmv") {
    const std::vector<int> structure = RandomSparseStructure(n0, n1, n2 != 0);
    problem.in0 = Allocate(structure.size() * sizeof(int));
    CHECK_CUDA(cudaMemcpy(problem.in0, structure.data(),
                          structure.size() * sizeof(int),
                          cudaMemcpyHostToDevice));
    // x and the entries; one more than there are.
    problem.in1 = NewFloats(structure.size(), 1);
    AllocateOutputs(problem, n0);
    problem.tolerance = 1e-4f;
    Spmv<<<Blocks(n0), kThreads>>>(static_cast<int*>(problem.in0),
                                   static_cast<float*>(problem.in1),
                                   static_cast<float*>(problem.expected), n0);
  } else {
    std::fprintf(stderr, "no problem for space '%s'\n", space.c_str());
    std::exit(3);
  }
  CHECK_CUDA(cudaGetLastError());
  CHECK_CUDA(cudaDeviceSynchronize());
  return problem;
}

void FreeProblem(Problem& problem) {
  for (void* const memory : {problem.in0, problem.in1, problem.out,
                             problem.scratch, problem.expected}) {
    CHECK_CUDA(cudaFree(memory));
  }
  problem = Problem();
}

void ResetOutput(const Problem& problem) {
  // All ones is NaN as a float and too large a count.
  cudaMemsetAsync(problem.out, problem.accumulates ? 0 : 0xff,
                  problem.out_words * 4);
}

int64_t WrongWords(const Problem& problem) {
  unsigned long long* const counter = WrongCounter();
  cudaMemsetAsync(counter, 0, sizeof(*counter));
  CountWrong<<<Blocks(problem.out_words), kThreads>>>(
      static_cast<unsigned*>(problem.out),
      static_cast<unsigned*>(problem.expected), problem.out_words,
      problem.integers, problem.tolerance, counter);
  unsigned long long wrong = 0;
  const cudaError_t error =
      cudaMemcpy(&wrong, counter, sizeof(wrong), cudaMemcpyDeviceToHost);
  return error == cudaSuccess ? static_cast<int64_t>(wrong) : -1;
}

void LaunchSpin(int64_t cycles) { Spin<<<1, 1>>>(cycles); }

}  // namespace optrail::tuning::recordings

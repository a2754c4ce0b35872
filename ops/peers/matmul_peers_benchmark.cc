// Our matrix product beside OpenBLAS, in one run, interleaved:
//
//   bazel run //ops/peers:matmul_peers_benchmark -- --threads=1
//       --shapes=m=512,n=512,k=512/f32 --configs="mr=6,nr_vectors=4;mr=14"
//
// OpenBLAS is loaded at run time if it is installed (libopenblas0 on Debian).

#include <dlfcn.h>

#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/flags/parse.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/status_macros.h"
#include "ops/device/cpu/device.h"
#include "ops/peers/interleaved.h"
#include "ops/peers/kernel_candidates.h"
#include "tuning/proto/canonical.h"

ABSL_FLAG(std::string, shapes,
          "m=512,n=512,k=512/f32;m=1024,n=1024,k=1024/f32;"
          "m=384,n=1024,k=1024/f32;m=384,n=384,k=64/f32;"
          "m=8,n=4096,k=4096/f32;m=1,n=1000,k=2048/f32",
          "shapes to compare, separated by semicolons");
ABSL_FLAG(std::string, configs, "",
          "more configs to compare, separated by semicolons; knobs that one "
          "leaves out have their default");
ABSL_FLAG(int, threads, 1, "threads of both sides");
ABSL_FLAG(int, rounds, 31, "interleaved samples of each candidate");

namespace optrail::ops {
namespace {

// The part of CBLAS that is needed here.
class OpenBlas {
 public:
  // Unimplemented says why it is not to be had.
  static absl::StatusOr<OpenBlas> Load(int threads) {
    OpenBlas blas;
    void* library = dlopen("libopenblas.so.0", RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) {
      const char* why = dlerror();
      return absl::UnimplementedError(why != nullptr ? why : "dlopen failed");
    }
    blas.sgemm_ = reinterpret_cast<Sgemm>(dlsym(library, "cblas_sgemm"));
    const auto set_threads = reinterpret_cast<void (*)(int)>(
        dlsym(library, "openblas_set_num_threads"));
    const auto config =
        reinterpret_cast<char* (*)()>(dlsym(library, "openblas_get_config"));
    const auto core =
        reinterpret_cast<char* (*)()>(dlsym(library, "openblas_get_corename"));
    if (blas.sgemm_ == nullptr || set_threads == nullptr) {
      return absl::UnimplementedError(
          "libopenblas.so.0 lacks cblas_sgemm or openblas_set_num_threads");
    }
    set_threads(threads);
    blas.description_ = absl::StrCat(config != nullptr ? config() : "OpenBLAS",
                                     ", core ", core ? core() : "unknown");
    return blas;
  }

  // C = A * B, row-major.
  void Multiply(int m, int n, int k, const float* a, const float* b,
                float* c) const {
    constexpr int kRowMajor = 101;
    constexpr int kNoTranspose = 111;
    sgemm_(kRowMajor, kNoTranspose, kNoTranspose, m, n, k, 1.0f, a, k, b, n,
           0.0f, c, n);
  }

  const std::string& description() const { return description_; }

 private:
  using Sgemm = void (*)(int, int, int, int, int, int, float, const float*, int,
                         const float*, int, float, float*, int);
  Sgemm sgemm_ = nullptr;
  std::string description_;
};

absl::Status CompareShape(const std::string& shape_text,
                          const absl::StatusOr<OpenBlas>& blas,
                          Device& device) {
  OPTRAIL_ASSIGN_OR_RETURN(
      const std::unique_ptr<KernelCandidates> ours,
      KernelCandidates::Create("matmul", shape_text, device));
  std::vector<Candidate> candidates;
  if (blas.ok()) {
    const proto::Shape& shape = ours->shape();
    const int m = static_cast<int>(shape.dims(0).value());
    const int n = static_cast<int>(shape.dims(1).value());
    const int k = static_cast<int>(shape.dims(2).value());
    auto multiply = [&blas, &ours, m, n, k] {
      const auto operands = ours->operands().addresses();
      blas->Multiply(m, n, k, static_cast<const float*>(operands[0]),
                     static_cast<const float*>(operands[1]),
                     static_cast<float*>(operands[2]));
    };
    OPTRAIL_RETURN_IF_ERROR(ours->operands().Arm());
    multiply();
    OPTRAIL_RETURN_IF_ERROR(ours->operands().Verify().status());
    candidates.push_back(
        {"openblas", [multiply, threads = device.threads()](int64_t calls) {
           return ElapsedNs(threads, calls, multiply);
         }});
  }
  OPTRAIL_ASSIGN_OR_RETURN(
      const std::vector<Candidate> own,
      ours->Make(absl::StrSplit(absl::GetFlag(FLAGS_configs), ';',
                                absl::SkipEmpty())));
  candidates.insert(candidates.end(), own.begin(), own.end());

  InterleavedOptions options;
  options.rounds = absl::GetFlag(FLAGS_rounds);
  const std::vector<Reading> readings = MeasureInterleaved(candidates, options);
  std::printf("%s\n", ToTable(shape_text, readings,
                              ours->op().Flop(ours->shape()), "GFLOP/s")
                          .c_str());
  std::fflush(stdout);
  return absl::OkStatus();
}

absl::Status Main() {
  const int threads = absl::GetFlag(FLAGS_threads);
  if (absl::GetFlag(FLAGS_rounds) < 1) {
    return absl::InvalidArgumentError("--rounds must be at least 1");
  }
  OPTRAIL_ASSIGN_OR_RETURN(const std::unique_ptr<Device> device,
                           MakeCpuDevice(threads));
  const absl::StatusOr<OpenBlas> blas = OpenBlas::Load(threads);
  std::printf("%s, %d thread(s); speed-up over the first line of each shape\n",
              device->hardware().id().c_str(), threads);
  std::printf("openblas: %s\n\n",
              blas.ok()
                  ? blas->description().c_str()
                  : absl::StrCat("unsupported here: ", blas.status().message())
                        .c_str());
  for (const absl::string_view shape :
       absl::StrSplit(absl::GetFlag(FLAGS_shapes), ';', absl::SkipEmpty())) {
    OPTRAIL_RETURN_IF_ERROR(CompareShape(std::string(shape), blas, *device));
  }
  return absl::OkStatus();
}

}  // namespace
}  // namespace optrail::ops

int main(int argc, char** argv) {
  absl::ParseCommandLine(argc, argv);
  const absl::Status status = optrail::ops::Main();
  if (status.ok()) return 0;
  std::fprintf(stderr, "%s\n", std::string(status.message()).c_str());
  return 2;
}

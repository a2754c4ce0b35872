// The matrix product by OpenBLAS, loaded at run time: the same binary runs with
// and without it. Debian has it as libopenblas0-pthread;
// $OPTRAIL_OPENBLAS names another library.

#include <dlfcn.h>
#include <stdlib.h>

#include <limits>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/types/span.h"
#include "base/status_macros.h"
#include "ops/core/backend.h"
#include "ops/core/cpu_device.h"
#include "ops/core/registry.h"

namespace optrail::ops {
namespace {

// The part of CBLAS that is needed here.
class OpenBlas {
 public:
  // Once per process: it is never unloaded, since its threads live on.
  static const absl::StatusOr<OpenBlas>& Get() {
    static const auto* const library = new absl::StatusOr<OpenBlas>(Load());
    return *library;
  }

  // C = A * B, row-major.
  void Multiply(int m, int n, int k, const float* a, const float* b,
                float* c) const {
    constexpr int kRowMajor = 101;
    constexpr int kNoTranspose = 111;
    sgemm_(kRowMajor, kNoTranspose, kNoTranspose, m, n, k, 1.0f, a, k, b, n,
           0.0f, c, n);
  }
  void SetThreads(int threads) const { set_threads_(threads); }

  // "OpenBLAS 0.3.21", and all that it says of its build and this machine.
  const std::string& version() const { return version_; }
  const std::string& description() const { return description_; }

 private:
  using Sgemm = void (*)(int, int, int, int, int, int, float, const float*, int,
                         const float*, int, float, float*, int);

  static absl::StatusOr<OpenBlas> Load() {
    const char* path = getenv("OPTRAIL_OPENBLAS");
    if (path == nullptr || *path == '\0') path = "libopenblas.so.0";
    void* const library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) {
      const char* const why = dlerror();
      return absl::UnavailableError(
          absl::StrCat("unsupported here: ", why != nullptr ? why : path,
                       "; on Debian: apt install libopenblas0-pthread"));
    }
    OpenBlas blas;
    blas.sgemm_ = reinterpret_cast<Sgemm>(dlsym(library, "cblas_sgemm"));
    blas.set_threads_ = reinterpret_cast<void (*)(int)>(
        dlsym(library, "openblas_set_num_threads"));
    const auto config =
        reinterpret_cast<char* (*)()>(dlsym(library, "openblas_get_config"));
    const auto core =
        reinterpret_cast<char* (*)()>(dlsym(library, "openblas_get_corename"));
    for (const auto& [name, found] :
         {std::make_pair("cblas_sgemm", blas.sgemm_ != nullptr),
          std::make_pair("openblas_set_num_threads",
                         blas.set_threads_ != nullptr),
          std::make_pair("openblas_get_config", config != nullptr),
          std::make_pair("openblas_get_corename", core != nullptr)}) {
      if (found) continue;
      return absl::UnavailableError(
          absl::StrCat("unsupported here: ", path, " has no function ", name));
    }
    // "OpenBLAS 0.3.21 NO_AFFINITY USE_OPENMP=0 ..."
    const std::vector<std::string> words = absl::StrSplit(config(), ' ');
    blas.version_ =
        absl::StrCat(words[0], words.size() > 1 ? " " + words[1] : "");
    blas.description_ = absl::StrCat(config(), ", core ", core());
    return blas;
  }

  Sgemm sgemm_ = nullptr;
  void (*set_threads_)(int) = nullptr;
  std::string version_;
  std::string description_;
};

class OpenBlasInvocation : public Invocation {
 public:
  OpenBlasInvocation(const OpenBlas& blas, const proto::Shape& shape)
      : blas_(blas),
        m_(static_cast<int>(shape.dims(0).value())),
        n_(static_cast<int>(shape.dims(1).value())),
        k_(static_cast<int>(shape.dims(2).value())) {}

  void Run(absl::Span<void* const> operands) override {
    blas_.Multiply(m_, n_, k_, static_cast<const float*>(operands[0]),
                   static_cast<const float*>(operands[1]),
                   static_cast<float*>(operands[2]));
  }

 private:
  const OpenBlas& blas_;
  const int m_, n_, k_;
};

class MatmulOpenBlas : public Backend {
 public:
  std::string name() const override { return "openblas"; }
  proto::DeviceKind kind() const override { return proto::CPU; }

  absl::StatusOr<std::string> Id(const Target& target) const override {
    const absl::StatusOr<OpenBlas>& blas = OpenBlas::Get();
    if (!blas.ok()) return blas.status();
    return KernelId(files().sources_hash, blas->description());
  }

  std::string library() const override {
    const absl::StatusOr<OpenBlas>& blas = OpenBlas::Get();
    return blas.ok() ? blas->version() : "";
  }

  absl::StatusOr<Recipe> Describe(
      const CompileRequest& request) const override {
    if (request.ablation != Ablation::kNone) {
      return absl::UnimplementedError("a library has no ablated variants");
    }
    Recipe recipe;
    recipe.index = 0;
    return recipe;
  }

  absl::StatusOr<std::unique_ptr<Invocation>> Load(
      const Artifact& artifact, const proto::Shape& shape,
      const proto::Config& config, Device& device) const override {
    const absl::StatusOr<OpenBlas>& blas = OpenBlas::Get();
    if (!blas.ok()) return blas.status();
    auto* const cpu = dynamic_cast<CpuDevice*>(&device);
    if (cpu == nullptr) {
      return absl::InvalidArgumentError("OpenBLAS needs a CPU device");
    }
    for (const proto::Dim& dim : shape.dims()) {
      if (dim.value() <= std::numeric_limits<int>::max()) continue;
      return absl::UnimplementedError(absl::StrCat(
          "OpenBLAS takes 32-bit sizes; ", dim.name(), " is ", dim.value()));
    }
    blas->SetThreads(cpu->threads());
    return std::make_unique<OpenBlasInvocation>(*blas, shape);
  }
};

OPTRAIL_REGISTER_BACKEND("matmul", MatmulOpenBlas)

}  // namespace
}  // namespace optrail::ops

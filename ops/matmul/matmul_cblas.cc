// The matrix product by BLAS libraries, loaded at run time: the same binary
// runs with and without them. Debian has them as libopenblas0-pthread and
// libblis4-pthread; $OPTRAIL_OPENBLAS and $OPTRAIL_BLIS name others.

#include <dlfcn.h>
#include <stdlib.h>

#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "base/status_macros.h"
#include "ops/core/cpu_device.h"
#include "ops/core/library_backend.h"
#include "ops/core/registry.h"

namespace optrail::ops {
namespace {

using Sgemm = void (*)(int, int, int, int, int, int, float, const float*, int,
                       const float*, int, float, float*, int);

// A library that has CBLAS' sgemm.
struct Blas {
  Sgemm sgemm = nullptr;
  void (*set_threads)(int) = nullptr;
  std::string version;      // "OpenBLAS 0.3.21"
  std::string description;  // all that it says of its build and this machine
};

// Where to find it, and how it is asked what differs from library to library.
struct BlasKind {
  const char* backend;
  const char* variable;
  const char* path;
  const char* package;
  // Unavailable names the function that the library lacks.
  absl::Status (*complete)(void* library, Blas* blas);
  void (*before_loading)();
};

template <class Function>
absl::Status Find(void* library, const char* name, Function* function) {
  *function = reinterpret_cast<Function>(dlsym(library, name));
  if (*function != nullptr) return absl::OkStatus();
  return absl::UnavailableError(absl::StrCat("it has no function ", name));
}

// Libraries choose kernels by lists of processor models. Those that are newer
// than the list get some that are many times slower: no peers. Where the
// environment does not choose, the instruction sets do.
bool HasAvx512() {
  __builtin_cpu_init();
  return __builtin_cpu_supports("avx512vl") &&
         __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512dq");
}

// OpenBLAS 0.3.21 takes kernels of 2004 for newer processors of Intel, at a
// fifth of the speed; of AMD's it asks for the instruction sets.
void ChooseOpenBlasCore() {
  __builtin_cpu_init();
  if (!__builtin_cpu_is("intel") || !__builtin_cpu_supports("avx2") ||
      !__builtin_cpu_supports("fma")) {
    return;
  }
  setenv("OPENBLAS_CORETYPE", HasAvx512() ? "SkylakeX" : "Haswell",
         /*overwrite=*/0);
}

absl::Status CompleteOpenBlas(void* library, Blas* blas) {
  char* (*config)() = nullptr;
  char* (*core)() = nullptr;
  OPTRAIL_RETURN_IF_ERROR(
      Find(library, "openblas_set_num_threads", &blas->set_threads));
  OPTRAIL_RETURN_IF_ERROR(Find(library, "openblas_get_config", &config));
  OPTRAIL_RETURN_IF_ERROR(Find(library, "openblas_get_corename", &core));
  // "OpenBLAS 0.3.21 NO_AFFINITY USE_OPENMP=0 ..."
  const std::vector<std::string> words = absl::StrSplit(config(), ' ');
  blas->version =
      absl::StrCat(words[0], words.size() > 1 ? " " + words[1] : "");
  blas->description = absl::StrCat(config(), ", core ", core());
  return absl::OkStatus();
}

// BLIS 0.9.0 takes portable C for AMD's processors of the fifth Zen generation,
// and AVX2 where it does not find the name of an Intel Xeon in its list of
// those with two units for AVX-512. Its variable takes a number, which differs
// from version to version.
void ChooseBlisArchitecture(const char* (*name)(int)) {
  if (!HasAvx512()) return;
  for (int id = 0;; ++id) {
    const absl::string_view architecture = name(id);
    if (architecture == "skx") {
      setenv("BLIS_ARCH_TYPE", std::to_string(id).c_str(), /*overwrite=*/0);
      return;
    }
    if (architecture == "generic") return;  // the last one
  }
}

absl::Status CompleteBlis(void* library, Blas* blas) {
  static void (*set_threads)(int64_t) = nullptr;  // takes its own integers
  void (*initialize)() = nullptr;
  const char* (*version)() = nullptr;
  int (*architecture)() = nullptr;
  const char* (*architecture_name)(int) = nullptr;
  OPTRAIL_RETURN_IF_ERROR(
      Find(library, "bli_thread_set_num_threads", &set_threads));
  OPTRAIL_RETURN_IF_ERROR(Find(library, "bli_init", &initialize));
  OPTRAIL_RETURN_IF_ERROR(Find(library, "bli_info_get_version_str", &version));
  OPTRAIL_RETURN_IF_ERROR(Find(library, "bli_arch_query_id", &architecture));
  OPTRAIL_RETURN_IF_ERROR(Find(library, "bli_arch_string", &architecture_name));
  ChooseBlisArchitecture(architecture_name);
  initialize();  // or it aborts when it is asked for what the variable chose
  blas->set_threads = [](int threads) { set_threads(threads); };
  blas->version = absl::StrCat("BLIS ", version());
  blas->description = absl::StrCat(blas->version, ", kernels for ",
                                   architecture_name(architecture()));
  return absl::OkStatus();
}

constexpr BlasKind kOpenBlas = {"openblas",         "OPTRAIL_OPENBLAS",
                                "libopenblas.so.0", "libopenblas0-pthread",
                                &CompleteOpenBlas,  &ChooseOpenBlasCore};
constexpr BlasKind kBlis = {"blis",         "OPTRAIL_BLIS",
                            "libblis.so.4", "libblis4-pthread",
                            &CompleteBlis,  [] {}};

absl::StatusOr<Blas> LoadBlas(const BlasKind& kind) {
  const char* path = getenv(kind.variable);
  if (path == nullptr || *path == '\0') path = kind.path;
  kind.before_loading();
  void* const library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    const char* const why = dlerror();
    return absl::UnavailableError(
        absl::StrCat("unsupported here: ", why != nullptr ? why : path,
                     "; on Debian: apt install ", kind.package));
  }
  Blas blas;
  absl::Status status = Find(library, "cblas_sgemm", &blas.sgemm);
  if (status.ok()) status = kind.complete(library, &blas);
  if (!status.ok()) {
    return absl::UnavailableError(
        absl::StrCat("unsupported here: ", path, ": ", status.message()));
  }
  return blas;
}

class BlasInvocation : public Invocation {
 public:
  BlasInvocation(Sgemm sgemm, const proto::Shape& shape)
      : sgemm_(sgemm),
        m_(static_cast<int>(shape.dims(0).value())),
        n_(static_cast<int>(shape.dims(1).value())),
        k_(static_cast<int>(shape.dims(2).value())) {}

  absl::Status Run(const Call& call) const override {
    constexpr int kRowMajor = 101;
    constexpr int kNoTranspose = 111;
    sgemm_(kRowMajor, kNoTranspose, kNoTranspose, m_, n_, k_, 1.0f,
           static_cast<const float*>(call.operands[0]), k_,
           static_cast<const float*>(call.operands[1]), n_, 0.0f,
           static_cast<float*>(call.operands[2]), n_);
    return absl::OkStatus();
  }

 private:
  const Sgemm sgemm_;
  const int m_, n_, k_;
};

template <const BlasKind& kKind>
class MatmulBlas : public BackendFor<CpuDevice, LibraryBackend> {
 public:
  std::string name() const override { return kKind.backend; }

  absl::StatusOr<std::string> Id(const Target& target) const override {
    if (!Library().ok()) return Library().status();
    return KernelId(files().sources_hash, Library()->description);
  }

 protected:
  // The libraries have one number of threads for the whole process: what is
  // loaded last decides.
  absl::StatusOr<std::unique_ptr<Invocation>> LoadOn(
      const Artifact& artifact, const proto::Shape& shape,
      const proto::Config& config, CpuDevice& device) const override {
    if (!Library().ok()) return Library().status();
    for (const proto::Dim& dim : shape.dims()) {
      if (dim.value() <= std::numeric_limits<int>::max()) continue;
      return absl::UnimplementedError(absl::StrCat(
          name(), " takes 32-bit sizes; ", dim.name(), " is ", dim.value()));
    }
    Library()->set_threads(device.threads());
    return std::make_unique<BlasInvocation>(Library()->sgemm, shape);
  }

  absl::StatusOr<std::string> Version() const override {
    if (!Library().ok()) return Library().status();
    return Library()->version;
  }

 private:
  // Once per process: it is never unloaded, since its threads live on.
  static const absl::StatusOr<Blas>& Library() {
    static const auto* const library =
        new absl::StatusOr<Blas>(LoadBlas(kKind));
    return *library;
  }
};

using MatmulOpenBlas = MatmulBlas<kOpenBlas>;
using MatmulBlis = MatmulBlas<kBlis>;
OPTRAIL_REGISTER_BACKEND("matmul", MatmulOpenBlas)
OPTRAIL_REGISTER_BACKEND("matmul", MatmulBlis)

}  // namespace
}  // namespace optrail::ops

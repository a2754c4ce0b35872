// The matrix product by NVIDIA's libraries: cuBLAS as most programs call it,
// loaded at run time, and cuBLASLt (ops/vendor/cublaslt/cublaslt.h).

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "ops/core/registry.h"
#include "ops/device/cuda/device.h"
#include "ops/device/cuda/library.h"
#include "ops/vendor/cublaslt/cublaslt.h"

namespace optrail::ops {
namespace {

using cuda::CudaDevice;
using cuda::ToolkitLibrary;

// These are constants of cublas_api.h.
constexpr int kNoTranspose = 0;  // CUBLAS_OP_N
constexpr int kComputeF32 = 68;  // CUBLAS_COMPUTE_32F
constexpr int kDefaultAlgorithm = -1;
// Sums over k that several blocks share are added up in f32 (cublaslt.cc):
// CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION.
constexpr int kSumsInF32 = 16;

// C = A * B, row-major, is C^T = B^T * A^T, column-major.
struct Product {
  explicit Product(const proto::Shape& shape)
      : m(static_cast<int>(shape.dims(0).value())),
        n(static_cast<int>(shape.dims(1).value())),
        k(static_cast<int>(shape.dims(2).value())),
        type(CublasType(shape.data_types(0))) {}
  int m, n, k;
  int type;
};

struct Cublas {
  int (*Create)(void** handle);
  int (*Destroy)(void* handle);
  int (*SetStream)(void* handle, void* stream);
  int (*SetWorkspace)(void* handle, void* workspace, size_t bytes);
  int (*SetMathMode)(void* handle, int mode);
  int (*GemmEx)(void* handle, int transpose_a, int transpose_b, int m, int n,
                int k, const void* alpha, const void* a, int a_type, int lda,
                const void* b, int b_type, int ldb, const void* beta, void* c,
                int c_type, int ldc, int compute, int algorithm);
  int version = 0;

  static const absl::StatusOr<Cublas>& Get() {
    static const auto* const library = new absl::StatusOr<Cublas>(Load());
    return *library;
  }

 private:
  static absl::StatusOr<Cublas> Load() {
    OPTRAIL_ASSIGN_OR_RETURN(
        const ToolkitLibrary library,
        ToolkitLibrary::Open(
            {"libcublas.so.13", "libcublas.so.12", "libcublas.so"}));
    Cublas blas;
    int (*property)(int type, int* value) = nullptr;
    for (const absl::Status& found :
         {library.Get("cublasCreate_v2", blas.Create),
          library.Get("cublasDestroy_v2", blas.Destroy),
          library.Get("cublasSetStream_v2", blas.SetStream),
          library.Get("cublasSetWorkspace_v2", blas.SetWorkspace),
          library.Get("cublasSetMathMode", blas.SetMathMode),
          library.Get("cublasGemmEx", blas.GemmEx),
          library.Get("cublasGetProperty", property)}) {
      OPTRAIL_RETURN_IF_ERROR(found);
    }
    int major = 0, minor = 0, patch = 0;
    property(0, &major);
    property(1, &minor);
    property(2, &patch);
    blas.version = major * 10000 + minor * 100 + patch;
    return blas;
  }
};

constexpr float kOne = 1, kZero = 0;

class CublasInvocation : public Invocation {
 public:
  CublasInvocation(const Cublas& blas, const proto::Shape& shape)
      : blas_(blas), product_(shape) {}
  ~CublasInvocation() override {
    if (handle_ != nullptr) blas_.Destroy(handle_);
  }

  absl::Status Init() {
    OPTRAIL_RETURN_IF_ERROR(
        CheckCublas(blas_.Create(&handle_), "cublasCreate"));
    return CheckCublas(blas_.SetMathMode(handle_, kSumsInF32),
                       "cublasSetMathMode");
  }

  // The library's handle serves one thread at a time, and keeps a stream and a
  // workspace.
  absl::Status Run(const Call& call) const override {
    const Product& p = product_;
    const std::lock_guard<std::mutex> lock(mutex_);
    OPTRAIL_RETURN_IF_ERROR(UseStreamAndWorkspace(call));
    return CheckCublas(
        blas_.GemmEx(handle_, kNoTranspose, kNoTranspose, p.n, p.m, p.k, &kOne,
                     call.operands[1], p.type, p.n, call.operands[0], p.type,
                     p.k, &kZero, call.operands[2], p.type, p.n, kComputeF32,
                     kDefaultAlgorithm),
        "cublasGemmEx");
  }

  int64_t workspace_bytes() const override { return kCublasWorkspaceBytes; }

 private:
  absl::Status UseStreamAndWorkspace(const Call& call) const {
    if (workspace_ == call.workspace && stream_ == call.stream.handle) {
      return absl::OkStatus();
    }
    workspace_ = nullptr;
    // In this order: another stream brings the library's own workspace.
    OPTRAIL_RETURN_IF_ERROR(CheckCublas(
        blas_.SetStream(handle_, call.stream.handle), "cublasSetStream"));
    OPTRAIL_RETURN_IF_ERROR(CheckCublas(
        blas_.SetWorkspace(handle_, call.workspace, kCublasWorkspaceBytes),
        "cublasSetWorkspace"));
    workspace_ = call.workspace;
    stream_ = call.stream.handle;
    return absl::OkStatus();
  }

  const Cublas& blas_;
  const Product product_;
  void* handle_ = nullptr;
  mutable std::mutex mutex_;
  mutable void* workspace_ = nullptr;  // of the handle, as is the stream
  mutable void* stream_ = nullptr;
};

class MatmulCublas : public CublasBackend {
 public:
  std::string name() const override { return "cublas"; }

 protected:
  absl::StatusOr<std::unique_ptr<Invocation>> LoadOn(
      const Artifact& artifact, const proto::Shape& shape,
      const proto::Config& config, CudaDevice& device) const override {
    if (!Cublas::Get().ok()) return Cublas::Get().status();
    OPTRAIL_RETURN_IF_ERROR(CheckCublasSizes(shape));
    auto made = std::make_unique<CublasInvocation>(*Cublas::Get(), shape);
    OPTRAIL_RETURN_IF_ERROR(made->Init());
    return made;
  }

  absl::StatusOr<std::string> Version() const override {
    if (!Cublas::Get().ok()) return Cublas::Get().status();
    return absl::StrCat("cuBLAS ", Cublas::Get()->version);
  }
};

class MatmulCublasLt : public CublasLtBackend {
 protected:
  absl::StatusOr<Product> ProductOf(const proto::Shape& shape) const override {
    Product product;
    product.m = static_cast<int>(shape.dims(0).value());
    product.n = static_cast<int>(shape.dims(1).value());
    product.k = static_cast<int>(shape.dims(2).value());
    return product;
  }
};

OPTRAIL_REGISTER_BACKEND("matmul", MatmulCublas)
OPTRAIL_REGISTER_BACKEND("matmul", MatmulCublasLt)

}  // namespace
}  // namespace optrail::ops

// The matrix product by NVIDIA's libraries, loaded at run time: cuBLAS as most
// programs call it, and cuBLASLt, whose heuristic proposes algorithms among
// which a knob chooses.

#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "base/status_macros.h"
#include "ops/core/library_backend.h"
#include "ops/core/registry.h"
#include "ops/device/cuda/backend.h"
#include "ops/device/cuda/device.h"
#include "ops/device/cuda/library.h"

namespace optrail::ops {
namespace {

using cuda::CudaDevice;
using cuda::ToolkitLibrary;

// Of cublas_api.h, cublasLt.h and library_types.h.
constexpr int kNoTranspose = 0;  // CUBLAS_OP_N
constexpr int kComputeF32 = 68;  // CUBLAS_COMPUTE_32F
constexpr int kDefaultAlgorithm = -1;
constexpr int kReductionSchemes = 3;  // CUBLASLT_MATMUL_PREF_..._SCHEME_MASK
constexpr int kMaxWorkspace = 1;  // CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES
constexpr int kTypeF32 = 0, kTypeF16 = 2, kTypeBf16 = 14;

// Sums over k that several blocks share are added up in f32, as everybody else
// here does: by default the libraries may round each part to 16 bits, which the
// reference does not let pass.
// CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION;
// CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE.
constexpr int kSumsInF32 = 16;
constexpr uint32_t kSchemesInF32 = 2;

// What PyTorch gives them on Hopper.
constexpr size_t kWorkspaceBytes = size_t{32} << 20;

int TypeOf(proto::DataType type) {
  return type == proto::F32   ? kTypeF32
         : type == proto::F16 ? kTypeF16
                              : kTypeBf16;
}

absl::Status Check(int result, absl::string_view what) {
  if (result == 0) return absl::OkStatus();
  constexpr int kAllocFailed = 3, kNotSupported = 15;
  const std::string message = absl::StrCat(what, ": cuBLAS status ", result);
  if (result == kAllocFailed) return absl::ResourceExhaustedError(message);
  if (result == kNotSupported) return absl::UnimplementedError(message);
  return absl::InternalError(message);
}

// C = A * B, row-major, is C^T = B^T * A^T, column-major.
struct Product {
  explicit Product(const proto::Shape& shape)
      : m(static_cast<int>(shape.dims(0).value())),
        n(static_cast<int>(shape.dims(1).value())),
        k(static_cast<int>(shape.dims(2).value())),
        type(TypeOf(shape.data_types(0))) {}
  int m, n, k;
  int type;
};

absl::Status CheckSizes(const proto::Shape& shape) {
  for (const proto::Dim& dim : shape.dims()) {
    if (dim.value() <= std::numeric_limits<int>::max()) continue;
    return absl::UnimplementedError(absl::StrCat(
        "cuBLAS takes 32-bit sizes; ", dim.name(), " is ", dim.value()));
  }
  return absl::OkStatus();
}

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

struct Algorithm {  // cublasLtMatmulHeuristicResult_t
  uint64_t algorithm[8];
  size_t workspace_bytes;
  int state;
  float waves;
  int reserved[4];
};

struct CublasLt {
  int (*Create)(void** handle);
  int (*Destroy)(void* handle);
  size_t (*GetVersion)();
  int (*DescCreate)(void** desc, int compute, int scale_type);
  int (*DescDestroy)(void* desc);
  int (*LayoutCreate)(void** layout, int type, uint64_t rows, uint64_t columns,
                      int64_t leading);
  int (*LayoutDestroy)(void* layout);
  int (*PreferenceCreate)(void** preference);
  int (*PreferenceDestroy)(void* preference);
  int (*PreferenceSet)(void* preference, int attribute, const void* value,
                       size_t bytes);
  int (*Heuristic)(void* handle, void* desc, void* a, void* b, void* c, void* d,
                   void* preference, int asked, Algorithm* algorithms,
                   int* found);
  int (*Matmul)(void* handle, void* desc, const void* alpha, const void* a,
                void* a_layout, const void* b, void* b_layout, const void* beta,
                const void* c, void* c_layout, void* d, void* d_layout,
                const void* algorithm, void* workspace, size_t workspace_bytes,
                void* stream);

  static const absl::StatusOr<CublasLt>& Get() {
    static const auto* const library = new absl::StatusOr<CublasLt>(Load());
    return *library;
  }

 private:
  static absl::StatusOr<CublasLt> Load() {
    OPTRAIL_ASSIGN_OR_RETURN(
        const ToolkitLibrary library,
        ToolkitLibrary::Open(
            {"libcublasLt.so.13", "libcublasLt.so.12", "libcublasLt.so"}));
    CublasLt lt;
    for (const absl::Status& found :
         {library.Get("cublasLtCreate", lt.Create),
          library.Get("cublasLtDestroy", lt.Destroy),
          library.Get("cublasLtGetVersion", lt.GetVersion),
          library.Get("cublasLtMatmulDescCreate", lt.DescCreate),
          library.Get("cublasLtMatmulDescDestroy", lt.DescDestroy),
          library.Get("cublasLtMatrixLayoutCreate", lt.LayoutCreate),
          library.Get("cublasLtMatrixLayoutDestroy", lt.LayoutDestroy),
          library.Get("cublasLtMatmulPreferenceCreate", lt.PreferenceCreate),
          library.Get("cublasLtMatmulPreferenceDestroy", lt.PreferenceDestroy),
          library.Get("cublasLtMatmulPreferenceSetAttribute", lt.PreferenceSet),
          library.Get("cublasLtMatmulAlgoGetHeuristic", lt.Heuristic),
          library.Get("cublasLtMatmul", lt.Matmul)}) {
      OPTRAIL_RETURN_IF_ERROR(found);
    }
    return lt;
  }
};

constexpr float kOne = 1, kZero = 0;

class CublasInvocation : public Invocation {
 public:
  CublasInvocation(const Cublas& blas, const proto::Shape& shape,
                   CudaDevice& device)
      : blas_(blas), product_(shape), device_(device) {}
  ~CublasInvocation() override {
    if (handle_ != nullptr) blas_.Destroy(handle_);
  }

  absl::Status Init() {
    OPTRAIL_ASSIGN_OR_RETURN(workspace_, device_.Allocate(kWorkspaceBytes));
    OPTRAIL_RETURN_IF_ERROR(Check(blas_.Create(&handle_), "cublasCreate"));
    OPTRAIL_RETURN_IF_ERROR(
        Check(blas_.SetStream(handle_, device_.stream()), "cublasSetStream"));
    OPTRAIL_RETURN_IF_ERROR(
        Check(blas_.SetMathMode(handle_, kSumsInF32), "cublasSetMathMode"));
    return Check(
        blas_.SetWorkspace(handle_, workspace_->data(), kWorkspaceBytes),
        "cublasSetWorkspace");
  }

  void Run(absl::Span<void* const> operands) override {
    const Product& p = product_;
    device_.Note(Check(
        blas_.GemmEx(handle_, kNoTranspose, kNoTranspose, p.n, p.m, p.k, &kOne,
                     operands[1], p.type, p.n, operands[0], p.type, p.k, &kZero,
                     operands[2], p.type, p.n, kComputeF32, kDefaultAlgorithm),
        "cublasGemmEx"));
  }

  int64_t workspace_bytes() const override { return kWorkspaceBytes; }

 private:
  const Cublas& blas_;
  const Product product_;
  CudaDevice& device_;
  std::unique_ptr<Buffer> workspace_;
  void* handle_ = nullptr;
};

class CublasLtInvocation : public Invocation {
 public:
  CublasLtInvocation(const CublasLt& lt, const proto::Shape& shape,
                     CudaDevice& device)
      : lt_(lt), product_(shape), device_(device) {}
  ~CublasLtInvocation() override {
    for (void* layout : {a_, b_, c_}) {
      if (layout != nullptr) lt_.LayoutDestroy(layout);
    }
    if (desc_ != nullptr) lt_.DescDestroy(desc_);
    if (handle_ != nullptr) lt_.Destroy(handle_);
  }

  // `rank` in the heuristic's list.
  absl::Status Init(int64_t rank) {
    const Product& p = product_;
    OPTRAIL_ASSIGN_OR_RETURN(workspace_, device_.Allocate(kWorkspaceBytes));
    OPTRAIL_RETURN_IF_ERROR(Check(lt_.Create(&handle_), "cublasLtCreate"));
    OPTRAIL_RETURN_IF_ERROR(Check(lt_.DescCreate(&desc_, kComputeF32, kTypeF32),
                                  "cublasLtMatmulDescCreate"));
    // Column-major, so that a row-major matrix is its own transpose.
    const auto layout = [&](void** made, int rows, int columns) {
      return Check(lt_.LayoutCreate(made, p.type, rows, columns, rows),
                   "cublasLtMatrixLayoutCreate");
    };
    OPTRAIL_RETURN_IF_ERROR(layout(&a_, p.k, p.m));
    OPTRAIL_RETURN_IF_ERROR(layout(&b_, p.n, p.k));
    OPTRAIL_RETURN_IF_ERROR(layout(&c_, p.n, p.m));
    void* preference = nullptr;
    OPTRAIL_RETURN_IF_ERROR(Check(lt_.PreferenceCreate(&preference),
                                  "cublasLtMatmulPreferenceCreate"));
    std::vector<Algorithm> algorithms(rank + 1);
    int found = 0;
    int result = lt_.PreferenceSet(preference, kMaxWorkspace, &kWorkspaceBytes,
                                   sizeof(kWorkspaceBytes));
    if (result == 0) {
      result = lt_.PreferenceSet(preference, kReductionSchemes, &kSchemesInF32,
                                 sizeof(kSchemesInF32));
    }
    if (result == 0) {
      result = lt_.Heuristic(handle_, desc_, b_, a_, c_, c_, preference,
                             static_cast<int>(algorithms.size()),
                             algorithms.data(), &found);
    }
    lt_.PreferenceDestroy(preference);
    OPTRAIL_RETURN_IF_ERROR(Check(result, "cublasLtMatmulAlgoGetHeuristic"));
    if (found <= rank || algorithms[rank].state != 0) {
      return absl::InvalidArgumentError(
          absl::StrCat("cuBLASLt proposes ", found, " algorithms, number ",
                       rank, " is asked for"));
    }
    algorithm_ = algorithms[rank];
    return absl::OkStatus();
  }

  void Run(absl::Span<void* const> operands) override {
    device_.Note(
        Check(lt_.Matmul(handle_, desc_, &kOne, operands[1], b_, operands[0],
                         a_, &kZero, operands[2], c_, operands[2], c_,
                         algorithm_.algorithm, workspace_->data(),
                         kWorkspaceBytes, device_.stream()),
              "cublasLtMatmul"));
  }

  int64_t workspace_bytes() const override {
    return static_cast<int64_t>(algorithm_.workspace_bytes);
  }

 private:
  const CublasLt& lt_;
  const Product product_;
  CudaDevice& device_;
  std::unique_ptr<Buffer> workspace_;
  void* handle_ = nullptr;
  void* desc_ = nullptr;
  void *a_ = nullptr, *b_ = nullptr, *c_ = nullptr;
  Algorithm algorithm_ = {};
};

// What the two have in common.
class Vendor : public LibraryBackend {
 public:
  proto::DeviceKind kind() const override { return proto::CUDA; }
  std::vector<std::vector<proto::DataType>> data_types() const override {
    return {{proto::F32}, {proto::F16}, {proto::BF16}};
  }

 protected:
  static absl::StatusOr<CudaDevice*> DeviceFor(const proto::Shape& shape,
                                               Device& device) {
    auto* const gpu = dynamic_cast<CudaDevice*>(&device);
    if (gpu == nullptr) {
      return absl::InvalidArgumentError("cuBLAS needs a CUDA device");
    }
    OPTRAIL_RETURN_IF_ERROR(CheckSizes(shape));
    return gpu;
  }
};

class MatmulCublas : public Vendor {
 public:
  std::string name() const override { return "cublas"; }

  absl::StatusOr<std::unique_ptr<Invocation>> Load(
      const Artifact& artifact, const proto::Shape& shape,
      const proto::Config& config, Device& device) const override {
    if (!Cublas::Get().ok()) return Cublas::Get().status();
    OPTRAIL_ASSIGN_OR_RETURN(CudaDevice * gpu, DeviceFor(shape, device));
    auto made = std::make_unique<CublasInvocation>(*Cublas::Get(), shape, *gpu);
    OPTRAIL_RETURN_IF_ERROR(made->Init());
    return made;
  }

 protected:
  absl::StatusOr<std::string> Version() const override {
    if (!Cublas::Get().ok()) return Cublas::Get().status();
    return absl::StrCat("cuBLAS ", Cublas::Get()->version);
  }
};

class MatmulCublasLt : public Vendor {
 public:
  std::string name() const override { return "cublaslt"; }

  absl::StatusOr<std::unique_ptr<Invocation>> Load(
      const Artifact& artifact, const proto::Shape& shape,
      const proto::Config& config, Device& device) const override {
    if (!CublasLt::Get().ok()) return CublasLt::Get().status();
    OPTRAIL_ASSIGN_OR_RETURN(CudaDevice * gpu, DeviceFor(shape, device));
    auto made =
        std::make_unique<CublasLtInvocation>(*CublasLt::Get(), shape, *gpu);
    OPTRAIL_RETURN_IF_ERROR(made->Init(cuda::Knob(config, "algorithm")));
    return made;
  }

 protected:
  absl::StatusOr<std::string> Version() const override {
    if (!CublasLt::Get().ok()) return CublasLt::Get().status();
    return absl::StrCat("cuBLASLt ", CublasLt::Get()->GetVersion());
  }
};

OPTRAIL_REGISTER_BACKEND("matmul", MatmulCublas)
OPTRAIL_REGISTER_BACKEND("matmul", MatmulCublasLt)

}  // namespace
}  // namespace optrail::ops

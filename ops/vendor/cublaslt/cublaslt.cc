#include "ops/vendor/cublaslt/cublaslt.h"

#include <cstdint>
#include <limits>
#include <mutex>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "ops/device/cuda/backend.h"
#include "ops/device/cuda/library.h"

namespace optrail::ops {
namespace {

using cuda::CudaDevice;
using cuda::ToolkitLibrary;
using Product = CublasLtBackend::Product;

// These are constants of cublasLt.h and library_types.h.
constexpr int kComputeF32 = 68;       // CUBLAS_COMPUTE_32F
constexpr int kReductionSchemes = 3;  // CUBLASLT_MATMUL_PREF_..._SCHEME_MASK
constexpr int kMaxWorkspace = 1;  // CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES
// CUBLASLT_MATMUL_DESC_*, CUBLASLT_MATRIX_LAYOUT_*
constexpr int kDescTransA = 3, kDescTransB = 4, kDescEpilogue = 7,
              kDescBias = 8;
constexpr int kLayoutBatch = 5, kLayoutBatchStride = 6;
constexpr int32_t kTransposed = 1;  // CUBLAS_OP_T
constexpr uint32_t kEpilogueBias = 4, kEpilogueReluBias = 6;
constexpr int kTypeF32 = 0, kTypeF16 = 2, kTypeBf16 = 14;

// Sums over k that several blocks share are added up in f32, as everybody else
// here does: by default the library may round each part to 16 bits, which the
// reference does not let pass. CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE.
constexpr uint32_t kSchemesInF32 = 2;

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
  int (*DescSet)(void* desc, int attribute, const void* value, size_t bytes);
  int (*LayoutCreate)(void** layout, int type, uint64_t rows, uint64_t columns,
                      int64_t leading);
  int (*LayoutDestroy)(void* layout);
  int (*LayoutSet)(void* layout, int attribute, const void* value,
                   size_t bytes);
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
          library.Get("cublasLtMatmulDescSetAttribute", lt.DescSet),
          library.Get("cublasLtMatrixLayoutCreate", lt.LayoutCreate),
          library.Get("cublasLtMatrixLayoutDestroy", lt.LayoutDestroy),
          library.Get("cublasLtMatrixLayoutSetAttribute", lt.LayoutSet),
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

class CublasLtInvocation : public Invocation {
 public:
  CublasLtInvocation(const CublasLt& lt, const Product& product, int type)
      : lt_(lt), product_(product), type_(type) {}
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
    OPTRAIL_RETURN_IF_ERROR(
        CheckCublas(lt_.Create(&handle_), "cublasLtCreate"));
    OPTRAIL_RETURN_IF_ERROR(
        CheckCublas(lt_.DescCreate(&desc_, kComputeF32, kTypeF32),
                    "cublasLtMatmulDescCreate"));
    if (p.bias) {
      const uint32_t epilogue = p.relu ? kEpilogueReluBias : kEpilogueBias;
      OPTRAIL_RETURN_IF_ERROR(CheckCublas(
          lt_.DescSet(desc_, kDescEpilogue, &epilogue, sizeof(epilogue)),
          "cublasLtMatmulDescSetAttribute"));
    }
    // Column-major, so that a row-major matrix is its own transpose; w comes
    // first.
    const auto transpose = [&](int which) {
      return CheckCublas(
          lt_.DescSet(desc_, which, &kTransposed, sizeof(kTransposed)),
          "cublasLtMatmulDescSetAttribute");
    };
    if (p.w_transposed) OPTRAIL_RETURN_IF_ERROR(transpose(kDescTransA));
    if (p.x_transposed) OPTRAIL_RETURN_IF_ERROR(transpose(kDescTransB));
    const auto layout = [&](void** made, int rows, int columns,
                            bool transposed = false) {
      if (transposed) std::swap(rows, columns);
      OPTRAIL_RETURN_IF_ERROR(
          CheckCublas(lt_.LayoutCreate(made, type_, rows, columns, rows),
                      "cublasLtMatrixLayoutCreate"));
      if (p.batch == 1) return absl::OkStatus();
      const int32_t batch = p.batch;
      const int64_t stride = int64_t{rows} * columns;
      OPTRAIL_RETURN_IF_ERROR(
          CheckCublas(lt_.LayoutSet(*made, kLayoutBatch, &batch, sizeof(batch)),
                      "cublasLtMatrixLayoutSetAttribute"));
      return CheckCublas(
          lt_.LayoutSet(*made, kLayoutBatchStride, &stride, sizeof(stride)),
          "cublasLtMatrixLayoutSetAttribute");
    };
    OPTRAIL_RETURN_IF_ERROR(layout(&a_, p.k, p.m, p.x_transposed));
    OPTRAIL_RETURN_IF_ERROR(layout(&b_, p.n, p.k, p.w_transposed));
    OPTRAIL_RETURN_IF_ERROR(layout(&c_, p.n, p.m));
    void* preference = nullptr;
    OPTRAIL_RETURN_IF_ERROR(CheckCublas(lt_.PreferenceCreate(&preference),
                                        "cublasLtMatmulPreferenceCreate"));
    std::vector<Algorithm> algorithms(rank + 1);
    int found = 0;
    int result =
        lt_.PreferenceSet(preference, kMaxWorkspace, &kCublasWorkspaceBytes,
                          sizeof(kCublasWorkspaceBytes));
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
    OPTRAIL_RETURN_IF_ERROR(
        CheckCublas(result, "cublasLtMatmulAlgoGetHeuristic"));
    if (found <= rank || algorithms[rank].state != 0) {
      return absl::InvalidArgumentError(
          absl::StrCat("cuBLASLt proposes ", found, " algorithms, number ",
                       rank, " is asked for"));
    }
    algorithm_ = algorithms[rank];
    return absl::OkStatus();
  }

  absl::Status Run(const Call& call) const override {
    if (!product_.bias) return Multiply(call);
    // The description has the bias' address.
    const std::lock_guard<std::mutex> lock(mutex_);
    OPTRAIL_RETURN_IF_ERROR(
        CheckCublas(lt_.DescSet(desc_, kDescBias, &call.operands[2],
                                sizeof(call.operands[2])),
                    "cublasLtMatmulDescSetAttribute"));
    return Multiply(call);
  }

  int64_t workspace_bytes() const override {
    return static_cast<int64_t>(algorithm_.workspace_bytes);
  }

 private:
  absl::Status Multiply(const Call& call) const {
    void* const result = call.operands.back();
    return CheckCublas(
        lt_.Matmul(handle_, desc_, &kOne, call.operands[1], b_,
                   call.operands[0], a_, &kZero, result, c_, result, c_,
                   algorithm_.algorithm, call.workspace,
                   algorithm_.workspace_bytes, call.stream.handle),
        "cublasLtMatmul");
  }

  const CublasLt& lt_;
  const Product product_;
  const int type_;
  mutable std::mutex mutex_;
  void* handle_ = nullptr;
  void* desc_ = nullptr;
  void *a_ = nullptr, *b_ = nullptr, *c_ = nullptr;
  Algorithm algorithm_ = {};
};

}  // namespace

absl::Status CheckCublas(int result, absl::string_view what) {
  if (result == 0) return absl::OkStatus();
  constexpr int kAllocFailed = 3, kNotSupported = 15;
  const std::string message = absl::StrCat(what, ": cuBLAS status ", result);
  if (result == kAllocFailed) return absl::ResourceExhaustedError(message);
  if (result == kNotSupported) return absl::UnimplementedError(message);
  return absl::InternalError(message);
}

absl::Status CheckCublasSizes(const proto::Shape& shape) {
  for (const proto::Dim& dim : shape.dims()) {
    if (dim.value() <= std::numeric_limits<int>::max()) continue;
    return absl::UnimplementedError(absl::StrCat(
        "cuBLAS takes 32-bit sizes; ", dim.name(), " is ", dim.value()));
  }
  return absl::OkStatus();
}

int CublasType(proto::DataType type) {
  return type == proto::F32   ? kTypeF32
         : type == proto::F16 ? kTypeF16
                              : kTypeBf16;
}

absl::StatusOr<std::string> CublasLtBackend::Version() const {
  if (!CublasLt::Get().ok()) return CublasLt::Get().status();
  return absl::StrCat("cuBLASLt ", CublasLt::Get()->GetVersion());
}

absl::StatusOr<std::unique_ptr<Invocation>> CublasLtBackend::LoadOn(
    const Artifact& artifact, const proto::Shape& shape,
    const proto::Config& config, CudaDevice& device) const {
  if (!CublasLt::Get().ok()) return CublasLt::Get().status();
  OPTRAIL_RETURN_IF_ERROR(CheckCublasSizes(shape));
  OPTRAIL_ASSIGN_OR_RETURN(const Product product, ProductOf(shape));
  auto made = std::make_unique<CublasLtInvocation>(
      *CublasLt::Get(), product, CublasType(shape.data_types(0)));
  OPTRAIL_RETURN_IF_ERROR(made->Init(cuda::Knob(config, "algorithm")));
  return made;
}

}  // namespace optrail::ops

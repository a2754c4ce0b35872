#include "ops/vendor/cudnn/cudnn.h"

#include <cstring>
#include <mutex>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "base/status_macros.h"
#include "ops/device/cuda/backend.h"
#include "ops/device/cuda/device.h"
#include "ops/device/cuda/library.h"

namespace optrail::ops {
namespace {

using cuda::CudaDevice;
using cuda::ToolkitLibrary;

// These are enums of cudnn_graph.h: the kinds of descriptors of a graph...
enum Kind : int {  // CUDNN_BACKEND_*_DESCRIPTOR
  kPointwise = 0,
  kConvolution = 1,
  kEngine = 2,
  kEngineConfig = 3,
  kHeuristic = 4,
  kPlan = 5,
  kConvolutionForward = 10,
  kPointwiseOperation = 13,
  kOperationGraph = 15,
  kVariantPack = 16,
  kTensor = 17,
  kProduct = 18,
  kProductOperation = 19,
  kReduction = 21,
  kReductionOperation = 22,
  kNormForward = 29,
  kNormBackward = 30,
};
enum Type : int {  // CUDNN_TYPE_*
  kHandleType = 0,
  kDataType = 1,
  kBool = 2,
  kInt64 = 3,
  kFloat = 4,
  kPointer = 6,
  kConvolutionMode = 7,
  kHeuristicMode = 8,
  kNumericalNote = 11,
  kPointwiseMode = 14,
  kDescriptor = 15,
  kReductionMode = 18,
  kNormMode = 27,
  kNormPhase = 28,
};
enum Name : int {  // CUDNN_ATTR_*
  kPointwiseModeOf = 0,
  kPointwiseComputes = 1,
  kPointwiseAxis = 9,
  kConvolutionComputes = 100,
  kConvolutionModeOf = 101,
  kDilations = 102,
  kStrides = 103,
  kPaddingAfter = 104,
  kPaddingBefore = 105,
  kSpatialDims = 106,
  kHeuristicModeOf = 200,
  kHeuristicGraph = 201,
  kHeuristicResults = 202,
  kConfigEngine = 300,
  kPlanHandle = 400,
  kPlanConfig = 401,
  kPlanWorkspace = 402,
  kForwardAlpha = 700,
  kForwardBeta = 701,
  kForwardConvolution = 702,
  kForwardW = 703,
  kForwardX = 704,
  kForwardY = 705,
  kPointwiseOf = 750,
  kPointwiseX = 751,
  kPointwiseB = 752,
  kPointwiseY = 753,
  kPointwiseT = 758,
  kGraphHandle = 800,
  kGraphOperations = 801,
  kTensorAlignment = 900,
  kTensorType = 901,
  kTensorDims = 902,
  kTensorStrides = 903,
  kTensorId = 906,
  kTensorIsVirtual = 907,
  kTensorIsNumber = 908,
  kPackIds = 1000,
  kPackAddresses = 1001,
  kPackWorkspace = 1003,
  kEngineNotes = 1303,
  kProductComputes = 1500,
  kProductA = 1520,
  kProductB = 1521,
  kProductC = 1522,
  kProductOf = 1523,
  kReductionModeOf = 1600,
  kReductionComputes = 1601,
  kReductionX = 1610,
  kReductionY = 1611,
  kReductionOf = 1612,
  kNormForwardMode = 2000,
  kNormForwardPhase = 2001,
  kNormForwardX = 2002,
  kNormForwardMean = 2003,
  kNormForwardRstd = 2004,
  kNormForwardGamma = 2005,
  kNormForwardBeta = 2006,
  kNormForwardEpsilon = 2007,
  kNormForwardY = 2013,
  kNormBackwardMode = 2100,
  kNormBackwardX = 2101,
  kNormBackwardMean = 2102,
  kNormBackwardRstd = 2103,
  kNormBackwardDy = 2104,
  kNormBackwardGamma = 2105,
  kNormBackwardDgamma = 2107,
  kNormBackwardDbeta = 2108,
  kNormBackwardDx = 2109,
};
// ... and values of enumerations.
constexpr int kTypeF32 = 0, kTypeF16 = 2, kTypeI32 = 4, kTypeBf16 = 9,
              kTypeBool = 11;
constexpr int kCrossCorrelation = 1;
constexpr int kIndex = 501;        // CUDNN_POINTWISE_GEN_INDEX
constexpr int kSum = 0, kMax = 3;  // CUDNN_REDUCE_TENSOR_*
constexpr int kLayerNorm = 0, kRmsNorm = 4;
constexpr int kInference = 0, kTraining = 1;   // CUDNN_NORM_FWD_*
constexpr int kFavourites = 3, kFallback = 2;  // CUDNN_HEUR_MODE_*
// CUDNN_NUMERICAL_NOTE_*
constexpr int kTensorCores = 0, kRoundsInputs = 1, kRoundsSums = 2;
constexpr int kNotes = 16;  // more than there are

// The alignment that is promised of every operand; they have more.
constexpr int64_t kAlignment = 16;
// Plans that ask for more are left out: a layer would not get it.
constexpr int64_t kMostWorkspace = int64_t{1} << 30;

// The place of a tensor.
enum Where : int { kInMemory, kNowhere, kByValue };

// CUDNN_DATA_*.
int CudnnType(proto::DataType type) {
  switch (type) {
    case proto::F16:
      return kTypeF16;
    case proto::BF16:
      return kTypeBf16;
    case proto::I32:
      return kTypeI32;
    case proto::BOOL:
      return kTypeBool;
    default:
      return kTypeF32;
  }
}

// CUDNN_POINTWISE_*.
int ModeOf(CudnnGraph::Function function) {
  using Function = CudnnGraph::Function;
  switch (function) {
    case Function::kAdd:
      return 0;
    case Function::kMultiply:
      return 1;
    case Function::kDivide:
      return 6;
    case Function::kSubtract:
      return 9;
    case Function::kExp:
      return 13;
    case Function::kLog:
      return 15;
    case Function::kRelu:
      return 100;
    case Function::kAtLeast:
      return 303;
    case Function::kSelect:
      return 601;
  }
  return 0;
}

template <typename T>
std::string BytesOf(T value) {
  return std::string(reinterpret_cast<const char*>(&value), sizeof(value));
}

struct Cudnn {
  size_t (*GetVersion)();
  void (*GetLastError)(char* text, size_t bytes);
  int (*CreateHandle)(void** handle);
  int (*DestroyHandle)(void* handle);
  int (*SetStream)(void* handle, void* stream);
  int (*Create)(int kind, void** descriptor);
  int (*Destroy)(void* descriptor);
  int (*Set)(void* descriptor, int name, int type, int64_t count,
             const void* values);
  int (*Get)(void* descriptor, int name, int type, int64_t asked,
             int64_t* count, void* values);
  int (*Finalize)(void* descriptor);
  int (*Execute)(void* handle, void* plan, void* variant_pack);

  static const absl::StatusOr<Cudnn>& Library() {
    static const auto* const library = new absl::StatusOr<Cudnn>(Load());
    return *library;
  }

  // Returns the line with the reason of those that it prints for its last
  // error.
  std::string LastError() const {
    char text[4096] = "";
    GetLastError(text, sizeof(text));
    constexpr absl::string_view kReason = "Reason: ";
    absl::string_view why = text;
    const size_t reason = why.find(kReason);
    if (reason != why.npos) why.remove_prefix(reason + kReason.size());
    return std::string(why.substr(0, why.find('\n')));
  }

  absl::Status Check(int status, absl::string_view what) const {
    if (status == 0) return absl::OkStatus();
    const std::string message =
        absl::StrCat(what, ": cuDNN status ", status, " (", LastError(), ")");
    constexpr int kNoHostMemory = 4003, kNoDeviceMemory = 4004;
    constexpr int kNotHere = 1, kNotSupported = 3;  // thousands
    if (status == kNoHostMemory || status == kNoDeviceMemory) {
      return absl::ResourceExhaustedError(message);
    }
    if (status / 1000 == kNotHere) {
      return absl::UnavailableError(
          absl::StrCat("unsupported here: ", message));
    }
    if (status / 1000 == kNotSupported) {
      return absl::UnimplementedError(message);
    }
    return absl::InternalError(message);
  }

  std::string VersionText() const {
    const size_t version = GetVersion();  // 91900 is 9.19.0, 8907 was 8.9.7
    const size_t major = version >= 10000 ? 10000 : 1000;
    return absl::StrCat("cuDNN ", version / major, ".", version % major / 100,
                        ".", version % 100);
  }

 private:
  static absl::StatusOr<Cudnn> Load() {
    OPTRAIL_ASSIGN_OR_RETURN(const ToolkitLibrary library,
                             ToolkitLibrary::Open({"libcudnn.so.9"}));
    Cudnn dnn;
    for (const absl::Status& found :
         {library.Get("cudnnGetVersion", dnn.GetVersion),
          library.Get("cudnnGetLastErrorString", dnn.GetLastError),
          library.Get("cudnnCreate", dnn.CreateHandle),
          library.Get("cudnnDestroy", dnn.DestroyHandle),
          library.Get("cudnnSetStream", dnn.SetStream),
          library.Get("cudnnBackendCreateDescriptor", dnn.Create),
          library.Get("cudnnBackendDestroyDescriptor", dnn.Destroy),
          library.Get("cudnnBackendSetAttribute", dnn.Set),
          library.Get("cudnnBackendGetAttribute", dnn.Get),
          library.Get("cudnnBackendFinalize", dnn.Finalize),
          library.Get("cudnnBackendExecute", dnn.Execute)}) {
      OPTRAIL_RETURN_IF_ERROR(found);
    }
    if (dnn.GetVersion() / 10000 != 9) {
      return absl::UnavailableError(
          absl::StrCat("unsupported here: ", dnn.VersionText(),
                       ", expected major version 9"));
    }
    return dnn;
  }
};

// A descriptor, destroyed with it.
class Descriptor {
 public:
  explicit Descriptor(const Cudnn& dnn) : dnn_(&dnn) {}
  Descriptor(Descriptor&& other) noexcept
      : dnn_(other.dnn_), made_(std::exchange(other.made_, nullptr)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(dnn_, other.dnn_);
    std::swap(made_, other.made_);
    return *this;
  }
  ~Descriptor() {
    if (made_ != nullptr) dnn_->Destroy(made_);
  }

  static absl::StatusOr<Descriptor> Make(const Cudnn& dnn, int kind) {
    Descriptor descriptor(dnn);
    OPTRAIL_RETURN_IF_ERROR(dnn.Check(dnn.Create(kind, &descriptor.made_),
                                      absl::StrCat("descriptor ", kind)));
    return descriptor;
  }

  absl::Status Set(int name, int type, int64_t count, const void* values) {
    return dnn_->Check(dnn_->Set(made_, name, type, count, values),
                       absl::StrCat("attribute ", name));
  }
  template <typename T>
  absl::Status Set(int name, int type, const T& value) {
    return Set(name, type, 1, &value);
  }
  absl::Status Finalize() {
    return dnn_->Check(dnn_->Finalize(made_), "cudnnBackendFinalize");
  }
  // How many there are; at most `asked` are written.
  absl::StatusOr<int64_t> Get(int name, int type, int64_t asked,
                              void* values) const {
    int64_t count = 0;
    OPTRAIL_RETURN_IF_ERROR(
        dnn_->Check(dnn_->Get(made_, name, type, asked, &count, values),
                    absl::StrCat("attribute ", name)));
    return count;
  }

  void* get() const { return made_; }

 private:
  const Cudnn* dnn_;
  void* made_ = nullptr;
};

// turn: writes the transpose of p2 rows and p3 columns at p0 to p1, elements of
// p4 bytes, 2 or 4, one thread each. PTX, as in ops/device/cuda/buffer.cc; it
// is no part of what is timed.
constexpr char kTurn[] = R"ptx(
.version 7.0
.target sm_60
.address_size 64

.visible .entry turn(
  .param .u64 p0,
  .param .u64 p1,
  .param .u64 p2,
  .param .u64 p3,
  .param .u64 p4
)
{
  .reg .pred   %p<3>;
  .reg .b16   %rs<2>;
  .reg .b32   %r<5>;
  .reg .b64   %rd<16>;
  ld.param.u64   %rd1, [p0];
  ld.param.u64   %rd2, [p1];
  ld.param.u64   %rd3, [p2];
  ld.param.u64   %rd4, [p3];
  ld.param.u64   %rd5, [p4];
  cvta.to.global.u64   %rd1, %rd1;
  cvta.to.global.u64   %rd2, %rd2;
  mov.u32   %r1, %ctaid.x;
  mov.u32   %r2, %ntid.x;
  mul.wide.u32   %rd6, %r1, %r2;
  mov.u32   %r3, %tid.x;
  cvt.u64.u32   %rd7, %r3;
  add.s64   %rd6, %rd6, %rd7;
  mul.lo.s64   %rd8, %rd3, %rd4;
  setp.ge.u64   %p1, %rd6, %rd8;
  @%p1 bra   T2;
  div.u64   %rd9, %rd6, %rd3;
  mul.lo.s64   %rd10, %rd9, %rd3;
  sub.s64   %rd10, %rd6, %rd10;
  mul.lo.s64   %rd11, %rd10, %rd4;
  add.s64   %rd11, %rd11, %rd9;
  mul.lo.s64   %rd12, %rd11, %rd5;
  add.s64   %rd12, %rd1, %rd12;
  mul.lo.s64   %rd13, %rd6, %rd5;
  add.s64   %rd13, %rd2, %rd13;
  setp.eq.u64   %p2, %rd5, 2;
  @%p2 bra   T1;
  ld.global.u32   %r4, [%rd12];
  st.global.u32   [%rd13], %r4;
  bra   T2;
T1:
  ld.global.u16   %rs1, [%rd12];
  st.global.u16   [%rd13], %rs1;
T2:
  ret;
}
)ptx";
constexpr int64_t kThreads = 256;

}  // namespace

template <typename T>
CudnnGraph::Attribute CudnnGraph::Values(int name, int type,
                                         const std::vector<T>& values) {
  return {name,
          type,
          static_cast<int64_t>(values.size()),
          std::string(reinterpret_cast<const char*>(values.data()),
                      values.size() * sizeof(T)),
          {}};
}

CudnnGraph::Attribute CudnnGraph::Nodes(int name, std::vector<int> nodes) {
  const auto count = static_cast<int64_t>(nodes.size());
  return {name, kDescriptor, count, "", std::move(nodes)};
}

int CudnnGraph::Add(int kind, std::vector<Attribute> attributes) {
  nodes_.push_back({kind, std::move(attributes)});
  return static_cast<int>(nodes_.size()) - 1;
}

void CudnnGraph::AddOperation(int kind, std::vector<Attribute> attributes) {
  operations_.push_back(Add(kind, std::move(attributes)));
}

CudnnGraph::Tensor CudnnGraph::AddTensor(proto::DataType type,
                                         const Layout& layout, int where) {
  // Its place among the nodes, from 1 on, is its name among the tensors: plans
  // of norms' gradients take 0 for none.
  const Tensor tensor =
      Add(kTensor, {Values<int>(kTensorType, kDataType, {CudnnType(type)}),
                    Values(kTensorDims, kInt64, layout.dims),
                    Values(kTensorStrides, kInt64, layout.strides),
                    Values<int64_t>(kTensorId, kInt64,
                                    {static_cast<int64_t>(nodes_.size()) + 1}),
                    Values<int64_t>(kTensorAlignment, kInt64, {kAlignment}),
                    Values<char>(kTensorIsVirtual, kBool, {where == kNowhere}),
                    Values<char>(kTensorIsNumber, kBool, {where == kByValue})});
  nodes_[tensor].type = type;
  return tensor;
}

CudnnGraph::Tensor CudnnGraph::Operand(int operand, proto::DataType type,
                                       const Layout& layout) {
  return TurnedOperand(operand, type, layout, 0, 0);
}

CudnnGraph::Tensor CudnnGraph::TurnedOperand(int operand, proto::DataType type,
                                             const Layout& layout, int64_t rows,
                                             int64_t columns) {
  const Tensor tensor = AddTensor(type, layout, kInMemory);
  bound_.push_back(
      {tensor + 1, operand, rows, columns, type == proto::F32 ? 4 : 2, ""});
  return tensor;
}

CudnnGraph::Tensor CudnnGraph::AddNumber(proto::DataType type, int rank,
                                         std::string number) {
  const std::vector<int64_t> ones(rank, 1);
  const Tensor tensor = AddTensor(type, {ones, ones}, kByValue);
  bound_.push_back({tensor + 1, 0, 0, 0, 0, std::move(number)});
  return tensor;
}

CudnnGraph::Tensor CudnnGraph::Number(float value, int rank) {
  return AddNumber(proto::F32, rank, BytesOf(value));
}

CudnnGraph::Tensor CudnnGraph::Number(int32_t value, int rank) {
  return AddNumber(proto::I32, rank, BytesOf(value));
}

CudnnGraph::Tensor CudnnGraph::Between(const Layout& layout,
                                       proto::DataType type) {
  return AddTensor(type, layout, kNowhere);
}

void CudnnGraph::Convolution(Tensor x, Tensor w, Tensor y, int64_t stride,
                             int64_t padding) {
  const int convolution = Add(
      kConvolution,
      {Values<int>(kConvolutionComputes, kDataType, {kTypeF32}),
       Values<int>(kConvolutionModeOf, kConvolutionMode, {kCrossCorrelation}),
       Values<int64_t>(kSpatialDims, kInt64, {2}),
       Values<int64_t>(kDilations, kInt64, {1, 1}),
       Values<int64_t>(kStrides, kInt64, {stride, stride}),
       Values<int64_t>(kPaddingBefore, kInt64, {padding, padding}),
       Values<int64_t>(kPaddingAfter, kInt64, {padding, padding})});
  AddOperation(
      kConvolutionForward,
      {Nodes(kForwardConvolution, {convolution}), Nodes(kForwardX, {x}),
       Nodes(kForwardW, {w}), Nodes(kForwardY, {y}),
       Values<float>(kForwardAlpha, kFloat, {1}),
       Values<float>(kForwardBeta, kFloat, {0})});
}

void CudnnGraph::Product(Tensor a, Tensor b, Tensor c) {
  const int product =
      Add(kProduct, {Values<int>(kProductComputes, kDataType, {kTypeF32})});
  AddOperation(kProductOperation,
               {Nodes(kProductOf, {product}), Nodes(kProductA, {a}),
                Nodes(kProductB, {b}), Nodes(kProductC, {c})});
}

void CudnnGraph::Reduce(Reduction reduction, Tensor x, Tensor y) {
  const int mode = reduction == Reduction::kMax ? kMax : kSum;
  const int reduce =
      Add(kReduction, {Values<int>(kReductionModeOf, kReductionMode, {mode}),
                       Values<int>(kReductionComputes, kDataType, {kTypeF32})});
  AddOperation(kReductionOperation,
               {Nodes(kReductionOf, {reduce}), Nodes(kReductionX, {x}),
                Nodes(kReductionY, {y})});
}

void CudnnGraph::Elementwise(Function function,
                             const std::vector<Tensor>& inputs, Tensor y) {
  AddElementwise(ModeOf(function), inputs, y, {});
}

void CudnnGraph::Index(int dim, Tensor x, Tensor y) {
  AddElementwise(kIndex, {x}, y,
                 {Values<int64_t>(kPointwiseAxis, kInt64, {dim})});
}

std::vector<CudnnGraph::Attribute> CudnnGraph::Existing(
    const std::vector<std::pair<int, Tensor>>& tensors) {
  std::vector<Attribute> attributes;
  for (const auto& [name, tensor] : tensors) {
    if (tensor != kNone) attributes.push_back(Nodes(name, {tensor}));
  }
  return attributes;
}

void CudnnGraph::NormForward(const Norm& norm) {
  std::vector<Attribute> attributes =
      Existing({{kNormForwardX, norm.x},
                {kNormForwardGamma, norm.gamma},
                {kNormForwardBeta, norm.beta},
                {kNormForwardEpsilon, norm.epsilon},
                {kNormForwardY, norm.y},
                {kNormForwardMean, norm.mean},
                {kNormForwardRstd, norm.rstd}});
  attributes.push_back(Values<int>(kNormForwardMode, kNormMode,
                                   {norm.centred ? kLayerNorm : kRmsNorm}));
  attributes.push_back(
      Values<int>(kNormForwardPhase, kNormPhase,
                  {norm.rstd == kNone ? kInference : kTraining}));
  AddOperation(kNormForward, std::move(attributes));
}

void CudnnGraph::NormBackward(const Norm& norm) {
  std::vector<Attribute> attributes =
      Existing({{kNormBackwardX, norm.x},
                {kNormBackwardMean, norm.mean},
                {kNormBackwardRstd, norm.rstd},
                {kNormBackwardDy, norm.dy},
                {kNormBackwardGamma, norm.gamma},
                {kNormBackwardDgamma, norm.dgamma},
                {kNormBackwardDbeta, norm.dbeta},
                {kNormBackwardDx, norm.dx}});
  attributes.push_back(Values<int>(kNormBackwardMode, kNormMode,
                                   {norm.centred ? kLayerNorm : kRmsNorm}));
  AddOperation(kNormBackward, std::move(attributes));
}

void CudnnGraph::AddElementwise(int mode, const std::vector<Tensor>& inputs,
                                Tensor y, std::vector<Attribute> more) {
  const proto::DataType type = nodes_[y].type;
  const bool is_half = type == proto::F16 || type == proto::BF16;
  more.push_back(Values<int>(kPointwiseModeOf, kPointwiseMode, {mode}));
  more.push_back(Values<int>(kPointwiseComputes, kDataType,
                             {is_half ? kTypeF32 : CudnnType(type)}));
  const int pointwise = Add(kPointwise, std::move(more));
  std::vector<Attribute> attributes = {Nodes(kPointwiseOf, {pointwise}),
                                       Nodes(kPointwiseY, {y})};
  constexpr int kNames[] = {kPointwiseX, kPointwiseB, kPointwiseT};
  for (size_t i = 0; i < inputs.size(); ++i) {
    attributes.push_back(Nodes(kNames[i], {inputs[i]}));
  }
  AddOperation(kPointwiseOperation, std::move(attributes));
}

class CudnnInvocation : public Invocation {
 public:
  CudnnInvocation(const Cudnn& dnn, CudnnGraph graph,
                  const cuda::Driver& driver)
      : dnn_(dnn),
        graph_(std::move(graph)),
        driver_(driver),
        operation_graph_(dnn),
        plan_(dnn) {}
  ~CudnnInvocation() override {
    plan_ = Descriptor(dnn_);
    if (handle_ != nullptr) dnn_.DestroyHandle(handle_);
  }

  // `rank` in the heuristics' list of plans that round sums, or not; `type` of
  // the operands.
  absl::Status Init(int64_t rank, bool rounds, proto::DataType type,
                    CudaDevice& device) {
    OPTRAIL_RETURN_IF_ERROR(
        dnn_.Check(dnn_.CreateHandle(&handle_), "cudnnCreate"));
    OPTRAIL_RETURN_IF_ERROR(MakeGraph());
    OPTRAIL_RETURN_IF_ERROR(FindPlan(rank, rounds, type));
    for (const CudnnGraph::Bound& bound : graph_.bound_) {
      if (bound.rows == 0) continue;
      OPTRAIL_ASSIGN_OR_RETURN(const cuda::Module module, device.Load(kTurn));
      OPTRAIL_RETURN_IF_ERROR(
          driver_.Check(driver_.ModuleGetFunction(&turn_, module, "turn"),
                        "cuModuleGetFunction turn"));
    }
    return absl::OkStatus();
  }

  int64_t workspace_bytes() const override { return workspace_bytes_; }
  // Transposed operands, one behind the other.
  int64_t packed_bytes() const override {
    int64_t bytes = 0;
    for (const CudnnGraph::Bound& bound : graph_.bound_) {
      bytes += PackedBytes(bound);
    }
    return bytes;
  }

  absl::Status Pack(const Call& call) const override {
    char* to = static_cast<char*>(call.packed);
    for (const CudnnGraph::Bound& bound : graph_.bound_) {
      if (bound.rows == 0) continue;
      OPTRAIL_RETURN_IF_ERROR(
          Turn(bound, call.operands[bound.operand], to, call.stream.handle));
      to += PackedBytes(bound);
    }
    return absl::OkStatus();
  }

  // The library's handle serves one thread at a time, and keeps a stream.
  absl::Status Run(const Call& call) const override {
    OPTRAIL_ASSIGN_OR_RETURN(const Descriptor pack, VariantPack(call));
    const std::lock_guard<std::mutex> lock(mutex_);
    if (!has_stream_ || stream_ != call.stream.handle) {
      has_stream_ = false;
      OPTRAIL_RETURN_IF_ERROR(dnn_.Check(
          dnn_.SetStream(handle_, call.stream.handle), "cudnnSetStream"));
      has_stream_ = true;
      stream_ = call.stream.handle;
    }
    return dnn_.Check(dnn_.Execute(handle_, plan_.get(), pack.get()),
                      "cudnnBackendExecute");
  }

 private:
  absl::Status MakeGraph() {
    std::vector<void*> made;
    for (const CudnnGraph::Node& node : graph_.nodes_) {
      OPTRAIL_ASSIGN_OR_RETURN(Descriptor descriptor,
                               Descriptor::Make(dnn_, node.kind));
      for (const CudnnGraph::Attribute& attribute : node.attributes) {
        std::vector<void*> nodes;
        for (const int other : attribute.nodes) nodes.push_back(made[other]);
        OPTRAIL_RETURN_IF_ERROR(descriptor.Set(
            attribute.name, attribute.type, attribute.count,
            nodes.empty() ? static_cast<const void*>(attribute.values.data())
                          : nodes.data()));
      }
      OPTRAIL_RETURN_IF_ERROR(descriptor.Finalize());
      made.push_back(descriptor.get());
      descriptors_.push_back(std::move(descriptor));
    }
    std::vector<void*> operations;
    for (const int operation : graph_.operations_) {
      operations.push_back(made[operation]);
    }
    OPTRAIL_ASSIGN_OR_RETURN(operation_graph_,
                             Descriptor::Make(dnn_, kOperationGraph));
    OPTRAIL_RETURN_IF_ERROR(operation_graph_.Set(
        kGraphOperations, kDescriptor, static_cast<int64_t>(operations.size()),
        operations.data()));
    OPTRAIL_RETURN_IF_ERROR(
        operation_graph_.Set(kGraphHandle, kHandleType, handle_));
    return operation_graph_.Finalize();
  }

  // Proposals of one kind, best first.
  absl::StatusOr<std::vector<Descriptor>> Proposals(int mode) {
    OPTRAIL_ASSIGN_OR_RETURN(Descriptor heuristic,
                             Descriptor::Make(dnn_, kHeuristic));
    OPTRAIL_RETURN_IF_ERROR(
        heuristic.Set(kHeuristicGraph, kDescriptor, operation_graph_.get()));
    OPTRAIL_RETURN_IF_ERROR(
        heuristic.Set(kHeuristicModeOf, kHeuristicMode, mode));
    OPTRAIL_RETURN_IF_ERROR(heuristic.Finalize());
    OPTRAIL_ASSIGN_OR_RETURN(
        int64_t count,
        heuristic.Get(kHeuristicResults, kDescriptor, 0, nullptr));
    std::vector<Descriptor> proposals;
    std::vector<void*> filled;
    for (int64_t i = 0; i < count; ++i) {
      OPTRAIL_ASSIGN_OR_RETURN(Descriptor proposal,
                               Descriptor::Make(dnn_, kEngineConfig));
      filled.push_back(proposal.get());
      proposals.push_back(std::move(proposal));
    }
    if (count == 0) return proposals;
    // Fewer, where some turn out not to work.
    OPTRAIL_ASSIGN_OR_RETURN(
        count,
        heuristic.Get(kHeuristicResults, kDescriptor, count, filled.data()));
    proposals.erase(proposals.begin() + count, proposals.end());
    return proposals;
  }

  // Whether the proposal's sums are in f32, or may not be where `rounds`.
  absl::StatusOr<bool> ComputesAsWanted(const Descriptor& proposal,
                                        proto::DataType type, bool rounds) {
    OPTRAIL_ASSIGN_OR_RETURN(Descriptor engine,
                             Descriptor::Make(dnn_, kEngine));
    void* filled = engine.get();
    OPTRAIL_RETURN_IF_ERROR(
        proposal.Get(kConfigEngine, kDescriptor, 1, &filled).status());
    int notes[kNotes];
    OPTRAIL_ASSIGN_OR_RETURN(
        const int64_t count,
        engine.Get(kEngineNotes, kNumericalNote, kNotes, notes));
    bool has_rounded = false;
    for (int64_t i = 0; i < count; ++i) {
      has_rounded |= notes[i] == kRoundsSums;
      if (notes[i] == kRoundsInputs) return false;
      if (type == proto::F32 && notes[i] == kTensorCores) return false;
    }
    return has_rounded == rounds;
  }

  absl::Status Build(const Descriptor& proposal) {
    OPTRAIL_ASSIGN_OR_RETURN(Descriptor plan, Descriptor::Make(dnn_, kPlan));
    OPTRAIL_RETURN_IF_ERROR(plan.Set(kPlanHandle, kHandleType, handle_));
    OPTRAIL_RETURN_IF_ERROR(plan.Set(kPlanConfig, kDescriptor, proposal.get()));
    OPTRAIL_RETURN_IF_ERROR(plan.Finalize());
    OPTRAIL_RETURN_IF_ERROR(
        plan.Get(kPlanWorkspace, kInt64, 1, &workspace_bytes_).status());
    if (workspace_bytes_ > kMostWorkspace) {
      return absl::UnimplementedError(absl::StrCat(
          "a plan of cuDNN wants ", workspace_bytes_,
          " bytes of workspace, expected at most ", kMostWorkspace));
    }
    plan_ = std::move(plan);
    return absl::OkStatus();
  }

  absl::Status FindPlan(int64_t rank, bool rounds, proto::DataType type) {
    int64_t proposed = 0;
    const std::string kind = rounds ? "may round sums" : "adds up in f32";
    absl::Status why = absl::UnimplementedError(
        absl::StrCat("cuDNN proposes no plan that ", kind));
    for (const int mode : {kFavourites, kFallback}) {
      const absl::StatusOr<std::vector<Descriptor>> proposals = Proposals(mode);
      if (!proposals.ok()) {
        why = proposals.status();
        continue;
      }
      if (proposals->empty()) {
        why = absl::UnimplementedError(
            absl::StrCat("cuDNN proposes no plan: ", dnn_.LastError()));
      }
      for (const Descriptor& proposal : *proposals) {
        OPTRAIL_ASSIGN_OR_RETURN(const bool wanted,
                                 ComputesAsWanted(proposal, type, rounds));
        if (!wanted || proposed++ < rank) continue;
        const absl::Status built = Build(proposal);
        if (built.ok()) return built;
        why = built;
      }
    }
    if (proposed == 0 || proposed > rank) {
      return absl::UnimplementedError(why.message());
    }
    return absl::UnimplementedError(
        absl::StrCat("number ", rank, " is asked for of ", proposed,
                     " plans of cuDNN each of which ", kind));
  }

  // 0 of an operand that is read as it lies.
  static int64_t PackedBytes(const CudnnGraph::Bound& bound) {
    constexpr int64_t kAligned = 256;
    const int64_t bytes = bound.rows * bound.columns * bound.element_bytes;
    return (bytes + kAligned - 1) / kAligned * kAligned;
  }

  absl::Status Turn(const CudnnGraph::Bound& bound, const void* from, void* to,
                    cuda::Stream stream) const {
    int64_t rows = bound.rows, columns = bound.columns;
    int64_t element_bytes = bound.element_bytes;
    void* parameters[] = {&from, &to, &rows, &columns, &element_bytes};
    return driver_.Check(
        driver_.LaunchKernel(
            turn_,
            static_cast<unsigned>((rows * columns + kThreads - 1) / kThreads),
            1, 1, kThreads, 1, 1, 0, stream, parameters, nullptr),
        "cuLaunchKernel turn");
  }

  // The addresses of a call.
  absl::StatusOr<Descriptor> VariantPack(const Call& call) const {
    std::vector<int64_t> ids;
    std::vector<void*> addresses;
    char* packed = static_cast<char*>(call.packed);
    for (const CudnnGraph::Bound& bound : graph_.bound_) {
      void* address = call.operands[bound.operand];
      if (!bound.number.empty()) {
        address = const_cast<char*>(bound.number.data());
      } else if (bound.rows > 0) {
        if (packed == nullptr) {
          return absl::InvalidArgumentError(
              absl::StrCat("operand ", bound.operand,
                           " of this call was not packed before it"));
        }
        address = packed;
        packed += PackedBytes(bound);
      }
      ids.push_back(bound.id);
      addresses.push_back(address);
    }
    const auto count = static_cast<int64_t>(ids.size());
    OPTRAIL_ASSIGN_OR_RETURN(Descriptor pack,
                             Descriptor::Make(dnn_, kVariantPack));
    OPTRAIL_RETURN_IF_ERROR(pack.Set(kPackIds, kInt64, count, ids.data()));
    OPTRAIL_RETURN_IF_ERROR(
        pack.Set(kPackAddresses, kPointer, count, addresses.data()));
    OPTRAIL_RETURN_IF_ERROR(pack.Set(kPackWorkspace, kPointer, call.workspace));
    OPTRAIL_RETURN_IF_ERROR(pack.Finalize());
    return pack;
  }

  const Cudnn& dnn_;
  const CudnnGraph graph_;
  const cuda::Driver& driver_;
  void* handle_ = nullptr;
  std::vector<Descriptor> descriptors_;  // what the graph is made of
  Descriptor operation_graph_;
  Descriptor plan_;
  int64_t workspace_bytes_ = 0;
  cuda::Function turn_ = nullptr;
  mutable std::mutex mutex_;
  mutable bool has_stream_ = false;  // the handle
  mutable cuda::Stream stream_ = nullptr;
};

absl::StatusOr<std::string> CudnnBackend::Version() const {
  if (!Cudnn::Library().ok()) return Cudnn::Library().status();
  return Cudnn::Library()->VersionText();
}

absl::StatusOr<std::unique_ptr<Invocation>> CudnnBackend::LoadOn(
    const Artifact& artifact, const proto::Shape& shape,
    const proto::Config& config, CudaDevice& device) const {
  if (!Cudnn::Library().ok()) return Cudnn::Library().status();
  OPTRAIL_ASSIGN_OR_RETURN(CudnnGraph graph, GraphOf(shape));
  auto made = std::make_unique<CudnnInvocation>(
      *Cudnn::Library(), std::move(graph), device.driver());
  OPTRAIL_RETURN_IF_ERROR(
      made->Init(cuda::Knob(config, "plan"),
                 cuda::VariantKnob(config, "sums") == "rounded",
                 shape.data_types(0), device));
  return made;
}

}  // namespace optrail::ops

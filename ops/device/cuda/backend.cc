#include "ops/device/cuda/backend.h"

#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/check.h"
#include "base/hash/hash.h"
#include "ops/device/cuda/ablation.h"
#include "ops/device/cuda/nvrtc.h"
#include "tuning/proto/canonical.h"

namespace optrail::ops::cuda {
namespace {

class CudaInvocation : public Invocation {
 public:
  CudaInvocation(const CudaBackend& backend, CudaPlan plan, proto::Shape shape,
                 proto::Config config, const CudaDevice& device)
      : backend_(backend),
        plan_(std::move(plan)),
        shape_(std::move(shape)),
        config_(std::move(config)),
        device_(device),
        driver_(device.driver()) {}

  absl::Status Init(const Artifact& artifact, CudaDevice& device) {
    // Captured graphs have such edges since CUDA 12.3.
    may_overlap_ = driver_.LaunchKernelEx != nullptr &&
                   driver_.version() >= 12030 &&
                   ComputeCapability(device.hardware()) >= 90 &&
                   backend_.AwaitsPredecessors();
    OPTRAIL_ASSIGN_OR_RETURN(const Module module, device.Load(artifact.bytes));
    for (CudaLaunch& launch : LaunchesOf(plan_)) {
      Function function = nullptr;
      OPTRAIL_RETURN_IF_ERROR(driver_.Check(
          driver_.ModuleGetFunction(&function, module, launch.function.c_str()),
          absl::StrCat("cuModuleGetFunction ", launch.function)));
      if (const absl::Status shared =
              device.AllowShared(function, launch.dynamic_shared_bytes);
          !shared.ok()) {
        return absl::InvalidArgumentError(shared.message());
      }
      if (launch.cluster > 8) {
        OPTRAIL_RETURN_IF_ERROR(driver_.Check(
            driver_.FuncSetAttribute(
                function,
                static_cast<int>(FunctionAttribute::kNonPortableClusterSize),
                1),
            "a cluster of more than 8 blocks"));
      }
      launches_.push_back({std::move(launch), function});
    }
    return absl::OkStatus();
  }

  int64_t workspace_bytes() const override {
    return static_cast<int64_t>(plan_.workspace_bytes);
  }
  int64_t zeroed_bytes() const override { return workspace_bytes(); }

  absl::Status Run(const Call& call) const override {
    for (size_t i = 0; i < launches_.size(); ++i) {
      CudaArguments arguments;
      OPTRAIL_RETURN_IF_ERROR(backend_.ArgumentsOf(
          static_cast<int>(i), plan_, shape_, config_, call.operands,
          call.workspace, driver_, &arguments));
      OPTRAIL_RETURN_IF_ERROR(
          driver_.Check(Launch(launches_[i].first, launches_[i].second,
                               call.stream.handle, arguments.pointers()),
                        "cuLaunchKernel"));
    }
    return absl::OkStatus();
  }

 private:
  int Launch(const CudaLaunch& launch, Function function, Stream stream,
             void** arguments) const {
    if (!may_overlap_ || !device_.launches_overlap()) {
      return driver_.LaunchKernel(
          function, launch.grid_x, launch.grid_y, 1, launch.block_x, 1, 1,
          launch.dynamic_shared_bytes, stream, arguments, nullptr);
    }
    LaunchAttribute overlaps = {};
    overlaps.id = kProgrammaticStreamSerialization;
    overlaps.flag = 1;
    const LaunchConfig config = {launch.grid_x,
                                 launch.grid_y,
                                 1,
                                 launch.block_x,
                                 1,
                                 1,
                                 launch.dynamic_shared_bytes,
                                 stream,
                                 &overlaps,
                                 1};
    return driver_.LaunchKernelEx(&config, function, arguments, nullptr);
  }

  const CudaBackend& backend_;
  const CudaPlan plan_;
  const proto::Shape shape_;
  const proto::Config config_;
  const CudaDevice& device_;
  const Driver& driver_;
  bool may_overlap_ = false;
  std::vector<std::pair<CudaLaunch, Function>> launches_;
};

std::string BaseName(const std::string& path) {
  return path.substr(path.rfind('/') + 1);
}

}  // namespace

std::vector<CudaLaunch> LaunchesOf(const CudaPlan& plan) {
  std::vector<CudaLaunch> launches;
  if (!plan.before.function.empty()) {
    CudaLaunch& before = launches.emplace_back();
    before.function = plan.before.function;
    before.grid_x = plan.before.grid_x;
    before.block_x = plan.before.block_x;
  }
  launches.push_back({plan.function, plan.grid_x, plan.grid_y, plan.block_x,
                      plan.dynamic_shared_bytes, plan.cluster});
  return launches;
}

absl::Status CudaBackend::ArgumentsOf(int launch, const CudaPlan& plan,
                                      const proto::Shape& shape,
                                      const proto::Config& config,
                                      absl::Span<void* const> operands,
                                      void* workspace, const Driver& driver,
                                      CudaArguments* arguments) const {
  if (launch == 0 && !plan.before.function.empty()) {
    ArgumentsBefore(plan, shape, config, operands, workspace, arguments);
    return absl::OkStatus();
  }
  return Arguments(plan, shape, config, operands, workspace, driver, arguments);
}

bool CudaBackend::AwaitsPredecessors() const {
  int kernels = 0, calls = 0;
  for (const EmbeddedFile& file : files().sources) {
    for (const absl::string_view line : absl::StrSplit(file.contents, '\n')) {
      if (absl::StartsWith(absl::StripLeadingAsciiWhitespace(line), "//")) {
        continue;
      }
      kernels += absl::StrContains(line, "__global__");
      calls += absl::StrContains(line, "AwaitPredecessors();");
    }
  }
  return kernels > 0 && kernels == calls;
}

absl::StatusOr<std::string> CudaBackend::Id(const Target& target) const {
  OPTRAIL_ASSIGN_OR_RETURN(const Nvrtc* nvrtc, Nvrtc::Get());
  return Fingerprint(absl::StrCat(files().sources_hash, "\n", files().compiler,
                                  "\n", nvrtc->version()));
}

absl::StatusOr<Recipe> CudaBackend::Describe(
    const CompileRequest& request) const {
  OPTRAIL_ASSIGN_OR_RETURN(const Nvrtc* nvrtc, Nvrtc::Get());
  OPTRAIL_ASSIGN_OR_RETURN(
      const CudaPlan plan,
      Plan(request.shape, request.config, request.target.hardware));
  const int64_t capability = ComputeCapability(request.target.hardware);
  if (capability == 0) {
    return absl::InvalidArgumentError(
        "the hardware does not tell its compute_capability");
  }
  Recipe recipe;
  recipe.compiler = nvrtc->version();
  recipe.options = {absl::StrCat("-arch=sm_", capability,
                                 plan.architecture_specific ? "a" : ""),
                    "-std=c++17", "-default-device"};
  if (nvrtc->has_minimal()) recipe.options.push_back("--minimal");
  if (nvrtc->has_cache()) recipe.options.push_back("--no-cache");
  for (const std::string& define : plan.defines) {
    recipe.options.push_back(absl::StrCat("-D", define));
  }
  // The source first, then all headers.
  for (const EmbeddedFile& source : files().sources) {
    if (BaseName(source.path) != plan.source) continue;
    recipe.sources.push_back({plan.source, source.contents});
  }
  OPTRAIL_CHECK(recipe.sources.size() == 1)
      << plan.source << " is not among the files of the operator's macro";
  for (const EmbeddedFile& source : files().sources) {
    if (!absl::EndsWith(source.path, ".cuh")) continue;
    recipe.sources.push_back({BaseName(source.path), source.contents});
  }
  return recipe;
}

absl::StatusOr<Artifact> CudaBackend::Compile(const Recipe& recipe) const {
  OPTRAIL_ASSIGN_OR_RETURN(const Nvrtc* nvrtc, Nvrtc::Get());
  Nvrtc::Headers headers;
  for (size_t i = 1; i < recipe.sources.size(); ++i) {
    headers.emplace_back(recipe.sources[i].path, recipe.sources[i].contents);
  }
  OPTRAIL_ASSIGN_OR_RETURN(const RecipeOptions options,
                           SplitAblation(recipe.options));
  OPTRAIL_ASSIGN_OR_RETURN(
      Cubin cubin,
      nvrtc->Compile(recipe.sources[0].contents, recipe.sources[0].path,
                     options.compiler, headers));
  Artifact artifact;
  if (options.ablation) {
    // The driver compiles it when it is loaded.
    OPTRAIL_ASSIGN_OR_RETURN(cubin.bytes, Ablate(cubin.ptx, *options.ablation));
    for (const auto& [fact, value] : FactsOfPtx(cubin.ptx)) {
      cubin.facts[fact] = value;
    }
  }
  artifact.key = recipe.Key();
  artifact.bytes = std::move(cubin.bytes);
  artifact.log = std::move(cubin.log);
  artifact.facts = std::move(cubin.facts);
  return artifact;
}

absl::StatusOr<std::unique_ptr<Invocation>> CudaBackend::LoadOn(
    const Artifact& artifact, const proto::Shape& shape,
    const proto::Config& config, CudaDevice& device) const {
  OPTRAIL_ASSIGN_OR_RETURN(CudaPlan plan,
                           Plan(shape, config, device.hardware()));
  auto invocation = std::make_unique<CudaInvocation>(*this, std::move(plan),
                                                     shape, config, device);
  OPTRAIL_RETURN_IF_ERROR(invocation->Init(artifact, device));
  return invocation;
}

int64_t Knob(const proto::Config& config, absl::string_view name) {
  for (const proto::KnobValue& value : config.set()) {
    if (value.knob() != name) continue;
    return value.has_bool_() ? value.bool_() : value.int_();
  }
  OPTRAIL_CHECK(false) << "no knob " << name;
  return 0;
}

std::string VariantKnob(const proto::Config& config, absl::string_view name) {
  for (const proto::KnobValue& value : config.set()) {
    if (value.knob() == name) return value.variant();
  }
  OPTRAIL_CHECK(false) << "no knob " << name;
  return "";
}

absl::StatusOr<Element> ElementOf(proto::DataType type) {
  switch (type) {
    case proto::F32:
      return Element{0, 4};
    case proto::F16:
      return Element{1, 2};
    case proto::BF16:
      return Element{2, 2};
    default:
      return absl::UnimplementedError(
          absl::StrCat("no CUDA kernel for ", tuning::DataTypeName(type)));
  }
}

int64_t VectorOf(int64_t count, int64_t element_bytes) {
  int64_t vector = 16 / element_bytes;
  while (count % vector != 0) vector /= 2;
  return vector;
}

int64_t ComputeCapability(const proto::Hardware& hardware) {
  for (const proto::HardwareAttribute& attribute : hardware.attributes()) {
    if (attribute.name() == "compute_capability") return attribute.int_();
  }
  return 0;
}

namespace {

// CU_TENSOR_MAP_*.
int MapType(proto::DataType type) {
  constexpr int kFloat16 = 6, kBfloat16 = 9;
  return type == proto::BF16 ? kBfloat16 : kFloat16;
}
constexpr int kNoInterleave = 0, kSwizzle128 = 3, kPromote256 = 3, kZeros = 0;

// Innermost first. Bytes from one row to the next, from one matrix...
std::vector<uint64_t> StrideBytes(const std::vector<uint64_t>& dims) {
  std::vector<uint64_t> strides;
  uint64_t bytes = 2;
  for (size_t i = 0; i + 1 < dims.size(); ++i) {
    strides.push_back(bytes *= dims[i]);
  }
  return strides;
}

absl::Status CheckMap(bool known, uint64_t columns) {
  if (!known) {
    return absl::UnavailableError(
        "unsupported here: the driver knows no tensor maps, expected CUDA 12");
  }
  if (columns % 8 != 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        "rows of ", columns, " elements, expected a multiple of 8"));
  }
  return absl::OkStatus();
}

absl::Status EncodeBoxes(const Driver& driver, void* address,
                         const std::vector<uint64_t>& dims,
                         proto::DataType type, uint32_t box_rows,
                         TensorMap* map) {
  OPTRAIL_RETURN_IF_ERROR(
      CheckMap(driver.TensorMapEncodeTiled != nullptr, dims[0]));
  std::vector<uint32_t> box(dims.size(), 1);
  box[0] = 64;
  box[1] = box_rows;
  const std::vector<uint32_t> element_strides(dims.size(), 1);
  return driver.Check(
      driver.TensorMapEncodeTiled(
          map, MapType(type), static_cast<uint32_t>(dims.size()), address,
          dims.data(), StrideBytes(dims).data(), box.data(),
          element_strides.data(), kNoInterleave, kSwizzle128, kPromote256,
          kZeros),
      "cuTensorMapEncodeTiled");
}

}  // namespace

absl::Status EncodeMatrix(const Driver& driver, void* address, int64_t rows,
                          int64_t columns, proto::DataType type,
                          uint32_t box_rows, TensorMap* map) {
  return EncodeBoxes(
      driver, address,
      {static_cast<uint64_t>(columns), static_cast<uint64_t>(rows)}, type,
      box_rows, map);
}

absl::Status EncodeMatrices(const Driver& driver, void* address, int64_t count,
                            int64_t rows, int64_t columns, proto::DataType type,
                            uint32_t box_rows, TensorMap* map) {
  return EncodeBoxes(
      driver, address,
      {static_cast<uint64_t>(columns), static_cast<uint64_t>(rows),
       static_cast<uint64_t>(count)},
      type, box_rows, map);
}

absl::Status EncodeImages(const Driver& driver, void* address,
                          const Images& images, proto::DataType type,
                          uint32_t pixels, TensorMap* map) {
  const std::vector<uint64_t> dims = {
      static_cast<uint64_t>(images.c), static_cast<uint64_t>(images.w),
      static_cast<uint64_t>(images.h), static_cast<uint64_t>(images.n)};
  OPTRAIL_RETURN_IF_ERROR(
      CheckMap(driver.TensorMapEncodeIm2col != nullptr, dims[0]));
  // The first place, and the last one seen from the image's far corner.
  const auto down = static_cast<int>(images.padding_h);
  const auto across = static_cast<int>(images.padding_w);
  const int lower[2] = {-across, -down};
  const int upper[2] = {across - static_cast<int>(images.s - 1),
                        down - static_cast<int>(images.r - 1)};
  const uint32_t element_strides[4] = {
      1, static_cast<uint32_t>(images.stride_w),
      static_cast<uint32_t>(images.stride_h), 1};
  return driver.Check(
      driver.TensorMapEncodeIm2col(
          map, MapType(type), /*rank=*/4, address, dims.data(),
          StrideBytes(dims).data(), lower, upper, /*channels=*/64, pixels,
          element_strides, kNoInterleave, kSwizzle128, kPromote256, kZeros),
      "cuTensorMapEncodeIm2col");
}

}  // namespace optrail::ops::cuda

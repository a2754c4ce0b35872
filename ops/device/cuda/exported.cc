#include "ops/device/cuda/exported.h"

#include <cstring>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/types/optional.h"
#include "base/status_macros.h"

namespace optrail::ops::cuda {
namespace {

// Operands lie so far apart in a recording that an address tells whose it is.
// A multiple of kExportAlignment, and of no larger power of two.
constexpr uint64_t kSpacing = uint64_t{1} << 42;

// The recorder writes this in place of a tensor map.
constexpr uint64_t kMapMark = 0x6f70747261696c21;

class Addresses {
 public:
  // Recordings have different numbers, from 1 on.
  Addresses(int operands, uint64_t recording)
      : operands_(operands), first_(kSpacing + recording * kExportAlignment) {}

  void* Of(int operand) const {
    const auto index = static_cast<uint64_t>(operand < 0 ? operands_ : operand);
    return reinterpret_cast<void*>(first_ + index * kSpacing);
  }
  absl::optional<ExportedAddress> Find(uint64_t value) const {
    if (value < first_) return absl::nullopt;
    const uint64_t index = (value - first_) / kSpacing;
    if (index > static_cast<uint64_t>(operands_)) return absl::nullopt;
    ExportedAddress found;
    found.operand = index == static_cast<uint64_t>(operands_)
                        ? -1
                        : static_cast<int>(index);
    found.plus = static_cast<int64_t>((value - first_) % kSpacing);
    return found;
  }

 private:
  const int operands_;
  const uint64_t first_;
};

// Tensor maps of the recording that this thread makes, with their addresses.
struct RecordedMap {
  ExportedTensorMap map;
  void* address = nullptr;
};
thread_local std::vector<RecordedMap>* recorded_maps = nullptr;

RecordedMap& Record(TensorMap* written) {
  std::memset(written, 0, sizeof(*written));
  written->opaque[0] = kMapMark;
  written->opaque[1] = recorded_maps->size();
  return recorded_maps->emplace_back();
}

int RecordTiled(TensorMap* map, int data_type, uint32_t rank, void* address,
                const uint64_t* dims, const uint64_t* stride_bytes,
                const uint32_t* box, const uint32_t* element_strides,
                int interleave, int swizzle, int l2_promotion, int fill) {
  RecordedMap& recorded = Record(map);
  recorded.address = address;
  ExportedTensorMap& tiled = recorded.map;
  tiled.data_type = data_type;
  tiled.dims.assign(dims, dims + rank);
  tiled.stride_bytes.assign(stride_bytes, stride_bytes + rank - 1);
  tiled.box.assign(box, box + rank);
  tiled.element_strides.assign(element_strides, element_strides + rank);
  tiled.interleave = interleave;
  tiled.swizzle = swizzle;
  tiled.l2_promotion = l2_promotion;
  tiled.fill = fill;
  return kSuccess;
}

int RecordIm2col(TensorMap* map, int data_type, uint32_t rank, void* address,
                 const uint64_t* dims, const uint64_t* stride_bytes,
                 const int* lower, const int* upper, uint32_t channels,
                 uint32_t pixels, const uint32_t* element_strides,
                 int interleave, int swizzle, int l2_promotion, int fill) {
  RecordTiled(map, data_type, rank, address, dims, stride_bytes,
              element_strides, element_strides, interleave, swizzle,
              l2_promotion, fill);
  ExportedTensorMap& images = recorded_maps->back().map;
  images.im2col = true;
  images.box.clear();
  images.lower.assign(lower, lower + rank - 2);
  images.upper.assign(upper, upper + rank - 2);
  images.channels = channels;
  images.pixels = pixels;
  return kSuccess;
}

Driver RecordingDriver() {
  Driver driver{};
  driver.TensorMapEncodeTiled = RecordTiled;
  driver.TensorMapEncodeIm2col = RecordIm2col;
  return driver;
}

uint64_t WordAt(absl::string_view bytes, size_t at) {
  uint64_t word = 0;
  std::memcpy(&word, bytes.data() + at, sizeof(word));
  return word;
}

// The parameters of one launch, as they are for operands at some addresses.
struct Recording {
  Addresses addresses;
  CudaArguments arguments;
  std::vector<RecordedMap> maps;
};

absl::Status Unexplained(const std::string& function, int parameter) {
  return absl::UnimplementedError(
      absl::StrCat("not exportable: parameter ", parameter, " of ", function,
                   " depends on addresses by more than adding a constant"));
}

absl::StatusOr<ExportedParameter> ExplainParameter(const std::string& function,
                                                   int parameter,
                                                   const Recording& one,
                                                   const Recording& other) {
  const absl::string_view a = one.arguments.bytes(parameter);
  const absl::string_view b = other.arguments.bytes(parameter);
  if (a.size() != b.size()) return Unexplained(function, parameter);
  ExportedParameter exported;
  exported.bytes = std::string(a);
  size_t at = 0;
  while (at < a.size()) {
    if (at % 8 == 0 && at + sizeof(TensorMap) <= a.size() &&
        WordAt(a, at) == kMapMark) {
      const uint64_t index = WordAt(a, at + 8);
      if (index >= one.maps.size() || index >= other.maps.size()) {
        return Unexplained(function, parameter);
      }
      const auto address = one.addresses.Find(
          reinterpret_cast<uint64_t>(one.maps[index].address));
      const auto again = other.addresses.Find(
          reinterpret_cast<uint64_t>(other.maps[index].address));
      if (!address || !again || address->operand != again->operand ||
          address->plus != again->plus) {
        return Unexplained(function, parameter);
      }
      auto& map = exported.tensor_maps.emplace_back();
      map.at = static_cast<int64_t>(at);
      map.map = one.maps[index].map;
      map.map.address = *address;
      exported.bytes.replace(at, sizeof(TensorMap), sizeof(TensorMap), '\0');
      at += sizeof(TensorMap);
      continue;
    }
    if (at % 8 == 0 && at + 8 <= a.size() && WordAt(a, at) != WordAt(b, at)) {
      const auto address = one.addresses.Find(WordAt(a, at));
      const auto again = other.addresses.Find(WordAt(b, at));
      if (!address || !again || address->operand != again->operand ||
          address->plus != again->plus) {
        return Unexplained(function, parameter);
      }
      exported.addresses.push_back({static_cast<int64_t>(at), *address});
      exported.bytes.replace(at, 8, 8, '\0');
      at += 8;
      continue;
    }
    if (a[at] != b[at]) return Unexplained(function, parameter);
    ++at;
  }
  return exported;
}

}  // namespace

absl::StatusOr<ExportedPlan> ExportPlan(const CudaBackend& backend,
                                        const proto::Shape& shape,
                                        const proto::Config& config,
                                        const proto::Hardware& hardware,
                                        int operands) {
  OPTRAIL_ASSIGN_OR_RETURN(const CudaPlan plan,
                           backend.Plan(shape, config, hardware));
  static const Driver driver = RecordingDriver();
  ExportedPlan exported;
  exported.workspace_bytes = static_cast<int64_t>(plan.workspace_bytes);
  const std::vector<CudaLaunch> launches = LaunchesOf(plan);
  for (size_t i = 0; i < launches.size(); ++i) {
    std::vector<Recording> recordings;
    for (const uint64_t number : {1, 3}) {
      Recording& recording = recordings.emplace_back(
          Recording{Addresses(operands, number), {}, {}});
      std::vector<void*> addresses;
      for (int k = 0; k < operands; ++k) {
        addresses.push_back(recording.addresses.Of(k));
      }
      void* const workspace =
          plan.workspace_bytes > 0 ? recording.addresses.Of(-1) : nullptr;
      recorded_maps = &recording.maps;
      const absl::Status made = backend.ArgumentsOf(
          static_cast<int>(i), plan, shape, config, addresses, workspace,
          driver, &recording.arguments);
      recorded_maps = nullptr;
      OPTRAIL_RETURN_IF_ERROR(made);
    }
    const Recording& one = recordings[0];
    const Recording& other = recordings[1];
    if (one.arguments.count() != other.arguments.count()) {
      return Unexplained(launches[i].function, 0);
    }
    ExportedPlan::Launch launch{launches[i], {}};
    for (int k = 0; k < one.arguments.count(); ++k) {
      OPTRAIL_ASSIGN_OR_RETURN(
          ExportedParameter parameter,
          ExplainParameter(launches[i].function, k, one, other));
      launch.parameters.push_back(std::move(parameter));
    }
    exported.launches.push_back(std::move(launch));
  }
  return exported;
}

}  // namespace optrail::ops::cuda

#include "ops/device/cuda/aliased_memory.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"

namespace optrail::ops::cuda {
namespace {

constexpr int kMinimumGranularity = 0;

}  // namespace

absl::Status AliasedMemory::Map(size_t bytes) {
  MemoryProperties properties;
  MemoryAccess access;
  OPTRAIL_RETURN_IF_ERROR(driver_.Check(
      driver_.CtxGetDevice(&properties.device), "cuCtxGetDevice"));
  access.device = properties.device;
  OPTRAIL_RETURN_IF_ERROR(
      driver_.Check(driver_.MemGetAllocationGranularity(&granule_, &properties,
                                                        kMinimumGranularity),
                    "cuMemGetAllocationGranularity"));
  const size_t range = (bytes + granule_ - 1) / granule_ * granule_;
  OPTRAIL_RETURN_IF_ERROR(
      driver_.Check(driver_.MemAddressReserve(&base_, range, granule_, 0, 0),
                    absl::StrCat("cuMemAddressReserve of ", range, " bytes")));
  reserved_ = range;
  OPTRAIL_RETURN_IF_ERROR(driver_.Check(
      driver_.MemCreate(&memory_, granule_, &properties, 0), "cuMemCreate"));
  for (; mapped_ < range; mapped_ += granule_) {
    OPTRAIL_RETURN_IF_ERROR(driver_.Check(
        driver_.MemMap(base_ + mapped_, granule_, 0, memory_, 0), "cuMemMap"));
  }
  return driver_.Check(driver_.MemSetAccess(base_, range, &access, 1),
                       "cuMemSetAccess");
}

absl::StatusOr<std::shared_ptr<const AliasedMemory>> AliasedMemory::Make(
    const Driver& driver, const void* source, int64_t bytes, Stream stream) {
  if (!driver.HasVirtualMemory()) {
    return absl::UnimplementedError(
        "unsupported here: the driver maps no memory (cuMemMap), expected CUDA "
        "10.2 or later");
  }
  std::shared_ptr<AliasedMemory> made(new AliasedMemory(driver));
  if (const absl::Status mapped = made->Map(static_cast<size_t>(bytes));
      !mapped.ok()) {
    if (absl::IsResourceExhausted(mapped)) return mapped;
    return absl::UnimplementedError(
        absl::StrCat("unsupported here: ", mapped.message()));
  }
  OPTRAIL_RETURN_IF_ERROR(driver.Check(
      driver.MemcpyDtoDAsync(
          made->base_, reinterpret_cast<Address>(source),
          std::min(made->granule_, static_cast<size_t>(bytes)), stream),
      "cuMemcpyDtoDAsync"));
  return std::shared_ptr<const AliasedMemory>(std::move(made));
}

AliasedMemory::~AliasedMemory() {
  if (mapped_ > 0) driver_.MemUnmap(base_, mapped_);
  if (memory_ != 0) driver_.MemRelease(memory_);
  if (reserved_ > 0) driver_.MemAddressFree(base_, reserved_);
}

}  // namespace optrail::ops::cuda

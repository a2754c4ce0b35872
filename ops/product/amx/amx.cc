#include "ops/product/amx/amx.h"

#include "base/check.h"

#if defined(__x86_64__)
#include <cpuid.h>
#include <immintrin.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <limits>

#include "absl/strings/str_cat.h"
#endif

namespace optrail::ops {

#if defined(__x86_64__)

namespace {

absl::Status Find() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  constexpr unsigned kAmxBf16 = 1u << 22, kAmxTile = 1u << 24;   // d
  constexpr unsigned kVectors = 1u << 16 | 1u << 30 | 1u << 31;  // b: f, bw, vl
  constexpr unsigned kAvx512Bf16 = 1u << 5;                      // a of leaf 1
  if (__get_cpuid_count(7, 0, &a, &b, &c, &d) == 0 || (d & kAmxBf16) == 0 ||
      (d & kAmxTile) == 0) {
    return absl::UnavailableError(
        "unsupported here: this processor has no AMX tiles for bfloat16 "
        "(amx_tile, amx_bf16)");
  }
  unsigned more = 0;
  if ((b & kVectors) != kVectors ||
      __get_cpuid_count(7, 1, &more, &b, &c, &d) == 0 ||
      (more & kAvx512Bf16) == 0) {
    return absl::UnavailableError(
        "unsupported here: this processor has AMX, but no AVX512_BF16");
  }
  // Data of tiles is saved by the system only for those who ask.
  constexpr int kRequestPermission = 0x1023;  // ARCH_REQ_XCOMP_PERM
  constexpr int kTileData = 18;               // XFEATURE_XTILEDATA
  if (syscall(SYS_arch_prctl, kRequestPermission, kTileData) != 0) {
    return absl::UnavailableError(
        absl::StrCat("unsupported here: the system refuses the use of AMX's "
                     "tiles: ",
                     std::strerror(errno)));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status AmxForBf16() {
  static const absl::Status* const found = new absl::Status(Find());
  return *found;
}

__attribute__((target("avx512f,avx512bw,avx512vl,avx512bf16"))) void
RoundTilesToBf16(const Epilogue& epilogue, const float* x, int64_t rows,
                 int64_t columns, int64_t ldx, uint16_t* y, int64_t ldy) {
  const auto kept = static_cast<__mmask32>((uint64_t{1} << columns) - 1);
  if (epilogue.changes_nothing()) {
    for (int64_t r = 0; r < rows; ++r) {
      const __m512 low = _mm512_loadu_ps(x + r * ldx);
      const __m512 high = _mm512_loadu_ps(x + r * ldx + 16);
      const auto rounded =
          reinterpret_cast<__m512i>(_mm512_cvtne2ps_pbh(high, low));
      _mm512_mask_storeu_epi16(y + r * ldy, kept, rounded);
    }
    return;
  }
  const auto kept_low = static_cast<__mmask16>(kept);
  const auto kept_high = static_cast<__mmask16>(kept >> 16);
  __m512 scale_low = _mm512_set1_ps(1), scale_high = scale_low;
  if (epilogue.scale != nullptr) {
    scale_low = _mm512_maskz_loadu_ps(kept_low, epilogue.scale);
    scale_high = _mm512_maskz_loadu_ps(kept_high, epilogue.scale + 16);
  }
  __m512 shift_low = _mm512_setzero_ps(), shift_high = shift_low;
  if (epilogue.shift != nullptr) {
    shift_low = _mm512_maskz_loadu_ps(kept_low, epilogue.shift);
    shift_high = _mm512_maskz_loadu_ps(kept_high, epilogue.shift + 16);
  }
  constexpr __mmask16 kAll = 0xffff;  // without it GCC 12 warns of nothing
  // NaN is not cut off: of two operands the second is taken then.
  const __m512 least =
      _mm512_set1_ps(epilogue.activation == Activation::kRelu
                         ? 0.0f
                         : -std::numeric_limits<float>::infinity());
  for (int64_t r = 0; r < rows; ++r) {
    const __m512 low = _mm512_maskz_max_ps(
        kAll, least,
        _mm512_fmadd_ps(_mm512_loadu_ps(x + r * ldx), scale_low, shift_low));
    const __m512 high =
        _mm512_maskz_max_ps(kAll, least,
                            _mm512_fmadd_ps(_mm512_loadu_ps(x + r * ldx + 16),
                                            scale_high, shift_high));
    const auto rounded =
        reinterpret_cast<__m512i>(_mm512_cvtne2ps_pbh(high, low));
    _mm512_mask_storeu_epi16(y + r * ldy, kept, rounded);
  }
}

#else

absl::Status AmxForBf16() {
  return absl::UnavailableError(
      "unsupported here: AMX is of x86-64 processors");
}

void RoundTilesToBf16(const Epilogue& epilogue, const float* x, int64_t rows,
                      int64_t columns, int64_t ldx, uint16_t* y, int64_t ldy) {
  OPTRAIL_CHECK(false) << "AMX is of x86-64 processors";
}

#endif

}  // namespace optrail::ops

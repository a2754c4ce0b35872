#ifndef OPTRAIL_OPS_PRODUCT_CUDA_COLUMNS_CUH_
#define OPTRAIL_OPS_PRODUCT_CUDA_COLUMNS_CUH_

// Products of a warpgroup of any multiple of 8 columns, up to 256. hopper.cuh
// has the widths that other operators use; the rest is here, so that their
// kernels, and what was tuned for them, stay as they are.

#include "hopper.cuh"

#define OPTRAIL_R12 OPTRAIL_R8 ",%8,%9,%10,%11"
#define OPTRAIL_R20 OPTRAIL_R16 ",%16,%17,%18,%19"
#define OPTRAIL_R24 OPTRAIL_R20 ",%20,%21,%22,%23"
#define OPTRAIL_R28 OPTRAIL_R24 ",%24,%25,%26,%27"
#define OPTRAIL_R36 OPTRAIL_R32 ",%32,%33,%34,%35"
#define OPTRAIL_R40 OPTRAIL_R36 ",%36,%37,%38,%39"
#define OPTRAIL_R44 OPTRAIL_R40 ",%40,%41,%42,%43"
#define OPTRAIL_R48 OPTRAIL_R44 ",%44,%45,%46,%47"
#define OPTRAIL_R52 OPTRAIL_R48 ",%48,%49,%50,%51"
#define OPTRAIL_R56 OPTRAIL_R52 ",%52,%53,%54,%55"
#define OPTRAIL_R60 OPTRAIL_R56 ",%56,%57,%58,%59"
#define OPTRAIL_R68 OPTRAIL_R64 ",%64,%65,%66,%67"
#define OPTRAIL_R72 OPTRAIL_R68 ",%68,%69,%70,%71"
#define OPTRAIL_R76 OPTRAIL_R72 ",%72,%73,%74,%75"
#define OPTRAIL_R80 OPTRAIL_R76 ",%76,%77,%78,%79"
#define OPTRAIL_R84 OPTRAIL_R80 ",%80,%81,%82,%83"
#define OPTRAIL_R88 OPTRAIL_R84 ",%84,%85,%86,%87"
#define OPTRAIL_R92 OPTRAIL_R88 ",%88,%89,%90,%91"
#define OPTRAIL_R100 OPTRAIL_R96 ",%96,%97,%98,%99"
#define OPTRAIL_R104 OPTRAIL_R100 ",%100,%101,%102,%103"
#define OPTRAIL_R108 OPTRAIL_R104 ",%104,%105,%106,%107"
#define OPTRAIL_R112 OPTRAIL_R108 ",%108,%109,%110,%111"
#define OPTRAIL_R116 OPTRAIL_R112 ",%112,%113,%114,%115"
#define OPTRAIL_R120 OPTRAIL_R116 ",%116,%117,%118,%119"
#define OPTRAIL_R124 OPTRAIL_R120 ",%120,%121,%122,%123"

#define OPTRAIL_S4 OPTRAIL_D4(0)
#define OPTRAIL_S8 OPTRAIL_S4, OPTRAIL_D4(4)
#define OPTRAIL_S12 OPTRAIL_S8, OPTRAIL_D4(8)
#define OPTRAIL_S16 OPTRAIL_S12, OPTRAIL_D4(12)
#define OPTRAIL_S20 OPTRAIL_S16, OPTRAIL_D4(16)
#define OPTRAIL_S24 OPTRAIL_S20, OPTRAIL_D4(20)
#define OPTRAIL_S28 OPTRAIL_S24, OPTRAIL_D4(24)
#define OPTRAIL_S32 OPTRAIL_S28, OPTRAIL_D4(28)
#define OPTRAIL_S36 OPTRAIL_S32, OPTRAIL_D4(32)
#define OPTRAIL_S40 OPTRAIL_S36, OPTRAIL_D4(36)
#define OPTRAIL_S44 OPTRAIL_S40, OPTRAIL_D4(40)
#define OPTRAIL_S48 OPTRAIL_S44, OPTRAIL_D4(44)
#define OPTRAIL_S52 OPTRAIL_S48, OPTRAIL_D4(48)
#define OPTRAIL_S56 OPTRAIL_S52, OPTRAIL_D4(52)
#define OPTRAIL_S60 OPTRAIL_S56, OPTRAIL_D4(56)
#define OPTRAIL_S64 OPTRAIL_S60, OPTRAIL_D4(60)
#define OPTRAIL_S68 OPTRAIL_S64, OPTRAIL_D4(64)
#define OPTRAIL_S72 OPTRAIL_S68, OPTRAIL_D4(68)
#define OPTRAIL_S76 OPTRAIL_S72, OPTRAIL_D4(72)
#define OPTRAIL_S80 OPTRAIL_S76, OPTRAIL_D4(76)
#define OPTRAIL_S84 OPTRAIL_S80, OPTRAIL_D4(80)
#define OPTRAIL_S88 OPTRAIL_S84, OPTRAIL_D4(84)
#define OPTRAIL_S92 OPTRAIL_S88, OPTRAIL_D4(88)
#define OPTRAIL_S96 OPTRAIL_S92, OPTRAIL_D4(92)
#define OPTRAIL_S100 OPTRAIL_S96, OPTRAIL_D4(96)
#define OPTRAIL_S104 OPTRAIL_S100, OPTRAIL_D4(100)
#define OPTRAIL_S108 OPTRAIL_S104, OPTRAIL_D4(104)
#define OPTRAIL_S112 OPTRAIL_S108, OPTRAIL_D4(108)
#define OPTRAIL_S116 OPTRAIL_S112, OPTRAIL_D4(112)
#define OPTRAIL_S120 OPTRAIL_S116, OPTRAIL_D4(116)
#define OPTRAIL_S124 OPTRAIL_S120, OPTRAIL_D4(120)
#define OPTRAIL_S128 OPTRAIL_S124, OPTRAIL_D4(124)

#define OPTRAIL_FROM \
  "l"(a), "l"(b), "r"(accumulate), "n"(kRowsOfA), "n"(kColumnsOfB)
// `a` to `y`: the numbers of the operands behind the `registers` sums.
#define OPTRAIL_CASE(columns, registers, a, b, flag, x, y)                  \
  else if constexpr (kColumns == columns) {                                 \
    OPTRAIL_WGMMA(columns, OPTRAIL_R##registers, "%" #a, "%" #b, "%" #flag, \
                  "%" #x ", %" #y, OPTRAIL_S##registers                     \
                  : OPTRAIL_FROM);                                          \
  }

// As Multiply of hopper.cuh.
template <int kColumns, int kColumnsOfB, int kRowsOfA = 0>
__device__ __forceinline__ void MultiplyColumns(float (&d)[kColumns / 2],
                                                uint64_t a, uint64_t b,
                                                int accumulate) {
  static_assert(kColumns % 8 == 0 && kColumns <= 256);
  if constexpr (kColumns == 8 || kColumns == 16 || kColumns == 32 ||
                kColumns % 64 == 0) {
    Multiply<kColumns, kColumnsOfB, kRowsOfA>(d, a, b, accumulate);
  }
  OPTRAIL_CASE(24, 12, 12, 13, 14, 15, 16)
  OPTRAIL_CASE(40, 20, 20, 21, 22, 23, 24)
  OPTRAIL_CASE(48, 24, 24, 25, 26, 27, 28)
  OPTRAIL_CASE(56, 28, 28, 29, 30, 31, 32)
  OPTRAIL_CASE(72, 36, 36, 37, 38, 39, 40)
  OPTRAIL_CASE(80, 40, 40, 41, 42, 43, 44)
  OPTRAIL_CASE(88, 44, 44, 45, 46, 47, 48)
  OPTRAIL_CASE(96, 48, 48, 49, 50, 51, 52)
  OPTRAIL_CASE(104, 52, 52, 53, 54, 55, 56)
  OPTRAIL_CASE(112, 56, 56, 57, 58, 59, 60)
  OPTRAIL_CASE(120, 60, 60, 61, 62, 63, 64)
  OPTRAIL_CASE(136, 68, 68, 69, 70, 71, 72)
  OPTRAIL_CASE(144, 72, 72, 73, 74, 75, 76)
  OPTRAIL_CASE(152, 76, 76, 77, 78, 79, 80)
  OPTRAIL_CASE(160, 80, 80, 81, 82, 83, 84)
  OPTRAIL_CASE(168, 84, 84, 85, 86, 87, 88)
  OPTRAIL_CASE(176, 88, 88, 89, 90, 91, 92)
  OPTRAIL_CASE(184, 92, 92, 93, 94, 95, 96)
  OPTRAIL_CASE(200, 100, 100, 101, 102, 103, 104)
  OPTRAIL_CASE(208, 104, 104, 105, 106, 107, 108)
  OPTRAIL_CASE(216, 108, 108, 109, 110, 111, 112)
  OPTRAIL_CASE(224, 112, 112, 113, 114, 115, 116)
  OPTRAIL_CASE(232, 116, 116, 117, 118, 119, 120)
  OPTRAIL_CASE(240, 120, 120, 121, 122, 123, 124)
  OPTRAIL_CASE(248, 124, 124, 125, 126, 127, 128)
}
#undef OPTRAIL_CASE
#undef OPTRAIL_FROM

// Up to 64 columns from `first` on of the sums of a product, rounded and
// written to a tile as its rows, that is, transposed. The product's 64 rows are
// the columns of the tile.
template <int kColumns>
__device__ __forceinline__ void StoreColumns(uint32_t tile, const float* sums,
                                             int first) {
  const int lane = threadIdx.x % 32, warp = threadIdx.x % 128 / 32;
  const int chunk = warp * 2 + lane / 8 % 2;  // of 8 columns of the tile
#pragma unroll
  for (int i = 0; i < 8; i += 2) {
    // Eight rows and the next eight.
    const int at = first + i * 8;
    if (at >= kColumns) break;
    const float* const v = sums + at / 2;
    const int row = (i + lane / 16) * 8 + lane % 8;
    const uint32_t to = tile + row * 128 + ((chunk ^ (row % 8)) * 16);
    if (at + 8 < kColumns) {
      asm volatile(
          "stmatrix.sync.aligned.m8n8.x4.trans.shared::cta.b16 [%0], {%1, %2, "
          "%3, %4};" ::"r"(to),
          "r"(Pack(v[0], v[1])), "r"(Pack(v[2], v[3])), "r"(Pack(v[4], v[5])),
          "r"(Pack(v[6], v[7]))
          : "memory");
    } else {
      // Lanes from 16 on name no row.
      asm volatile(
          "stmatrix.sync.aligned.m8n8.x2.trans.shared::cta.b16 [%0], {%1, "
          "%2};" ::"r"(to),
          "r"(Pack(v[0], v[1])), "r"(Pack(v[2], v[3]))
          : "memory");
    }
  }
}

#endif  // OPTRAIL_OPS_PRODUCT_CUDA_COLUMNS_CUH_

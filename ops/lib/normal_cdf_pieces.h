#ifndef OPTRAIL_OPS_LIB_NORMAL_CDF_PIECES_H_
#define OPTRAIL_OPS_LIB_NORMAL_CDF_PIECES_H_

// The probability that a standard normal variable is below x, in pieces: around
// each i * kWidth, i from -16 to 15, a polynomial of t = x - i * kWidth.
//
//   const auto& c = NormalCdfPieces::Get().coefficients;
//   p = c[0][i & 31] + t * (c[1][i & 31] + t * ...);
//
// They go through the Chebyshev nodes of their piece: off by less than 1e-9,
// and from -4 on by less than 1e-8 of the value. What is lost beyond that is
// rounding. So 32 values of a coefficient fill two vectors of AVX-512, of which
// one instruction takes each lane's own (gelu-inl.h).

namespace optrail::ops {

struct NormalCdfPieces {
  static constexpr float kWidth = 0.375f;
  static constexpr int kPieces = 32;
  static constexpr int kDegree = 6;

  // Computed by the first call.
  static const NormalCdfPieces& Get();

  alignas(64) float coefficients[kDegree + 1][kPieces];
};

}  // namespace optrail::ops

#endif  // OPTRAIL_OPS_LIB_NORMAL_CDF_PIECES_H_

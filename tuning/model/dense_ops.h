#ifndef OPTRAIL_TUNING_MODEL_DENSE_OPS_H_
#define OPTRAIL_TUNING_MODEL_DENSE_OPS_H_

// The inner loops of the Gaussian process, compiled for several instruction
// sets and chosen at run time. Row-major matrices; no aliasing unless said.
//
// Results may differ in the last bits between instruction sets; on one machine
// they are always the same.

#include <cstddef>

namespace optrail::tuning {

// Candidates are handled in blocks of this many columns.
inline constexpr int kBlockWidth = 256;

// The Matern-5/2 correlation (1 + t + t^2/3) exp(-t) with t = sqrt(5 r2), and
// its derivative by r2. `slope` may be null.
void Matern52(const float* r2, size_t count, float* value, float* slope);

// a += factor * b.
void AddScaled(float factor, const float* b, size_t count, float* a);
double Dot(const float* a, const float* b, size_t count);

// The Cholesky factor of the n x n matrix whose lower triangle is in `a`, in
// place. False if the matrix isn't positive definite.
bool Cholesky(double* a, int n);

// The inverse of the lower triangle of `l` into that of `inverse`.
void InvertLower(const double* l, int n, double* inverse);

// The lower triangle of inverse^T * inverse.
void GramOfLower(const double* inverse, int n, double* gram);

// Solves l * v = b for a block: b is n x kBlockWidth, replaced by v. `l` has
// `stride` floats a row.
void ForwardSolveBlock(const float* l, int stride, int n, float* b);

// acc += sum over rows of factor[row] * v[row], for one block.
void AddRows(const float* v, int rows, const float* factor, float* acc);

}  // namespace optrail::tuning

#endif  // OPTRAIL_TUNING_MODEL_DENSE_OPS_H_

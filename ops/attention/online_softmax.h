#ifndef OPTRAIL_OPS_ATTENTION_ONLINE_SOFTMAX_H_
#define OPTRAIL_OPS_ATTENTION_ONLINE_SOFTMAX_H_

// The loops of attention around its products, for the best SIMD target of this
// machine. Scores are met block by block; each row keeps the largest score yet
// and the sum of e^(score - largest), and what was summed before is rescaled
// when a larger score turns up (Milakov and Gimelshein, "Online normalizer
// calculation for softmax", 2018; Dao et al., "FlashAttention", 2022).

#include <cstdint>

namespace optrail::ops {

// The state of one query. Exponentials are of 2: e^x is 2^(x log2 e), one
// product that the scale takes with it.
struct SoftmaxState {
  float max;  // in powers of 2
  float sum;
};

// Before the first block. The maximum is finite: -infinity minus itself is NaN.
SoftmaxState EmptySoftmax();

// scores[r][c] becomes e^(scores[r][c] * scale - largest) for c < seen[r], and
// 0 up to `cols`; states are brought up to date. y[r], of `d` values, is
// rescaled for the new maximum, and not read before the first block.
void SoftmaxBlock(float* scores, int64_t rows, int64_t cols, int64_t stride,
                  const int64_t* seen, float scale, SoftmaxState* states,
                  float* y, int64_t d);

// The same, but weights become bfloat16, where the row of scores was, `stride`
// floats apart; after an odd number of them comes a 0. For machines that have
// pairs (FindPairTile).
void SoftmaxPairBlock(float* scores, int64_t rows, int64_t cols, int64_t stride,
                      const int64_t* seen, float scale, SoftmaxState* states,
                      float* y, int64_t d);

// y[r] /= the state's sum.
void FinishRows(const SoftmaxState* states, int64_t rows, int64_t d, float* y);

// scores[r * stride + j] = q[r] . keys[j] for `rows` queries and `count` keys
// of `d` values, floats or of bfloat16.
void ScoreKeys(const float* q, int64_t rows, const float* keys, int64_t count,
               int64_t d, float* scores, int64_t stride);
void ScoreKeys(const float* q, int64_t rows, const uint16_t* keys,
               int64_t count, int64_t d, float* scores, int64_t stride);

// In pairs, for machines that have them; d is a multiple of kPairsOfFew.
inline constexpr int64_t kPairsOfFew = 32;
void ScoreKeys(const uint16_t* q, int64_t rows, const uint16_t* keys,
               int64_t count, int64_t d, float* scores, int64_t stride);

// y[r] += sum over j of weights[r * stride + j] values[j].
void SumValues(const float* weights, int64_t rows, int64_t stride,
               const float* values, int64_t count, int64_t d, float* y);
void SumValues(const float* weights, int64_t rows, int64_t stride,
               const uint16_t* values, int64_t count, int64_t d, float* y);

// In pairs: weights as SoftmaxPairBlock leaves them.
void SumValues(const uint16_t* weights, int64_t rows, int64_t stride,
               const uint16_t* values, int64_t count, int64_t d, float* y);

// (a, a_y) becomes the two together.
void MergeSoftmax(const SoftmaxState& b, const float* b_y, int64_t d,
                  SoftmaxState* a, float* a_y);

}  // namespace optrail::ops

#endif  // OPTRAIL_OPS_ATTENTION_ONLINE_SOFTMAX_H_

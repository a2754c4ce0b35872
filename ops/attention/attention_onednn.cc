// What one calls where a library has no attention: oneDNN's product of queries
// and keys, scaled, its softmax, and its product with values. Heads that share
// keys lie together, so that a group is one product. Scores of hidden keys are
// overwritten by -infinity between the calls. Of bfloat16 scores are floats,
// and weights are rounded.

#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>
#include <utility>

#include "base/status_macros.h"
#include "ops/lib/onednn.h"

namespace optrail::ops {
namespace {

class Composition : public Invocation {
 public:
  Composition(std::unique_ptr<Invocation> scores,
              std::unique_ptr<Invocation> softmax,
              std::unique_ptr<Invocation> values, std::unique_ptr<Buffer> space,
              std::unique_ptr<Buffer> weights)
      : scores_(std::move(scores)),
        softmax_(std::move(softmax)),
        values_(std::move(values)),
        space_(std::move(space)),
        weights_(std::move(weights)) {}

  // Of a causal one: `rows` queries, those of a head one after the other.
  void Hide(int64_t rows, int64_t queries, int64_t keys) {
    rows_ = rows;
    queries_ = queries;
    keys_ = keys;
  }

  void Run(absl::Span<void* const> operands) override {
    void* const space = space_->data();
    scores_->Run({operands[0], operands[1], space});
    auto* const scores = static_cast<float*>(space);
    for (int64_t row = 0; row < rows_; ++row) {
      const int64_t seen = keys_ - queries_ + row % queries_ + 1;
      for (int64_t j = seen; j < keys_; ++j) {
        scores[row * keys_ + j] = -std::numeric_limits<float>::infinity();
      }
    }
    void* const weights = weights_ == nullptr ? space : weights_->data();
    softmax_->Run({space, weights});
    values_->Run({weights, operands[2], operands[3]});
  }

  int64_t workspace_bytes() const override {
    const size_t weights = weights_ == nullptr ? 0 : weights_->size_bytes();
    return static_cast<int64_t>(space_->size_bytes() + weights);
  }

 private:
  const std::unique_ptr<Invocation> scores_;
  const std::unique_ptr<Invocation> softmax_;
  const std::unique_ptr<Invocation> values_;
  const std::unique_ptr<Buffer> space_;    // scores
  const std::unique_ptr<Buffer> weights_;  // nullptr: where scores were
  int64_t rows_ = 0;                       // none are hidden
  int64_t queries_ = 0;
  int64_t keys_ = 0;
};

OneDnnPrimitive Compose(const proto::Shape& shape, CpuDevice& device) {
  const int64_t heads = shape.dims(0).value() * shape.dims(1).value();
  const int64_t queries = shape.dims(2).value();
  const int64_t keys = shape.dims(3).value();
  const int64_t d = shape.dims(4).value();
  int64_t group = 1;
  bool causal = false;
  for (const proto::Attribute& attribute : shape.attributes()) {
    if (attribute.name() == "group") group = attribute.int_();
    if (attribute.name() == "causal") causal = attribute.variant() == "yes";
  }
  OneDnnProduct scores;
  scores.batch = heads / group;
  scores.m = group * queries;
  scores.n = keys;
  scores.k = d;
  scores.transposed_b = true;
  scores.scale = 1 / std::sqrt(static_cast<float>(d));
  scores.type = shape.data_types(0);
  scores.float_c = true;
  OneDnnProduct values;
  values.batch = scores.batch;
  values.m = scores.m;
  values.n = d;
  values.k = keys;
  values.type = scores.type;
  OPTRAIL_ASSIGN_OR_RETURN(auto by_keys, OneDnnMatmul(scores));
  OPTRAIL_ASSIGN_OR_RETURN(auto softmax,
                           OneDnnSoftmax(heads * queries, keys, scores.type));
  OPTRAIL_ASSIGN_OR_RETURN(auto by_values, OneDnnMatmul(values));
  OPTRAIL_ASSIGN_OR_RETURN(
      auto space, device.Allocate(heads * queries * keys *
                                  static_cast<int64_t>(sizeof(float))));
  std::unique_ptr<Buffer> weights;
  if (scores.type != proto::F32) {
    OPTRAIL_ASSIGN_OR_RETURN(
        weights, device.Allocate(heads * queries * keys *
                                 static_cast<int64_t>(sizeof(uint16_t))));
  }
  auto composition = std::make_unique<Composition>(
      std::move(by_keys), std::move(softmax), std::move(by_values),
      std::move(space), std::move(weights));
  if (causal) composition->Hide(heads * queries, queries, keys);
  return composition;
}

OPTRAIL_REGISTER_ONEDNN("attention", Compose, {{proto::F32}, {proto::BF16}})

}  // namespace
}  // namespace optrail::ops

// What one calls where a library has no attention: oneDNN's product of queries
// and keys, scaled, its softmax, and its product with values. Heads that share
// keys lie together, so that a group is one product. Scores of hidden keys are
// overwritten by -infinity between the calls. Of bfloat16 scores are floats,
// and weights are rounded.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <memory>
#include <utility>

#include "base/status_macros.h"
#include "ops/vendor/onednn/onednn.h"

namespace optrail::ops {
namespace {

class Composition : public Invocation {
 public:
  // `elements`: of the scores; `rounded_bytes`: of the weights, if they do not
  // lie where the scores were.
  Composition(std::unique_ptr<Invocation> scores,
              std::unique_ptr<Invocation> softmax,
              std::unique_ptr<Invocation> values, int64_t elements,
              int64_t rounded_bytes)
      : scores_(std::move(scores)),
        softmax_(std::move(softmax)),
        values_(std::move(values)),
        weights_at_(
            rounded_bytes == 0 ? 0 : Lines(elements * int64_t{sizeof(float)})),
        shared_at_(rounded_bytes == 0 ? Lines(elements * int64_t{sizeof(float)})
                                      : weights_at_ + Lines(rounded_bytes)) {}

  // Hides the future from `rows` causal queries, those of a head one after the
  // other.
  void Hide(int64_t rows, int64_t queries, int64_t keys) {
    rows_ = rows;
    queries_ = queries;
    keys_ = keys;
  }

  int64_t workspace_bytes() const override {
    return shared_at_ +
           std::max({scores_->workspace_bytes(), softmax_->workspace_bytes(),
                     values_->workspace_bytes()});
  }

  absl::Status Run(const Call& call) const override {
    char* const space = static_cast<char*>(call.workspace);
    const auto run = [&](const Invocation& part,
                         std::initializer_list<void*> operands) {
      Call of_part = call;
      of_part.operands = operands;
      of_part.workspace = space + shared_at_;
      return part.Run(of_part);
    };
    OPTRAIL_RETURN_IF_ERROR(
        run(*scores_, {call.operands[0], call.operands[1], space}));
    auto* const scores = reinterpret_cast<float*>(space);
    for (int64_t row = 0; row < rows_; ++row) {
      const int64_t seen = keys_ - queries_ + row % queries_ + 1;
      for (int64_t j = seen; j < keys_; ++j) {
        scores[row * keys_ + j] = -std::numeric_limits<float>::infinity();
      }
    }
    char* const weights = space + weights_at_;
    OPTRAIL_RETURN_IF_ERROR(run(*softmax_, {space, weights}));
    return run(*values_, {weights, call.operands[2], call.operands[3]});
  }

 private:
  // Parts of the workspace begin on cache lines.
  static int64_t Lines(int64_t bytes) { return (bytes + 63) / 64 * 64; }

  const std::unique_ptr<const Invocation> scores_;
  const std::unique_ptr<const Invocation> softmax_;
  const std::unique_ptr<const Invocation> values_;
  // Offsets of the weights and of the library's part in a workspace.
  const int64_t weights_at_;
  const int64_t shared_at_;
  int64_t rows_ = 0;  // none are hidden
  int64_t queries_ = 0;
  int64_t keys_ = 0;
};

OneDnnPrimitive Compose(const proto::Shape& shape) {
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
  const int64_t elements = heads * queries * keys;
  auto composition = std::make_unique<Composition>(
      std::move(by_keys), std::move(softmax), std::move(by_values), elements,
      scores.type == proto::F32 ? 0 : elements * int64_t{sizeof(uint16_t)});
  if (causal) composition->Hide(heads * queries, queries, keys);
  return composition;
}

OPTRAIL_REGISTER_ONEDNN("attention", Compose, {{proto::F32}, {proto::BF16}})

}  // namespace
}  // namespace optrail::ops

#ifndef OPTRAIL_TUNING_MODEL_TREE_MODEL_H_
#define OPTRAIL_TUNING_MODEL_TREE_MODEL_H_

// Regression by gradient-boosted trees (XGBoost: Chen and Guestrin, 2016), on
// one thread and deterministic.

#include <memory>
#include <vector>

namespace optrail::tuning {

class TreeModel {
 public:
  TreeModel();
  ~TreeModel();
  TreeModel(const TreeModel&) = delete;
  TreeModel& operator=(const TreeModel&) = delete;

  // Replaces what was learnt. Rows of equal length, one target each, at least
  // one of them.
  void Train(const std::vector<std::vector<float>>& rows,
             const std::vector<float>& targets);

  // Before Train, all zero.
  std::vector<float> Predict(const std::vector<std::vector<float>>& rows) const;

 private:
  struct Booster;
  std::unique_ptr<Booster> booster_;
};

}  // namespace optrail::tuning

#endif  // OPTRAIL_TUNING_MODEL_TREE_MODEL_H_

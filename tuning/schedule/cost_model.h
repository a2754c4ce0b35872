#ifndef OPTRAIL_TUNING_SCHEDULE_COST_MODEL_H_
#define OPTRAIL_TUNING_SCHEDULE_COST_MODEL_H_

// A cost model guesses which programs are fast from their features. Models go
// by name; another registers itself and is asked for as a strategy,
// "evolution:NAME".
//
//   std::unique_ptr<CostModel> model = MakeCostModel("trees");
//   model->Train(rows, log_costs);
//   const std::vector<float> guesses = model->Predict(candidates);

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace optrail::tuning {

class CostModel {
 public:
  virtual ~CostModel() = default;
  // Replaces what was learnt. Targets are logarithms of costs.
  virtual void Train(const std::vector<std::vector<float>>& rows,
                     const std::vector<float>& targets) = 0;
  virtual std::vector<float> Predict(
      const std::vector<std::vector<float>>& rows) const = 0;
};

using CostModelFactory = std::function<std::unique_ptr<CostModel>()>;

bool RegisterCostModel(const std::string& name, CostModelFactory factory);
// Sorted: "none" (which knows nothing), "trees" (tuning/model/tree_model.h).
std::vector<std::string> CostModelNames();
// nullptr if there is none of that name.
std::unique_ptr<CostModel> MakeCostModel(const std::string& name);

}  // namespace optrail::tuning

#endif  // OPTRAIL_TUNING_SCHEDULE_COST_MODEL_H_

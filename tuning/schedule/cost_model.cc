#include "tuning/schedule/cost_model.h"

#include <map>
#include <utility>

#include "tuning/model/tree_model.h"

namespace optrail::tuning {
namespace {

class Trees : public CostModel {
 public:
  void Train(const std::vector<std::vector<float>>& rows,
             const std::vector<float>& targets) override {
    model_.Train(rows, targets);
  }
  std::vector<float> Predict(
      const std::vector<std::vector<float>>& rows) const override {
    return model_.Predict(rows);
  }

 private:
  TreeModel model_;
};

class None : public CostModel {
 public:
  void Train(const std::vector<std::vector<float>>&,
             const std::vector<float>&) override {}
  std::vector<float> Predict(
      const std::vector<std::vector<float>>& rows) const override {
    return std::vector<float>(rows.size(), 0.0f);
  }
};

std::map<std::string, CostModelFactory>& Factories() {
  static auto& factories = *new std::map<std::string, CostModelFactory>{
      {"none", [] { return std::make_unique<None>(); }},
      {"trees", [] { return std::make_unique<Trees>(); }},
  };
  return factories;
}

}  // namespace

bool RegisterCostModel(const std::string& name, CostModelFactory factory) {
  return Factories().emplace(name, std::move(factory)).second;
}

std::vector<std::string> CostModelNames() {
  std::vector<std::string> names;
  for (const auto& [name, factory] : Factories()) names.push_back(name);
  return names;
}

std::unique_ptr<CostModel> MakeCostModel(const std::string& name) {
  const auto found = Factories().find(name);
  return found == Factories().end() ? nullptr : found->second();
}

}  // namespace optrail::tuning

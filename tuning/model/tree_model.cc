#include "tuning/model/tree_model.h"

#include <xgboost/c_api.h>

#include <limits>

#include "base/check.h"

namespace optrail::tuning {
namespace {

constexpr int kRounds = 60;

// A handful of trials: shallow trees, fast learning, little shrinkage.
constexpr const char* kParameters[][2] = {
    {"objective", "reg:squarederror"},
    {"tree_method", "exact"},
    {"max_depth", "6"},
    {"eta", "0.2"},
    {"min_child_weight", "1"},
    {"lambda", "0.5"},
    {"nthread", "1"},
    {"seed", "0"},
    {"verbosity", "0"},
};

// The inputs are ours: a failing call is a broken invariant.
void Call(int result) { OPTRAIL_CHECK(result == 0) << XGBGetLastError(); }

class Matrix {
 public:
  explicit Matrix(const std::vector<std::vector<float>>& rows) {
    std::vector<float> flat;
    for (const std::vector<float>& row : rows) {
      flat.insert(flat.end(), row.begin(), row.end());
    }
    Call(XGDMatrixCreateFromMat(flat.data(), rows.size(), rows.front().size(),
                                std::numeric_limits<float>::quiet_NaN(),
                                &handle_));
  }
  ~Matrix() { XGDMatrixFree(handle_); }
  Matrix(const Matrix&) = delete;
  Matrix& operator=(const Matrix&) = delete;
  DMatrixHandle get() const { return handle_; }

 private:
  DMatrixHandle handle_ = nullptr;
};

}  // namespace

struct TreeModel::Booster {
  explicit Booster(const Matrix& data) {
    const DMatrixHandle matrices[] = {data.get()};
    Call(XGBoosterCreate(matrices, 1, &handle));
    for (const auto& parameter : kParameters) {
      Call(XGBoosterSetParam(handle, parameter[0], parameter[1]));
    }
  }
  ~Booster() { XGBoosterFree(handle); }
  BoosterHandle handle = nullptr;
};

TreeModel::TreeModel() = default;
TreeModel::~TreeModel() = default;

void TreeModel::Train(const std::vector<std::vector<float>>& rows,
                      const std::vector<float>& targets) {
  OPTRAIL_CHECK(!rows.empty() && rows.size() == targets.size());
  if (rows.front().empty()) return;  // every knob has one level
  const Matrix data(rows);
  Call(XGDMatrixSetFloatInfo(data.get(), "label", targets.data(),
                             targets.size()));
  booster_ = std::make_unique<Booster>(data);
  for (int round = 0; round < kRounds; ++round) {
    Call(XGBoosterUpdateOneIter(booster_->handle, round, data.get()));
  }
}

std::vector<float> TreeModel::Predict(
    const std::vector<std::vector<float>>& rows) const {
  if (rows.empty() || booster_ == nullptr) {
    return std::vector<float>(rows.size(), 0.0f);
  }
  const Matrix data(rows);
  bst_ulong count = 0;
  const float* values = nullptr;
  Call(
      XGBoosterPredict(booster_->handle, data.get(), 0, 0, 0, &count, &values));
  return std::vector<float>(values, values + count);
}

}  // namespace optrail::tuning

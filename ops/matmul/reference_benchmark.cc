// What opening a large task costs: inputs, the whole reference, its part, and
// that part found in the shared folder; and what checking one result costs.
//
//   bazel run //ops/matmul:reference_benchmark

#include <stdlib.h>

#include <memory>
#include <string>
#include <vector>

#include "base/check.h"
#include "benchmark/benchmark.h"
#include "ops/core/reference_check.h"
#include "ops/core/registry.h"
#include "ops/device/cpu/device.h"
#include "tuning/proto/canonical.h"

namespace optrail::ops {
namespace {

class Opened {
 public:
  Opened()
      : op_(*Registry::Get().Find("matmul")->op),
        shape_(*tuning::ParseShape("m=2048,n=2048,k=2048/f32")),
        device_(*MakeCpuDevice(1)),
        operands_(*CheckedOperands::Create(op_, shape_, *device_)) {}

  // Inputs that nobody has seen yet.
  void FillAnew() {
    OPTRAIL_CHECK(operands_->Fill(++seed_, Values::kHard).ok());
  }
  void Share(const std::string& folder) {
    operands_->ShareReferences(folder, "benchmark");
  }

  const Operator& op_;
  const proto::Shape shape_;
  std::unique_ptr<CpuDevice> device_;
  std::unique_ptr<CheckedOperands> operands_;

 private:
  uint64_t seed_ = 0;
};

void Inputs(benchmark::State& state) {
  Opened opened;
  for (auto _ : state) opened.FillAnew();
}
BENCHMARK(Inputs)->Unit(benchmark::kMillisecond)->UseRealTime();

void WholeReference(benchmark::State& state) {
  Opened opened;
  std::vector<std::vector<double>> values;
  for (const OperandSpec& spec : opened.operands_->specs()) {
    values.push_back(RandomValues(spec, 1));
  }
  for (auto _ : state) {
    benchmark::DoNotOptimize(opened.op_.Reference(opened.shape_, values));
  }
}
BENCHMARK(WholeReference)->Unit(benchmark::kMillisecond)->UseRealTime();

void PartOfTheReference(benchmark::State& state) {
  Opened opened;
  for (auto _ : state) {
    state.PauseTiming();
    opened.FillAnew();
    state.ResumeTiming();
    opened.operands_->ComputeReference();
  }
}
BENCHMARK(PartOfTheReference)->Unit(benchmark::kMillisecond)->UseRealTime();

void SharedReference(benchmark::State& state) {
  std::string folder = "/tmp/optrail-reference-XXXXXX";
  OPTRAIL_CHECK(mkdtemp(folder.data()) != nullptr);
  for (auto _ : state) {
    state.PauseTiming();
    Opened opened;
    opened.Share(folder);
    opened.FillAnew();
    state.ResumeTiming();
    opened.operands_->ComputeReference();
  }
}
// The first turn computes it.
BENCHMARK(SharedReference)
    ->Iterations(20)
    ->Unit(benchmark::kMillisecond)
    ->UseRealTime();

void Verify(benchmark::State& state) {
  Opened opened;
  opened.FillAnew();
  opened.operands_->ComputeReference();
  OPTRAIL_CHECK(opened.operands_->Arm().ok());
  const auto addresses = opened.operands_->addresses();
  const std::vector<std::vector<double>> values = [&] {
    std::vector<std::vector<double>> list;
    for (int i = 0; i < 2; ++i) {
      const auto* const data = static_cast<const float*>(addresses[i]);
      list.emplace_back(data, data + opened.operands_->specs()[i].elements());
    }
    list.emplace_back();
    return list;
  }();
  const std::vector<double> c = opened.op_.Reference(opened.shape_, values)[0];
  for (size_t i = 0; i < c.size(); ++i) {
    static_cast<float*>(addresses[2])[i] = static_cast<float>(c[i]);
  }
  for (auto _ : state) {
    OPTRAIL_CHECK(opened.operands_->Verify().ok());
  }
}
BENCHMARK(Verify)->Unit(benchmark::kMillisecond)->UseRealTime();

}  // namespace
}  // namespace optrail::ops

BENCHMARK_MAIN();

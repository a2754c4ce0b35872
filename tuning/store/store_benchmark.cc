// Lookups in a store of 1024 tuned configs.

#include <vector>

#include "absl/strings/str_cat.h"
#include "benchmark/benchmark.h"
#include "tuning/proto/canonical.h"
#include "tuning/store/store.h"
#include "tuning/store/tuned_text.h"

namespace optrail::tuning {
namespace {

constexpr int kShapes = 1024;

proto::Shape ShapeAt(int i) {
  return *ParseShape(absl::StrCat("m=", 8 * (i + 1), ",n=512,k=64/f32"));
}

TunedConfigStore MakeStore() {
  proto::TunedConfigs configs;
  configs.set_operator_name("matmul");
  configs.set_hardware_id("amd-epyc-zen4-2c");
  configs.set_device_kind(proto::CPU);
  for (int i = 0; i < kShapes; ++i) {
    proto::TunedConfig* tuned = configs.add_tuned();
    tuned->set_shape(CanonicalText(ShapeAt(i)));
    tuned->set_config("kc=256,mc=96,mr=6,nc=1024,nr=16,pack_b=true");
    tuned->set_threads(1);
    tuned->set_cache_mode(proto::HOT);
    tuned->set_kernel_id("0123456789abcdef");
  }
  StoreOptions options;
  options.checked_in = {{"benchmark", FormatTunedConfigs(configs)}};
  return *TunedConfigStore::Load(options);
}

void Run(benchmark::State& state, const std::vector<proto::Shape>& shapes) {
  static const TunedConfigStore& store = *new TunedConfigStore(MakeStore());
  const auto valid = [](const proto::Config&) { return true; };
  const ConfigPredicate predicate(valid);
  LookupRequest request;
  request.operator_name = "matmul";
  request.hardware_id = "amd-epyc-zen4-2c";
  request.kernel_id = "0123456789abcdef";
  request.is_valid = &predicate;
  size_t i = 0;
  for (auto _ : state) {
    request.shape = &shapes[i++ % shapes.size()];
    benchmark::DoNotOptimize(store.Lookup(request));
  }
}

void BM_LookupExact(benchmark::State& state) {
  std::vector<proto::Shape> shapes;
  for (int i = 0; i < state.range(0); ++i) {
    shapes.push_back(ShapeAt(i * 37 % kShapes));
  }
  Run(state, shapes);
}
BENCHMARK(BM_LookupExact)->Arg(1)->Arg(16)->Arg(kShapes);

void BM_LookupNearest(benchmark::State& state) {
  Run(state, {*ParseShape("m=7,n=512,k=64/f32")});
}
BENCHMARK(BM_LookupNearest);

}  // namespace
}  // namespace optrail::tuning

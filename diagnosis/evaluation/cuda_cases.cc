// Kernels of a GPU with one known bottleneck each. Sizes are such that the
// reference of each takes no more than some seconds.

#include <string>
#include <utility>
#include <vector>

#include "diagnosis/evaluation/planted_cases.h"

namespace optrail::diagnosis {
namespace {

CaseRow Row(const char* name, const char* expected, const char* variant,
            std::pair<int, int> rows, std::pair<int, int> cols,
            std::pair<int, int> depth, std::vector<int> amounts) {
  return {name,
          expected,
          variant,
          {rows.first, rows.second},
          {cols.first, cols.second},
          {depth.first, depth.second},
          std::move(amounts),
          /*threads=*/1,
          /*backend=*/""};
}

// Rows in steps of 128, so that every block has whole ones.
std::vector<CaseRow> LargeCases() {
  using Range = std::pair<int, int>;
  const Range few = {1, 4};
  return {
      Row("strided_l2", "uncoalesced", "strided", {16384, 20480}, {128, 256},
          few, {4}),
      Row("strided_dram", "uncoalesced", "strided", {40960, 65536}, {256, 320},
          few, {4}),
      Row("bytes", "narrow_accesses", "bytes", {4096, 8192}, {512, 1024}, few,
          {4}),
      Row("bank_conflicts", "bank_conflicts", "bank_conflicts", {32768, 65536},
          {128, 256}, few, {4}),
      Row("spills", "device_spills", "spills", {512, 768}, {16384, 20480},
          {12, 24}, {4, 6, 8}),
      Row("local_arrays", "local_arrays", "local_arrays", {2048, 4096},
          {512, 1024}, {8, 24}, {4, 6, 8}),
      Row("single_block", "few_blocks", "few_blocks", {256, 512}, {1024, 2048},
          {4, 16}, {1}),
      Row("few_blocks", "few_blocks", "few_blocks", {512, 1024}, {1024, 2048},
          {4, 16}, {6, 8, 12, 16}),
      Row("tail", "tail", "tail", {4096, 6144}, {1024, 2048}, {32, 64},
          {3, 4, 6, 8}),
      Row("latency", "exposed_latency", "latency", {1024, 2048}, {256, 512},
          {64, 128}, {4}),
      Row("atomics", "device_atomics", "atomics", {2048, 4096}, {1024, 2048},
          few, {4}),
      Row("barriers", "barriers", "barriers", {2048, 4096}, {512, 1024},
          {32, 64}, {4}),
      Row("passes", "extra_traffic", "passes", {8192, 10240}, {2048, 2048},
          {4, 8}, {4}),
      Row("healthy_dram", "", "healthy", {8192, 10240}, {2048, 2048}, few, {4}),
      Row("healthy_l2", "", "healthy", {1536, 2048}, {2048, 2048}, few, {4}),
      Row("healthy_deep", "", "healthy", {2048, 4096}, {1024, 2048}, {64, 96},
          {4}),
  };
}

// Rows that leave most lanes of a warp without an element.
CaseRow UnusedLanes() {
  CaseRow row = Row("unused_lanes", "unused_lanes", "unused_lanes",
                    {65536, 131072}, {2, 12}, {96, 192}, {4});
  row.col_step = 1;
  return row;
}

}  // namespace

std::vector<PlantedCase> DrawCudaCases(uint64_t seed) {
  std::vector<PlantedCase> cases = DrawFrom(
      LargeCases(), "planted", "depth", /*row_step=*/128, seed, /*cores=*/1);
  for (PlantedCase& one :
       DrawFrom({Row("launch", "launch_bound", "healthy", {4, 16}, {256, 512},
                     {1, 4}, {4})},
                "planted", "depth", /*row_step=*/4, seed, /*cores=*/1)) {
    cases.push_back(std::move(one));
  }
  for (PlantedCase& one : DrawFrom({UnusedLanes()}, "planted", "depth",
                                   /*row_step=*/128, seed, /*cores=*/1)) {
    cases.push_back(std::move(one));
  }
  AddShipped({{"add", "n=67108864/f32"},
              {"add", "n=8388608/f32"},
              {"softmax", "rows=8192,cols=4096/bf16"}},
             cases);
  return cases;
}

}  // namespace optrail::diagnosis

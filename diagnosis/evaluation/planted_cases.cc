#include "diagnosis/evaluation/planted_cases.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "base/random.h"

namespace optrail::diagnosis {
namespace {

const std::vector<CaseRow>& Rows() {
  static const auto* const rows = new std::vector<CaseRow>{
      // Computation, inside the L2.
      {"scalar", "scalar", "scalar", {32, 128}, {256, 1024}, {4, 24}, {4}},
      {"narrow",
       "narrow_vectors",
       "narrow",
       {32, 128},
       {256, 1024},
       {8, 32},
       {4}},
      {"latency", "latency", "latency", {32, 128}, {256, 1024}, {1, 2}, {4}},
      {"spills",
       "spills",
       "spills",
       {16, 64},
       {2048, 8192},
       {1, 2},
       {4, 6, 8, 12, 16}},
      {"conversions",
       "conversions",
       "conversions",
       {32, 128},
       {256, 1024},
       {4, 16},
       {4}},
      {"slow",
       "slow_instructions",
       "slow",
       {32, 128},
       {256, 1024},
       {2, 12},
       {4}},
      {"branches",
       "branches",
       "branches",
       {128, 256},
       {512, 1024},
       {2, 4},
       {4}},
      {"misaligned",
       "misaligned",
       "misaligned",
       {4, 8},
       {256, 512},
       {1, 2},
       {4},
       1,
       "native",
       "aligned"},
      // Memory.
      {"strided_l3",
       "strided",
       "strided",
       {768, 1536},
       {1024, 2048},
       {1, 4},
       {4}},
      {"strided_dram",
       "strided",
       "strided",
       {1536, 3072},
       {2048, 4096},
       {1, 4},
       {4}},
      {"gather", "gather", "gather", {2048, 4096}, {2048, 4096}, {1, 4}, {4}},
      {"passes_l2",
       "extra_passes",
       "passes",
       {128, 192},
       {448, 512},
       {6, 12},
       {4}},
      {"passes_l3",
       "extra_passes",
       "passes",
       {512, 1024},
       {1024, 1536},
       {4, 12},
       {4}},
      {"passes_dram",
       "extra_passes",
       "passes",
       {2048, 4096},
       {2048, 4096},
       {3, 8},
       {4}},
      {"copies",
       "copies",
       "copies",
       {1024, 2048},
       {1024, 2048},
       {1, 4},
       {},
       1,
       ""},
      // Outside the computation.
      {"launch",
       "launch",
       "launch",
       {16, 64},
       {256, 1024},
       {2, 8},
       {2, 3, 4, 6}},
      {"page_faults",
       "page_faults",
       "page_faults",
       {512, 1024},
       {512, 1024},
       {1, 4},
       {4}},
      {"waiting",
       "waiting",
       "waiting",
       {64, 256},
       {256, 1024},
       {2, 8},
       {4, 6, 8, 12, 16}},
      {"system_calls",
       "system_calls",
       "system_calls",
       {64, 256},
       {64, 256},
       {2, 8},
       {2, 3, 4, 6, 8}},
      // Two threads.
      {"imbalance",
       "imbalance",
       "imbalance",
       {256, 512},
       {512, 1024},
       {8, 32},
       {1, 2, 4, 8, 16},
       2},
      {"synchronisation",
       "synchronisation",
       "synchronisation",
       {256, 512},
       {64, 128},
       {2, 8},
       {4},
       2},
      {"false_sharing",
       "false_sharing",
       "false_sharing",
       {128, 256},
       {512, 1024},
       {1, 4},
       {4},
       2,
       "native",
       "own_lines"},
      {"contended_lines",
       "contended_lines",
       "contended_lines",
       {128, 256},
       {512, 1024},
       {1, 4},
       {4},
       2},
      {"serial",
       "serial_part",
       "serial",
       {256, 512},
       {512, 1024},
       {8, 32},
       {2, 3, 4, 6, 8},
       2},
      // Healthy.
      {"healthy_deep", "", "healthy", {16, 64}, {256, 512}, {48, 128}, {4}},
      {"healthy_l1", "", "healthy", {4, 8}, {256, 512}, {8, 24}, {4}},
      {"healthy_l2", "", "healthy", {64, 128}, {512, 768}, {8, 24}, {4}},
      {"healthy_l3", "", "healthy", {512, 1024}, {1024, 1536}, {2, 12}, {4}},
      {"healthy_dram", "", "healthy", {2048, 4096}, {2048, 4096}, {1, 6}, {4}},
      {"healthy_threads",
       "",
       "healthy",
       {512, 1024},
       {512, 1024},
       {48, 128},
       {4},
       2},
      {"healthy_threads_dram",
       "",
       "healthy",
       {2048, 4096},
       {2048, 4096},
       {1, 6},
       {4},
       2},
      // Last, so that a seed draws the others as it did before this case.
      {"unused_lanes",
       "unused_lanes",
       "unused_lanes",
       {2048, 8192},
       {2, 5},
       {96, 200},
       {4},
       1,
       "native",
       "healthy",
       /*col_step=*/1},
  };
  return *rows;
}

int Draw(Rng& rng, const int (&range)[2]) {
  return range[0] + static_cast<int>(rng.UniformInt(range[1] - range[0] + 1));
}

}  // namespace

std::vector<PlantedCase> DrawFrom(const std::vector<CaseRow>& table,
                                  const std::string& op,
                                  const std::string& attribute, int row_step,
                                  uint64_t seed, int cores) {
  Rng rng(seed);
  std::vector<PlantedCase> cases;
  for (const CaseRow& row : table) {
    const int rows = Draw(rng, row.rows) / row_step * row_step;
    const int cols = Draw(rng, row.cols) / row.col_step * row.col_step;
    const int value = Draw(rng, row.attribute);
    PlantedCase one;
    one.op = op;
    one.name = row.name;
    one.expected = row.expected;
    one.backend = row.backend;
    one.threads = row.threads;
    one.shape = absl::StrCat(
        "rows=", rows, ",cols=", cols,
        value == 4 ? "" : absl::StrCat("/", attribute, "=", value), "/f32");
    std::string amount;
    if (!row.amounts.empty()) {
      amount = absl::StrCat(",amount=",
                            row.amounts[rng.UniformInt(
                                static_cast<int64_t>(row.amounts.size()))]);
    }
    one.config = absl::StrCat("cause=", row.variant, amount);
    if (!one.expected.empty()) {
      one.unplanted = absl::StrCat("cause=", row.unplanted, amount);
    }
    if (row.threads <= cores) cases.push_back(std::move(one));
  }
  return cases;
}

std::vector<PlantedCase> DrawCases(uint64_t seed, int cores) {
  std::vector<PlantedCase> cases =
      DrawFrom(Rows(), "planted", "depth", /*row_step=*/1, seed, cores);
  AddShipped({{"add", "n=262144/f32"}, {"add", "n=16777216/f32"}}, cases);
  return cases;
}

const std::vector<CaseSet>& CaseSets() {
  static const auto* const sets =
      new std::vector<CaseSet>{{"planted", &DrawCases},
                               {"held_back", &DrawHeldBackCases},
                               {"channel_mix", &DrawChannelMixCases}};
  return *sets;
}

void AddShipped(const std::vector<std::pair<std::string, std::string>>& kernels,
                std::vector<PlantedCase>& cases) {
  for (const auto& [op, shape] : kernels) {
    PlantedCase one;
    one.name = absl::StrCat("healthy_", op, "_", shape);
    one.op = op;
    one.shape = shape;
    cases.push_back(std::move(one));
  }
}

}  // namespace optrail::diagnosis

// Scores what is named first for planted regressions:
//
//   bazel run //tracker/explain/evaluation:score -- [FIRST_SEED [SEEDS]]

#include <cstdlib>
#include <iostream>

#include "absl/strings/str_join.h"
#include "base/text/table.h"
#include "tracker/explain/evaluation/planted_regressions.h"

int main(int argc, char** argv) {
  using optrail::Cell;
  const int first = argc > 1 ? std::atoi(argv[1]) : 1;
  const int seeds = argc > 2 ? std::atoi(argv[2]) : 100;
  optrail::Table table({{"cause"},
                        {"right", optrail::Align::kRight},
                        {"of", optrail::Align::kRight},
                        {"a wrong one"}});
  int right = 0, all = 0;
  for (const std::string& cause : optrail::tracker::PlantedCauses()) {
    int explained = 0;
    std::string wrong;
    for (int seed = first; seed < first + seeds; ++seed) {
      const auto planted = optrail::tracker::PlantRegression(cause, seed);
      if (IsExplained(planted)) {
        ++explained;
      } else if (wrong.empty()) {
        wrong = absl::StrJoin(ExplanationOf(planted), "; ");
      }
    }
    right += explained;
    all += seeds;
    table.AddRow(
        {cause, Cell::Integer(explained), Cell::Integer(seeds), wrong});
  }
  std::cout << table.ToText() << "\n"
            << right << " of " << all << " explained by the right line\n";
}
